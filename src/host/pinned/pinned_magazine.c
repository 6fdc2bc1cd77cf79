/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Blocks that a thread keeps at hand. A slot belongs to the thread that came to it first; if
 * all are taken, threads share. A thread that finds its slot taken does not wait, but goes to
 * the heaps. A slot has sets, found by class, of up to eight blocks each. Its bytes are
 * bounded, for blocks that are kept can neither be cut nor joined. Yet one block of any size
 * may be kept, and a miss takes everything from everybody before anything is pinned
 * (pinned_grow.c).
 *
 * The sums of the statistics are kept a slot too, and brought together when they differ by
 * more than slack_bytes and a block.
 */
#include <sched.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "host/pinned/pinned_arena.h"
#include "host/pinned/pinned_heap.h"
#include "host/pinned/pinned_magazine.h"
#include "host/pinned/pinned_state.h"

#define KEPT_MAX ((int64_t)(64 * DRYI_MIB))
#define PROBES 8
#define REFILL_BYTES (64 * DRYI_KIB) /* blocks above this are fetched one by one */

enum dry_status
dryi_pinned_slots_init(struct dry_pinned *p, struct dry_error *err)
{
    if (!p->options.magazines)
        return DRY_OK;
    p->slots = dryi_memory_zalloc(&p->memory, DRYI_PINNED_SLOTS, sizeof *p->slots);
    return p->slots ? DRY_OK : dryi_fail_memory(err, "magazines");
}

void
dryi_pinned_slots_finish(struct dry_pinned *p)
{
    for (size_t i = 0; p->slots && i < DRYI_PINNED_SLOTS; i++)
        dryi_memory_free(&p->memory, p->slots[i].sets, DRYI_PINNED_SETS,
                         sizeof *p->slots[i].sets);
    dryi_memory_free(&p->memory, p->slots, DRYI_PINNED_SLOTS, sizeof *p->slots);
}

/* --- slots ---------------------------------------------------------------------------------- */

static struct dryi_pinned_slot *
claim_slot(struct dryi_pinned_slot *slots, uint32_t home, uintptr_t self)
{
    for (uint32_t i = 0; i < PROBES; i++) {
        struct dryi_pinned_slot *slot = &slots[(home + i) % DRYI_PINNED_SLOTS];
        uintptr_t owner = atomic_load_explicit(&slot->owner, memory_order_relaxed);
        if (owner == self)
            return slot;
        if (owner == 0 &&
            atomic_compare_exchange_strong_explicit(
                &slot->owner, &owner, self, memory_order_relaxed, memory_order_relaxed))
            return slot;
    }
    return &slots[home];
}

struct dryi_pinned_slot *
dryi_pinned_slot_try(struct dry_pinned *p)
{
    if (!p->slots)
        return NULL;
    uintptr_t self = dryi_thread_self();
    uint32_t home = (uint32_t)dryi_spread(self, 6);
    struct dryi_pinned_slot *slot = &p->slots[home];
    if (atomic_load_explicit(&slot->owner, memory_order_relaxed) != self)
        slot = claim_slot(p->slots, home, self);
    if (atomic_exchange_explicit(&slot->is_taken, 1, memory_order_acquire) != 0)
        return NULL;
    return slot;
}

void
dryi_pinned_slot_leave(struct dryi_pinned_slot *slot)
{
    atomic_store_explicit(&slot->is_taken, 0, memory_order_release);
}

void
dryi_pinned_slot_take(struct dryi_pinned_slot *slot)
{
    while (atomic_exchange_explicit(&slot->is_taken, 1, memory_order_acquire) != 0)
        sched_yield();
}

static void
fold(struct dry_stat *stat, struct dryi_pinned_delta *delta)
{
    if (stat->current + delta->most > stat->peak)
        stat->peak = stat->current + delta->most;
    stat->current += delta->now;
    stat->allocated += delta->added;
    stat->freed += delta->added - delta->now;
    *delta = (struct dryi_pinned_delta){0};
}

void
dryi_pinned_slot_fold(struct dry_pinned *p, struct dryi_pinned_slot *slot)
{
    if (!slot)
        return;
    int64_t most = p->stats.active_bytes.current + slot->bytes.most;
    if (most > p->used_peak_bytes)
        p->used_peak_bytes = most;
    fold(&p->stats.active_requests, &slot->requests);
    fold(&p->stats.active_bytes, &slot->bytes);
    fold(&p->stats.requested_bytes, &slot->requested);
}

