/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_STEPS_H
#define DRY_STEPS_H

/*
 * Find the steps of a training or serving loop, and what grows from step to step.
 *
 *     struct dry_steps *steps;
 *     if (dry_steps_create(timeline, NULL, &steps, &err) != DRY_OK) ...
 *     const struct dry_step *rows = dry_steps_get(steps, &count);
 *     use(rows[0].peak.bytes);
 *     dry_steps_destroy(steps);
 *
 * A step begins at a mark, if the record has marks: annotations such as ProfilerStep#N,
 * or steps named in user_metadata. Without marks, steps are found by periodicity of the
 * allocations' stacks and sizes. A whole step is a step without is_partial.
 *
 * At least two marks or three repetitions are needed. With fewer, no loop is proved, and
 * the window is one step. Periodicity looks for code that allocates once per step, with
 * at least six of ten steps about equally far apart. Between its allocations, the same
 * other code must allocate. Sizes may change, and the first step and single steps may
 * differ. A loop in one line of a model's forward() goes over layers, and one in an
 * optimizer's step goes over parameters: neither is a loop of steps. Steps begin where
 * the least memory is in use.
 *
 * Ownership  create / destroy; the timeline must outlive the steps.
 * Errors     A record without steps is no error: the window is one step, see
 *            dry_steps_get_reason().
 * Threads    Any number may read at once.
 * Units      Bytes; microseconds.
 * Cost       All of it is in dry_steps_create(); reading is O(1), or as the function
 *            says.
 */

#include <stdbool.h>

#include <drystone/field.h>
#include <drystone/timeline.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_steps;

/* How the steps were found. */
enum dry_steps_source {
    DRY_STEPS_NONE,        /* no steps were found: the window is one step */
    DRY_STEPS_ANNOTATIONS, /* ProfilerStep#N, Optimizer.step#..., by name */
    DRY_STEPS_METADATA,    /* a counter in user_metadata */
    DRY_STEPS_PERIODICITY, /* code that allocates once per step */
};
/* Return the name of a source: "none", "annotations", "metadata", "periodicity". */
DRY_API const char *dry_steps_source_name(enum dry_steps_source source);

/*
 * A step. It holds the moments begin <= m < end, and so the events begin .. end - 1. If
 * the last step ends with the dump, it has one event less, because no event follows its
 * last moment. An allocation is made in the step if begin < allocation.begin <= end.
 * Bytes are block sizes.
 */
struct dry_step {
    uint32_t begin, end; /* moments; each step begins where the previous one ends */
    /*
     * The step is incomplete. A step with an OOM is. The first and the last step are if
     * they lack over 5 % of the allocations that their neighbours share. The last is
     * also if it lacks over 5 % of the neighbours' frees.
     */
    bool is_partial;
    int64_t begin_us, end_us; /* times of its first and last event, from the file */
    struct dry_peak peak;     /* peak of the active curve, from begin to end inclusive */
    uint64_t active_end;      /* active bytes at its end */
    /* Bytes allocated in it and still live when the next step ends; for the last step, at
       its own end. */
    uint64_t kept_bytes;
    uint64_t alloc_bytes; /* sum of all bytes allocated in it */
    uint32_t alloc_count;
    /* allocations freed before 8 other allocations were made */
    uint64_t temporary_bytes;
    uint32_t temporary_count;
    uint64_t reserved_end, reserved_peak; /* reserved bytes at its end; the most of it */
    uint64_t duration_us; /* until the next step begins; 0: the clock jumped */
    size_t first_event;   /* its first event, over all devices of the trace */
    size_t peak_event;    /* the event of `peak`; SIZE_MAX: it is older than the step */
    uint32_t event_count;
};

enum dry_step_part {
    DRY_STEP_WHOLE,
    DRY_STEP_HEIGHTS, /* place and curves: right in partial steps, too */
    DRY_STEP_SUMS,    /* sums over allocations: too low in partial steps */
};
/* Return the table of a part of struct dry_step. */
DRY_API struct dry_fields dry_step_get_fields(enum dry_step_part part);

/*
 * A stack whose live memory grows from step to step: a leak suspect. The whole steps
 * between the first and the last are examined, at least two. Their allocations count if
 * they are live at the end of the last step, so they have outlived a whole step.
 *
 * A stack grows if it left live memory in over half of the steps, and also in over half
 * of their first and of their last third. So a cache that fills up and a list of the last
 * n losses do not count. Code that allocates irregularly grows if it left live memory in
 * at least three steps, one in each third. If a stack is empty or not recorded,
 * allocations are grouped by size instead.
 */
