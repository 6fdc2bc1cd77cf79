/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_TAKE_H
#define DRYI_PLACE_PAGED_TAKE_H

/* Taking free memory of other streams. Each function returns a used block of r->bytes, or NONE. */

#include "place/paged/record/paged_state.h"

/* Take another stream's block whose uses are complete or ordered before the request. */
uint32_t dryi_paged_take_passed(struct dryi_paged *p, const struct request *r);
/* Do as dryi_paged_take_own(), else dryi_paged_take_passed(). Makes no device call except event queries. */
uint32_t dryi_paged_take_some(struct dryi_paged *p, const struct request *r);
/*
 * Take another stream's block after making the request's stream wait for that stream. NO_SPACE: no
 * such block.
 */
enum dry_status dryi_paged_take_waiting(struct dryi_paged *p, const struct request *r,
                                        uint32_t *block);
/* Make `stream` wait for all that `on` freed up to `epoch`. The host does not wait. */
enum dry_status dryi_paged_follow(struct dryi_paged *p, uint32_t stream, uint32_t on,
                                  uint64_t epoch);

#endif
