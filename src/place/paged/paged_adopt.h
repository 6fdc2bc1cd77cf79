/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_ADOPT_H
#define DRYI_PLACE_PAGED_ADOPT_H

/* Adoption: a packing of the forecast's period becomes the layout. */

#include "place/paged/record/paged_state.h"

/*
 * Make a packing job, or adopt its packing as the layout. An adoption waits for the streams and
 * moves pages. Requires that a period without a layout begins.
 */
DRYI_NOINLINE void dryi_paged_layout_make(struct dryi_paged *p);
/*
 * Give the pages that the layout leaves over back to the device, after a wait for the streams: once
 * a layout, when a period took all of its hints.
 */
DRYI_NOINLINE void dryi_paged_layout_settle(struct dryi_paged *p);
/* End the job, unless a taker has it. */
void dryi_paged_packing_finish(struct dryi_paged *p);
/* The ops of place.h. */
struct dryi_packing_job *dryi_paged_take_job(void *self);
void dryi_paged_return_job(void *self, struct dryi_packing_job *job);

#endif
