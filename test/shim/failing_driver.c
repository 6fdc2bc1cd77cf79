/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver whose n-th call fails, between a program and the stand-in: the first library that is
 * loaded under the driver's name.
 *
 * Python says by ctypes which call fails, and asks afterwards whether memory is accessible. The
 * calls are those by which memory is had, given back and waited for. A call that is to fail does
 * nothing.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define RANGES_MAX 65536

int dry_failing_set(uint64_t index, int result);
uint64_t dry_failing_count(void);
const char *dry_failing_name(void);
int dry_failing_is_accessible(uint64_t address, uint64_t bytes);
uint64_t dry_failing_accessible_bytes(void);

/*
 * Tie this library to the stand-in: who looks a function up in the driver, and does not find the
 * function here, finds it there.
 */
void drystone_standin_report(void);
EXPORT extern void (*const dry_failing_behind)(void);
void (*const dry_failing_behind)(void) = drystone_standin_report;

struct span {
    uint64_t begin, end;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t calls, failing = UINT64_MAX;
static int failing_result;
static char failed[64];
static struct span spans[RANGES_MAX]; /* memory with access, in no order */
static size_t span_count;

/* --- for Python ----------------------------------------------------------------------------- */

/* Make the call `index` from now fail with `result`; UINT64_MAX: none. Returns 0. */
EXPORT int
dry_failing_set(uint64_t index, int result)
{
    pthread_mutex_lock(&mutex);
    calls = 0;
    failing = index;
    failing_result = result;
    failed[0] = '\0';
    pthread_mutex_unlock(&mutex);
    return 0;
}

/* Return how many calls there were since. */
EXPORT uint64_t
dry_failing_count(void)
{
    return calls;
}

/* Return the function that failed, or "". */
EXPORT const char *
dry_failing_name(void)
{
    return failed;
}

/* Tell whether each byte of a range has access. */
EXPORT int
dry_failing_is_accessible(uint64_t address, uint64_t bytes)
{
    uint64_t at = address, end = address + bytes;
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < span_count && at < end; i++) {
        if (spans[i].begin <= at && at < spans[i].end) {
            at = spans[i].end;
            i = (size_t)-1; /* from the first again */
        }
    }
    pthread_mutex_unlock(&mutex);
    return at >= end;
}

/* Return the bytes that have access. */
EXPORT uint64_t
dry_failing_accessible_bytes(void)
{
    uint64_t bytes = 0;
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < span_count; i++)
        bytes += spans[i].end - spans[i].begin;
    pthread_mutex_unlock(&mutex);
    return bytes;
}

/* --- what has access ------------------------------------------------------------------------ */

static void
add(uint64_t begin, uint64_t end)
{
    if (begin < end && span_count < RANGES_MAX)
        spans[span_count++] = (struct span){begin, end};
}

static void
note_access(uint64_t begin, uint64_t bytes)
{
    pthread_mutex_lock(&mutex);
    add(begin, begin + bytes);
    pthread_mutex_unlock(&mutex);
}

/* Forget what lies in a range; parts of a span that lie outside stay. */
static void
note_gone(uint64_t begin, uint64_t bytes)
{
    uint64_t end = begin + bytes;
    pthread_mutex_lock(&mutex);
    for (size_t i = span_count; i-- > 0;) {
        struct span old = spans[i];
        if (old.end <= begin || end <= old.begin)
            continue;
        spans[i] = spans[--span_count];
        add(old.begin, begin);
        add(end, old.end);
    }
    pthread_mutex_unlock(&mutex);
}

/* Forget the span that begins at an address. */
static void
note_freed(uint64_t begin)
{
    pthread_mutex_lock(&mutex);
    for (size_t i = span_count; i-- > 0;) {
        if (spans[i].begin == begin)
            spans[i] = spans[--span_count];
    }
    pthread_mutex_unlock(&mutex);
}

/* --- the driver ----------------------------------------------------------------------------- */

