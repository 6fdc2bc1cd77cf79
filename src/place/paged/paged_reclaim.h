/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_RECLAIM_H
#define DRYI_PLACE_PAGED_RECLAIM_H

/* Giving back: free blocks to the shared lists, pages to the stock, segments to the device. */

#include "place/paged/record/paged_state.h"

/* Wait until all that was freed so far is complete. A block without an event stays as it is. */
void dryi_paged_wait_all(struct dryi_paged *p);
/* Move free blocks whose uses are complete to the shared lists, and coalesce these blocks. */
void dryi_paged_sweep(struct dryi_paged *p);

/* How far a reclaim goes: from under which blocks it takes pages. */
enum reclaim_effort {
    RECLAIM_COMPLETE, /* some of the free blocks whose uses are complete */
    RECLAIM_WAIT,     /* some of these, and of the blocks that can be waited for */
    RECLAIM_ALL,      /* all of both */
    RECLAIM_ON_OOM,   /* all of both, also in pools that give pages before an OOM */
};

/* Reclaim pages outside [keep_lo, keep_hi) until the stock holds `want`. Fewer are no failure. */
enum dry_status dryi_paged_reclaim(struct dryi_paged *p, uint64_t want, uint64_t keep_lo,
                                   uint64_t keep_hi, enum reclaim_effort effort);
/*
 * Wait for all that streams hold, and sweep, if far more is reserved than ever was active. A gather
 * comes so seldom that its cost is O(1) a request. False: nothing happened.
 */
bool dryi_paged_gather(struct dryi_paged *p);
/*
 * Return empty segments, since the device has no addresses left. Before that, part of the idle
 * pools' pages goes to the stock. With `oom`, the pages of all segments without a block in use go
 * instead, if their pools give pages then. False: no segment was returned.
 */
bool dryi_paged_return_addresses(struct dryi_paged *p, bool oom);
/*
 * Return the first free segment from *from on, on a device without pages. Sets *from to the next
 * segment. With `oom`, pools that give their memory before an OOM give segments, too. False: there
 * is none.
 */
bool dryi_paged_return_segment(struct dryi_paged *p, bool oom, uint32_t *from);
/*
 * Look at a few idle pools, in turns, for each private pool opened since the last call. Take their
 * free pages into the stock, and forget each pool left with neither pages nor blocks. Without this,
 * idle pools would pile up, each with its addresses. Deferred during a capture.
 */
void dryi_paged_forget_idle_pools(struct dryi_paged *p);

/* The ops of place.h. */
enum dry_status dryi_paged_empty_cache(void *self, struct dryi_pool_id id);
enum dry_status dryi_paged_trim(void *self, uint64_t target);

#endif
