/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests beside the lock; the idea stands in pool_front.h. An alloc finds its front in a hash
 * table by stream, a free by two hints. Both are read without a lock, so a front that was found is
 * looked at again under its own lock: it may be closed, or another stream's by then.
 */

#include "pool/pool_front.h"

#include "base/assert.h"
#include "base/bits.h"
#include "base/memory.h"
#include "pool/pool_lock.h"
#include "pool/pool_stream.h"

/* --- fronts ------------------------------------------------------------------------------- */

/* The stream's front, or where it would stand; NULL: there is no room. */
static _Atomic(struct dryi_pool_front *) *
place_of(struct dryi_pool_fronts *f, uint64_t stream)
{
    uint64_t hash = dryi_mix64(stream);
    for (size_t i = 0; i < 2 * DRYI_POOL_FRONTS; i++) {
        size_t at = (hash + i) % (2 * DRYI_POOL_FRONTS);
        const struct dryi_pool_front *front =
            atomic_load_explicit(&f->by_stream[at], memory_order_acquire);
        if (!front ||
            atomic_load_explicit(&front->stream, memory_order_relaxed) == stream)
            return &f->by_stream[at];
    }
    return NULL;
}

/* NULL: the stream has none. */
static struct dryi_pool_front *
front_of(struct dryi_pool_fronts *f, uint64_t number)
{
    _Atomic(struct dryi_pool_front *) *at = place_of(f, number);
    struct dryi_pool_front *front =
        at ? atomic_load_explicit(at, memory_order_acquire) : NULL;
    /* Another stream's front may stand by now in a place that was empty a moment ago. */
    bool is_its =
        front && atomic_load_explicit(&front->stream, memory_order_relaxed) == number;
    return is_its ? front : NULL;
}

static bool
is_listed(const struct dryi_pool_fronts *f, const struct dryi_pool_front *front)
{
    uint32_t i = 0;
    while (i < f->open_count && f->open[i] != front)
        i++;
    return i < f->open_count;
}

#define FRONT_IDLE 4096 /* others were found so often since */
#define FRONT_TURNS 16  /* one is looked at for so many that find none */

/*
 * Find a front that nobody has found for long and that keeps no block in use; NULL: not at this
 * turn. The free blocks of its stream lie on it no more.
 */
static struct dryi_pool_front *
find_idle(struct dry_pool *pool)
{
    struct dryi_pool_fronts *f = &pool->fronts;
    if (++f->misses % FRONT_TURNS != 0)
        return NULL;
    f->turn = f->turn % f->count + 1;
    struct dryi_pool_front *front = f->all[f->turn];
    if (front->is_open || is_listed(f, front) || f->finds - front->found_at < FRONT_IDLE)
        return NULL;
    pool->place.ops->front_flush(front->front);
    return front->table.count == 0 ? front : NULL;
}

/* Whoever looks for a front without the lock meanwhile may find none, and takes the lock. */
static void
list_streams(struct dryi_pool_fronts *f)
{
    for (size_t i = 0; i < 2 * DRYI_POOL_FRONTS; i++)
        atomic_store_explicit(&f->by_stream[i], NULL, memory_order_relaxed);
    for (uint32_t i = 1; i <= f->count; i++) {
        uint64_t stream = atomic_load_explicit(&f->all[i]->stream, memory_order_relaxed);
        atomic_store_explicit(place_of(f, stream), f->all[i], memory_order_release);
    }
}

/* The front is another stream's from now on. */
static void
give_to(struct dry_pool *pool, struct dryi_pool_front *idle, struct dryi_front *front,
        uint64_t stream)
{
    dryi_lock_take(&idle->lock); /* of fronts, this one alone: somebody may look at it */
    struct dryi_front *before = idle->front;
    idle->front = front;
    atomic_store_explicit(&idle->stream, stream, memory_order_relaxed);
    dryi_lock_give(&idle->lock);
    pool->place.ops->front_return(before);
    list_streams(&pool->fronts);
}

static struct dryi_pool_front *
make_front(struct dry_pool *pool, uint64_t stream)
{
    struct dryi_pool_fronts *f = &pool->fronts;
    struct dryi_pool_front *made = NULL;
    bool is_full = f->count == DRYI_POOL_FRONTS;
    if (is_full)
        made = find_idle(pool);
    if (is_full && !made)
        return NULL;
    struct dryi_front *front = pool->place.ops->front_ask(pool->place.self, stream);
    if (!front)
        return NULL;
    if (is_full) {
        give_to(pool, made, front, stream);
        return made;
    }
    made = dryi_memory_zalloc(&pool->memory, 1, sizeof *made);
    if (!made) {
        pool->place.ops->front_return(front);
        return NULL;
    }
    made->front = front;
    atomic_init(&made->stream, stream);
    dryi_lock_init(&made->lock);
    dryi_pool_table_init(&made->table, &pool->memory);
    f->all[++f->count] = made;
    made->number = f->count;
    atomic_store_explicit(place_of(f, stream), made, memory_order_release);
    return made;
}

