/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The locks of the fronts: the pool's lock is taken first, then those of the open fronts in the
 * order of their numbers. A front that nobody used for long is closed, and the sharing ends once
 * one stream alone has asked for long; pool_front.h says why.
 */

#include "pool/pool_lock.h"

/* It is held, but for one that was to be opened by the next unlock. */
static void
close_front(struct dryi_pool_fronts *f, uint32_t at)
{
    struct dryi_pool_front *front = f->open[at];
    bool is_held = front->is_open;
    front->is_open = false;
    front->beside = 0;
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
    pool->fronts.last = NULL;
    atomic_store_explicit(&pool->fronts.is_shared, is_shared, memory_order_relaxed);
    pool->place.ops->front_share(pool->place.self, is_shared);
}

void
dryi_pool_fronts_close(struct dry_pool *pool)
{
    struct dryi_pool_fronts *f = &pool->fronts;
    f->last = NULL;
    while (f->open_count > 0)
        close_front(f, f->open_count - 1);
    if (dryi_pool_fronts_are_shared(f))
        set_shared(pool, false);
}

static void
close_idle(struct dry_pool *pool, uint64_t used)
{
    struct dryi_pool_fronts *f = &pool->fronts;
    bool is_alone = f->open_count <= 1;
    uint32_t locked = 1;
    for (uint32_t i = 0; i < f->open_count; i++) {
        locked += f->open[i]->beside;
        f->open[i]->beside = 0;
    }
    for (uint32_t i = f->open_count; i-- > 0;) {
        struct dryi_pool_front *front = f->open[i];
        front->idle = used >> i & 1 ? 0 : front->idle + locked;
        if (front->idle > DRYI_POOL_IDLE_MAX)
            close_front(f, i);
    }
    f->alone += is_alone ? locked : 0;
    if (f->alone > DRYI_POOL_IDLE_MAX)
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

void
dryi_pool_fronts_share(struct dry_pool *pool)
{
    if (pool->place.ops->front_ask && !dryi_pool_is_heard(pool) && !pool->scopes)
        set_shared(pool, true);
}
