/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_TORCH_BLOCK_H
#define DRYI_TORCH_BLOCK_H

/*
 * Blocks: their records, the free sets and the search in them, split and merge. An index that is
 * NONE is no block. Whatever takes a record requires dryi_torch_block_reserve() before.
 */

#include "place/torch/torch_state.h"

/* So many block records can be made without taking memory. */
bool dryi_torch_block_reserve(struct dryi_torch *t, size_t count);
/* A fresh record; room was reserved. */
uint32_t dryi_torch_block_make(struct dryi_torch *t, uint32_t segment, uint64_t addr,
                               uint64_t size);
void dryi_torch_block_drop(struct dryi_torch *t, uint32_t block);
/* Link `fresh` into its segment right after `block`. */
void dryi_torch_block_link_after(struct dryi_torch *t, uint32_t block, uint32_t fresh);
void dryi_torch_free_insert(struct dryi_torch *t, uint32_t block);
void dryi_torch_free_remove(struct dryi_torch *t, uint32_t block);
void dryi_torch_unmapped_insert(struct dryi_torch *t, uint32_t block);
void dryi_torch_unmapped_remove(struct dryi_torch *t, uint32_t block);
/* Let `block` absorb its neighbour `other` if both are free alike; the bytes gained. */
uint64_t dryi_torch_block_merge(struct dryi_torch *t, uint32_t block, uint32_t other);
/* The free block that the request would get, or NONE. */
uint32_t dryi_torch_free_find(const struct dryi_torch *t, const struct request *r);
/* The same, counted as a search and out of the free set. */
uint32_t dryi_torch_free_take(struct dryi_torch *t, const struct request *r);
/* Hand `block` (in no set) out for the request, split if the rules say so. */
uint32_t dryi_torch_block_use(struct dryi_torch *t, uint32_t block,
                              const struct request *r);
/* The same of the first `bytes` of it if `is_part`, else of all; for a request of `requested`. */
uint32_t dryi_torch_block_use_part(struct dryi_torch *t, uint32_t block, uint64_t bytes,
                                   uint64_t requested, bool is_part);
/* The block is reusable from now on: merge, insert, count. */
void dryi_torch_block_free(struct dryi_torch *t, uint32_t block);

#endif
