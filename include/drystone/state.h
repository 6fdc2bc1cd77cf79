/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_STATE_H
#define DRY_STATE_H

/*
 * The memory of a device at one moment: its segments and blocks, and the sums for a
 * verdict.
 *
 *     struct dry_state *state;
 *     uint32_t moment = view->peaks[DRY_CURVE_RESERVED].moment;
 *     if (dry_state_create(timeline, moment, &state, &err) != DRY_OK) ...
 *     for (size_t i = 0; i < state->segment_count; i++)
 *         use(&state->segments[i]);
 *     dry_state_destroy(state);
 *
 *     reserved = active + releasable + stranded
 *     active   = allocated + pending
 *
 * Pending bytes are freed but wait for a stream. Releasable bytes are free segments, and
 * whole free pages of expandable ones, in the default pools: the allocator releases them
 * before it fails. Stranded bytes are free, but in a partly used segment, or in a private
 * pool. An unused byte is pinned if its segment cannot be released because it is partly
 * used.
 *
 * At the dump the state is the file's segments, block for block.
 *
 * Ownership  create / destroy; the timeline may end before the state.
 * Errors     ARGUMENT, MEMORY; see dry_state_create().
 * Threads    Any number may read at once.
 * Units      Bytes.
 * Cost       O(alive), in dry_state_create().
 */

#include <stdbool.h>

#include <drystone/field.h>
#include <drystone/timeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A block of a segment, in use or free. */
struct dry_state_block {
    uint64_t address, size, requested;
    uint32_t allocation; /* its number in the timeline; DRY_NONE for a free block */
    enum dry_block_state state;
};

/* A segment, or a run of mapped pages, as in a snapshot. */
struct dry_state_segment {
    uint64_t address, size;
    uint64_t allocated, pending, releasable, largest_free;
    size_t first_block, block_count; /* range of `blocks`, sorted by address, no gaps */
    uint32_t pool;                   /* index in `pools` */
    uint32_t lane;
    bool is_large, is_expandable, is_private;
};

/* A pool: a lane and a size class. Blocks serve requests of their own stream, pool and
   size class only. */
struct dry_state_pool {
    uint32_t lane;
    bool is_large, is_private;
    uint32_t segment_count;
    uint64_t reserved, allocated, pending, requested, releasable, stranded;
    uint64_t largest_free; /* the largest free block */
    uint32_t hole_count;   /* free blocks in partly used segments */
};

/*
 * A segment with both free and used bytes: the free bytes that it pins, and the used
 * bytes that pin them. Each moved byte would free pinned / used bytes. In a run of
 * expandable pages, only partly used pages count, and all blocks that touch them.
 * Segments of private pools are listed too, though their free bytes return only when the
 * pool ends.
 */
struct dry_pinner {
    size_t segment;      /* index in `segments` */
    uint32_t used_count; /* blocks in use or pending */
    uint64_t used;       /* bytes of these blocks, which would have to be moved */
    uint64_t pinned;     /* free bytes that cannot be released before that */
};

/* A segment is loosely held if it pins at least this many bytes for each byte that would
   have to be moved. */
#define DRY_PINNER_LOOSE 16u

/* The state; the caller must not change it. */
struct dry_state {
    uint32_t moment;
    int32_t device;
    uint64_t reserved, allocated, pending, active, requested;
    uint64_t releasable, stranded;
    uint64_t rounding;     /* active bytes beyond the requested ones */
    uint64_t private_free; /* the stranded bytes in private pools */
    /* Live allocations outside all known segments; not included in the sums above. */
    uint64_t unplaced_bytes;
    uint32_t unplaced_count;
    uint32_t overlap_count; /* overlapping allocations, which were trimmed */
    uint64_t page_bytes;    /* page size of large pools' expandable segments */

    size_t segment_count;
    const struct dry_state_segment *segments; /* sorted by address */
    size_t block_count;
    const struct dry_state_block *blocks;
    size_t pool_count;
    const struct dry_state_pool *pools; /* largest first */
    size_t pinner_count;
    /* most pinned bytes per moved byte first */
    const struct dry_pinner *pinners;
    /* The first loose_count pinners are loosely held; the other fields sum over them. */
    size_t loose_count;
    uint64_t loose_pinned, loose_used;
    uint32_t loose_blocks;
};

/* Compute the state of the timeline's device at `moment`; the result is *state. O(alive).
   Errors: ARGUMENT (a moment beyond the dump), MEMORY. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_state_create(
    const struct dry_timeline *timeline, uint32_t moment, struct dry_state **state,
    struct dry_error *err);
/* End the state. NULL is fine. */
DRY_API void dry_state_destroy(struct dry_state *state);

/* The table of the sums of a struct dry_state, without what is unplaced, overlaps or is loose. */
DRY_API struct dry_fields dry_state_get_fields(void);

#ifdef __cplusplus
}
#endif

#endif
