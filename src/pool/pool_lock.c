/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The locks of the caches. Lock order: the pool's lock, then open caches by number. A cache that
 * was long unused is closed. Sharing ends once only one stream has made requests for long; see
 * pool_cache.h.
 */

#include "pool/pool_lock.h"
#include "base/assert.h"

/* Close a cache. Requires its lock, unless the next unlock was to open it. */
static void
close_cache(struct dryi_pool_caches *f, uint32_t at)
{
    DRYI_ASSERT_SLOW(at < f->open_count);
    struct dryi_pool_cache *cache = f->open[at];
    bool is_held = cache->is_open;
    cache->is_open = false;
    cache->beside = 0;
    if (is_held)
        dryi_lock_give(&cache->lock);
    f->open_count--;
    for (uint32_t i = at; i < f->open_count; i++) {
        f->open[i] = f->open[i + 1];
        f->open_caches[i] = f->open_caches[i + 1];
    }
}

static void
set_shared(struct dry_pool *pool, bool is_shared)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&pool->lock));
    pool->caches.thread = 0; /* so that the next thread does not start sharing at once */
    pool->caches.alone = 0;
    pool->caches.last = NULL;
    atomic_store_explicit(&pool->caches.is_shared, is_shared, memory_order_relaxed);
    pool->place.caches->share(pool->place.self, is_shared);
}

void
dryi_pool_caches_close(struct dry_pool *pool)
{
    struct dryi_pool_caches *f = &pool->caches;
    f->last = NULL;
    while (f->open_count > 0)
        close_cache(f, f->open_count - 1);
    if (dryi_pool_caches_are_shared(f))
        set_shared(pool, false);
}

static void
close_idle(struct dry_pool *pool, uint64_t used)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&pool->lock));
    struct dryi_pool_caches *f = &pool->caches;
    bool is_alone = f->open_count <= 1;
    uint32_t locked = 1;
    for (uint32_t i = 0; i < f->open_count; i++) {
        locked += f->open[i]->beside;
        f->open[i]->beside = 0;
    }
    for (uint32_t i = f->open_count; i-- > 0;) {
        struct dryi_pool_cache *cache = f->open[i];
        cache->idle = used >> i & 1 ? 0 : cache->idle + locked;
        if (cache->idle > DRYI_POOL_IDLE_MAX)
            close_cache(f, i);
    }
    f->alone += is_alone ? locked : 0;
    if (f->alone > DRYI_POOL_IDLE_MAX)
        dryi_pool_caches_close(pool);
}

void
dryi_pool_caches_lock(struct dry_pool *pool)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&pool->lock));
    struct dryi_pool_caches *f = &pool->caches;
    for (uint32_t i = 0; i < f->open_count; i++)
        dryi_lock_take(&f->open[i]->lock);
    uint64_t used =
        pool->place.caches->balance(pool->place.self, f->open_caches, f->open_count);
    close_idle(pool, used);
}

void
dryi_pool_caches_unlock(struct dry_pool *pool)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&pool->lock));
    struct dryi_pool_caches *f = &pool->caches;
    for (uint32_t i = 0; i < f->open_count; i++) {
        if (f->open[i]->is_open)
            dryi_lock_give(&f->open[i]->lock);
    }
    for (uint32_t i = 0; i < f->open_count; i++) {
        struct dryi_pool_cache *cache = f->open[i];
        if (cache->is_open)
            continue;
        dryi_lock_take(
            &cache->lock); /* no other cache is locked here: see open_cache() */
        cache->is_open = true;
        dryi_lock_give(&cache->lock);
    }
}

void
dryi_pool_caches_share(struct dry_pool *pool)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    if (pool->place.caches && !dryi_pool_is_heard(pool) && !pool->scopes)
        set_shared(pool, true);
}
