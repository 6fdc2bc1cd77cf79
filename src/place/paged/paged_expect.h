/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_EXPECT_H
#define DRYI_PLACE_PAGED_EXPECT_H

/* Requests that the forecast expects, and the ranges that the layout has for them. */

#include "place/paged/record/paged_state.h"

/*
 * Tell the forecast of the request, and take the range that the layout has for it. NONE: the layout
 * has none, or the request cannot lie there.
 */
uint32_t dryi_paged_take_expected(struct dryi_paged *p, struct request *r);

#endif
