/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORT_TIME_H
#define TOOL_EXPORT_TIME_H

/*
 * The needs of the time lines of other viewers: times that never fall, counters, and slices
 * that fit under each other.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/timeline.h>

/* --- times -------------------------------------------------------------------------------- */

/*
 * The file's order is the truth, so time stands still where the file's falls. Without times
 * (all are equal, or there are none) an event counts as a microsecond.
 */
struct export_clock {
    const struct dry_timeline_view *view;
    const struct dry_trace_view *trace;
    int64_t first_us, now_us;
    uint32_t next;    /* event of the device */
    bool is_counting; /* events, not times */
    uint32_t reversal_count, out_of_range_count;
};

/* O(events). */
void export_clock_init(struct export_clock *clock, const struct dry_timeline_view *view);
/* Back to moment 0. */
void export_clock_rewind(struct export_clock *clock);
/* The time of a moment, 0 or more; moments asked for must not fall. */
int64_t export_clock_at(struct export_clock *clock, uint32_t moment);
/* The same of a time of the file's that belongs to no event: an annotation's. */
int64_t export_clock_fit(const struct export_clock *clock, int64_t time_us);

/* --- counters ----------------------------------------------------------------------------- */

/* The heights at all moments, `heights[dump_moment + 1]`. O(allocations + moments). */
void export_heights_of_curve(const struct dry_timeline_view *view, enum dry_curve curve,
                             uint64_t *heights);
/* Reserved bytes of the segments of one lane and size class. */
void export_heights_of_lane_class(const struct dry_timeline_view *view, uint32_t lane,
                                  bool is_large, uint64_t *heights);

/*
 * The lanes with most reserved bytes, the largest first. A lane is a stream and a pool,
 * and counts twice: for its large segments and for its small ones.
 */
struct export_lane_class {
    uint32_t lane;
    bool is_large;
    uint64_t bytes; /* of all its segments, one after the other */
};
#define EXPORT_LANE_CLASSES_MAX 16
/* *left_out counts the others. False: no memory. */
bool export_find_lane_classes(const struct dry_timeline_view *view,
                              struct export_lane_class classes[EXPORT_LANE_CLASSES_MAX],
                              size_t *count, size_t *left_out);

/*
 * A counter's points: all changes if there are at most EXPORT_POINTS moments or
 * `is_every_point`; else the lowest, the highest and the last of as many pieces.
 */
#define EXPORT_POINTS 1000000u
#define EXPORT_PIECES 250000u
struct export_points {
    const uint64_t *heights;
    uint32_t moment_count, piece; /* moments a piece */
    uint32_t next;
    uint32_t found[3];
    size_t found_count, found_next;
    bool has_last;
    uint64_t last;
};
void export_points_init(struct export_points *points, const uint64_t *heights,
                        uint32_t moment_count, bool is_every_point);
/* The next moment at which to say a height, in order; false: no more. */
bool export_points_next(struct export_points *points, uint32_t *moment);

/* --- slices ------------------------------------------------------------------------------- */

struct export_slice {
    uint32_t allocation;
    uint32_t begin, end; /* moments; those that live on end at the dump */
    uint32_t lane;       /* DRY_NONE until export_slices_place() */
};

struct export_slices {
    struct export_slice *slices; /* by begin, the longest first */
    uint32_t *by_end;            /* the same, as they end */
    uint32_t count;
    uint32_t left_out;       /* allocations that are none */
    uint64_t left_out_bytes; /* the sum of their sizes */
};

struct export_slice_rule {
    uint64_t max;       /* the most slices: those with most bytes x life */
    uint64_t min_bytes; /* smaller ones are none; UINT64_MAX: 1 MiB where there are
                           more than `max` allocations, else 0 */
};

/* O(allocations log max). False: no memory. */
bool export_slices_choose(struct export_slices *slices,
                          const struct dry_timeline_view *view,
                          const struct export_slice_rule *rule);
void export_slices_finish(struct export_slices *slices);

/*
 * Lanes for things of which each ends before what it lies in: what comes later goes below
 * what lasts longer, or to the next lane. A lane holds one class of things.
 */
#define EXPORT_LANES 64u
#define EXPORT_LANE_DEPTH 64u
struct export_lanes {
    int64_t ends[EXPORT_LANES][EXPORT_LANE_DEPTH];
    uint8_t depth[EXPORT_LANES];
    uint32_t classes[EXPORT_LANES];
    uint32_t count; /* in use */
};
/*
 * A lane of the class for begin <= t < end; DRY_NONE: all are full. Begins must not fall.
 * The class takes a new lane only where fewer than `lane_max` are in use.
 */
struct export_span {
    uint32_t class;
    int64_t begin, end;
};
uint32_t export_lanes_place(struct export_lanes *lanes, const struct export_span *span,
                            uint32_t lane_max);

/* Slices by size: the smallest leave half of the lanes to the others. */
#define EXPORT_CLASSES 4u
const char *export_class_name(uint32_t class);
/* Place the slices in lanes. Slices without room leave, and count as left out. */
void export_slices_place(struct export_slices *slices, struct export_lanes *lanes,
                         const struct dry_timeline_view *view);

/* --- annotations -------------------------------------------------------------------------- */

struct export_scope {
    int64_t begin_us, end_us; /* of the clock */
    uint32_t name;            /* string */
    uint32_t lane;            /* DRY_NONE: no room */
};

struct export_scopes {
    struct export_scope *scopes; /* by begin, the longest first */
    size_t count;
    size_t unmatched; /* ends without a beginning; those without an end last to the end */
};

/* The annotations of the view's device as scopes. False: no memory. */
bool export_scopes_pair(struct export_scopes *scopes, const struct export_clock *clock,
                        struct export_lanes *lanes);
void export_scopes_finish(struct export_scopes *scopes);

#endif
