/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_ADOPT_H
#define DRYI_PLACE_PAGED_ADOPT_H

/* Adoption: a packing of the forecast's period becomes the layout. */

#include "place/paged/record/paged_state.h"

/*
 * Create a packing job, or adopt its finished packing. Adoption waits for the streams and moves
 * pages. Requires that a period without a layout begins.
 */
DRYI_NOINLINE void dryi_paged_layout_make(struct dryi_paged *p);
/*
 * Release the pages that the layout leaves over, after a wait for the streams. Called once per
 * layout, after a period that took all of its hints.
 */
DRYI_NOINLINE void dryi_paged_layout_settle(struct dryi_paged *p);
/* Destroy the job, unless its taker still has it. */
void dryi_paged_packing_finish(struct dryi_paged *p);
/* Implement the functions of the same names in place.h. */
struct dryi_packing_job *dryi_paged_take_job(void *self);
void dryi_paged_return_job(void *self, struct dryi_packing_job *job);

#endif