/*
 * Locks of fronts are taken in the order of their numbers, so this one cannot be now: it is
 * open when the pool is unlocked.
 */
static void
open_front(struct dryi_pool_fronts *f, struct dryi_pool_front *front)
{
    uint32_t at = f->open_count++;
    for (; at > 0 && f->open[at - 1]->number > front->number; at--) {
        f->open[at] = f->open[at - 1];
        f->open_fronts[at] = f->open_fronts[at - 1];
    }
    f->open[at] = front;
    f->open_fronts[at] = front->front;
    front->idle = 0;
    f->alone = 0;
}

struct dryi_pool_front *
dryi_pool_front_find(struct dry_pool *pool, uint64_t number, uint64_t handle)
{
    struct dryi_pool_fronts *f = &pool->fronts;
    if (!pool->place.ops->front_ask)
        return &f->others;
    f->finds++;
    struct dryi_pool_front *front = front_of(f, number);
    if (!front)
        front = make_front(pool, number);
    if (!front)
        return &f->others;
    front->found_at = f->finds;
    if (dryi_pool_fronts_are_shared(f) && !front->is_open && !is_listed(f, front))
        open_front(f, front);
    front->handle = handle;
    f->last = dryi_pool_fronts_are_shared(f) || pool->scopes ? NULL : front;
    return front;
}

void
dryi_pool_fronts_init(struct dry_pool *pool)
{
    struct dryi_pool_fronts *f = &pool->fronts;
    dryi_pool_table_init(&f->others.table, &pool->memory);
    f->all[0] = &f->others;
}

void
dryi_pool_fronts_finish(struct dry_pool *pool)
{
    struct dryi_pool_fronts *f = &pool->fronts;
    for (uint32_t i = 1; i <= f->count; i++) {
        dryi_lock_finish(&f->all[i]->lock);
        dryi_pool_table_finish(&f->all[i]->table);
        dryi_memory_free(&pool->memory, f->all[i], 1, sizeof *f->all[i]);
    }
    dryi_pool_table_finish(&f->others.table);
    f->count = 0;
}

/* --- addresses ---------------------------------------------------------------------------- */

void
dryi_pool_front_forget(struct dry_pool *pool, uint64_t stream, uint64_t address)
{
    struct dryi_pool_front *f = front_of(&pool->fronts, stream);
    struct dryi_pool_slot *slot = f ? dryi_pool_table_seek(&f->table, address) : NULL;
    if (slot)
        dryi_pool_table_remove(&f->table, slot);
}

/* The hint by thread: the front it asked last. */
static _Atomic uint8_t *
thread_hint(struct dry_pool *pool)
{
    return &pool->fronts
                .thread_hints[dryi_spread(dryi_thread_self(), DRYI_POOL_THREAD_BITS)];
}

/* --- requests ----------------------------------------------------------------------------- */

/* Nobody else is at the front. */
static inline bool
hand_out(const struct dry_pool *pool, const struct dryi_pool_front *f, uint64_t size,
         uint64_t *address)
{
    uint64_t found = pool->place.ops->front_take(f->front, size);
    if (found == 0)
        return false;
    *address = found;
    return true;
}

/* Its lock is taken. It may be another stream's by now, whose handle is the same. */
static bool
serves(const struct dryi_pool_front *front, uint64_t number, uint64_t stream)
{
    return front->is_open && front->handle == stream &&
           atomic_load_explicit(&front->stream, memory_order_relaxed) == number;
}

/* Not for ever: which fronts are idle is seen where all of them are locked. */
static bool
goes_beside(const struct dryi_pool_front *front)
{
    return front->beside < DRYI_POOL_IDLE_MAX;
}

/* Its block is the stream's. Without the pool's lock no memory may be asked for. */
static bool
cut_at(struct dry_pool *pool, struct dryi_pool_front *f, uint64_t size, bool has_pool,
       struct dryi_pool_entry *entry)
{
    bool has_room = has_pool ? dryi_pool_table_reserve(&f->table)
                             : dryi_pool_table_has_room(&f->table);
    entry->is_kept = true;
    bool is_cut = has_room && goes_beside(f) &&
                  pool->place.ops->front_cut(f->front, size, has_pool, &entry->block);
    f->beside += is_cut;
    return is_cut;
}

