/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_RECLAIM_H
#define DRYI_PLACE_PAGED_RECLAIM_H

/* Giving back: free blocks to the shared lists, pages to the stock, segments to the device. */

#include "place/paged/record/paged_state.h"

/* Wait for all that was freed so far. What has no event stays where it is. */
void dryi_paged_wait_all(struct dryi_paged *p);
/* Move free blocks whose uses are complete to the shared lists, merged. */
void dryi_paged_sweep(struct dryi_paged *p);

/* Whose pages are reclaimed, and how far they are looked for. */
enum reclaim_effort {
    RECLAIM_COMPLETE, /* from under some of the blocks whose uses are complete */
    RECLAIM_WAIT,     /* or that can be waited for */
    RECLAIM_ALL,      /* from under all of those */
    RECLAIM_ON_OOM,   /* and from pools that give theirs before an OOM */
};

/* Reclaim pages, none of [keep_lo, keep_hi), until the stock holds `want`, as far as there are any. */
enum dry_status dryi_paged_reclaim(struct dryi_paged *p, uint64_t want, uint64_t keep_lo,
                                   uint64_t keep_hi, enum reclaim_effort effort);
/*
 * Where far more is reserved than ever was active: wait for all that streams hold, and sweep. Not
 * often: O(1) a request. False: nothing was done.
 */
bool dryi_paged_gather(struct dryi_paged *p);
/*
 * Give addresses back, for the device has none left: those with nothing under them, and before part
 * of what lies in pools that nobody uses; with `oom`, of all segments without a block in use. False:
 * there are none.
 */
bool dryi_paged_return_addresses(struct dryi_paged *p, bool oom);
/*
 * On a device without pages: give a free segment back, the first from *from on, which becomes the
 * next; with `oom` also one of a pool that gives its memory then. False: there is none.
 */
bool dryi_paged_return_segment(struct dryi_paged *p, bool oom, uint32_t *from);
/*
 * For each private pool opened since the last call, look at a few idle pools, in turns: take their
 * free pages into the stock, and forget those left with neither pages nor blocks. Without this, idle
 * pools would pile up, each with its addresses. Deferred during a capture.
 */
void dryi_paged_forget_idle_pools(struct dryi_paged *p);

/* The ops of place.h. */
enum dry_status dryi_paged_empty_cache(void *self, struct dryi_pool_id id);
enum dry_status dryi_paged_trim(void *self, uint64_t target);

#endif
