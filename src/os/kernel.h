/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_OS_KERNEL_H
#define DRYI_OS_KERNEL_H

/*
 * The kernel's calls that host pages need, as one table. A test can put in another table
 * and have each call refused in turn.
 *
 * Errors     Functions return 0 or a count; on failure a negative errno. `unmap` may fail
 *            too; each caller says what it does then.
 * Threads    All functions may be called from any thread at any time.
 * Facts      Numbers and names of mbind, move_pages and madvise are those of Linux's
 *            include/uapi; libc has no functions for the first two.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/thread.h"

#define DRYI_KERNEL_CPUS_MAX 4096

/* A set of CPUs: CPU n is bit n % 64 of words[n / 64]. */
struct dryi_cpus {
    uint64_t words[DRYI_KERNEL_CPUS_MAX / 64];
};

struct dryi_kernel_map {
    uint64_t address; /* 0: the kernel chooses */
    uint64_t bytes;
    int protection, flags; /* arguments of mmap() for anonymous memory */
};

/* Memory policies of mbind(), from linux/mempolicy.h. */
enum {
    DRYI_BIND_DEFAULT = 0,
    DRYI_BIND_PREFERRED = 1,
    DRYI_BIND_STRICTLY = 2,
    DRYI_BIND_INTERLEAVE = 3,
    DRYI_BIND_WEIGHTED = 6, /* Linux 6.9 */
};

/* Advice to madvise(), from asm-generic/mman-common.h. Some libcs lack the newer
   values. */
enum {
    DRYI_ADVISE_DONTNEED = 4,
    DRYI_ADVISE_DONTFORK = 10,
    DRYI_ADVISE_HUGE = 14,
    DRYI_ADVISE_NO_HUGE = 15,
    DRYI_ADVISE_WIPEONFORK = 18,
    DRYI_ADVISE_POPULATE_WRITE = 23, /* Linux 5.14 */
    DRYI_ADVISE_COLLAPSE = 25,       /* Linux 6.1 */
};

struct dryi_kernel {
    int (*map)(void *self, const struct dryi_kernel_map *what, uint64_t *address);
    int (*unmap)(void *self, uint64_t address, uint64_t bytes);
    int (*advise)(void *self, uint64_t address, uint64_t bytes, int advice);
    /* mbind(). STRICTLY also moves pages already present. `nodes` is a mask of `node_max`
       bits. */
    int (*bind)(void *self, const struct dryi_kernel_map *range, int mode,
                const uint64_t *nodes, size_t node_max);
    /* Query the NUMA node of each address by move_pages(), which moves nothing here.
       `nodes` gets a node or a negative errno for each address. */
    int (*query_nodes)(void *self, size_t count, const uint64_t *addresses, int *nodes);
    /*
     * Write a zero into each of `count` addresses, `step` bytes apart, to fault their
     * pages in. Returns how many were written. The zeroes are read from /dev/zero: then a
     * missing page makes the call fail, where a store would raise SIGBUS.
     */
    int (*write_zeroes)(void *self, uint64_t address, uint64_t step, size_t count);
    /* Count the bytes of a range that are mapped by huge pages (PAGEMAP_SCAN, Linux
       6.7). */
    int (*count_huge)(void *self, uint64_t address, uint64_t bytes, uint64_t *huge_bytes);
    /* mlock() and munlock() of whole pages. Unmapping also unlocks. */
    int (*lock)(void *self, uint64_t address, uint64_t bytes);
    int (*unlock)(void *self, uint64_t address, uint64_t bytes);

    int (*get_cpus)(void *self, struct dryi_cpus *cpus); /* the calling thread's CPUs */
    int (*set_cpus)(void *self, const struct dryi_cpus *cpus);
    int (*get_address_limit)(void *self,
                             uint64_t *bytes); /* RLIMIT_AS; UINT64_MAX: no limit */
    /* RLIMIT_MEMLOCK; UINT64_MAX: no limit. */
    int (*get_lock_limit)(void *self, uint64_t *bytes);
    int (*is_thp_disabled)(void *self); /* 1: prctl() turned huge pages off for this
                                           process */
    int64_t (*process_id)(void *self);
    uint64_t (*page_bytes)(void *self);
    uint64_t (*time_ns)(void *self); /* CLOCK_MONOTONIC */
    void (*sleep_ns)(void *self, uint64_t ns);

    /* Open a file and read its first `capacity` bytes. `read` returns the length. */
    int (*open)(void *self, const char *path);
    ssize_t (*read)(void *self, int file, char *bytes, size_t capacity);
    void (*close)(void *self, int file);
    /* Call `entry` with each name in a folder until it returns non-zero. */
    int (*list)(void *self, const char *path, int (*entry)(void *to, const char *name),
                void *to);

    int (*thread_start)(void *self, struct dryi_thread *thread, void *(*body)(void *),
                        void *argument);
    void (*thread_join)(void *self, struct dryi_thread *thread);

    void *self;
};

/* Fill the table with the calls of the running kernel. */
void dryi_kernel_init(struct dryi_kernel *kernel);

#endif
