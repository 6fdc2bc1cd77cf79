/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PAGES_BENCH_H
#define TOOL_PAGES_BENCH_H

/*
 * The yield of pages and malloc on this machine. These are measured of each kind of pages,
 * in turn and several times: filling by dry_pages_create(), memset() of the same memory by
 * as many threads as there are CPUs, random loads, locking, giving back. Pinning is
 * measured, too, if there is a driver for it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/pages.h>
#include <drystone/pinned.h>

#include "base/progress.h"

#define BENCH_ROUNDS_MAX 99
#define BENCH_KINDS_MAX DRY_PAGES_SIZES_MAX

/* Medians, in nanoseconds; 0: not measured. */
struct bench_pages {
    enum dry_pages_kind kind;
    uint64_t page_bytes, huge_bytes;
    double populate_ns, memset_ns, unmap_ns, lock_ns, unlock_ns;
    double load_ns,
        chained_ns;          /* each: independent of the one before, or waiting for it */
    double pin_ns, unpin_ns; /* filled and registered; unregistered and unmapped */
};

#define BENCH_SIZES 4
/* Return the bytes that are allocated, filled and freed. */
uint64_t bench_malloc_bytes(size_t index);

struct bench_malloc {
    const char *name;
    bool is_run;            /* by `drystone run`, with these: */
    const char *options[2]; /* NULL: none */
    bool is_measured;       /* else the library is not there */
    double ns[BENCH_SIZES];
};

#define BENCH_MALLOCS 8
struct bench {
    uint64_t bytes;
    uint32_t rounds, thread_count;
    size_t kind_count;
    struct bench_pages kinds[BENCH_KINDS_MAX];
    double new_memset_ns; /* of memory that is only mapped, by all threads */
    double touch_ns;      /* the same, touched page by page by one */
    struct bench_malloc mallocs[BENCH_MALLOCS];
    size_t malloc_count;
    struct progress progress;
    uint64_t step;
    /* Holds the driver's context open between rounds; NULL: there is no driver. */
    struct dry_pinned *driver;
};

/* `bytes`, `rounds` and `thread_count` are set. An exit code; what fails is said. */
int bench_measure_pages(struct bench *bench);
/* pages_bench_cuda.c: finds a driver; what `size` costs with it, left at 0 where it refuses. */
void bench_open_driver(struct bench *bench);
void bench_measure_pinning(const struct bench *bench, const struct dry_pages_size *size,
                           struct bench_pages *round);
/* Here, in this process: medians. */
int bench_measure_malloc(double ns[BENCH_SIZES]);
/* In children of ours, under settings of `drystone run`. */
int bench_measure_mallocs(struct bench *bench);
/* How many times the progress will move. */
uint64_t bench_count_steps(const struct bench *bench, bool has_pages, bool has_mallocs);

double bench_median(double *values, size_t count);
double bench_now_ns(void);

#endif