/* And is found by its address from now on. */
static uint64_t
enter_cut(struct dry_pool *pool, struct dryi_pool_front *f, struct dryi_pool_entry *entry)
{
    entry->address = pool->place.ops->get_address(pool->place.self, entry->block);
    dryi_pool_put(pool, f, *entry);
    return entry->address;
}

bool
dryi_pool_front_alloc(struct dry_pool *pool, uint64_t size, uint64_t stream,
                      uint64_t *address)
{
    uint64_t number = dryi_pool_number_of(pool, stream);
    struct dryi_pool_front *f = front_of(&pool->fronts, number);
    if (!f)
        return false;
    dryi_lock_take(&f->lock);
    bool is_done = false;
    if (serves(f, number, stream)) {
        struct dryi_pool_entry entry;
        is_done = hand_out(pool, f, size, address);
        if (!is_done && cut_at(pool, f, size, false, &entry)) {
            *address = enter_cut(pool, f, &entry);
            is_done = true;
        }
    }
    dryi_lock_give(&f->lock);
    dryi_pool_note_hint(thread_hint(pool), f);
    return is_done;
}

bool
dryi_pool_front_cut(struct dry_pool *pool, uint64_t size, uint64_t stream,
                    uint64_t *address)
{
    uint64_t number = dryi_pool_number_of(pool, stream);
    struct dryi_pool_front *f = front_of(&pool->fronts, number);
    if (!f)
        return false;
    dryi_lock_take(&pool->lock);
    dryi_lock_take(&f->lock);
    struct dryi_pool_entry entry;
    bool is_done = serves(f, number, stream) && cut_at(pool, f, size, true, &entry);
    dryi_lock_give(&pool->lock); /* what follows is the front's own */
    if (is_done)
        *address = enter_cut(pool, f, &entry);
    dryi_lock_give(&f->lock);
    return is_done;
}

bool
dryi_pool_front_free_alone(struct dry_pool *pool, const struct dryi_pool_found *found)
{
    return found->slot && dryi_pool_slot_is_kept(found->slot) &&
           !dryi_pool_fronts_are_shared(&pool->fronts) &&
           pool->place.ops->front_put(found->front->front, found->slot->block);
}

/* False: it is not of this front; *is_done: it was freed there. */
static bool
free_at(const struct dry_pool *pool, struct dryi_pool_front *f, uint64_t address,
        bool has_pool, bool *is_done)
{
    if (f->number == 0)
        return false;
    dryi_lock_take(&f->lock);
    struct dryi_pool_slot *slot =
        f->is_open ? dryi_pool_table_seek(&f->table, address) : NULL;
    if (slot && dryi_pool_slot_is_kept(slot)) {
        const struct dryi_place_ops *ops = pool->place.ops;
        bool is_put = ops->front_put(f->front, slot->block);
        bool is_merged = !is_put && goes_beside(f) &&
                         ops->front_merge(f->front, slot->block, has_pool);
        if (is_merged) {
            dryi_pool_table_remove(&f->table, slot);
            f->beside++;
        }
        *is_done = is_put || is_merged;
    }
    dryi_lock_give(&f->lock);
    return slot != NULL;
}

/* Two guesses, the better one first; number 0: none, or the same again. */
static void
guess_fronts(struct dry_pool *pool, uint64_t address, struct dryi_pool_front *guesses[2])
{
    guesses[0] = dryi_pool_hinted(pool, thread_hint(pool));
    guesses[1] = dryi_pool_hinted(pool, dryi_pool_hint(pool, address));
    if (guesses[1] == guesses[0])
        guesses[1] = &pool->fronts.others;
}

bool
dryi_pool_front_free(struct dry_pool *pool, uint64_t address)
{
    struct dryi_pool_front *guesses[2];
    guess_fronts(pool, address, guesses);
    bool is_done = false;
    if (!free_at(pool, guesses[0], address, false, &is_done))
        free_at(pool, guesses[1], address, false, &is_done);
    return is_done;
}

bool
dryi_pool_front_merge(struct dry_pool *pool, uint64_t address)
{
    bool is_done = false;
    const struct dryi_pool_fronts *fronts = &pool->fronts;
    struct dryi_pool_front *guesses[2];
    dryi_lock_take(&pool->lock);
    guess_fronts(pool, address, guesses);
    bool is_found = free_at(pool, guesses[0], address, true, &is_done) ||
                    free_at(pool, guesses[1], address, true, &is_done) ||
                    dryi_pool_table_seek(&fronts->others.table, address);
    for (uint32_t i = 1; i <= fronts->count && !is_found; i++) {
        is_found = free_at(pool, fronts->all[i], address, true, &is_done);
        if (is_found)
            dryi_pool_note(pool, address, fronts->all[i]);
    }
    dryi_lock_give(&pool->lock);
    return is_done;
}
