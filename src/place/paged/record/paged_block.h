/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_BLOCK_H
#define DRYI_PLACE_PAGED_BLOCK_H

/*
 * Records of blocks: made, split, merged, carved.
 *
 * A function that makes records requires that they were reserved: so no step fails half-way, and no
 * free takes memory. A block that comes to another list must be on none.
 */

#include "place/paged/record/paged_state.h"

/* Records that one cut makes, two of them dividers, or that one merge drops, at most. */
#define RECORDS_ONCE 4u
/* Records that a free list has for itself, at most. */
#define RECORDS_MAX 64u
/* Records that a refill leaves there: a cache refills once for that many cuts or merges. */
#define RECORDS_REFILL 32u

DRYI_NOINLINE bool dryi_paged_block_grow(struct dryi_paged *p, uint32_t count);

/* Can a cut be made without moving any record? */
static inline bool
dryi_paged_block_has_once(const struct dryi_paged *p)
{
    return p->dead.count >= RECORDS_ONCE ||
           p->block_capacity - p->block_count >= RECORDS_ONCE;
}

/*
 * Reserve `count` records, and those that the request under way needs for its last cut. Records may
 * move. False: no memory.
 */
static inline bool
dryi_paged_block_reserve(struct dryi_paged *p, uint32_t count)
{
    count += RECORDS_ONCE;
    return p->dead.count >= count || dryi_paged_block_grow(p, count);
}

/* Take a record that is no block's. */
uint32_t dryi_paged_record_take(struct dryi_paged *p);
/* Give back a record that is no block's. */
void dryi_paged_record_drop(struct dryi_paged *p, uint32_t block);
/* Give the list `wanted` records of its own, or as many as there are. */
void dryi_paged_records_refill(struct dryi_paged *p, struct free_list *s,
                               uint32_t wanted);

/*
 * Make a block behind `after` (NONE: the first of its segment). The block is of `list`, but not on
 * it. Its record is one of the list's own, if the list has any.
 */
uint32_t dryi_paged_block_make(struct dryi_paged *p, uint32_t list, uint32_t segment,
                               uint32_t after, uint64_t addr, uint64_t size);
/* Drop the record of a block. Requires that it is on no list and that its neighbours are linked. */
void dryi_paged_block_drop(struct dryi_paged *p, uint32_t block);
/* Make a block, on no list, of all behind the first `size` bytes; return it. */
uint32_t dryi_paged_block_split(struct dryi_paged *p, uint32_t block, uint64_t size);
/* Cut the first `size` bytes off a free block, which stays on its list; return them, on none. */
uint32_t dryi_paged_block_cut(struct dryi_paged *p, uint32_t block, uint64_t size);
/* Merge a free block, or a hole, with its neighbours as far as possible, and list the result. */
uint32_t dryi_paged_block_coalesce(struct dryi_paged *p, uint32_t block);
/* Take a free block off its list; it is of another one, and of this epoch, from now on. */
void dryi_paged_block_move(struct dryi_paged *p, uint32_t block, uint32_t list,
                           uint64_t epoch);
/* Make one block, on no list, of all free blocks in [addr, end), the first of them `at`. */
uint32_t dryi_paged_carve_along(struct dryi_paged *p, uint32_t at, uint64_t addr,
                                uint64_t end);

/* --- dividers, see paged_cache_shared.h ---------------------------------------------------- */

/* Does a cut of this block, or its merge with its neighbours, change only what its cache owns? */
bool dryi_paged_is_enclosed(const struct dryi_paged *p, uint32_t block);
/* Drop the divider, if the block is one. NONE is none. */
void dryi_paged_divider_drop(struct dryi_paged *p, uint32_t divider);

DRYI_NOINLINE void dryi_paged_block_relist(struct dryi_paged *p, uint32_t block,
                                           uint32_t list);

/* Make a block that is on no list one of this list. */
static inline void
dryi_paged_block_assign(struct dryi_paged *p, uint32_t block, uint32_t list)
{
    if (p->blocks[block].list != list)
        dryi_paged_block_relist(p, block, list);
}

#endif
