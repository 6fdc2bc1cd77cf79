/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PINNED_THREAD_CACHE_H
#define DRYI_HOST_PINNED_THREAD_CACHE_H

/*
 * A thread cache holds free blocks of one thread, and the thread's part of the
 * statistics. Each of its stacks holds blocks of one class, last in, first out. See
 * pinned_thread_cache.c.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <drystone/status.h>

#include "host/pinned/pinned_heap.h"
#include "host/pinned/pinned_state.h"

#define DRYI_PINNED_THREAD_CACHES 64
#define DRYI_PINNED_STACKS 64
#define DRYI_PINNED_STACK_MAX 8

struct dryi_pinned_entry {
    struct dryi_pinned_cell *cell;
    uint64_t address;
};

/* Free blocks of one class, oldest first. */
struct dryi_pinned_stack {
    uint32_t class_id, count;
    uint64_t bytes; /* size of each block */
    struct dryi_pinned_entry entries[DRYI_PINNED_STACK_MAX];
};

/*
 * A sum's change since it was last folded into the statistics, with its peak and total
 * increase.
 */
struct dryi_pinned_delta {
    int64_t now, most, added;
};

struct dryi_pinned_thread_cache {
    _Atomic uintptr_t owner; /* the first thread that used it; 0: none */
    atomic_uint is_taken;
    int64_t kept_bytes;
    struct dryi_pinned_delta requests, bytes, requested;
    struct dryi_pinned_stack *stacks; /* NULL until the first block is cached */
    unsigned char gap[64]; /* so that no two thread caches share a cache line */
};

enum dry_status dryi_pinned_thread_caches_init(struct dry_pinned *p,
                                               struct dry_error *err);
void dryi_pinned_thread_caches_finish(struct dry_pinned *p);
/* Lock the calling thread's cache; NULL: another thread holds it, or there are none. */
struct dryi_pinned_thread_cache *dryi_pinned_thread_cache_try_lock(struct dry_pinned *p);
void dryi_pinned_thread_cache_unlock(struct dryi_pinned_thread_cache *t);

/* Return whether a thread cache is locked, for assertions. True for NULL, when caches are
   off. */
static inline bool
dryi_pinned_thread_cache_is_locked(const struct dryi_pinned_thread_cache *t)
{
    return !t || atomic_load_explicit(&t->is_taken, memory_order_relaxed) != 0;
}

/* Spin until the thread cache is free: it is held for about a microsecond. */
void dryi_pinned_thread_cache_lock(struct dryi_pinned_thread_cache *t);
/* Take a cached block of the class and mark it USED; 0: none. Requires the thread
   cache. */
uint64_t dryi_pinned_thread_cache_take(struct dry_pinned *p,
                                       struct dryi_pinned_thread_cache *t,
                                       const struct dryi_pinned_request *request);
/* Cache a used block; false: it must go to its heap. Requires the thread cache, and not
   the lock. */
bool dryi_pinned_thread_cache_give(struct dry_pinned *p,
                                   struct dryi_pinned_thread_cache *t,
                                   const struct dryi_pinned_arena *a,
                                   struct dryi_pinned_cell *cell);
/* Fetch more blocks of a small class after a miss. Requires thread cache and lock. */
void dryi_pinned_thread_cache_refill(struct dry_pinned *p,
                                     struct dryi_pinned_thread_cache *t,
                                     const struct dryi_pinned_request *request);
/* Empty all threads' caches. Requires that neither a thread cache nor the lock is
   held. */
void dryi_pinned_thread_caches_flush(struct dry_pinned *p);
/* Add its sums to the statistics; NULL is ignored. Requires thread cache and lock. */
void dryi_pinned_thread_cache_fold(struct dry_pinned *p,
                                   struct dryi_pinned_thread_cache *t);
/* Take the lock after adding this thread's sums to the statistics, so that peaks stay
   exact before a change. */
void dryi_pinned_enter(struct dry_pinned *p);
/* Take all thread caches and the lock, to see a consistent state; and release them. */
void dryi_pinned_lock_all(struct dry_pinned *p);
void dryi_pinned_unlock_all(struct dry_pinned *p);

#endif
