/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_TIMING_H
#define BENCH_TIMING_H

/* Clocks, and the times of single calls. */

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
    _exit(1); /* ends the process, whatever thread calls */
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

static inline int
compare_times(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/*
 * Return the median of sorted times that a clock in steps of `step` gave. A time stands
 * for all values up to half a step from it, evenly. Their count says how deep the median
 * is among them.
 */
static inline double
median_of_steps(const uint32_t *times, size_t count, double step)
{
    double low = times[count / 2] - step / 2, high = low + step;
    size_t below = 0, within = 0;
    for (size_t i = 0; i < count; i++) {
        below += times[i] <= low;
        within += times[i] > low && times[i] <= high;
    }
    return low + step * ((double)count / 2 - (double)below) / (double)within;
}

struct clock {
    double cost_ns; /* of two reads, the median */
    uint32_t step;  /* 10 ns if the clock counts at 100 MHz */
};

static inline struct clock
study_clock(void)
{
    enum { READS = 10000 };
    uint32_t spent[READS], step = UINT32_MAX;
    for (int i = 0; i < READS; i++) {
        uint64_t begin = now_ns();
        spent[i] = (uint32_t)(now_ns() - begin);
    }
    qsort(spent, READS, sizeof *spent, compare_times);
    /*
     * A step that is no whole number of nanoseconds is rounded: times one apart are the
     * same. The longest times are apart because they are few.
     */
    for (int i = 1; i < READS - READS / 100; i++) {
        uint32_t gap = spent[i] - spent[i - 1];
        step = gap > 1 && gap < step ? gap : step;
    }
    step = step == UINT32_MAX ? 1 : step;
    return (struct clock){median_of_steps(spent, READS, step), step};
}

/*
 * Sort `times` and print ,"p50_ns":..,"p99_9_ns":..,"max_ns":.. of them. In each time the
 * clock was read `reads` times two.
 */
static inline void
print_times(uint32_t *times, size_t count, unsigned reads)
{
    struct clock clock = study_clock();
    qsort(times, count, sizeof *times, compare_times);
    double at[3] = {median_of_steps(times, count, clock.step),
                    times[count - 1 - count / 1000], times[count - 1]};
    for (int i = 0; i < 3; i++)
        at[i] = at[i] > reads * clock.cost_ns ? at[i] - reads * clock.cost_ns : 0;
    printf(",\"p50_ns\":%.1f,\"p99_9_ns\":%.0f,\"max_ns\":%.0f", at[0], at[1], at[2]);
}

#endif
