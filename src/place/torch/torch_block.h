/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_TORCH_BLOCK_H
#define DRYI_TORCH_BLOCK_H

/*
 * Blocks: records, free sets and their search, split and merge. NONE: no block. A function that
 * takes a record requires dryi_torch_block_reserve() before.
 */

#include "place/torch/torch_state.h"

/* Ensure that `count` block records can be made without allocation. False: out of memory. */
bool dryi_torch_block_reserve(struct dryi_torch *t, size_t count);
/* Make a record for a mapped block. Requires a reserved record. */
uint32_t dryi_torch_block_make(struct dryi_torch *t, uint32_t segment, uint64_t addr,
                               uint64_t size);
void dryi_torch_block_drop(struct dryi_torch *t, uint32_t block);
/* Link `fresh` into its segment directly after `block`. */
void dryi_torch_block_link_after(struct dryi_torch *t, uint32_t block, uint32_t fresh);
void dryi_torch_free_insert(struct dryi_torch *t, uint32_t block);
void dryi_torch_free_remove(struct dryi_torch *t, uint32_t block);
void dryi_torch_unmapped_insert(struct dryi_torch *t, uint32_t block);
void dryi_torch_unmapped_remove(struct dryi_torch *t, uint32_t block);
/*
 * Merge the neighbour `other` into `block` if both are free in the same way. Returns the bytes
 * gained; 0: not merged.
 */
uint64_t dryi_torch_block_merge(struct dryi_torch *t, uint32_t block, uint32_t other);
/* Return the free block that the request would get, or NONE. */
uint32_t dryi_torch_free_find(const struct dryi_torch *t, const struct request *r);
/* Do as dryi_torch_free_find(), count the search, and remove the block from the free set. */
uint32_t dryi_torch_free_take(struct dryi_torch *t, const struct request *r);
/*
 * Allocate `block`, which is in no set, for the request; split it if the rules say so. Returns the
 * used block.
 */
uint32_t dryi_torch_block_use(struct dryi_torch *t, uint32_t block,
                              const struct request *r);
/*
 * Do as dryi_torch_block_use(): the first `bytes` if `is_part`, else the whole block. `requested`:
 * bytes for the statistics.
 */
uint32_t dryi_torch_block_use_part(struct dryi_torch *t, uint32_t block, uint64_t bytes,
                                   uint64_t requested, bool is_part);
/* Make a block reusable: merge it with its neighbours, insert and count it. */
void dryi_torch_block_free(struct dryi_torch *t, uint32_t block);

#endif