/* Count a call. Returns what the call fails with, or 0. */
static int
count(const char *name)
{
    pthread_mutex_lock(&mutex);
    int result = calls == failing ? failing_result : 0;
    calls++;
    if (result)
        snprintf(failed, sizeof failed, "%s", name);
    pthread_mutex_unlock(&mutex);
    return result;
}

/* Define `name` as a function that counts, calls the driver, and does `then` on success. */
#define FUNCTION(name, parameters, arguments, then)                                      \
    EXPORT int name parameters;                                                          \
    EXPORT int name parameters                                                           \
    {                                                                                    \
        int(*real) parameters;                                                           \
        void *found = dlsym(RTLD_DEFAULT, #name);                                        \
        memcpy(&real, &found, sizeof real);                                              \
        int result = count(#name);                                                       \
        if (!result)                                                                     \
            result = real arguments;                                                     \
        if (!result) {                                                                   \
            then;                                                                        \
        }                                                                                \
        return result;                                                                   \
    }
#define NOTHING (void)0

FUNCTION(cuMemAlloc_v2, (uint64_t * address, size_t bytes), (address, bytes),
         note_access(*address, bytes))
FUNCTION(cuMemFree_v2, (uint64_t address), (address), note_freed(address))
FUNCTION(cuMemGetInfo_v2, (size_t * unused, size_t *total), (unused, total), NOTHING)
FUNCTION(cuMemAddressReserve,
         (uint64_t * address, size_t bytes, size_t alignment, uint64_t at,
          unsigned long long flags),
         (address, bytes, alignment, at, flags), NOTHING)
FUNCTION(cuMemAddressFree, (uint64_t address, size_t bytes), (address, bytes), NOTHING)
FUNCTION(cuMemCreate,
         (void **handle, size_t bytes, const void *memory, unsigned long long flags),
         (handle, bytes, memory, flags), NOTHING)
FUNCTION(cuMemRelease, (void *handle), (handle), NOTHING)
FUNCTION(cuMemMap,
         (uint64_t address, size_t bytes, size_t offset, void *handle,
          unsigned long long flags),
         (address, bytes, offset, handle, flags), NOTHING)
FUNCTION(cuMemUnmap, (uint64_t address, size_t bytes), (address, bytes),
         note_gone(address, bytes))
FUNCTION(cuMemSetAccess,
         (uint64_t address, size_t bytes, const void *access, size_t number),
         (address, bytes, access, number), note_access(address, bytes))
FUNCTION(cuMemGetAllocationGranularity, (size_t * bytes, const void *memory, int option),
         (bytes, memory, option), NOTHING)
FUNCTION(cuEventCreate, (void **event, unsigned flags), (event, flags), NOTHING)
FUNCTION(cuEventRecord, (void *event, void *stream), (event, stream), NOTHING)
FUNCTION(cuEventQuery, (void *event), (event), NOTHING)
FUNCTION(cuEventSynchronize, (void *event), (event), NOTHING)
FUNCTION(cuEventDestroy_v2, (void *event), (event), NOTHING)
FUNCTION(cuStreamWaitEvent, (void *stream, void *event, unsigned flags),
         (stream, event, flags), NOTHING)
FUNCTION(cuStreamSynchronize, (void *stream), (stream), NOTHING)
FUNCTION(cuStreamGetId, (void *stream, unsigned long long *id), (stream, id), NOTHING)
FUNCTION(cuCtxSynchronize, (void), (), NOTHING)
FUNCTION(cuCtxPushCurrent_v2, (void *context), (context), NOTHING)
FUNCTION(cuCtxPopCurrent_v2, (void **context), (context), NOTHING)
FUNCTION(cuDevicePrimaryCtxRetain, (void **context, int device), (context, device),
         NOTHING)
FUNCTION(cuThreadExchangeStreamCaptureMode, (int *mode), (mode), NOTHING)