struct dry_growth {
    uint32_t stack;      /* DRY_NONE, or empty: no stack is known */
    uint32_t allocation; /* the latest of its allocations, as an example */
    /* The median over these steps; the mean if the code allocates irregularly. */
    uint64_t bytes_per_step;
    uint64_t count_per_step; /* the median; 0: it does not allocate in every step */
    uint64_t bytes; /* live at the end of the last whole step, from all whole steps */
    uint32_t step_count; /* whole steps whose allocations are still live */
    /*
     * The share of steps, 0 to 1, whose bytes are within a tenth of the median. With
     * fewer than four steps, each counts a quarter. At most 0.5 for code that allocates
     * irregularly.
     */
    double confidence;
    uint64_t requested_bytes; /* what `allocation` asked for */
    size_t last_event;        /* the event of `allocation`, over all devices */
};
/* Return the table of the members of struct dry_growth. */
DRY_API struct dry_fields dry_growth_get_fields(void);

struct dry_steps_options {
    size_t struct_size; /* set by dry_steps_options_init() */
    const struct dry_memory *memory;
    uint32_t until; /* moments from this one on are ignored; default: the dump */
};
/* Set all options to their defaults. */
DRY_API void dry_steps_options_init_sized(struct dry_steps_options *options,
                                          size_t struct_size);
#define dry_steps_options_init(options)                                                  \
    dry_steps_options_init_sized(options, sizeof *(options))

/*
 * Find the steps of `timeline`; the result is *steps. O(events + allocations log
 * allocations), at most 64 passes over the allocations. Needs about 40 bytes per
 * allocation while it runs. Errors: MEMORY, or ARGUMENT if `until` is 0.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_steps_create(
    const struct dry_timeline *timeline, const struct dry_steps_options *options,
    struct dry_steps **steps, struct dry_error *err);
/* End the steps. NULL is fine. */
DRY_API void dry_steps_destroy(struct dry_steps *steps);

/* Return how the steps were found. */
DRY_API enum dry_steps_source dry_steps_get_source(const struct dry_steps *steps);
/* Return the reason why no steps were found, for people, if the source is NONE;
   otherwise "". The text is static. */
DRY_API const char *dry_steps_get_reason(const struct dry_steps *steps);
/* Return the text of one of the marks ("ProfilerStep#12"), zero-terminated: bytes of the
   file, not escaped for a terminal. "" if there are none. `length` may be NULL. */
DRY_API const char *dry_steps_get_marker(const struct dry_steps *steps, size_t *length);
/* Return the allocation that begins the first step found by periodicity; similar
   allocations begin the others. DRY_NONE for other sources. */
DRY_API uint32_t dry_steps_get_anchor(const struct dry_steps *steps);
/* Return how regular the whole steps are, from 0 to 1: the share of a step's allocations,
   by stack, that the next step repeats. 0 if no two whole steps are consecutive. */
DRY_API double dry_steps_get_confidence(const struct dry_steps *steps);
/*
 * Return the steps in order, and their *count; together they cover the whole window. The
 * moments before the first mark are a step of their own, which is partial unless its
 * allocations match the next step's.
 */
DRY_API const struct dry_step *dry_steps_get(const struct dry_steps *steps,
                                             uint32_t *count);
/*
 * Return the index of the step of `moment`; DRY_NONE outside. O(log steps). An allocation
 * of the window belongs to the step of the moment before it, dry_steps_find(steps, begin
 * - 1).
 */
DRY_API uint32_t dry_steps_find(const struct dry_steps *steps, uint32_t moment);
/* Return the leak suspects, the largest growth per step first. */
DRY_API const struct dry_growth *dry_steps_get_growth(const struct dry_steps *steps,
                                                      size_t *count);
/*
 * Return the slope of the active bytes at the ends of the whole steps; 0 if it is flat or
 * falling. A slope goes from the median of the first third of some steps to that of the
 * last third. Three slopes are computed: for all whole steps, for their second half, and
 * for their last third. The smallest is returned. The result is 0 for fewer than four
 * whole steps, and if the bytes fall more than once per three rises.
 */
DRY_API uint64_t dry_steps_growth_per_step(const struct dry_steps *steps);

#ifdef __cplusplus
}
#endif

#endif
