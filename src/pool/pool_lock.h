/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_LOCK_H
#define DRYI_POOL_LOCK_H

/*
 * The lock of a pool. While the pool is shared (pool_cache.h) it is one lock and the locks of all
 * open caches. A thread that takes both has the place, the caches and the pool.
 */

#include "base/assert.h"
#include "os/fork.h"
#include "os/lock.h"
#include "pool/pool_state.h"

/* A cache is closed once the pool was locked so often since the cache was used. */
#define DRYI_POOL_IDLE_MAX 16384

void dryi_pool_caches_lock(struct dry_pool *pool);
void dryi_pool_caches_unlock(struct dry_pool *pool);

/* Take the locks of the open caches. Requires the pool's lock. */
static inline void
dryi_pool_lock_caches(struct dry_pool *pool)
{
    if (dryi_pool_caches_are_shared(&pool->caches))
        dryi_pool_caches_lock(pool);
}

static inline void
dryi_pool_unlock_caches(struct dry_pool *pool)
{
    if (dryi_pool_caches_are_shared(&pool->caches))
        dryi_pool_caches_unlock(pool);
}

/*
 * Take all locks: the place, all caches and the rest of the pool are this thread's. The counts of
 * the caches are added up.
 */
static inline void
dryi_pool_lock(struct dry_pool *pool)
{
    dryi_lock_take(&pool->lock);
    dryi_pool_lock_caches(pool);
}

static inline void
dryi_pool_unlock(struct dry_pool *pool)
{
    dryi_pool_unlock_caches(pool);
    dryi_lock_give(&pool->lock);
}

/* For assertions: are all locks taken? By which thread is not asked. */
static inline bool
dryi_pool_is_locked(const struct dry_pool *pool)
{
    const struct dryi_pool_caches *f = &pool->caches;
    bool is_locked = dryi_lock_is_taken(&pool->lock);
    for (uint32_t i = 0; i < f->open_count && is_locked; i++)
        is_locked = !f->open[i]->is_open || dryi_lock_is_taken(&f->open[i]->lock);
    return is_locked;
}

/* Take all locks; UNSUPPORTED, and none taken, in the child of a fork. */
DRY_CHECK_RESULT static inline enum dry_status
dryi_pool_enter(struct dry_pool *pool)
{
    if (dryi_fork_mark_is_child(&pool->fork))
        return DRY_ERR_UNSUPPORTED;
    dryi_pool_lock(pool);
    pool->asking = DRY_NONE; /* a request says so itself */
    return DRY_OK;
}

static inline void
dryi_pool_leave(struct dry_pool *pool)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    dryi_pool_unlock(pool);
}

/* Everything below: with the pool locked. */

/* Share the pool from now on, if it can be. */
void dryi_pool_caches_share(struct dry_pool *pool);
/* Close all caches, and end the sharing. */
void dryi_pool_caches_close(struct dry_pool *pool);

#endif
