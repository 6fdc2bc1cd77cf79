/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Free blocks cached per thread. A thread cache belongs to the first thread that uses it;
 * if all are owned, threads share. A thread that finds its cache locked does not wait,
 * but uses the heaps. A thread cache has stacks, hashed by class, of up to eight blocks
 * each. Its bytes are bounded, because cached blocks can be neither split nor merged. But
 * one block of any size may be cached, and a miss empties all caches before it pins
 * (pinned_grow.c).
 *
 * Each thread cache also collects sums for the statistics. They are folded into the
 * statistics when they differ by more than slack_bytes plus a block.
 */
#include <sched.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "host/pinned/pinned_arena.h"
#include "host/pinned/pinned_heap.h"
#include "host/pinned/pinned_state.h"
#include "host/pinned/pinned_thread_cache.h"

#define KEPT_MAX ((int64_t)(64 * DRYI_MIB))
#define PROBES 8
#define REFILL_BYTES (64 * DRYI_KIB) /* larger blocks are fetched one by one */

enum dry_status
dryi_pinned_thread_caches_init(struct dry_pinned *p, struct dry_error *err)
{
    if (!p->options.thread_caches)
        return DRY_OK;
    p->thread_caches = dryi_memory_zalloc(&p->memory, DRYI_PINNED_THREAD_CACHES,
                                          sizeof *p->thread_caches);
    return p->thread_caches ? DRY_OK : dryi_fail_memory(err, "thread caches");
}

void
dryi_pinned_thread_caches_finish(struct dry_pinned *p)
{
    for (size_t i = 0; p->thread_caches && i < DRYI_PINNED_THREAD_CACHES; i++)
        dryi_memory_free(&p->memory, p->thread_caches[i].stacks, DRYI_PINNED_STACKS,
                         sizeof *p->thread_caches[i].stacks);
    dryi_memory_free(&p->memory, p->thread_caches, DRYI_PINNED_THREAD_CACHES,
                     sizeof *p->thread_caches);
}

/* --- locks and sums ------------------------------------------------------------------------- */

static struct dryi_pinned_thread_cache *
claim(struct dryi_pinned_thread_cache *caches, uint32_t first, uintptr_t self)
{
    for (uint32_t i = 0; i < PROBES; i++) {
        struct dryi_pinned_thread_cache *t =
            &caches[(first + i) % DRYI_PINNED_THREAD_CACHES];
        uintptr_t owner = atomic_load_explicit(&t->owner, memory_order_relaxed);
        if (owner == self)
            return t;
        if (owner == 0 && atomic_compare_exchange_strong_explicit(&t->owner, &owner, self,
                                                                  memory_order_relaxed,
                                                                  memory_order_relaxed))
            return t;
    }
    return &caches[first];
}

struct dryi_pinned_thread_cache *
dryi_pinned_thread_cache_try_lock(struct dry_pinned *p)
{
    if (!p->thread_caches)
        return NULL;
    uintptr_t self = dryi_thread_self();
    uint32_t first = (uint32_t)dryi_spread(self, 6);
    DRYI_ASSERT_SLOW(first < DRYI_PINNED_THREAD_CACHES);
    struct dryi_pinned_thread_cache *t = &p->thread_caches[first];
    if (atomic_load_explicit(&t->owner, memory_order_relaxed) != self)
        t = claim(p->thread_caches, first, self);
    if (atomic_exchange_explicit(&t->is_taken, 1, memory_order_acquire) != 0)
        return NULL;
    return t;
}

void
dryi_pinned_thread_cache_unlock(struct dryi_pinned_thread_cache *t)
{
    DRYI_ASSERT_SLOW(dryi_pinned_thread_cache_is_locked(t));
    atomic_store_explicit(&t->is_taken, 0, memory_order_release);
}

void
dryi_pinned_thread_cache_lock(struct dryi_pinned_thread_cache *t)
{
    while (atomic_exchange_explicit(&t->is_taken, 1, memory_order_acquire) != 0)
        sched_yield();
}

static void
fold(struct dry_stat *stat, struct dryi_pinned_delta *delta)
{
    DRYI_ASSERT_SLOW(delta->most >= delta->now && delta->most >= 0);
    if (stat->current + delta->most > stat->peak)
        stat->peak = stat->current + delta->most;
    stat->current += delta->now;
    stat->allocated += delta->added;
    stat->freed += delta->added - delta->now;
    *delta = (struct dryi_pinned_delta){0};
}

void
dryi_pinned_thread_cache_fold(struct dry_pinned *p, struct dryi_pinned_thread_cache *t)
{
    DRYI_ASSERT_SLOW(dryi_pinned_thread_cache_is_locked(t));
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    if (!t)
        return;
    int64_t most = p->stats.active_bytes.current + t->bytes.most;
    if (most > p->used_peak_bytes)
        p->used_peak_bytes = most;
    fold(&p->stats.active_requests, &t->requests);
    fold(&p->stats.active_bytes, &t->bytes);
    fold(&p->stats.requested_bytes, &t->requested);
}

