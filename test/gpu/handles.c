/* SPDX-License-Identifier: Apache-2.0 */
#include "handles.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "device/cuda/cuda_driver.h"

#define MIB (UINT64_C(1) << 20)
#define ROUNDS 50
#define SPEED_ROUNDS 9
#define TOUCH_BYTES 64
#define TOUCH_STEP (2 * MIB)

static const uint64_t sizes[GPU_HANDLE_SIZES] = {2 * MIB, 20 * MIB, 512 * MIB};

static const char *const names[GPU_HANDLE_CALLS] = {
    [GPU_HANDLE_CREATE] = "create",   [GPU_HANDLE_MAP] = "map",
    [GPU_HANDLE_ACCESS] = "access",   [GPU_HANDLE_UNMAP] = "unmap",
    [GPU_HANDLE_RELEASE] = "release",
};

static uint64_t
now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static int
compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static uint64_t
median(uint64_t *ns, size_t count)
{
    qsort(ns, count, sizeof *ns, compare);
    return ns[count / 2];
}

/* --- calls ------------------------------------------------------------------------------- */

/* Make one of the calls of a handle's life; 0, or the driver's error. */
static int
call(const struct gpu *gpu, enum gpu_handle_call which, unsigned long long address,
     size_t bytes, unsigned long long *handle)
{
    const struct dryi_cuda_memory memory = {.type = 1, .location = {1, gpu->device}};
    const struct gpu_access access = {1, gpu->device, 3};
    if (which == GPU_HANDLE_CREATE)
        return gpu->mem_create(handle, bytes, &memory, 0);
    if (which == GPU_HANDLE_MAP)
        return gpu->mem_map(address, bytes, 0, *handle, 0);
    if (which == GPU_HANDLE_ACCESS)
        return gpu->mem_set_access(address, bytes, &access, 1);
    if (which == GPU_HANDLE_UNMAP)
        return gpu->mem_unmap(address, bytes);
    return gpu->mem_release(*handle);
}

/* Time each call; false: one failed, and what it leaves goes with the process. */
static bool
measure_calls(const struct gpu *gpu, struct gpu_handle_row *row)
{
    uint64_t ns[GPU_HANDLE_CALLS][ROUNDS];
    unsigned long long address, handle = 0;
    size_t bytes = (size_t)row->handle_bytes;
    if (gpu->address_reserve(&address, bytes, 0, 0, 0))
        return false;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < GPU_HANDLE_CALLS; i++) {
            uint64_t begin = now_ns();
            if (call(gpu, (enum gpu_handle_call)i, address, bytes, &handle))
                return false;
            ns[i][round] = now_ns() - begin;
        }
    }
    for (int i = 0; i < GPU_HANDLE_CALLS; i++)
        row->call_ns[i] = median(ns[i], ROUNDS);
    return gpu->address_free(address, bytes) == 0;
}

/* --- speed ------------------------------------------------------------------------------- */

/* Take back what is mapped of a span, and its addresses. */
static void
close_span(const struct gpu *gpu, unsigned long long span, uint64_t mapped, uint64_t all,
           uint64_t step)
{
    for (uint64_t at = 0; at < mapped; at += step)
        (void)gpu->mem_unmap(span + at, (size_t)step);
    (void)gpu->address_free(span, (size_t)all);
}

/* Map a span by handles, which are let go at once: the mapping keeps the memory. */
static bool
open_span(const struct gpu *gpu, const struct gpu_handle_row *row,
          unsigned long long *span)
{
    size_t step = (size_t)row->handle_bytes;
    if (gpu->address_reserve(span, (size_t)row->span_bytes, 0, 0, 0))
        return false;
    for (uint64_t at = 0; at < row->span_bytes; at += step) {
        unsigned long long handle;
        int error = call(gpu, GPU_HANDLE_CREATE, *span + at, step, &handle);
        if (!error) {
            error = call(gpu, GPU_HANDLE_MAP, *span + at, step, &handle);
            (void)gpu->mem_release(handle);
        }
        if (error) {
            close_span(gpu, *span, at, row->span_bytes, step);
            return false;
        }
    }
    const struct gpu_access access = {1, gpu->device, 3};
    return gpu->mem_set_access(*span, (size_t)row->span_bytes, &access, 1) == 0;
}

enum work { COPY, SET, TOUCH };

