/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_LADDER_H
#define DRYI_PLACE_PAGED_LADDER_H

/* The ladder: the ways to serve a miss, ordered by cost. */

#include "base/ablate.h"
#include "place/paged/record/paged_state.h"
#include "place/paged/record/paged_stats.h"

/* Is free memory so scarce that large requests must save pages? See TIGHT_SHARE. */
static inline bool
dryi_paged_is_tight(const struct dryi_paged *p)
{
    uint64_t reserved = stat_all(p, STAT_RESERVED_BYTES);
    uint64_t live = stat_all(p, STAT_ALLOCATED_BYTES);
    return !DRYI_ABLATED(tight) && p->is_full && p->conf.remap && p->page_bytes > 0 &&
           reserved - live < reserved / TIGHT_SHARE;
}

/* Find a block of r->bytes for a request that no list could serve. *block is unlisted. */
DRYI_NOINLINE enum dry_status dryi_paged_climb(struct dryi_paged *p,
                                               const struct request *r, uint32_t *block);
/*
 * Serve a small request as the smallest large one, after dryi_paged_climb() failed. On success *r
 * is that large request.
 */
enum dry_status dryi_paged_take_larger(struct dryi_paged *p, struct request *r,
                                       uint32_t *block);
/*
 * Bring the pages that a spot needs into the stock, within the budget. *moved: blocks may have
 * changed. NO_SPACE: too few pages.
 */
enum dry_status dryi_paged_fund(struct dryi_paged *p, const struct request *r,
                                const struct spot *spot, bool *moved);

#endif
