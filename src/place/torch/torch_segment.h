/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_TORCH_SEGMENT_H
#define DRYI_TORCH_SEGMENT_H

/* Segments: ranges from the device, whole or by page, and their records. */

#include "place/torch/torch_state.h"

/*
 * Get a block of at least r->rounded bytes from the device; *block is in no set. NO_SPACE: the
 * device or a limit refused.
 */
enum dry_status dryi_torch_segment_alloc(struct dryi_torch *t, const struct request *r,
                                         bool is_retry, uint32_t *block);
/*
 * Return the lowest range that can hold the request: an unmapped block, or the free block right
 * before it. NONE: none.
 */
uint32_t dryi_torch_expandable_find(const struct dryi_torch *t, const struct request *r);
/* Return a whole free cudaMalloc segment to the device. */
void dryi_torch_segment_free(struct dryi_torch *t, uint32_t block);
/*
 * Unmap the whole pages inside a free block, and drop the segment if it has no pages left. The
 * pages stay mapped if the device refuses to wait for the block's stream.
 */
void dryi_torch_segment_unmap(struct dryi_torch *t, uint32_t block);
uint32_t dryi_torch_segment_make(struct dryi_torch *t, uint64_t addr, uint64_t size,
                                 uint64_t page, uint32_t lane);
bool dryi_torch_segment_reserve(struct dryi_torch *t, size_t count);
uint64_t dryi_torch_expandable_reach(const struct dryi_torch *t, uint64_t page);

#endif
