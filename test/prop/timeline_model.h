/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_TIMELINE_MODEL_H
#define TEST_TIMELINE_MODEL_H

/*
 * What a timeline, a state, a curve and a drawing must be, worked out the slow way from the
 * lives that the view lists. Each function returns NULL, or what is wrong; none cares where
 * the timeline came from, so that records that contradict themselves are held to it, too.
 */

#include <drystone/state.h>
#include <drystone/timeline.h>

/* Heights at every moment, by adding up the lives. */
struct timeline_model {
    const struct dry_timeline *timeline;
    const struct dry_timeline_view *view;
    uint64_t *heights[DRY_CURVE_COUNT]; /* dump_moment + 1 of each */
};

/* Aborts when there is no memory. */
void timeline_model_init(struct timeline_model *model,
                         const struct dry_timeline *timeline);
void timeline_model_finish(struct timeline_model *model);

/* Order, lives, events, peaks, and the height of every curve at every moment. */
const char *timeline_model_check(const struct timeline_model *model);

/* The state at a moment: made, checked, and handed over unless it is wrong or cannot be. */
const char *timeline_model_check_state(const struct timeline_model *model,
                                       uint32_t moment, struct dry_state **state);

/* The axis must be one that the call accepts. */
const char *timeline_model_check_curve(const struct timeline_model *model,
                                       enum dry_curve curve, const struct dry_axis *axis);

const char *timeline_model_check_drawing(const struct timeline_model *model,
                                         const struct dry_axis *axis,
                                         enum dry_stacking stacking, uint64_t min_bytes);

#endif
