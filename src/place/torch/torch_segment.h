/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_TORCH_SEGMENT_H
#define DRYI_TORCH_SEGMENT_H

/* Segments: ranges from the device, whole or page by page, and the records of both. */

#include "place/torch/torch_state.h"

/* A block of at least the request from the device, in no set; NONE and a status. */
enum dry_status dryi_torch_segment_alloc(struct dryi_torch *t, const struct request *r,
                                         bool is_retry, uint32_t *block);
/* The lowest place with room: an unmapped block, or the free one right before it; NONE. */
uint32_t dryi_torch_expandable_find(const struct dryi_torch *t, const struct request *r);
/* Give an unsplit free cudaMalloc block back. */
void dryi_torch_segment_free(struct dryi_torch *t, uint32_t block);
/*
 * Unmap the whole pages inside a free block; drops the segment if nothing is left of it. They
 * stay where the device refuses to wait for the block's stream.
 */
void dryi_torch_segment_unmap(struct dryi_torch *t, uint32_t block);
uint32_t dryi_torch_segment_make(struct dryi_torch *t, uint64_t addr, uint64_t size,
                                 uint64_t page, uint32_t lane);
bool dryi_torch_segment_reserve(struct dryi_torch *t, size_t count);
uint64_t dryi_torch_expandable_reach(const struct dryi_torch *t, uint64_t page);

#endif
