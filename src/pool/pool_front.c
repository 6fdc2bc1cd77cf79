/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/pool_front.h"

#include "base/assert.h"
#include "base/bits.h"
#include "base/memory.h"
#include "pool/pool_state.h"

#define IDLE_MAX 16384 /* the pool was locked so often since it was used: it is closed */

/* --- locks -------------------------------------------------------------------------------- */

/* It is held, but for one that was to be opened by the next unlock. */
static void
close_front(struct dryi_pool_fronts *f, uint32_t at)
{
    struct dryi_pool_front *front = f->open[at];
    bool is_held = front->is_open;
    front->is_open = false;
    if (is_held)
        dryi_lock_give(&front->lock);
    f->open_count--;
    for (uint32_t i = at; i < f->open_count; i++) {
        f->open[i] = f->open[i + 1];
        f->open_fronts[i] = f->open_fronts[i + 1];
    }
}

static void
set_shared(struct dry_pool *pool, bool is_shared)
{
    pool->fronts.thread = 0; /* whoever asks next is alone at first */
    pool->fronts.alone = 0;
    atomic_store_explicit(&pool->fronts.is_shared, is_shared, memory_order_relaxed);
    pool->place.ops->front_share(pool->place.self, is_shared);
}

void
dryi_pool_fronts_close(struct dry_pool *pool)
{
    struct dryi_pool_fronts *f = &pool->fronts;
    while (f->open_count > 0)
        close_front(f, f->open_count - 1);
    if (dryi_pool_fronts_are_shared(f))
        set_shared(pool, false);
}

static void
close_idle(struct dry_pool *pool, uint64_t used)
{
    struct dryi_pool_fronts *f = &pool->fronts;
    uint32_t locked = 1 + f->beside;
    f->beside = 0;
    for (uint32_t i = f->open_count; i-- > 0;) {
        struct dryi_pool_front *front = f->open[i];
        front->idle = used >> i & 1 ? 0 : front->idle + locked;
        if (front->idle > IDLE_MAX)
            close_front(f, i);
    }
    f->alone += f->open_count <= 1 ? locked : 0;
    if (f->alone > IDLE_MAX)
        dryi_pool_fronts_close(pool);
}

void
dryi_pool_fronts_lock(struct dry_pool *pool)
{
    struct dryi_pool_fronts *f = &pool->fronts;
    for (uint32_t i = 0; i < f->open_count; i++)
        dryi_lock_take(&f->open[i]->lock);
    uint64_t used =
        pool->place.ops->front_balance(pool->place.self, f->open_fronts, f->open_count);
    close_idle(pool, used);
}

void
dryi_pool_fronts_unlock(struct dry_pool *pool)
{
    struct dryi_pool_fronts *f = &pool->fronts;
    for (uint32_t i = 0; i < f->open_count; i++) {
        if (f->open[i]->is_open)
            dryi_lock_give(&f->open[i]->lock);
    }
    for (uint32_t i = 0; i < f->open_count; i++) {
        struct dryi_pool_front *front = f->open[i];
        if (front->is_open)
            continue;
        dryi_lock_take(&front->lock); /* of fronts, this one alone: see open_front */
        front->is_open = true;
        dryi_lock_give(&front->lock);
    }
}

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
        if (!front || front->stream == stream)
            return &f->by_stream[at];
    }
    return NULL;
}

static struct dryi_pool_front *
make_front(struct dry_pool *pool, uint64_t stream)
{
    struct dryi_pool_fronts *f = &pool->fronts;
    if (f->count == DRYI_POOL_FRONTS)
        return NULL;
    struct dryi_front *front = pool->place.ops->front_ask(pool->place.self, stream);
    struct dryi_pool_front *made =
        front ? dryi_memory_zalloc(&pool->memory, 1, sizeof *made) : NULL;
    if (!made)
        return NULL;
    made->front = front;
    made->stream = stream;
    dryi_lock_init(&made->lock);
    f->all[++f->count] = made;
    made->number = f->count;
    atomic_store_explicit(place_of(f, stream), made, memory_order_release);
    return made;
}

