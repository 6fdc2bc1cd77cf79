/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_LOCK_H
#define DRYI_POOL_LOCK_H

/*
 * The lock of a pool. While the pool is shared (pool_front.h) it is one lock and the locks of all
 * open fronts: taking both makes the place, the fronts and the pool this thread's.
 */

#include "os/fork.h"
#include "os/lock.h"
#include "pool/pool_state.h"

/* A front is closed once the pool was locked so often since it was used. */
#define DRYI_POOL_IDLE_MAX 16384

void dryi_pool_fronts_lock(struct dry_pool *pool);
void dryi_pool_fronts_unlock(struct dry_pool *pool);

/* Take the locks of the open fronts. Requires the pool's lock. */
static inline void
dryi_pool_lock_fronts(struct dry_pool *pool)
{
    if (dryi_pool_fronts_are_shared(&pool->fronts))
        dryi_pool_fronts_lock(pool);
}

static inline void
dryi_pool_unlock_fronts(struct dry_pool *pool)
{
    if (dryi_pool_fronts_are_shared(&pool->fronts))
        dryi_pool_fronts_unlock(pool);
}

/*
 * Take all locks: the place, all fronts and the rest of the pool are this thread's. The counts of
 * the fronts are added up.
 */
static inline void
dryi_pool_lock(struct dry_pool *pool)
{
    dryi_lock_take(&pool->lock);
    dryi_pool_lock_fronts(pool);
}

static inline void
dryi_pool_unlock(struct dry_pool *pool)
{
    dryi_pool_unlock_fronts(pool);
    dryi_lock_give(&pool->lock);
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
    dryi_pool_unlock(pool);
}

/* Everything below: with the pool locked. */

/* Share the pool from now on, if it can be. */
void dryi_pool_fronts_share(struct dry_pool *pool);
/* Close all fronts, and end the sharing. */
void dryi_pool_fronts_close(struct dry_pool *pool);

#endif