/* Fold the sums if they differ by much; one block, however large, may come and go without. */
static inline void
fold_if_far(struct dry_pinned *p, struct dryi_pinned_slot *slot, int64_t bytes)
{
    int64_t slack = atomic_load_explicit(&p->slack_bytes, memory_order_relaxed) + bytes;
    if (slot->bytes.now <= slack && slot->bytes.now >= -slack)
        return;
    dryi_lock_take(&p->lock);
    dryi_pinned_slot_fold(p, slot);
    dryi_lock_give(&p->lock);
}

void
dryi_pinned_enter(struct dry_pinned *p)
{
    struct dryi_pinned_slot *slot = dryi_pinned_slot_try(p);
    dryi_lock_take(&p->lock);
    dryi_pinned_slot_fold(p, slot);
    if (slot)
        dryi_pinned_slot_leave(slot);
}

static void
add_to(struct dryi_pinned_delta *delta, int64_t amount)
{
    delta->now += amount;
    delta->added += amount;
    if (delta->now > delta->most)
        delta->most = delta->now;
}

/* --- sets ----------------------------------------------------------------------------------- */

static struct dryi_pinned_set *
set_of(struct dryi_pinned_slot *slot, uint32_t class_id)
{
    return &slot->sets[(class_id ^ class_id >> 6) % DRYI_PINNED_SETS];
}

/* Give the oldest blocks of a set to their heap; `left` remain. Requires slot and lock. */
static void
flush_set(struct dry_pinned *p, struct dryi_pinned_slot *slot,
          struct dryi_pinned_set *set, uint32_t left)
{
    if (set->count <= left)
        return;
    uint32_t gone = set->count - left;
    for (uint32_t i = 0; i < gone; i++) {
        struct dryi_pinned_entry *e = &set->entries[i];
        DRYI_ASSERT(dryi_pinned_state_of(dryi_pinned_tag(e->cell)) == DRYI_PINNED_KEPT);
        dryi_pinned_heap_give(p, dryi_pinned_arena_at(p, e->address), e->cell);
    }
    for (uint32_t i = 0; i < left; i++)
        set->entries[i] = set->entries[gone + i];
    set->count = left;
    slot->kept_bytes -= (int64_t)(gone * set->bytes);
}

static void
flush_slot(struct dry_pinned *p, struct dryi_pinned_slot *slot)
{
    dryi_pinned_slot_fold(p, slot);
    for (uint32_t i = 0; slot->kept_bytes && i < DRYI_PINNED_SETS; i++)
        flush_set(p, slot, &slot->sets[i], 0);
}

void
dryi_pinned_magazines_flush(struct dry_pinned *p)
{
    for (uint32_t i = 0; p->slots && i < DRYI_PINNED_SLOTS; i++) {
        struct dryi_pinned_slot *slot = &p->slots[i];
        if (atomic_load_explicit(&slot->owner, memory_order_relaxed) == 0)
            continue;
        dryi_pinned_slot_take(slot);
        dryi_lock_take(&p->lock);
        flush_slot(p, slot);
        dryi_lock_give(&p->lock);
        dryi_pinned_slot_leave(slot);
    }
}

void
dryi_pinned_lock_all(struct dry_pinned *p)
{
    for (uint32_t i = 0; p->slots && i < DRYI_PINNED_SLOTS; i++)
        dryi_pinned_slot_take(&p->slots[i]);
    dryi_lock_take(&p->lock);
    for (uint32_t i = 0; p->slots && i < DRYI_PINNED_SLOTS; i++)
        dryi_pinned_slot_fold(p, &p->slots[i]);
}

void
dryi_pinned_unlock_all(struct dry_pinned *p)
{
    dryi_lock_give(&p->lock);
    for (uint32_t i = 0; p->slots && i < DRYI_PINNED_SLOTS; i++)
        dryi_pinned_slot_leave(&p->slots[i]);
}

/* --- take and give -------------------------------------------------------------------------- */

