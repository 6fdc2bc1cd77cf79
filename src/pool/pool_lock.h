/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_LOCK_H
#define DRYI_POOL_LOCK_H

/*
 * The lock of a pool. While the pool is shared (pool_cache.h), it consists of the pool's lock and
 * the locks of all open caches. A thread that holds them all owns the place, the caches and the
 * pool.
 */

#include "base/assert.h"
#include "os/fork.h"
#include "os/lock.h"
#include "pool/pool_state.h"

/* Times the pool is locked without a use of a cache after which the cache is closed. */
#define DRYI_POOL_IDLE_MAX 16384

void dryi_pool_caches_lock(struct dry_pool *pool);
void dryi_pool_caches_unlock(struct dry_pool *pool);

/* Lock the open caches. Requires the pool's lock. */
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

/* Take all locks, and add the counts of the caches: the thread then owns the whole pool. */
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

/* For assertions: are all locks taken, by any thread? */
static inline bool
dryi_pool_is_locked(const struct dry_pool *pool)
{
    const struct dryi_pool_caches *f = &pool->caches;
    bool is_locked = dryi_lock_is_taken(&pool->lock);
    for (uint32_t i = 0; i < f->open_count && is_locked; i++)
        is_locked = !f->open[i]->is_open || dryi_lock_is_taken(&f->open[i]->lock);
    return is_locked;
}

/* Take all locks. UNSUPPORTED: this is the child of a fork, and no lock is taken. */
DRY_CHECK_RESULT static inline enum dry_status
dryi_pool_enter(struct dry_pool *pool)
{
    if (dryi_fork_mark_is_child(&pool->fork))
        return DRY_ERR_UNSUPPORTED;
    dryi_pool_lock(pool);
    pool->asking = DRY_NONE; /* a request sets its own context */
    return DRY_OK;
}

static inline void
dryi_pool_leave(struct dry_pool *pool)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    dryi_pool_unlock(pool);
}

/* The functions below require the pool to be locked. */

/* Begin to share the pool, unless a history, an observer or a scope forbids it. */
void dryi_pool_caches_share(struct dry_pool *pool);
/* Close all caches, and stop sharing. */
void dryi_pool_caches_close(struct dry_pool *pool);

#endif
