/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_PAGE_H
#define DRYI_PLACE_PAGED_PAGE_H

/* Pages and segments: what comes from the device, and what lies under which address. */

#include "place/paged/record/paged_state.h"

/* Return the range of whole pages inside [addr, end): *hi >= *lo. */
void dryi_paged_whole_pages(const struct dryi_paged *p, uint64_t addr, uint64_t end,
                            uint64_t *lo, uint64_t *hi);
/* Create a page into the stock. NO_SPACE: the limit, or the device. */
enum dry_status dryi_paged_page_create(struct dryi_paged *p);
/* Release a page of the stock to the device. */
void dryi_paged_page_release(struct dryi_paged *p);
/* Take the pages [lo, hi) of a free block, which is on its list, into the stock. */
enum dry_status dryi_paged_unmap(struct dryi_paged *p, uint32_t block, uint64_t lo,
                                 uint64_t hi);
/*
 * Map pages of the stock under [lo, hi) of a hole, which becomes free memory of `list`. Requires
 * records for two blocks. *filled: the free block that holds the range.
 */
enum dry_status dryi_paged_map(struct dryi_paged *p, uint32_t hole, uint64_t lo,
                               uint64_t hi, uint32_t list, uint32_t *filled);
/*
 * Reserve a segment with room for `size` bytes: one hole, as large as segments of the arena are.
 * With `least`: the largest half, quarter, ... of that size for which the device has addresses.
 */
enum dry_status dryi_paged_segment_reserve(struct dryi_paged *p, uint32_t arena,
                                           uint64_t size, bool least);
/* On a device without pages: take a segment from it, one free block of `list`. */
enum dry_status dryi_paged_segment_alloc(struct dryi_paged *p, uint32_t arena,
                                         uint64_t size, uint32_t list);
/* Give back a segment that is one hole, or one free block. Requires that no layout lies there. */
void dryi_paged_segment_return(struct dryi_paged *p, uint32_t segment);
/* Give everything back, at the end. */
void dryi_paged_segments_finish(struct dryi_paged *p);

#endif