uint64_t
dryi_pinned_magazine_take(struct dry_pinned *p, struct dryi_pinned_slot *slot,
                          const struct dryi_pinned_wish *wish)
{
    if (!slot->sets)
        return 0;
    struct dryi_pinned_set *set = set_of(slot, wish->class_id);
    if (set->class_id != wish->class_id || set->count == 0)
        return 0;
    const struct dryi_pinned_entry *e = &set->entries[--set->count];
    slot->kept_bytes -= (int64_t)wish->bytes;
    dryi_pinned_mark_used(e->cell, wish->class_id,
                          (uint32_t)(wish->bytes - wish->requested));
    add_to(&slot->requests, 1);
    add_to(&slot->bytes, (int64_t)wish->bytes);
    add_to(&slot->requested, (int64_t)wish->requested);
    fold_if_far(p, slot, (int64_t)wish->bytes);
    return e->address;
}

/* Make room for one block more in a set of the class. Requires the slot, and not the lock. */
static void
make_room(struct dry_pinned *p, struct dryi_pinned_slot *slot,
          struct dryi_pinned_set *set, uint32_t class_id, uint64_t bytes)
{
    bool is_other = set->class_id != class_id && set->count > 0;
    bool is_over = slot->kept_bytes + (int64_t)bytes > KEPT_MAX && slot->kept_bytes > 0;
    if (is_other || is_over || set->count == DRYI_PINNED_WAYS) {
        dryi_lock_take(&p->lock);
        if (is_over)
            flush_slot(p, slot);
        else
            flush_set(p, slot, set, is_other ? 0 : DRYI_PINNED_WAYS / 2);
        dryi_lock_give(&p->lock);
    }
    set->class_id = class_id;
    set->bytes = bytes;
}

static void
keep(struct dryi_pinned_slot *slot, struct dryi_pinned_set *set,
     struct dryi_pinned_cell *cell, uint64_t address)
{
    set->entries[set->count++] = (struct dryi_pinned_entry){cell, address};
    slot->kept_bytes += (int64_t)set->bytes;
}

bool
dryi_pinned_magazine_give(struct dry_pinned *p, struct dryi_pinned_slot *slot,
                          const struct dryi_pinned_arena *a,
                          struct dryi_pinned_cell *cell)
{
    uint64_t bytes = dryi_pinned_block_bytes(a, cell);
    if (!slot->sets || bytes > p->options.keep_max_bytes)
        return false;
    uint32_t class_id = dryi_pinned_tag(cell) >> DRYI_PINNED_CLASS_SHIFT;
    struct dryi_pinned_set *set = set_of(slot, class_id);
    if (set->class_id != class_id || set->count == DRYI_PINNED_WAYS ||
        slot->kept_bytes + (int64_t)bytes > KEPT_MAX)
        make_room(p, slot, set, class_id, bytes);
    slot->requests.now--;
    slot->bytes.now -= (int64_t)bytes;
    slot->requested.now -= (int64_t)(bytes - cell->waste);
    dryi_pinned_set_tag(cell, DRYI_PINNED_KEPT, class_id << DRYI_PINNED_CLASS_SHIFT);
    keep(slot, set, cell, dryi_pinned_block_address(a, cell));
    fold_if_far(p, slot, (int64_t)bytes);
    return true;
}

/*
 * Fetch half a set of small blocks. If there is no memory for sets, nothing is kept; nor if
 * cached_max_bytes is set: one block at hand would keep an arena from going.
 */
void
dryi_pinned_magazine_refill(struct dry_pinned *p, struct dryi_pinned_slot *slot,
                            const struct dryi_pinned_wish *wish)
{
    if (!slot->sets && p->options.cached_max_bytes == UINT64_MAX)
        slot->sets = dryi_memory_zalloc(&p->memory, DRYI_PINNED_SETS, sizeof *slot->sets);
    if (!slot->sets || wish->bytes > REFILL_BYTES)
        return;
    struct dryi_pinned_set *set = set_of(slot, wish->class_id);
    if (set->count > 0 || slot->kept_bytes > KEPT_MAX / 2)
        return;
    set->class_id = wish->class_id;
    set->bytes = wish->bytes;
    while (set->count < DRYI_PINNED_WAYS / 2) {
        uint64_t address;
        struct dryi_pinned_cell *cell = dryi_pinned_heap_take(p, wish, &address);
        if (!cell)
            return;
        dryi_pinned_set_tag(cell, DRYI_PINNED_KEPT,
                            wish->class_id << DRYI_PINNED_CLASS_SHIFT);
        keep(slot, set, cell, address);
    }
}
