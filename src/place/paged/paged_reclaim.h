/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_RECLAIM_H
#define DRYI_PLACE_PAGED_RECLAIM_H

/* Giving back memory: blocks to the shared lists, pages to the stock, segments to the device. */

#include "place/paged/record/paged_state.h"

/* Wait until all frees so far are complete. A block that can get no event stays incomplete. */
void dryi_paged_wait_all(struct dryi_paged *p);
/* Move complete free blocks to the shared lists, and coalesce them. */
void dryi_paged_sweep(struct dryi_paged *p);

/* How far a reclaim goes: the blocks whose pages it takes. */
enum reclaim_effort {
    RECLAIM_COMPLETE, /* a bounded number of complete free blocks */
    RECLAIM_WAIT,     /* also blocks that need a wait, still bounded */
    RECLAIM_ALL,      /* all of both, unbounded */
    RECLAIM_ON_OOM,   /* also in pools that give pages before an OOM */
};

/* Reclaim pages outside [keep_lo, keep_hi) until the stock holds `want`. Fewer are also OK. */
enum dry_status dryi_paged_reclaim(struct dryi_paged *p, uint64_t want, uint64_t keep_lo,
                                   uint64_t keep_hi, enum reclaim_effort effort);
/*
 * Wait for all streams and sweep, if reserved bytes far exceed the peak of active bytes
 * (GATHER_FACTOR). Called so rarely that the cost is O(1) per request. False: nothing was done.
 */
bool dryi_paged_gather(struct dryi_paged *p);
/*
 * Return empty segments when the device has no addresses left. First, idle pools' pages go to the
 * stock. With `oom` instead: the pages of all segments without blocks in use, if their pools give
 * pages then. False: no segment was returned.
 */
bool dryi_paged_return_addresses(struct dryi_paged *p, bool oom);
/*
 * Return the first free segment from *from on, on a device without pages, and advance *from past
 * it. With `oom`: also from pools that give memory before an OOM. False: none.
 */
bool dryi_paged_return_segment(struct dryi_paged *p, bool oom, uint32_t *from);
/*
 * Clean up a few idle pools, in turns, for each private pool opened since the last call. Their free
 * pages go to the stock; a pool left without pages and blocks is forgotten. Otherwise idle pools
 * would accumulate, each with its addresses. Deferred during a capture.
 */
void dryi_paged_forget_idle_pools(struct dryi_paged *p);

/* Implement the functions of the same names in place.h. */
enum dry_status dryi_paged_empty_cache(void *self, struct dryi_pool_id id);
enum dry_status dryi_paged_trim(void *self, uint64_t target);

#endif
