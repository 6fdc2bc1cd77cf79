/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_EXPLAIN_H
#define DRYI_POOL_EXPLAIN_H

/*
 * Sums over the blocks of a place that concern a request, segment by segment, in bounded memory.
 *
 * Unused is what is free or waits for streams: it goes back to the device once they are done.
 * A whole unused segment goes back; an expandable segment gives back each whole unused page.
 * Unused memory that does not go back so is pinned: a block in use that shares its segment (its
 * page) pins it. Private pools give nothing back while they have users, so they are left out.
 */

#include "place/place.h"

/* The request, set by the caller. */
struct dryi_explain_request {
    struct dryi_pool_id pool; /* that the request goes to */
    uint64_t stream;          /* as the place knows it */
    bool any_stream;          /* free blocks of other streams serve it, too */
    bool is_large;
    uint64_t hole_limit; /* a free block of so many bytes or more may not be split */
    /* Free blocks of so many bytes or more are for requests as large, not for this one. */
    uint64_t oversize;
    /* Streams whose unused memory stays where it is; NULL: none. */
    bool (*is_fixed)(const void *self, uint64_t stream);
    const void *self;
    uint64_t page[2]; /* of expandable segments: small, large */
};

struct dryi_explain_sums {
    uint64_t segment_bytes; /* all that is mapped */
    uint64_t largest_hole, largest_hole_any;
    uint64_t fitting_hole[2]; /* of the request's pool and stream: small, large */
    uint64_t oversized_hole;  /* the same */
    uint64_t releasable, pending, private_free;
    uint64_t pinned, pinner_bytes, pinner_count;
    uint64_t worst_address, worst_hole, worst_gain; /* gain: unused bytes beside it */
};

struct dry_pool;

/* The sizes of pages of a pool's expandable segments: small ones, large ones. */
void dryi_explain_pages(const struct dry_pool *pool, uint64_t page[2]);

void dryi_explain_segment(struct dryi_explain_sums *sums,
                          const struct dryi_explain_request *request,
                          const struct dryi_segment_info *segment,
                          const struct dryi_block_info *blocks, size_t count);

#endif
