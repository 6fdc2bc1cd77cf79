/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_TAKE_H
#define DRYI_PLACE_PAGED_TAKE_H

/*
 * Taking free memory without a page more: from the stream's own list, the shared one, and those of
 * other streams. Each returns a block of r->bytes, or of all that was found in a pool that does not
 * split; NONE: there is none.
 */

#include "place/paged/record/paged_state.h"

/* Is the request of a pool that does not split blocks? */
bool dryi_paged_is_no_split(const struct dryi_paged *p, const struct request *r);
/* Take the bytes of the request from a free block that is on its list; of NONE, NONE. */
uint32_t dryi_paged_take_found(struct dryi_paged *p, const struct request *r,
                               uint32_t found);
/* From the stream's own list, or the shared one. */
uint32_t dryi_paged_take_own(struct dryi_paged *p, const struct request *r);
/* From another stream's list, where its uses are known to be complete or to come before. */
uint32_t dryi_paged_take_passed(struct dryi_paged *p, const struct request *r);
/* From any of them, without a word to the device. */
uint32_t dryi_paged_take_some(struct dryi_paged *p, const struct request *r);
/* From another stream's list, the request's stream being made to wait. NO_SPACE: none. */
enum dry_status dryi_paged_take_waiting(struct dryi_paged *p, const struct request *r,
                                        uint32_t *block);
/* Make `stream` wait for all that `on` freed up to `epoch`, by an event of `on`. */
enum dry_status dryi_paged_follow(struct dryi_paged *p, uint32_t stream, uint32_t on,
                                  uint64_t epoch);

#endif
