/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_PAGE_H
#define DRYI_PLACE_PAGED_PAGE_H

/* Pages and segments: what the device has provided, and which page is mapped at which address. */

#include "place/paged/record/paged_state.h"

/* Compute the whole pages inside [addr, end). If there are none, *hi equals *lo. */
void dryi_paged_whole_pages(const struct dryi_paged *p, uint64_t addr, uint64_t end,
                            uint64_t *lo, uint64_t *hi);
/* Create a page into the stock. NO_SPACE: the limit is reached, or the device is full. */
enum dry_status dryi_paged_page_create(struct dryi_paged *p);
/* Release a page of the stock to the device. */
void dryi_paged_page_release(struct dryi_paged *p);
/* Unmap the pages [lo, hi) of a listed free block into the stock. */
enum dry_status dryi_paged_unmap(struct dryi_paged *p, uint32_t block, uint64_t lo,
                                 uint64_t hi);
/*
 * Map pages of the stock at [lo, hi) of a hole, which becomes free memory of `list`. Requires
 * records for two blocks. *filled: the free block that contains the range.
 */
enum dry_status dryi_paged_map(struct dryi_paged *p, uint32_t hole, uint64_t lo,
                               uint64_t hi, uint32_t list, uint32_t *filled);
/*
 * Reserve a segment for at least `size` bytes: one hole, of the arena's usual segment size. With
 * `least`, that size is halved until the device has enough contiguous addresses.
 */
enum dry_status dryi_paged_segment_reserve(struct dryi_paged *p, uint32_t arena,
                                           uint64_t size, bool least);
/* Allocate a segment from a device without pages: one free block of `list`. */
enum dry_status dryi_paged_segment_alloc(struct dryi_paged *p, uint32_t arena,
                                         uint64_t size, uint32_t list);
/* Release a segment that is a single hole or free block. Requires that no layout uses it. */
void dryi_paged_segment_return(struct dryi_paged *p, uint32_t segment);
/* Release all memory to the device, at the end of the place. */
void dryi_paged_segments_finish(struct dryi_paged *p);

#endif
