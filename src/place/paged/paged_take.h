/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_TAKE_H
#define DRYI_PLACE_PAGED_TAKE_H

/*
 * Taking free memory without a page more: from the stream's own list, the shared list, and other
 * streams' lists. Each function returns a block of r->bytes; NONE: there is none. A pool that does
 * not split blocks gives the whole block that was found.
 */

#include "place/paged/record/paged_state.h"

/* Does the request go to a pool that does not split blocks? */
bool dryi_paged_is_no_split(const struct dryi_paged *p, const struct request *r);
/* Take the bytes of the request from `found`, a free block on its list. NONE gives NONE. */
uint32_t dryi_paged_take_found(struct dryi_paged *p, const struct request *r,
                               uint32_t found);
/* Take a block from the stream's own list, or else from the shared list. */
uint32_t dryi_paged_take_own(struct dryi_paged *p, const struct request *r);
/* Take another stream's block whose uses are complete, or come before the request. */
uint32_t dryi_paged_take_passed(struct dryi_paged *p, const struct request *r);
/* Take a block in any of these ways, with no call on the device but queries of events. */
uint32_t dryi_paged_take_some(struct dryi_paged *p, const struct request *r);
/* Make the request's stream wait for another stream, and take its block. NO_SPACE: none. */
enum dry_status dryi_paged_take_waiting(struct dryi_paged *p, const struct request *r,
                                        uint32_t *block);
/* Make `stream` wait for all that `on` freed up to `epoch`, by an event of `on`. */
enum dry_status dryi_paged_follow(struct dryi_paged *p, uint32_t stream, uint32_t on,
                                  uint64_t epoch);

#endif
