/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_LIVE_DETAIL_H
#define DRYI_LIVE_DETAIL_H

#include <drystone/live.h>

/* A pool's statistics and limit at one moment. */
struct dryi_live_sample {
    struct dry_stats stats;
    uint64_t limit; /* bytes that may be reserved at most, or DRY_LIVE_UNKNOWN */
};

/* Read the statistics. Holds the pool's lock briefly. Errors: ARGUMENT (this process
   is the child of a fork). */
DRY_CHECK_RESULT enum dry_status dryi_live_sample(struct dry_pool *pool,
                                                  struct dryi_live_sample *sample);

/*
 * Read the statistics, and fill *detail for the same moment by a walk over the blocks. Lanes beyond
 * DRY_LIVE_LANES_MAX count only in the sums. Errors: those of dry_pool_walk(); *detail is undefined
 * then. Cost: O(blocks + segments * lanes) with the pool's lock held.
 */
DRY_CHECK_RESULT enum dry_status dryi_live_walk(struct dry_pool *pool,
                                                struct dryi_live_sample *sample,
                                                struct dry_live_detail *detail);

#endif
