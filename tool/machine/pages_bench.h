/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PAGES_BENCH_H
#define TOOL_PAGES_BENCH_H

/*
 * Benchmarks of page kinds and mallocs on this machine. For each kind of pages: filling
 * by dry_pages_create(), memset() with one thread per CPU, random loads, locking, and
 * unmapping. Pinning is measured if there is a CUDA driver.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/pages.h>
#include <drystone/pinned.h>

#include "base/progress.h"

#define BENCH_ROUNDS_MAX 99
#define BENCH_KINDS_MAX DRY_PAGES_SIZES_MAX

/* Medians in nanoseconds; 0: not measured. */
struct bench_pages {
    enum dry_pages_kind kind;
    uint64_t page_bytes, huge_bytes;
    double populate_ns, memset_ns, unmap_ns, lock_ns, unlock_ns;
    double load_ns, chained_ns; /* one load: independent, dependent on the previous one */
    double pin_ns, unpin_ns;    /* fill and register; unregister and unmap */
};

#define BENCH_SIZES 4
/* Return block size `index`, which is allocated, filled and freed. */
uint64_t bench_malloc_bytes(size_t index);

struct bench_malloc {
    const char *name;
    bool is_run;            /* run under `drystone run` with `options` */
    const char *options[2]; /* NULL: unused */
    bool is_measured;       /* false: the library is not installed */
    double ns[BENCH_SIZES];
};

#define BENCH_MALLOCS 8
struct bench {
    uint64_t bytes;
    uint32_t rounds, thread_count;
    size_t kind_count;
    struct bench_pages kinds[BENCH_KINDS_MAX];
    double new_memset_ns; /* memory mapped without advice, filled by all threads */
    double touch_ns;      /* the same, touched page by page by one thread */
    struct bench_malloc mallocs[BENCH_MALLOCS];
    size_t malloc_count;
    struct progress progress;
    uint64_t step;
    /* Keeps the driver's context open between rounds; NULL: no driver. */
    struct dry_pinned *driver;
};

/* Measure all page kinds. Requires `bytes`, `rounds` and `thread_count`. Failures are
   printed. Returns an exit code. */
int bench_measure_pages(struct bench *bench);
/* Load the driver, and measure pinning pages of `size` (pages_bench_cuda.c). If the
   driver refuses, the figures stay 0. */
void bench_open_driver(struct bench *bench);
void bench_measure_pinning(const struct bench *bench, const struct dry_pages_size *size,
                           struct bench_pages *round);
/* Measure malloc in this process; `ns` receives medians. Returns an exit code. */
int bench_measure_malloc(double ns[BENCH_SIZES]);
/* Measure mallocs in children, under settings of `drystone run`. An exit code. */
int bench_measure_mallocs(struct bench *bench);
/* Return the number of progress steps. */
uint64_t bench_count_steps(const struct bench *bench, bool has_pages, bool has_mallocs);

double bench_median(double *values, size_t count);
double bench_now_ns(void);

#endif
