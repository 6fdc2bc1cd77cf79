/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_TIMELINE_H
#define DRY_TIMELINE_H

/*
 * The memory of one device over time: all allocations and segments with their lifetimes,
 * and curves of totals. Verdicts, owners, steps, exports and pictures are computed from
 * it.
 *
 *     struct dry_timeline *timeline;
 *     if (dry_timeline_create(replay, NULL, &timeline, &err) != DRY_OK) ...
 *     const struct dry_timeline_view *v = dry_timeline_get_view(timeline);
 *     use(v->peaks[DRY_CURVE_ALLOCATED].bytes);
 *     dry_timeline_destroy(timeline);
 *
 * Time is counted in events of the device: moment m is the state after the first m
 * events. Moment 0 is the beginning of the window; moment event_count is after the last
 * event. Moment event_count + 1, `dump_moment`, is the state of the segments at the end
 * of the file, which are listed a little later than the last event. A life is the moments
 * begin <= m < end. A carried-over allocation was made before the window. An allocation
 * is in use until it is freed, and pending until its bytes are reusable.
 *
 * The record is authoritative: addresses and lives are those of the events, sizes at the
 * end are those of the file's segments. In between, the size of a block is the one that
 * the replay found, if the replay reproduced the block's address; otherwise it is the
 * rounded request. A record that contradicts itself still gives a timeline; the counts
 * under "Damage" say what was corrected.
 *
 * Ownership  create / destroy; the replay and its trace must outlive the timeline.
 * Errors     UNSUPPORTED: a trace without addresses (record it first,
 *            dry_replay_record()). LIMIT: sizes that no device has (an allocation over
 *            128 TiB). MEMORY.
 * Threads    Any number of threads may read it after creation.
 * Units      Bytes; microseconds.
 * Cost       O(events) to create; each function says its own.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>
#include <drystone/replay.h>
#include <drystone/status.h>
#include <drystone/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_timeline;

/* The end of a life that lasts to the end of the file. */
#define DRY_MOMENT_NEVER UINT32_MAX

/* One allocation. It is in use until `freed`, and pending from there to `end`. */
struct dry_allocation {
    uint64_t address;
    uint64_t size;      /* size of its block */
    uint64_t requested; /* bytes as the program requested */
    uint32_t begin;     /* a moment; 0: made before the window */
    uint32_t freed;     /* the moment of the program's free; DRY_MOMENT_NEVER */
    uint32_t end;       /* the moment when its bytes became reusable; DRY_MOMENT_NEVER */
    uint32_t lane;      /* index in the trace: its stream, and its pool if known */
    uint32_t stack;     /* index in the trace; DRY_NONE */
    uint32_t flags;     /* DRY_ALLOCATION_… */
};
#define DRY_ALLOCATION_CARRIED_OVER 1u /* made before the window */
/* `stack` is that of the free, because no other is known. */
#define DRY_ALLOCATION_STACK_OF_FREE 2u
/* `size` is the rounded request, which the replay did not confirm. */
#define DRY_ALLOCATION_SIZE_GUESSED 4u
/* The free is not in the record, but must have happened. */
#define DRY_ALLOCATION_FREE_LOST 8u

/* A segment, or mapped pages of an expandable segment, for as long as they do not
   change. */
struct dry_timeline_segment {
    uint64_t address, size;
    uint32_t begin, end; /* moments */
    uint32_t lane;
    bool is_large, is_expandable;
};

/* The quantities that have a curve over the moments. */
enum dry_curve {
    DRY_CURVE_RESERVED,  /* bytes reserved from the device */
    DRY_CURVE_ACTIVE,    /* rounded bytes of blocks in use or pending */
    DRY_CURVE_ALLOCATED, /* rounded bytes of blocks in use: memory_allocated() */
    DRY_CURVE_REQUESTED, /* requested bytes of blocks in use or pending */
};
#define DRY_CURVE_COUNT 4
/* Return the name of a curve: "reserved", "active", "allocated", "requested". */
DRY_API const char *dry_curve_name(enum dry_curve curve);