/* Fold the sums into the statistics if they differ by more than the slack plus this
   block. So one block of any size can be reused without folding. */
static inline void
fold_if_far(struct dry_pinned *p, struct dryi_pinned_thread_cache *t, int64_t bytes)
{
    DRYI_ASSERT_SLOW(dryi_pinned_thread_cache_is_locked(t));
    int64_t slack = atomic_load_explicit(&p->slack_bytes, memory_order_relaxed) + bytes;
    if (t->bytes.now <= slack && t->bytes.now >= -slack)
        return;
    dryi_lock_take(&p->lock);
    dryi_pinned_thread_cache_fold(p, t);
    dryi_lock_give(&p->lock);
}

void
dryi_pinned_enter(struct dry_pinned *p)
{
    struct dryi_pinned_thread_cache *t = dryi_pinned_thread_cache_try_lock(p);
    dryi_lock_take(&p->lock);
    dryi_pinned_thread_cache_fold(p, t);
    if (t)
        dryi_pinned_thread_cache_unlock(t);
}

static void
add_to(struct dryi_pinned_delta *delta, int64_t amount)
{
    delta->now += amount;
    delta->added += amount;
    if (delta->now > delta->most)
        delta->most = delta->now;
}

/* --- stacks --------------------------------------------------------------------------------- */

static struct dryi_pinned_stack *
get_stack(struct dryi_pinned_thread_cache *t, uint32_t class_id)
{
    return &t->stacks[(class_id ^ class_id >> 6) % DRYI_PINNED_STACKS];
}

/* Return a stack's oldest blocks to their heap, so that `left` remain. */
static void
flush_stack(struct dry_pinned *p, struct dryi_pinned_thread_cache *t,
            struct dryi_pinned_stack *stack, uint32_t left)
{
    DRYI_ASSERT_SLOW(dryi_pinned_thread_cache_is_locked(t));
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    if (stack->count <= left)
        return;
    uint32_t gone = stack->count - left;
    for (uint32_t i = 0; i < gone; i++) {
        struct dryi_pinned_entry *e = &stack->entries[i];
        DRYI_ASSERT(dryi_pinned_cell_get_state(dryi_pinned_tag(e->cell)) ==
                    DRYI_PINNED_KEPT);
        dryi_pinned_heap_give(p, dryi_pinned_arena_at(p, e->address), e->cell);
    }
    for (uint32_t i = 0; i < left; i++)
        stack->entries[i] = stack->entries[gone + i];
    stack->count = left;
    t->kept_bytes -= (int64_t)(gone * stack->bytes);
    DRYI_ASSERT_SLOW(t->kept_bytes >= 0);
}

static void
flush(struct dry_pinned *p, struct dryi_pinned_thread_cache *t)
{
    dryi_pinned_thread_cache_fold(p, t);
    for (uint32_t i = 0; t->kept_bytes && i < DRYI_PINNED_STACKS; i++)
        flush_stack(p, t, &t->stacks[i], 0);
    DRYI_ASSERT_SLOW(t->kept_bytes == 0);
}

void
dryi_pinned_thread_caches_flush(struct dry_pinned *p)
{
    for (uint32_t i = 0; p->thread_caches && i < DRYI_PINNED_THREAD_CACHES; i++) {
        struct dryi_pinned_thread_cache *t = &p->thread_caches[i];
        if (atomic_load_explicit(&t->owner, memory_order_relaxed) == 0)
            continue;
        dryi_pinned_thread_cache_lock(t);
        dryi_lock_take(&p->lock);
        flush(p, t);
        dryi_lock_give(&p->lock);
        dryi_pinned_thread_cache_unlock(t);
    }
}

void
dryi_pinned_lock_all(struct dry_pinned *p)
{
    for (uint32_t i = 0; p->thread_caches && i < DRYI_PINNED_THREAD_CACHES; i++)
        dryi_pinned_thread_cache_lock(&p->thread_caches[i]);
    dryi_lock_take(&p->lock);
    for (uint32_t i = 0; p->thread_caches && i < DRYI_PINNED_THREAD_CACHES; i++)
        dryi_pinned_thread_cache_fold(p, &p->thread_caches[i]);
}

void
dryi_pinned_unlock_all(struct dry_pinned *p)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    dryi_lock_give(&p->lock);
    for (uint32_t i = 0; p->thread_caches && i < DRYI_PINNED_THREAD_CACHES; i++)
        dryi_pinned_thread_cache_unlock(&p->thread_caches[i]);
}

/* --- take and give -------------------------------------------------------------------------- */