void
dryi_pool_fronts_share(struct dry_pool *pool)
{
    if (pool->place.ops->front_ask && !dryi_pool_is_heard(pool) && !pool->scopes)
        set_shared(pool, true);
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

static bool
is_listed(const struct dryi_pool_fronts *f, const struct dryi_pool_front *front)
{
    uint32_t i = 0;
    while (i < f->open_count && f->open[i] != front)
        i++;
    return i < f->open_count;
}

struct dryi_pool_front *
dryi_pool_front_find(struct dry_pool *pool, uint64_t number, uint64_t handle)
{
    struct dryi_pool_fronts *f = &pool->fronts;
    if (f->last && f->last->stream == number && f->last->handle == handle &&
        !dryi_pool_fronts_are_shared(f))
        return f->last;
    if (!pool->place.ops->front_ask)
        return NULL;
    _Atomic(struct dryi_pool_front *) *at = place_of(f, number);
    struct dryi_pool_front *front =
        at ? atomic_load_explicit(at, memory_order_relaxed) : NULL;
    if (!front)
        front = make_front(pool, number);
    if (!front)
        return NULL;
    if (dryi_pool_fronts_are_shared(f) && !front->is_open && !is_listed(f, front))
        open_front(f, front);
    front->handle = handle;
    return f->last = front;
}

void
dryi_pool_fronts_finish(struct dry_pool *pool)
{
    struct dryi_pool_fronts *f = &pool->fronts;
    for (uint32_t i = 1; i <= f->count; i++) {
        dryi_lock_finish(&f->all[i]->lock);
        dryi_memory_free(&pool->memory, f->all[i], 1, sizeof *f->all[i]);
    }
    f->count = 0;
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

static uint64_t
number_of(const struct dry_pool *pool, uint64_t stream)
{
    return pool->has_stream_ids ? pool->device.ops->stream_id(pool->device.self, stream)
                                : stream;
}

bool
dryi_pool_front_alloc_alone(struct dry_pool *pool, uint64_t size, uint64_t stream,
                            uint64_t *address)
{
    const struct dryi_pool_front *f = pool->fronts.last;
    return f && size <= pool->place.front_max && f->handle == stream &&
           !dryi_pool_fronts_are_shared(&pool->fronts) &&
           f->stream == number_of(pool, stream) && hand_out(pool, f, size, address);
}

/* NULL: the stream has none. */
static struct dryi_pool_front *
front_of(struct dry_pool *pool, uint64_t stream)
{
    uint64_t number = number_of(pool, stream);
    _Atomic(struct dryi_pool_front *) *at = place_of(&pool->fronts, number);
    struct dryi_pool_front *f =
        at ? atomic_load_explicit(at, memory_order_acquire) : NULL;
    /* Where it was empty a moment ago, another stream's may stand by now. */
    return f && f->stream == number ? f : NULL;
}

bool
dryi_pool_front_alloc(struct dry_pool *pool, uint64_t size, uint64_t stream,
                      uint64_t *address)
{
    struct dryi_pool_front *f = front_of(pool, stream);
    if (!f)
        return false;
    dryi_lock_take(&f->lock);
    bool is_done = f->is_open && f->handle == stream && hand_out(pool, f, size, address);
    dryi_lock_give(&f->lock);
    return is_done;
}

/* Not for ever: which fronts are idle is seen where all of them are locked. */
static bool
goes_beside(struct dryi_pool_fronts *f)
{
    if (f->beside == IDLE_MAX)
        return false;
    f->beside++;
    return true;
}

bool
dryi_pool_front_cut(struct dry_pool *pool, uint64_t size, uint64_t stream,
                    uint64_t *address)
{
    struct dryi_pool_front *f = front_of(pool, stream);
    if (!f)
        return false;
    dryi_lock_take(&pool->lock);
    dryi_lock_take(&f->lock);
    struct dryi_pool_entry entry = {.front = f->number};
    bool is_done = f->is_open && f->handle == stream && goes_beside(&pool->fronts) &&
                   dryi_pool_table_reserve(&pool->table) &&
                   pool->place.ops->front_cut(f->front, size, &entry.block);
    if (is_done) {
        *address = entry.address =
            pool->place.ops->get_address(pool->place.self, entry.block);
        dryi_pool_table_put(&pool->table, entry);
    }
    dryi_lock_give(&f->lock);
    dryi_lock_give(&pool->lock);
    return is_done;
}

bool
dryi_pool_front_free_alone(struct dry_pool *pool, struct dryi_pool_slot *slot)
{
    uint32_t number = dryi_pool_key_front(dryi_pool_slot_key(slot));
    return number > 0 && !dryi_pool_fronts_are_shared(&pool->fronts) &&
           pool->place.ops->front_put(pool->fronts.all[number]->front,
                                      dryi_pool_slot_block(slot));
}

bool
dryi_pool_front_free(struct dry_pool *pool, uint64_t address)
{
    struct dryi_pool_slot *slot = dryi_pool_table_seek(&pool->table, address);
    uint64_t key = slot ? dryi_pool_slot_key(slot) : 0;
    uint32_t number = dryi_pool_key_front(key);
    if (number == 0 || dryi_pool_key_address(key) != address)
        return false;
    struct dryi_pool_front *f = pool->fronts.all[number];
    uint32_t block;
    dryi_lock_take(&f->lock);
    bool is_done = f->is_open && dryi_pool_table_read(&pool->table, slot, key, &block) &&
                   pool->place.ops->front_put(f->front, block);
    dryi_lock_give(&f->lock);
    return is_done;
}

bool
dryi_pool_front_merge(struct dry_pool *pool, uint64_t address)
{
    dryi_lock_take(&pool->lock);
    struct dryi_pool_slot *slot = dryi_pool_table_seek(&pool->table, address);
    uint32_t number = slot ? dryi_pool_key_front(dryi_pool_slot_key(slot)) : 0;
    bool is_done = false;
    if (number > 0) {
        struct dryi_pool_front *f = pool->fronts.all[number];
        dryi_lock_take(&f->lock);
        is_done = f->is_open && goes_beside(&pool->fronts) &&
                  pool->place.ops->front_merge(f->front, dryi_pool_slot_block(slot));
        if (is_done)
            dryi_pool_table_remove(&pool->table, slot);
        dryi_lock_give(&f->lock);
    }
    dryi_lock_give(&pool->lock);
    return is_done;
}