struct dry_peak {
    uint64_t bytes;
    uint32_t moment; /* the first moment with this height */
};

/* The timeline; the caller must not change it. */
struct dry_timeline_view {
    const struct dry_trace *trace;
    int32_t device;
    size_t first_event;   /* index of the device's first event in the trace */
    uint32_t event_count; /* number of the device's events */
    uint32_t dump_moment; /* event_count + 1 */

    /* Allocations made in the window, in order; then those carried over. */
    uint32_t allocation_count, carried_over_count; /* allocation_count includes
                                                      carried_over_count */
    const struct dry_allocation *allocations;
    /* For each event, the allocation that it begins or ends; DRY_NONE for other
       events. */
    const uint32_t *event_allocation;

    uint32_t segment_count;
    const struct dry_timeline_segment *segments;

    struct dry_peak peaks[DRY_CURVE_COUNT];
    uint32_t oom_count;
    uint32_t oom_event; /* the first OOM, as an index in the device's events; DRY_NONE */

    /* Damage: all 0 in a sound record, except unmatched_frees. */
    uint32_t lost_frees;        /* allocs at an address still in use */
    uint32_t inferred_frees;    /* allocations in use after the last event that the
                                   segments lack */
    uint32_t unmatched_frees;   /* frees of blocks older than the window */
    uint32_t guessed_sizes;     /* allocations with DRY_ALLOCATION_SIZE_GUESSED */
    uint32_t segment_conflicts; /* segment events that contradict the state */
};

struct dry_timeline_options {
    size_t struct_size; /* set by dry_timeline_options_init() */
    const struct dry_memory *memory;
};

/* Set all options to their defaults. */
DRY_API void dry_timeline_options_init_sized(struct dry_timeline_options *options,
                                             size_t struct_size);
#define dry_timeline_options_init(options)                                               \
    dry_timeline_options_init_sized(options, sizeof *(options))

/* Make the timeline of the device in `replay`; the result is *timeline. O(events).
   Errors: UNSUPPORTED, LIMIT, MEMORY, see Errors above. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_timeline_create(
    struct dry_replay *replay, const struct dry_timeline_options *options,
    struct dry_timeline **timeline, struct dry_error *err);
/* End the timeline. NULL is fine. */
DRY_API void dry_timeline_destroy(struct dry_timeline *timeline);

/* Return the view, which lives as long as the timeline. */
DRY_API const struct dry_timeline_view *dry_timeline_get_view(
    const struct dry_timeline *timeline);

/* Return the height of `curve` at `moment`, which is at most dump_moment. O(1): at most
   256 events are summed. */
DRY_API uint64_t dry_timeline_height(const struct dry_timeline *timeline,
                                     enum dry_curve curve, uint32_t moment);

/*
 * Call `visit` with `self` and each allocation live at `moment`, in order of their
 * numbers. A status other than OK from `visit` ends the walk and is returned. O(live
 * allocations + log), by a tree of latest ends. So no checkpoints are needed: the cost of
 * a moment is proportional to its allocations.
 */
DRY_API enum dry_status dry_timeline_visit_alive(
    const struct dry_timeline *timeline, uint32_t moment,
    enum dry_status (*visit)(void *self, uint32_t allocation), void *self);

/* Call `visit` with `self` and each segment or run of mapped pages that exists at
   `moment`, by number, as dry_timeline_visit_alive() does. */
DRY_API enum dry_status dry_timeline_visit_segments(
    const struct dry_timeline *timeline, uint32_t moment,
    enum dry_status (*visit)(void *self, uint32_t segment), void *self);

/*
 * Return the moment before the first event that is not earlier than `time_us`;
 * dump_moment if all are earlier. Times of a record may decrease; the first such event in
 * the file's order counts.
 */
DRY_API uint32_t dry_timeline_find_time(const struct dry_timeline *timeline,
                                        int64_t time_us);
