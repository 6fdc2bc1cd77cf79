/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_VIEW_H
#define DRYI_POOL_VIEW_H

#include "pool/pool_state.h"

/* The statistics with the failures that a callback helped taken out. Lock held. */
void dryi_pool_stats(const struct dry_pool *pool, struct dry_stats *stats);
/* Has the place counted an out-of-memory since this was last asked? After a refusal. */
bool dryi_pool_saw_oom(struct dry_pool *pool);
/* dry_pool_walk with the lock held. */
DRY_CHECK_RESULT enum dry_status dryi_pool_walk(
    struct dry_pool *pool,
    enum dry_status (*visit)(void *self, const struct dry_pool_segment *segment,
                             const struct dry_pool_part *parts, size_t count),
    void *self);

#endif
