/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuFFT: plans and the size of their work area; nothing is transformed.
 *
 * It is a model, not a measurement: a plan's work area is as large as its batch of complex
 * spectra. The last dimension of a real transform is cut to n / 2 + 1. NVIDIA documents no
 * formula; small powers of two take less on a card, sizes with large primes more.
 *
 * A plan is a number, one more than its index in a table that grows. Threads: the lock.
 */
#include <stdlib.h>

#include "library.h"
#include "stream.h"

enum fft_result { FFT_OK, FFT_INVALID_PLAN = 1, FFT_INVALID_VALUE = 4 };

static struct plan {
    bool is_used;
    void *stream;
    size_t work_bytes;
} * plans;
static int plan_count;

/* Return the plan; NULL: the number is unknown. Requires the lock. */
static struct plan *
find(int number)
{
    bool is_known = number > 0 && number <= plan_count && plans[number - 1].is_used;
    return is_known ? &plans[number - 1] : NULL;
}

/* Find a free index and return its plan number. Requires the lock. */
static int
find_free(void)
{
    int i = 0;
    while (i < plan_count && plans[i].is_used)
        i++;
    if (i == plan_count) {
        struct plan *more = realloc(plans, (size_t)(plan_count + 1) * sizeof *plans);
        if (!more)
            abort();
        plans = more;
        plan_count++;
    }
    return i + 1;
}

EXPORT enum fft_result
cufftCreate(int *number)
{
    standin_lock();
    *number = find_free();
    plans[*number - 1] = (struct plan){.is_used = true};
    standin_unlock();
    return FFT_OK;
}

/* Change a plan under the lock; the number may be invalid. */
#define CHANGE(number, change)                                                           \
    standin_lock();                                                                      \
    struct plan *plan = find(number);                                                    \
    if (plan)                                                                            \
        (change);                                                                        \
    standin_unlock();                                                                    \
    return plan ? FFT_OK : FFT_INVALID_PLAN

EXPORT enum fft_result
cufftDestroy(int number)
{
    CHANGE(number, plan->is_used = false);
}

EXPORT enum fft_result
cufftSetStream(int number, void *stream)
{
    CHANGE(number, plan->stream = stream);
}

EXPORT enum fft_result
cufftGetSize(int number, size_t *bytes)
{
    CHANGE(number, *bytes = plan->work_bytes);
}

/* The caller owns the work area, as with PyTorch. One that cuFFT owned would not be counted. */
EXPORT enum fft_result
cufftSetAutoAllocation(int number, int is_automatic)
{
    (void)is_automatic;
    CHANGE(number, (void)0);
}

EXPORT enum fft_result
cufftSetWorkArea(int number, void *area)
{
    (void)area;
    CHANGE(number, (void)0);
}

EXPORT enum fft_result
cufftGetVersion(int *version)
{
    *version = 12200;
    return FFT_OK;
}

/* Count the elements of a batch of spectra, the last dimension cut if `is_real`. */
static size_t
count_elements(int rank, const long long *n, bool is_real, long long batch)
{
    size_t count = (size_t)batch;
    for (int i = 0; i < rank; i++) {
        bool is_cut = is_real && i == rank - 1;
        count *= (size_t)(is_cut ? n[i] / 2 + 1 : n[i]);
    }
    return count;
}

EXPORT enum fft_result
cufftXtMakePlanMany(int number, int rank, const long long *n,
                    const long long *in_embedded, long long in_stride,
                    long long in_distance, int in_type, const long long *out_embedded,
                    long long out_stride, long long out_distance, int out_type,
                    long long batch, size_t *bytes, int compute_type)
{
    (void)in_embedded, (void)in_stride, (void)in_distance;
    (void)out_embedded, (void)out_stride, (void)out_distance, (void)compute_type;
    if (rank < 1 || rank > 3 || batch < 1)
        return FFT_INVALID_VALUE;
    bool is_real = !library_is_complex(in_type) || !library_is_complex(out_type);
    int complex_type = library_is_complex(in_type) ? in_type : out_type;
    *bytes = count_elements(rank, n, is_real, batch) * library_element(complex_type);
    CHANGE(number, plan->work_bytes = *bytes);
}

EXPORT enum fft_result
cufftXtExec(int number, void *input, void *output, int direction)
{
    (void)input, (void)output, (void)direction;
    standin_lock();
    const struct plan *plan = find(number);
    void *stream = plan ? plan->stream : NULL;
    standin_unlock();
    if (!plan)
        return FFT_INVALID_PLAN;
    standin_work(stream);
    return FFT_OK;
}
