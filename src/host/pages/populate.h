/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_POPULATE_H
#define DRYI_HOST_POPULATE_H

/*
 * Populates a new mapping by several threads, without the risk of a SIGBUS.
 *
 * Threads take pieces of 16 MiB (or one page, if that is larger) in order.
 * MADV_POPULATE_WRITE populates the pages and reports failure by an errno. Kernels before
 * 5.14 return EINVAL; then the kernel reads a zero from /dev/zero into each page. That
 * fails with EFAULT where a store would raise SIGBUS.
 */

#include <stdbool.h>
#include <stdint.h>

#include "os/kernel.h"

#define DRYI_POPULATE_PIECE (UINT64_C(16) << 20)
#define DRYI_POPULATE_THREADS_MAX 64

struct dryi_populate {
    const struct dryi_kernel *kernel;
    uint64_t address, bytes; /* a multiple of the page size */
    uint64_t page_bytes;     /* page size of a pool, or else the base page size */
    uint64_t piece_bytes;    /* a multiple of page_bytes */
    /* Threads run on these CPUs from their first touch on; NULL: on any. */
    const struct dryi_cpus *cpus;
    /* The caller must also run on these CPUs if it populates, because memory goes to the
       toucher's node. */
    bool must_be_local;
    uint32_t thread_count; /* limit; 1: the caller only */
    uint64_t deadline_ns;  /* 0: no deadline */
    /* Called at every 16th piece; false ends the work as ENOMEM. NULL: always true. It
       guards pages whose lack the kernel would not report. */
    bool (*may_go_on)(const void *self, uint64_t left_bytes);
    const void *may_go_on_self;
    bool (*progress)(void *self, uint64_t done_bytes, uint64_t bytes);
    void *progress_self;
};

enum dryi_populate_end {
    DRYI_POPULATE_DONE,
    DRYI_POPULATE_REFUSED,
    DRYI_POPULATE_TIMEOUT,
    DRYI_POPULATE_CANCELLED,
};

struct dryi_populate_result {
    enum dryi_populate_end end;
    int os_errno;          /* for REFUSED */
    uint64_t done_bytes;   /* in complete pieces */
    uint32_t thread_count; /* number of threads that worked */
    bool was_local;        /* each of them ran on the given CPUs */
};

/* Populate the range. All threads have ended when it returns; populated pages stay, also
   on failure. */
void dryi_populate_run(const struct dryi_populate *populate,
                       struct dryi_populate_result *result);

unsigned dryi_cpus_count(const struct dryi_cpus *cpus);

#endif
