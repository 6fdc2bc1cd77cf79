/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_BLOCK_H
#define DRYI_PLACE_PAGED_BLOCK_H

/*
 * Records of blocks: made, split, merged, carved.
 *
 * A function that makes records requires that they were reserved, so no operation fails half-way
 * and no free allocates memory. A block must be on no list when it is assigned to another list.
 */

#include "place/paged/record/paged_state.h"

/* Most records that one cut makes (two of them dividers) or that one merge drops. */
#define RECORDS_ONCE 4u
/* Most spare records of one free list. */
#define RECORDS_MAX 64u
/* Spare records of a list after a refill: at 4 per cut, enough for 8 cuts. */
#define RECORDS_REFILL 32u

DRYI_NOINLINE bool dryi_paged_block_grow(struct dryi_paged *p, uint32_t count);

/* Are there enough records for a cut without growing the array? */
static inline bool
dryi_paged_block_has_once(const struct dryi_paged *p)
{
    return p->dead.count >= RECORDS_ONCE ||
           p->block_capacity - p->block_count >= RECORDS_ONCE;
}

/*
 * Reserve `count` records plus those for the last cut of the request in progress. The array may
 * move. False: out of memory.
 */
static inline bool
dryi_paged_block_reserve(struct dryi_paged *p, uint32_t count)
{
    count += RECORDS_ONCE;
    return p->dead.count >= count || dryi_paged_block_grow(p, count);
}

/* Take an unused record. */
uint32_t dryi_paged_record_take(struct dryi_paged *p);
/* Return an unused record. */
void dryi_paged_record_drop(struct dryi_paged *p, uint32_t block);
/* Adjust the list's own spare records to `wanted`, or to as many as exist. */
void dryi_paged_records_refill(struct dryi_paged *p, struct free_list *s,
                               uint32_t wanted);

/*
 * Make a block after `after` (NONE: first of its segment). The block belongs to `list` but is not
 * listed. The record comes from the list's own spares if it has any.
 */
uint32_t dryi_paged_block_make(struct dryi_paged *p, uint32_t list, uint32_t segment,
                               uint32_t after, uint64_t addr, uint64_t size);
/*
 * Release the record of a block. Requires that the block is unlisted and already unlinked from its
 * neighbours.
 */
void dryi_paged_block_drop(struct dryi_paged *p, uint32_t block);
/* Split a block after `size` bytes. Returns the second block, which is on no list. */
uint32_t dryi_paged_block_split(struct dryi_paged *p, uint32_t block, uint64_t size);
/* Cut the first `size` bytes off a free block, which stays listed. Returns them, unlisted. */
uint32_t dryi_paged_block_cut(struct dryi_paged *p, uint32_t block, uint64_t size);
/* Merge a free block or a hole with its neighbours. Returns the result, which is listed. */
uint32_t dryi_paged_block_coalesce(struct dryi_paged *p, uint32_t block);
/* Take a free block off its list, and assign the block to `list` with `epoch`. */
void dryi_paged_block_move(struct dryi_paged *p, uint32_t block, uint32_t list,
                           uint64_t epoch);
/* Make one used block of all free blocks in [addr, end), the first being `at`. Returns it. */
uint32_t dryi_paged_carve_along(struct dryi_paged *p, uint32_t at, uint64_t addr,
                                uint64_t end);

/* Assign an unlisted block to this list. */
void dryi_paged_block_assign(struct dryi_paged *p, uint32_t block, uint32_t list);

/* --- blocks for a request ------------------------------------------------------------------ */

/* Take the bytes of the request from `found`, a listed free block. `found` NONE gives NONE. */
uint32_t dryi_paged_take_found(struct dryi_paged *p, const struct request *r,
                               uint32_t found);
/* Take a block from the stream's own list, else from the shared list. */
uint32_t dryi_paged_take_own(struct dryi_paged *p, const struct request *r);

/* --- dividers, see paged_cache_shared.h ---------------------------------------------------- */

/* Can this block be cut, or merged with its neighbours, by a thread that holds only its cache? */
bool dryi_paged_is_enclosed(const struct dryi_paged *p, uint32_t block);
/* Drop a divider. Any other block, or NONE, is left alone. */
void dryi_paged_divider_drop(struct dryi_paged *p, uint32_t divider);

#endif
