/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_TIMELINE_INSIDE_H
#define DRYI_TIMELINE_INSIDE_H

/*
 * The inside of a timeline, shared by its files: timeline.c (creation, queries),
 * timeline_pair.c (events to allocations), timeline_map.c (events to segments),
 * timeline_curve.c (heights). The files drawing.c and state.c look at it.
 *
 * Invariants
 *   L1  allocations in front of carried-over ones are in order of birth; so are segments
 *   L2  begin <= freed <= end for every allocation, and none is without bytes
 *   L3  the heights are what adding up the lives gives, at every moment
 */

#include <stdbool.h>

#include <drystone/timeline.h>

#include "explain/timeline/lives.h"
#include "replay/inside.h"

/* Heights are kept for every so many moments; in between, events are added up. */
#define DRYI_BUCKET_MOMENTS 256u
/* No device has more. */
#define DRYI_TIMELINE_BYTES_MAX (UINT64_C(1) << 47)
/*
 * The sum of all allocations, and of all segments, is at most this: so no height can
 * overflow.
 */
#define DRYI_TIMELINE_TOTAL_MAX (UINT64_C(1) << 62)

/* One bucket of one curve. */
struct dryi_bucket {
    uint64_t first; /* the height at its first moment */
    uint64_t min, max;
    uint32_t max_moment;
};

/* Reserved memory changes with this event. */
struct dryi_segment_step {
    uint32_t event;
    int64_t change;
};

/* A free that the record lost: the allocation ended by the time of this event. */
struct dryi_lost {
    uint32_t event, allocation;
};

struct dry_timeline {
    struct dry_memory memory;
    struct dry_replay *replay;
    const struct dry_trace_view *trace;
    struct dry_timeline_view view;
    bool has_small_pages; /* pages of 2 MiB everywhere: no record of PyTorch's */

    struct dry_allocation *allocations; /* window first, then carried-over */
    size_t allocation_capacity;
    uint32_t window_count;
    uint32_t *event_allocation; /* event_count + 1 of them */
    struct dryi_lost *lost;     /* by event */
    size_t lost_count, lost_capacity;
    struct dryi_lives lives;

    struct dry_timeline_segment *segments; /* window first, then carried-over */
    size_t segment_capacity;
    uint32_t window_segment_count;
    struct dryi_segment_step *steps; /* by event; the last may be the dump's */
    size_t step_count, step_capacity;
    struct dryi_lives segment_lives;

    struct dryi_bucket *buckets[DRY_CURVE_COUNT];
    uint32_t bucket_count;
    uint64_t dump_change[DRY_CURVE_COUNT]; /* from the last event to the dump; may wrap */
    int64_t *latest; /* by bucket: the latest time of an event up to its end */
};

/* --- timeline_pair.c: allocations, without the sizes that only a replay knows ------------- */

DRY_CHECK_RESULT enum dry_status dryi_timeline_pair(struct dry_timeline *timeline,
                                                    struct dry_error *err);

/* --- timeline_size.c: the sizes of blocks, from the replay -------------------------------- */

DRY_CHECK_RESULT enum dry_status dryi_timeline_measure(struct dry_timeline *timeline,
                                                       struct dry_error *err);

/* --- timeline_map.c: segments ------------------------------------------------------------- */

DRY_CHECK_RESULT enum dry_status dryi_timeline_map(struct dry_timeline *timeline,
                                                   struct dry_error *err);

/* --- timeline_curve.c: heights ------------------------------------------------------------ */

/* Heights moment by moment. */
struct dryi_timeline_walk {
    const struct dry_timeline *timeline;
    uint32_t moment;
    uint64_t height[DRY_CURVE_COUNT];
    size_t next_step, next_lost;
};

/* At moment 0, the heights summed up from the carried-over allocations. */
void dryi_timeline_walk_begin(struct dryi_timeline_walk *walk,
                              const struct dry_timeline *timeline);
/* At any moment, from the nearest bucket. */
void dryi_timeline_walk_begin_at(struct dryi_timeline_walk *walk,
                                 const struct dry_timeline *timeline, uint32_t moment);
/* One moment on. */
void dryi_timeline_walk_advance(struct dryi_timeline_walk *walk);

DRY_CHECK_RESULT enum dry_status dryi_timeline_index_heights(
    struct dry_timeline *timeline, struct dry_error *err);

/* The first moment of a column. Columns of an axis of moments are even. */
uint32_t dryi_axis_moment(const struct dry_timeline *timeline,
                          const struct dry_axis *axis, uint32_t column);
DRY_CHECK_RESULT enum dry_status dryi_axis_check(const struct dry_timeline *timeline,
                                                 const struct dry_axis *axis,
                                                 struct dry_error *err);

#endif
