/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_ADOPT_H
#define DRYI_PLACE_PAGED_ADOPT_H

/* How a packing of the forecast's period becomes the layout. */

#include "place/paged/record/paged_state.h"

/*
 * At the begin of a period without a layout: make a packing job, or adopt its packing. The streams
 * are waited for then, pages move, and what nothing needs goes back to the device.
 */
DRYI_NOINLINE void dryi_paged_layout_make(struct dryi_paged *p);
/* End the job, unless somebody has it. */
void dryi_paged_packing_finish(struct dryi_paged *p);
/* The ops of place.h. */
struct dryi_packing_job *dryi_paged_take_job(void *self);
void dryi_paged_return_job(void *self, struct dryi_packing_job *job);

#endif