uint64_t
dryi_pinned_thread_cache_take(struct dry_pinned *p, struct dryi_pinned_thread_cache *t,
                              const struct dryi_pinned_request *request)
{
    DRYI_ASSERT_SLOW(dryi_pinned_thread_cache_is_locked(t));
    if (!t->stacks)
        return 0;
    struct dryi_pinned_stack *stack = get_stack(t, request->class_id);
    if (stack->class_id != request->class_id || stack->count == 0)
        return 0;
    const struct dryi_pinned_entry *e = &stack->entries[--stack->count];
    DRYI_ASSERT_SLOW(dryi_pinned_cell_get_state(dryi_pinned_tag(e->cell)) ==
                     DRYI_PINNED_KEPT);
    DRYI_ASSERT_SLOW(stack->bytes == request->bytes);
    t->kept_bytes -= (int64_t)request->bytes;
    dryi_pinned_mark_used(e->cell, request->class_id,
                          (uint32_t)(request->bytes - request->requested));
    add_to(&t->requests, 1);
    add_to(&t->bytes, (int64_t)request->bytes);
    add_to(&t->requested, (int64_t)request->requested);
    fold_if_far(p, t, (int64_t)request->bytes);
    return e->address;
}

/* Make space for another block in a stack of the class. Takes the lock. */
static void
make_room(struct dry_pinned *p, struct dryi_pinned_thread_cache *t,
          struct dryi_pinned_stack *stack, uint32_t class_id, uint64_t bytes)
{
    DRYI_ASSERT_SLOW(dryi_pinned_thread_cache_is_locked(t));
    bool is_other = stack->class_id != class_id && stack->count > 0;
    bool is_over = t->kept_bytes + (int64_t)bytes > KEPT_MAX && t->kept_bytes > 0;
    if (is_other || is_over || stack->count == DRYI_PINNED_STACK_MAX) {
        dryi_lock_take(&p->lock);
        if (is_over)
            flush(p, t);
        else
            flush_stack(p, t, stack, is_other ? 0 : DRYI_PINNED_STACK_MAX / 2);
        dryi_lock_give(&p->lock);
    }
    stack->class_id = class_id;
    stack->bytes = bytes;
}

static void
keep(struct dryi_pinned_thread_cache *t, struct dryi_pinned_stack *stack,
     struct dryi_pinned_cell *cell, uint64_t address)
{
    DRYI_ASSERT_SLOW(stack->count < DRYI_PINNED_STACK_MAX);
    DRYI_ASSERT_SLOW(dryi_pinned_cell_get_state(dryi_pinned_tag(cell)) ==
                     DRYI_PINNED_KEPT);
    stack->entries[stack->count++] = (struct dryi_pinned_entry){cell, address};
    t->kept_bytes += (int64_t)stack->bytes;
}

bool
dryi_pinned_thread_cache_give(struct dry_pinned *p, struct dryi_pinned_thread_cache *t,
                              const struct dryi_pinned_arena *a,
                              struct dryi_pinned_cell *cell)
{
    DRYI_ASSERT_SLOW(dryi_pinned_thread_cache_is_locked(t));
    uint64_t bytes = dryi_pinned_block_bytes(a, cell);
    if (!t->stacks || bytes > p->options.keep_max_bytes)
        return false;
    uint32_t class_id = dryi_pinned_tag(cell) >> DRYI_PINNED_CLASS_SHIFT;
    struct dryi_pinned_stack *stack = get_stack(t, class_id);
    if (stack->class_id != class_id || stack->count == DRYI_PINNED_STACK_MAX ||
        t->kept_bytes + (int64_t)bytes > KEPT_MAX)
        make_room(p, t, stack, class_id, bytes);
    t->requests.now--;
    t->bytes.now -= (int64_t)bytes;
    t->requested.now -= (int64_t)(bytes - cell->waste);
    dryi_pinned_set_tag(cell, DRYI_PINNED_KEPT, class_id << DRYI_PINNED_CLASS_SHIFT);
    keep(t, stack, cell, dryi_pinned_block_address(a, cell));
    fold_if_far(p, t, (int64_t)bytes);
    return true;
}

/* Fetch half a stack of small blocks. Without memory for stacks, no blocks are cached.
   Nor with cached_max_bytes: a cached block would keep an arena from being unpinned. */
void
dryi_pinned_thread_cache_refill(struct dry_pinned *p, struct dryi_pinned_thread_cache *t,
                                const struct dryi_pinned_request *request)
{
    DRYI_ASSERT_SLOW(dryi_pinned_thread_cache_is_locked(t));
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    if (!t->stacks && p->options.cached_max_bytes == UINT64_MAX)
        t->stacks = dryi_memory_zalloc(&p->memory, DRYI_PINNED_STACKS, sizeof *t->stacks);
    if (!t->stacks || request->bytes > REFILL_BYTES)
        return;
    struct dryi_pinned_stack *stack = get_stack(t, request->class_id);
    if (stack->count > 0 || t->kept_bytes > KEPT_MAX / 2)
        return;
    stack->class_id = request->class_id;
    stack->bytes = request->bytes;
    while (stack->count < DRYI_PINNED_STACK_MAX / 2) {
        uint64_t address;
        struct dryi_pinned_cell *cell = dryi_pinned_heap_take(p, request, &address);
        if (!cell)
            return;
        dryi_pinned_set_tag(cell, DRYI_PINNED_KEPT,
                            request->class_id << DRYI_PINNED_CLASS_SHIFT);
        keep(t, stack, cell, address);
    }
}
