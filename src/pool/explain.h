/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_EXPLAIN_H
#define DRYI_POOL_EXPLAIN_H

/*
 * Sums over the blocks of a place that matter to a request, computed segment by segment in constant
 * memory.
 *
 * A block is unused if it is free or waits for streams. A whole unused segment can be released to
 * the device; of an expandable segment, each whole unused page. Other unused memory is pinned by
 * the blocks in use in its segment (or page). Private pools release nothing while they have users,
 * so they are left out.
 */

#include "place/place.h"

/* The request, set by the caller. */
struct dryi_explain_request {
    struct dryi_pool_id pool; /* the pool that serves the request */
    uint64_t stream;          /* number of the stream in the place */
    bool any_stream;          /* free blocks of other streams serve it too */
    bool is_large;
    /* A free block of this size or more may not be split for the request. */
    uint64_t hole_limit;
    /* Free blocks of this size or more serve only requests of that size. */
    uint64_t oversize;
    /* Streams whose unused memory cannot be released; NULL: none. */
    bool (*is_fixed)(const void *self, uint64_t stream);
    const void *self;
    uint64_t page[2]; /* pages of expandable segments: [0] small, [1] large */
};

struct dryi_explain_sums {
    uint64_t segment_bytes; /* all mapped bytes */
    uint64_t largest_hole, largest_hole_any;
    uint64_t fitting_hole[2]; /* largest of the pool and stream; [0] small, [1] large */
    uint64_t oversized_hole;  /* fitting_hole among holes of `oversize` or more */
    uint64_t releasable, pending, private_free;
    uint64_t pinned, pinner_bytes, pinner_count;
    /* Gain: unused bytes adjacent to that block. */
    uint64_t worst_address, worst_hole, worst_gain;
};

struct dry_pool;

/* Return the page sizes of a pool's expandable segments: [0] small, [1] large. */
void dryi_explain_pages(const struct dry_pool *pool, uint64_t page[2]);

void dryi_explain_segment(struct dryi_explain_sums *sums,
                          const struct dryi_explain_request *request,
                          const struct dryi_segment_info *segment,
                          const struct dryi_block_info *blocks, size_t count);

#endif