static int
start(const struct gpu *gpu, enum work work, const struct gpu_handle_row *row,
      unsigned long long to, unsigned long long from)
{
    if (work == COPY)
        return gpu->copy ? gpu->copy(to, from, (size_t)row->span_bytes) : 1;
    if (work == SET)
        return gpu->set(to, 1, (size_t)row->span_bytes);
    return gpu->set_2d ? gpu->set_2d(to, TOUCH_STEP, 1, TOUCH_BYTES,
                                     (size_t)(row->span_bytes / TOUCH_STEP))
                       : 1;
}

/* Return the median of the work's time until the device is done; 0: it cannot be done. */
static uint64_t
time_work(const struct gpu *gpu, enum work work, const struct gpu_handle_row *row,
          unsigned long long to, unsigned long long from)
{
    uint64_t ns[SPEED_ROUNDS];
    for (int i = 0; i < SPEED_ROUNDS; i++) {
        uint64_t begin = now_ns();
        if (start(gpu, work, row, to, from) || gpu->stream_synchronize(NULL))
            return 0;
        ns[i] = now_ns() - begin;
    }
    return median(ns, SPEED_ROUNDS);
}

static void
measure_speed(const struct gpu *gpu, struct gpu_handle_row *row)
{
    unsigned long long to, from;
    if (row->span_bytes == 0 || !open_span(gpu, row, &to))
        return;
    row->set_ns = time_work(gpu, SET, row, to, 0);
    row->touch_ns = time_work(gpu, TOUCH, row, to, 0);
    row->touched_count = row->span_bytes / TOUCH_STEP;
    if (open_span(gpu, row, &from)) {
        row->copy_ns = time_work(gpu, COPY, row, to, from);
        close_span(gpu, from, row->span_bytes, row->span_bytes, row->handle_bytes);
    }
    close_span(gpu, to, row->span_bytes, row->span_bytes, row->handle_bytes);
}

void
gpu_handles_measure(struct gpu_handles *h)
{
    const struct gpu *gpu = h->gpu;
    for (size_t i = 0; i < GPU_HANDLE_SIZES; i++) {
        struct gpu_handle_row *row = &h->rows[i];
        *row = (struct gpu_handle_row){.handle_bytes = sizes[i]};
        row->span_bytes = h->span_bytes / sizes[i] * sizes[i];
        if (gpu->mem_create && measure_calls(gpu, row))
            measure_speed(gpu, row);
    }
}

/* --- the report -------------------------------------------------------------------------- */

static double
gb_a_second(uint64_t bytes, uint64_t ns)
{
    return ns ? (double)bytes / (double)ns : 0.0;
}

void
gpu_handles_print(const struct gpu_handles *h)
{
    printf(
        "\nhandles, medians of %d rounds, us; spans mapped by them (0: not to be had)\n",
        ROUNDS);
    printf("%8s", "MiB");
    for (int i = 0; i < GPU_HANDLE_CALLS; i++)
        printf("%9s", names[i]);
    printf("%11s%10s%10s\n", "copy GB/s", "set GB/s", "touch us");
    for (size_t i = 0; i < GPU_HANDLE_SIZES; i++) {
        const struct gpu_handle_row *r = &h->rows[i];
        printf("%8" PRIu64, r->handle_bytes / MIB);
        for (int k = 0; k < GPU_HANDLE_CALLS; k++)
            printf("%9.2f", (double)r->call_ns[k] / 1e3);
        printf("%11.1f%10.1f%10.1f\n", gb_a_second(r->span_bytes, r->copy_ns),
               gb_a_second(r->span_bytes, r->set_ns), (double)r->touch_ns / 1e3);
    }
}

void
gpu_handles_write(const struct gpu_handles *h, FILE *file)
{
    fputs(",\"handles\":[", file);
    for (size_t i = 0; i < GPU_HANDLE_SIZES; i++) {
        const struct gpu_handle_row *r = &h->rows[i];
        fprintf(file, "%s\n{\"handle_bytes\":%" PRIu64, i ? "," : "", r->handle_bytes);
        for (int k = 0; k < GPU_HANDLE_CALLS; k++)
            fprintf(file, ",\"%s_ns\":%" PRIu64, names[k], r->call_ns[k]);
        fprintf(file,
                ",\"span_bytes\":%" PRIu64 ",\"copy_ns\":%" PRIu64 ",\"set_ns\":%" PRIu64
                ",\"touch_ns\":%" PRIu64 ",\"touched\":%" PRIu64 "}",
                r->span_bytes, r->copy_ns, r->set_ns, r->touch_ns, r->touched_count);
    }
    fputs("]", file);
}
