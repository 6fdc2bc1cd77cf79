/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_LIVE_DETAIL_H
#define DRYI_LIVE_DETAIL_H

#include <drystone/live.h>

/* The counts of a pool. */
struct dryi_live_look {
    struct dry_stats stats;
    uint64_t limit; /* what may be reserved at most; DRY_LIVE_UNKNOWN */
};

/* Take the pool's lock for a moment. Errors: ARGUMENT (this is the child of a fork). */
DRY_CHECK_RESULT enum dry_status dryi_live_look(struct dry_pool *pool,
                                                struct dryi_live_look *look);

/*
 * Look, and fill *detail of the same moment by a walk over the blocks. A lane that there is no
 * room for is in the sums alone. Errors: those of dry_pool_walk(); what is filled is of no use
 * then. Cost: O(blocks + segments * lanes) with the pool's lock held.
 */
DRY_CHECK_RESULT enum dry_status dryi_live_walk(struct dry_pool *pool,
                                                struct dryi_live_look *look,
                                                struct dry_live_detail *detail);

#endif
