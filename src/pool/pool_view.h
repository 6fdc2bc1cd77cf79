/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_VIEW_H
#define DRYI_POOL_VIEW_H

#include "pool/pool_state.h"

/* Get the statistics, without failures that a callback helped. Requires the lock. */
void dryi_pool_stats(const struct dry_pool *pool, struct dry_stats *stats);
/* Has the place counted an out-of-memory since the last call? Requires the lock. */
bool dryi_pool_saw_oom(struct dry_pool *pool);
/* Find the segment that includes an address. ARGUMENT: none does. Requires the lock. */
DRY_CHECK_RESULT enum dry_status dryi_pool_find_segment(
    const struct dry_pool *pool, uint64_t address, struct dryi_segment_info *segment);
/* Do as dry_pool_walk(). Requires the lock. */
DRY_CHECK_RESULT enum dry_status dryi_pool_walk(
    struct dry_pool *pool,
    enum dry_status (*visit)(void *self, const struct dry_pool_segment *segment,
                             const struct dry_pool_part *parts, size_t count),
    void *self);

#endif
