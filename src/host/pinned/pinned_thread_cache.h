/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PINNED_THREAD_CACHE_H
#define DRYI_HOST_PINNED_THREAD_CACHE_H

/*
 * A thread cache is the blocks that a thread keeps at hand, with the thread's sums. A stack of
 * it holds blocks of one class; the last one given is taken first. The idea stands in
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

/* Blocks of one class, the oldest first. */
struct dryi_pinned_stack {
    uint32_t class_id, count;
    uint64_t bytes; /* of a block */
    struct dryi_pinned_entry entries[DRYI_PINNED_STACK_MAX];
};

/*
 * The change of a sum since the statistics were last brought up to date, its peak, its rises.
 */
struct dryi_pinned_delta {
    int64_t now, most, added;
};

struct dryi_pinned_thread_cache {
    _Atomic uintptr_t owner; /* the thread that came first; 0: none */
    atomic_uint is_taken;
    int64_t kept_bytes;
    struct dryi_pinned_delta requests, bytes, requested;
    struct dryi_pinned_stack *stacks; /* NULL until a block is kept */
    unsigned char gap[64];            /* no cache line of two */
};

enum dry_status dryi_pinned_thread_caches_init(struct dry_pinned *p,
                                               struct dry_error *err);
void dryi_pinned_thread_caches_finish(struct dry_pinned *p);
/* Lock the thread's own; NULL: somebody else has it just now, or there are none. */
struct dryi_pinned_thread_cache *dryi_pinned_thread_cache_try_lock(struct dry_pinned *p);
void dryi_pinned_thread_cache_unlock(struct dryi_pinned_thread_cache *t);

/* For assertions: has anybody locked it? True of NULL, where there are none. */
static inline bool
dryi_pinned_thread_cache_is_locked(const struct dryi_pinned_thread_cache *t)
{
    return !t || atomic_load_explicit(&t->is_taken, memory_order_relaxed) != 0;
}

/* Wait for a thread cache: it is held for a microsecond. */
void dryi_pinned_thread_cache_lock(struct dryi_pinned_thread_cache *t);
/* Take a block of the class that is at hand, USED then; 0: none. Requires the thread cache. */
uint64_t dryi_pinned_thread_cache_take(struct dry_pinned *p,
                                       struct dryi_pinned_thread_cache *t,
                                       const struct dryi_pinned_request *request);
/* Keep a used block; false: it must go to its heap. Requires thread cache, and not lock. */
bool dryi_pinned_thread_cache_give(struct dry_pinned *p,
                                   struct dryi_pinned_thread_cache *t,
                                   const struct dryi_pinned_arena *a,
                                   struct dryi_pinned_cell *cell);
/* Fetch a few more blocks of a small class, after a miss. Requires thread cache and lock. */
void dryi_pinned_thread_cache_refill(struct dry_pinned *p,
                                     struct dryi_pinned_thread_cache *t,
                                     const struct dryi_pinned_request *request);
/* Empty those of all threads. Requires that neither a thread cache nor the lock is held. */
void dryi_pinned_thread_caches_flush(struct dry_pinned *p);
/* Bring its sums into the statistics; NULL is ignored. Requires thread cache and lock. */
void dryi_pinned_thread_cache_fold(struct dry_pinned *p,
                                   struct dryi_pinned_thread_cache *t);
/* Take the lock, with this thread's sums up to date; before anything that changes them. */
void dryi_pinned_enter(struct dry_pinned *p);
/* Take all thread caches and the lock, to look at everything; and give them back. */
void dryi_pinned_lock_all(struct dry_pinned *p);
void dryi_pinned_unlock_all(struct dry_pinned *p);

#endif
