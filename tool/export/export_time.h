/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORT_TIME_H
#define TOOL_EXPORT_TIME_H

/* Data for other viewers' timelines: monotonic times, counters, and nested slices. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/timeline.h>

/* --- times -------------------------------------------------------------------------------- */

/*
 * The clock of an export. The order of the file is right, so time stands still while the
 * file's times decrease. If all times are equal or missing, each event takes a
 * microsecond.
 */
struct export_clock {
    const struct dry_timeline_view *view;
    const struct dry_trace_view *trace;
    int64_t first_us, now_us;
    uint32_t next;    /* the device's next event */
    bool is_counting; /* counts events, because times are missing */
    uint32_t reversal_count, out_of_range_count;
};

/* Start the clock of a device. Cost: O(events). */
void export_clock_init(struct export_clock *clock, const struct dry_timeline_view *view);
/* Return to moment 0. */
void export_clock_rewind(struct export_clock *clock);
/* Return the time of a moment in microseconds, from 0. Moments must not decrease. */
int64_t export_clock_at(struct export_clock *clock, uint32_t moment);
/* Convert the time of an annotation, which belongs to no event. */
int64_t export_clock_fit(const struct export_clock *clock, int64_t time_us);

/* --- counters ----------------------------------------------------------------------------- */

/* Compute a curve at all moments: heights[dump_moment + 1]. O(allocations + moments). */
void export_heights_of_curve(const struct dry_timeline_view *view, enum dry_curve curve,
                             uint64_t *heights);
/* Compute the reserved bytes of one lane and size class at all moments. */
void export_heights_of_lane_class(const struct dry_timeline_view *view, uint32_t lane,
                                  bool is_large, uint64_t *heights);

/* Segments of one lane (a stream and a pool) and one size class, large or small. */
struct export_lane_class {
    uint32_t lane;
    bool is_large;
    uint64_t bytes; /* sum over all segments of the recording */
};
#define EXPORT_LANE_CLASSES_MAX 16
/* Find the largest classes, in order. *left_out counts the others. False: no memory. */
bool export_find_lane_classes(const struct dry_timeline_view *view,
                              struct export_lane_class classes[EXPORT_LANE_CLASSES_MAX],
                              size_t *count, size_t *left_out);

/*
 * The points of a counter: all changes if `is_every_point` or at most EXPORT_POINTS
 * moments exist. Otherwise, the lowest, highest and last moment of each of EXPORT_PIECES
 * pieces.
 */
#define EXPORT_POINTS 1000000u
#define EXPORT_PIECES 250000u
struct export_points {
    const uint64_t *heights;
    uint32_t moment_count, piece; /* piece: moments that are reduced to three points */
    uint32_t next;
    uint32_t found[3];
    size_t found_count, found_next;
    bool has_last;
    uint64_t last;
};
void export_points_init(struct export_points *points, const uint64_t *heights,
                        uint32_t moment_count, bool is_every_point);
/* Return the next moment whose height to write, in order. False at the end. */
bool export_points_next(struct export_points *points, uint32_t *moment);

/* --- slices ------------------------------------------------------------------------------- */

struct export_slice {
    uint32_t allocation;
    uint32_t begin, end; /* moments; those that live on end at the dump */
    uint32_t lane;
};

struct export_slices {
    struct export_slice *slices; /* sorted by begin, then the longest first */
    uint32_t *by_end;            /* indices into `slices`, by end */
    uint32_t count;
    uint32_t left_out;       /* allocations that are not slices */
    uint64_t left_out_bytes; /* sum of their sizes */
};

struct export_slice_rule {
    uint64_t max; /* most slices: those with most bytes x lifetime are chosen */
    /* Smaller ones are no slices. UINT64_MAX: 1 MiB if over `max` allocations, else 0. */
    uint64_t min_bytes;
};

/*
 * Lanes for spans that viewers draw nested. A span is put on a span that ends later, else
 * into the next lane. All spans of a lane have one class.
 */
#define EXPORT_LANES 64u
#define EXPORT_LANE_DEPTH 64u
struct export_lanes {
    int64_t ends[EXPORT_LANES][EXPORT_LANE_DEPTH];
    uint8_t depth[EXPORT_LANES];
    uint32_t classes[EXPORT_LANES];
    uint32_t count; /* lanes in use */
};
/*
 * Return a lane of the class for begin <= t < end; DRY_NONE if all are full. Begins must
 * not decrease between calls. A new lane is opened only if fewer than `lane_max` are in
 * use.
 */
struct export_span {
    uint32_t class;
    int64_t begin, end;
};
uint32_t export_lanes_place(struct export_lanes *lanes, const struct export_span *span,
                            uint32_t lane_max);

/* Classes of slices by size. The smallest leave half of the lanes to the others. */
#define EXPORT_CLASSES 4u
const char *export_class_name(uint32_t class);
/*
 * Choose slices and place them in lanes; those without room count as left out.
 * O(allocations log max). False: no memory.
 */
bool export_slices_choose(struct export_slices *slices, struct export_lanes *lanes,
                          const struct dry_timeline_view *view,
                          const struct export_slice_rule *rule);
void export_slices_finish(struct export_slices *slices);

/* --- annotations -------------------------------------------------------------------------- */

struct export_scope {
    int64_t begin_us, end_us; /* times of the clock */
    uint32_t name;            /* string id */
    uint32_t lane;            /* DRY_NONE if no lane was free */
};

struct export_scopes {
    struct export_scope *scopes; /* sorted by begin, then the longest first */
    size_t count;
    size_t unmatched; /* ends without a begin; scopes without an end last to the end */
};

/* Pair the annotations of the clock's device to scopes. False: memory ran out. */
bool export_scopes_pair(struct export_scopes *scopes, const struct export_clock *clock,
                        struct export_lanes *lanes);
void export_scopes_finish(struct export_scopes *scopes);

#endif
