/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_EXPECT_H
#define DRYI_PLACE_PAGED_EXPECT_H

/* Requests that the forecast expects, and their ranges in the layout. */

#include "place/paged/record/paged_state.h"

/*
 * Tell the forecast of the request, and take the range that the layout has for it. NONE: there is
 * no such range, or the range is not free. Sets the request's ticket and successor.
 */
uint32_t dryi_paged_take_expected(struct dryi_paged *p, struct request *r);

#endif
