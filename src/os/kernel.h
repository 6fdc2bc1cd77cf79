/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_OS_KERNEL_H
#define DRYI_OS_KERNEL_H

/*
 * The calls of the kernel that the host's pages need, as one table. A test can put another
 * in its place and have each call refused in turn.
 *
 * Errors     0 or a number of what was done; else a negative errno. unmap may be
 *            refused too; its callers say what then.
 * Threads    Any, at once.
 * Facts      Numbers and names of mbind, move_pages and madvise are those of Linux's
 *            include/uapi; libc has no functions for the first two.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/thread.h"

#define DRYI_KERNEL_CPUS_MAX 4096

/* CPU n: bit n % 64 of word n / 64. */
struct dryi_cpus {
    uint64_t words[DRYI_KERNEL_CPUS_MAX / 64];
};

struct dryi_kernel_map {
    uint64_t address; /* 0: anywhere */
    uint64_t bytes;
    int protection, flags; /* of mmap(), without a file */
};

/* linux/mempolicy.h */
enum {
    DRYI_BIND_DEFAULT = 0,
    DRYI_BIND_PREFERRED = 1,
    DRYI_BIND_STRICTLY = 2,
    DRYI_BIND_INTERLEAVE = 3,
    DRYI_BIND_WEIGHTED = 6, /* Linux 6.9 */
};

/* asm-generic/mman-common.h; not every libc has all of them. */
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
    /* mbind(); STRICTLY also moves what is there. `nodes` has `node_max` bits. */
    int (*bind)(void *self, const struct dryi_kernel_map *range, int mode,
                const uint64_t *nodes, size_t node_max);
    /* move_pages() that moves nothing: the node of each address, or a negative errno. */
    int (*query_nodes)(void *self, size_t count, const uint64_t *addresses, int *nodes);
    /*
     * Read a zero from /dev/zero into each of `count` addresses, `step` bytes apart; how
     * many were written. The kernel writes, so a page that is not to be had is told to it,
     * and not to the process by a signal.
     */
    int (*write_zeroes)(void *self, uint64_t address, uint64_t step, size_t count);
    /* PAGEMAP_SCAN: how many bytes of a range lie in huge pages. */
    int (*count_huge)(void *self, uint64_t address, uint64_t bytes, uint64_t *huge_bytes);
    /* mlock() and munlock() of whole pages; what is unmapped is unlocked by that. */
    int (*lock)(void *self, uint64_t address, uint64_t bytes);
    int (*unlock)(void *self, uint64_t address, uint64_t bytes);

    int (*get_cpus)(void *self, struct dryi_cpus *cpus); /* of the calling thread */
    int (*set_cpus)(void *self, const struct dryi_cpus *cpus);
    int (*get_address_limit)(void *self,
                             uint64_t *bytes);          /* RLIMIT_AS; UINT64_MAX: none */
    int (*get_lock_limit)(void *self, uint64_t *bytes); /* RLIMIT_MEMLOCK, the same */
    int (*is_thp_disabled)(void *self);                 /* of this process: 1 */
    int64_t (*process_id)(void *self);
    uint64_t (*page_bytes)(void *self);
    uint64_t (*time_ns)(void *self); /* monotonic */
    void (*sleep_ns)(void *self, uint64_t ns);

    /* The beginning of a file: its length, at most `capacity`. */
    int (*open)(void *self, const char *path);
    ssize_t (*read)(void *self, int file, char *bytes, size_t capacity);
    void (*close)(void *self, int file);
    /* Calls `entry` with each name in a folder until it returns non-zero. */
    int (*list)(void *self, const char *path, int (*entry)(void *to, const char *name),
                void *to);

    int (*thread_start)(void *self, struct dryi_thread *thread, void *(*body)(void *),
                        void *argument);
    void (*thread_join)(void *self, struct dryi_thread *thread);

    void *self;
};

/* The real one. */
void dryi_kernel_init(struct dryi_kernel *kernel);

#endif
