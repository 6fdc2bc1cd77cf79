/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_TIMELINE_INSIDE_H
#define DRYI_TIMELINE_INSIDE_H

/*
 * The state of a timeline, shared by timeline.c (creation, queries), timeline_pair.c (events
 * to allocations), timeline_map.c (events to segments) and timeline_curve.c (heights).
 * drawing.c and state.c read it.
 *
 * Invariants
 *   L1  allocations before the carried-over ones are in order of birth; so are segments
 *   L2  begin <= freed <= end for every allocation, and none has 0 bytes
 *   L3  the heights at every moment equal the sums over the live allocations
 */

#include <stdbool.h>

#include <drystone/timeline.h>

#include "explain/timeline/lives.h"
#include "replay/inside.h"

/* Moments per bucket of stored heights; heights in between are summed up from the events. */
#define DRYI_BUCKET_MOMENTS 256u
/* 128 TiB: more than any device has. */
#define DRYI_TIMELINE_BYTES_MAX (UINT64_C(1) << 47)
/* Upper bound for the sums of all allocations and of all segments, so that
   heights cannot overflow. */
#define DRYI_TIMELINE_TOTAL_MAX (UINT64_C(1) << 62)

/* The extrema of one curve in one bucket. */
struct dryi_bucket {
    uint64_t first; /* height at the bucket's first moment */
    uint64_t min, max;
    uint32_t max_moment;
};

/* A change of the reserved bytes at an event. */
struct dryi_segment_step {
    uint32_t event;
    int64_t change;
};

/* An allocation whose free is not in the record: it ended before this event,
   which reuses its address. */
struct dryi_lost {
    uint32_t event, allocation;
};

struct dry_timeline {
    struct dry_memory memory;
    struct dry_replay *replay;
    const struct dry_trace_view *trace;
    struct dry_timeline_view view;
    bool has_small_pages; /* all pages have 2 MiB, which PyTorch does not do */

    struct dry_allocation *allocations; /* the window's, then
                                           carried-over ones */
    size_t allocation_capacity;
    uint32_t window_count;
    uint32_t *event_allocation; /* event_count + 1 entries; DRY_NONE: none */
    struct dryi_lost *lost;     /* sorted by event */
    size_t lost_count, lost_capacity;
    struct dryi_lives lives;

    struct dry_timeline_segment *segments; /* the window's, then
                                              carried-over ones */
    size_t segment_capacity;
    uint32_t window_segment_count;
    struct dryi_segment_step *steps; /* sorted by event; the last may be the dump's */
    size_t step_count, step_capacity;
    struct dryi_lives segment_lives;

    struct dryi_bucket *buckets[DRY_CURVE_COUNT];
    uint32_t bucket_count;
    uint64_t dump_change[DRY_CURVE_COUNT]; /* change of each curve from the last
                                              event to the dump; may wrap */
    int64_t *latest; /* the latest time of all events up to each bucket's end */
};

/* --- timeline_pair.c: allocations, without sizes that need a replay ----------------------- */

DRY_CHECK_RESULT enum dry_status dryi_timeline_pair(struct dry_timeline *timeline,
                                                    struct dry_error *err);

/* --- timeline_size.c: the sizes of blocks, from the replay -------------------------------- */

DRY_CHECK_RESULT enum dry_status dryi_timeline_measure(struct dry_timeline *timeline,
                                                       struct dry_error *err);

/* --- timeline_map.c: segments ------------------------------------------------------------- */

DRY_CHECK_RESULT enum dry_status dryi_timeline_map(struct dry_timeline *timeline,
                                                   struct dry_error *err);

/* --- timeline_curve.c: heights ------------------------------------------------------------ */

/* Walk through the heights moment by moment. */
struct dryi_timeline_walk {
    const struct dry_timeline *timeline;
    uint32_t moment;
    uint64_t height[DRY_CURVE_COUNT];
    size_t next_step, next_lost;
};

/* Begin at moment 0, with the heights of the carried-over allocations. */
void dryi_timeline_walk_begin(struct dryi_timeline_walk *walk,
                              const struct dry_timeline *timeline);
/* Begin at any moment, from the nearest bucket. Costs at most 255 steps. */
void dryi_timeline_walk_begin_at(struct dryi_timeline_walk *walk,
                                 const struct dry_timeline *timeline, uint32_t moment);
/* Advance by one moment. */
void dryi_timeline_walk_advance(struct dryi_timeline_walk *walk);

DRY_CHECK_RESULT enum dry_status dryi_timeline_index_heights(
    struct dry_timeline *timeline, struct dry_error *err);

/* Return the first moment of a column. On an axis of moments all columns have equal width. */
uint32_t dryi_axis_moment(const struct dry_timeline *timeline,
                          const struct dry_axis *axis, uint32_t column);
DRY_CHECK_RESULT enum dry_status dryi_axis_check(const struct dry_timeline *timeline,
                                                 const struct dry_axis *axis,
                                                 struct dry_error *err);

#endif