/* Return the time of the event before `moment`; for moment 0, that of the first event. 0:
   there are no events. */
DRY_API int64_t dry_timeline_time(const struct dry_timeline *timeline, uint32_t moment);

/* --- pictures ----------------------------------------------------------------------------- */

/* The moments from <= m < to, divided into columns, by events or by time. */
struct dry_axis {
    uint32_t from, to;
    uint32_t column_count; /* at most 65,536 */
    bool is_time;
};

struct dry_curve_column {
    uint64_t min, max, last;
    /* The column's moments. begin == end: it has none and repeats the previous height. */
    uint32_t begin, end;
    uint32_t max_moment; /* the first moment with the maximum */
};

/*
 * Compute `curve` over `axis`, one column per pixel, into `columns`, which must have
 * column_count elements. The columns cover every moment of the axis, so the true peak is
 * never lost. O(events / 256 + 512 per column). ARGUMENT: an empty axis, or one beyond
 * the dump (`to` is dump_moment + 1 at most).
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_timeline_curve(
    const struct dry_timeline *timeline, enum dry_curve curve,
    const struct dry_axis *axis, struct dry_curve_column *columns, struct dry_error *err);

/*
 * Compute all curves over `axis` in the time of one: curve c goes into columns[c], which
 * has column_count elements, or is NULL to skip the curve. Errors: as for
 * dry_timeline_curve().
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_timeline_curves(
    const struct dry_timeline *timeline, const struct dry_axis *axis,
    struct dry_curve_column *const columns[DRY_CURVE_COUNT], struct dry_error *err);

enum dry_stacking {
    DRY_STACKING_BIRTH, /* oldest at the bottom */
    /* Longest life at the bottom, whatever part of it the axis shows: allocations shift
       least, and lie in the same order in every drawing of the timeline. */
    DRY_STACKING_LONG_LIVED,
};

/* One allocation over adjacent columns in which its height is the same. */
struct dry_drawing_run {
    uint32_t allocation;
    uint32_t column, column_end;
    uint64_t bottom; /* bytes below it; its own height is its size */
};

struct dry_drawing_column {
    uint32_t moment; /* sampled where the active curve is highest within the column */
    /* Live allocations smaller than min_bytes, drawn as one sum on top. */
    uint32_t undrawn_count;
    uint64_t undrawn_bytes;
    uint64_t active_bytes;
};

/* A drawing; the caller must not change it. */
struct dry_drawing {
    uint32_t column_count;
    const struct dry_drawing_column *columns;
    size_t run_count;
    /* sorted by the allocation's rank, from the bottom up */
    const struct dry_drawing_run *runs;
    uint64_t min_bytes; /* smaller allocations are summed */
};

/* How much a drawing shows. */
struct dry_drawing_bounds {
    uint64_t min_bytes; /* smaller allocations are summed up */
    size_t run_max;     /* most runs of a drawing; SIZE_MAX: any number */
};

/*
 * Draw the stack of live allocations at sampled columns of `axis`, in the order
 * `stacking`; the result is *drawing. Allocations smaller than min_bytes (a pixel's
 * worth) are summed up. While there are more than run_max runs, min_bytes becomes twice
 * itself and 1; the drawing tells what it came to. O(carried-over allocations + columns
 * log + cells drawn): allocations that no column shows cost nothing. Lives are looked at
 * once, so a drawing that must leave much out costs little more. Errors: ARGUMENT, as for
 * dry_timeline_curve(); MEMORY.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_drawing_create(
    const struct dry_timeline *timeline, const struct dry_axis *axis,
    enum dry_stacking stacking, const struct dry_drawing_bounds *bounds,
    struct dry_drawing **drawing, struct dry_error *err);
/* End the drawing. NULL is fine. */
DRY_API void dry_drawing_destroy(struct dry_drawing *drawing);

#ifdef __cplusplus
}
#endif

#endif
