/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_STATE_H
#define DRY_STATE_H

/*
 * The memory of a device at one moment: the map, and the sums that a verdict rests on.
 *
 *     reserved = active + releasable + stranded
 *     active   = allocated + pending
 *
 * releasable: free segments, and whole free pages of expandable ones, in the default pools:
 * what the allocator gives back by itself before it fails. stranded: free, but in a segment
 * that holds something else, or in a private pool.
 *
 * At the dump the state is the file's segments, block for block.
 *
 * Ownership  create / destroy; it does not need the timeline any more.
 * Threads    Read by any number at once.
 * Units      Bytes.
 */

#include <drystone/timeline.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_state_block {
    uint64_t address, size, requested;
    uint32_t allocation; /* of the timeline; DRY_NONE for a free block */
    enum dry_block_state state;
};

/* A segment, or a run of mapped pages as a snapshot lists them. */
struct dry_state_segment {
    uint64_t address, size;
    uint64_t allocated, pending, releasable, largest_free;
    size_t first_block, block_count; /* gapless, by address */
    uint32_t pool;                   /* in `pools` */
    uint32_t lane;
    uint8_t is_large, is_expandable, is_private;
};

/* A market of its own: blocks serve requests of their stream, pool and size class only. */
struct dry_state_pool {
    uint32_t lane;
    uint8_t is_large, is_private;
    uint32_t segment_count;
    uint64_t reserved, allocated, pending, requested, releasable, stranded;
    uint64_t largest_free; /* the largest hole */
    uint32_t hole_count;   /* free blocks inside segments that hold something else */
};

/*
 * A segment that holds free bytes beside used ones: what it pins, and for how much. Pinned
 * by used is the bytes that would be freed for each byte moved. Of a run of expandable
 * pages, the pages that are partly used count, and all blocks that touch them. Segments of
 * private pools are listed too, though what is free there returns only with the pool.
 */
struct dry_pinner {
    size_t segment;      /* in the state */
    uint32_t used_count; /* blocks in use or pending */
    uint64_t used;       /* their bytes: what would have to move */
    uint64_t pinned;     /* free bytes that cannot go back before */
};

/* Loosely held: what a segment pins is so many times what would have to move. */
#define DRY_PINNER_LOOSE 16u

struct dry_state {
    uint32_t moment;
    int32_t device;
    uint64_t reserved, allocated, pending, active, requested;
    uint64_t releasable, stranded;
    uint64_t rounding;     /* active, but not requested */
    uint64_t private_free; /* of the stranded: in private pools */
    uint64_t
        unplaced_bytes; /* alive outside of every known segment; not in the sums above */
    uint32_t unplaced_count;
    uint32_t overlap_count; /* allocations that overlap another: bent to fit */
    uint64_t page_bytes;    /* of expandable segments' large pools */

    size_t segment_count;
    const struct dry_state_segment *segments; /* by address */
    size_t block_count;
    const struct dry_state_block *blocks;
    size_t pool_count;
    const struct dry_state_pool *pools; /* the largest first */
    size_t pinner_count;
    const struct dry_pinner *pinners; /* those that pin most for each byte moved, first */
    /* The first so many are loosely held; what they pin, and for how much. */
    size_t loose_count;
    uint64_t loose_pinned, loose_used;
    uint32_t loose_blocks;
};

/* O(alive). ARGUMENT: a moment beyond the dump. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_state_create(
    const struct dry_timeline *timeline, uint32_t moment, struct dry_state **state,
    struct dry_error *err);
/* NULL is fine. */
DRY_API void dry_state_destroy(struct dry_state *state);

#ifdef __cplusplus
}
#endif

#endif
