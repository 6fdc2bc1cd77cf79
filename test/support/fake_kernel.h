/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_FAKE_KERNEL_H
#define TEST_FAKE_KERNEL_H

/*
 * A dryi_kernel of a machine that does not exist: files of /sys and /proc from a table,
 * nodes with pools of huge pages, limits, forbidden calls. The memory itself is real base
 * pages. Any call can be refused:
 *
 *     for (size_t n = 0;; n++) {
 *         fake_kernel_init(&fake);
 *         fake_kernel_refuse(&fake, n, ENOMEM);
 *         ...
 *         fake_kernel_finish(&fake);         asserts that nothing is mapped or open
 *         if (!fake.has_refused) break;
 *     }
 *
 * Like the real one, it grants a mapping of a pool by the pages of the whole pool, and
 * finds out about nodes when pages are taken.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/kernel.h"

#define FAKE_FILES_MAX 64
#define FAKE_MAPS_MAX 32
#define FAKE_PAGES_MAX 1024
#define FAKE_OPENS_MAX 16

struct fake_map {
    uint64_t populated; /* bytes; more than `bytes`: again */
    uint64_t address, bytes;
    bool is_pool, is_shared, is_locked;
    int mode;
    uint64_t nodes;
    uint64_t promised;  /* pages of the pool that are not taken yet */
    bool is_unreserved; /* of a pool that promises none */
};

struct fake_kernel {
    struct dryi_kernel kernel, real;
    pthread_mutex_t lock;

    size_t left; /* calls that still succeed */
    int refusal; /* errno */
    bool has_refused;
    size_t calls;

    struct {
        const char *path;
        char text[256];
    } files[FAKE_FILES_MAX];
    size_t file_count;
    struct {
        char text[256];
        size_t length, at;
        bool is_used;
    } opens[FAKE_OPENS_MAX];

    uint64_t pool_page_bytes; /* the one pool; its free pages by node: */
    uint64_t node_free[2];
    uint64_t cgroup_pages, cgroup_reservations; /* what is still allowed */
    int bind_errno, query_errno, huge_errno, populate_errno, collapse_errno;
    unsigned weights[2]; /* of nodes; none: before Linux 6.9 */
    uint64_t huge_part;  /* percent of transparent regions that is huge */
    bool
        marks_huge; /* NUMA balancing: a region that was populated once is counted by half */
    bool thp_disabled;
    uint64_t base_bytes, address_limit, lock_limit, time_step_ns, now_ns;
    size_t locks, unmaps_of_locked; /* counted so far */
    int64_t process;
    int home_node; /* where unbound touches go, if set_cpus() was not asked */
    struct dryi_cpus last_cpus;

    struct fake_map maps[FAKE_MAPS_MAX];
    size_t map_count, map_peak, maps_made, unmap_failures, zero_writes, collapses, binds;
    struct {
        uint64_t address;
        int node;
    } pages[FAKE_PAGES_MAX];
    size_t page_count;
    unsigned advices; /* bit a: advice a was given */
};

/*
 * Begin a machine of two nodes with memory and a CPU each, a pool of 2 MiB with 8 + 8
 * pages, and no limits.
 */
void fake_kernel_init(struct fake_kernel *fake);
void fake_kernel_finish(struct fake_kernel *fake);
void fake_kernel_refuse(struct fake_kernel *fake, size_t n, int errno_value);
/*
 * Set the text of a file, new or known; NULL: the file does not exist. Listings of
 * folders are made of the paths.
 */
void fake_kernel_file(struct fake_kernel *fake, const char *path, const char *text);

#endif
