/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_POPULATE_H
#define DRYI_HOST_POPULATE_H

/*
 * Fill a fresh mapping with pages, by several threads, none of which can be killed by it.
 *
 * Pieces of 16 MiB (or one page, if that is larger) are taken in order by whoever is free.
 * MADV_POPULATE_WRITE takes the pages and says what was refused. Kernels before 5.14 answer
 * EINVAL; there the kernel writes one zero into each page on our behalf. This fails with
 * EFAULT if a write of our own would have been a SIGBUS.
 */

#include <stdbool.h>
#include <stdint.h>

#include "os/kernel.h"

#define DRYI_POPULATE_PIECE (UINT64_C(16) << 20)
#define DRYI_POPULATE_THREADS_MAX 64

struct dryi_populate {
    const struct dryi_kernel *kernel;
    uint64_t address, bytes; /* whole pages */
    uint64_t page_bytes;     /* of every page, if it is of a pool; else of a base page */
    uint64_t piece_bytes;    /* a multiple of page_bytes */
    /* Threads run on these, from the first touch on; NULL: where the scheduler likes. */
    const struct dryi_cpus *cpus;
    /* The caller too, if it has to work: memory goes where the toucher runs. */
    bool must_be_local;
    uint32_t thread_count; /* at most; 1: the caller alone */
    uint64_t deadline_ns;  /* 0: none */
    /*
     * Asked by whoever comes to each 16th piece; false ends it as ENOMEM. NULL: yes. It is for
     * pages whose lack the kernel would not refuse.
     */
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
    int os_errno;          /* of REFUSED */
    uint64_t done_bytes;   /* of whole pieces */
    uint32_t thread_count; /* how many worked */
    bool was_local;        /* each of them ran on the CPUs that were given */
};

/*
 * Fill. All threads are over when it returns; pages that were filled stay, however it ended.
 */
void dryi_populate_run(const struct dryi_populate *populate,
                       struct dryi_populate_result *result);

unsigned dryi_cpus_count(const struct dryi_cpus *cpus);

#endif
