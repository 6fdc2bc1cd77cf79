/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_TIMING_H
#define BENCH_TIMING_H

/* Clocks, and times one by one. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static inline void
need(int condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "bench: %s\n", what);
    _exit(1); /* of whatever thread */
}

static inline void *
take(size_t count, size_t bytes)
{
    void *at = calloc(count ? count : 1, bytes);
    need(at != NULL, "no memory");
    return at;
}

static inline uint64_t
read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline uint64_t
now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

/* What reading the clock twice costs, at best. */
static inline uint32_t
clock_ns(void)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 10000; i++) {
        uint64_t begin = now_ns(), end = now_ns();
        least = end - begin < least ? end - begin : least;
    }
    return (uint32_t)least;
}

static inline int
compare_times(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* ,"p50_ns":..,"p99_9_ns":..,"max_ns":.. of times that are sorted here, less `clock`. */
static inline void
print_times(uint32_t *times, size_t count, uint32_t clock)
{
    qsort(times, count, sizeof *times, compare_times);
    uint32_t at[3] = {times[count / 2], times[count - 1 - count / 1000],
                      times[count - 1]};
    for (int i = 0; i < 3; i++)
        at[i] = at[i] > clock ? at[i] - clock : 0;
    printf(",\"p50_ns\":%u,\"p99_9_ns\":%u,\"max_ns\":%u", at[0], at[1], at[2]);
}

#endif
