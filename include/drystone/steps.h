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
 * A step begins at a mark, if the record has marks: ProfilerStep#N and the like in the
 * annotations, or steps named in user_metadata. Without marks, steps are found by
 * periodicity of the allocations' stacks and sizes. A whole step is one that is not
 * partial (is_partial).
 *
 * At least two marks are needed, or three repetitions: fewer prove no loop, and the
 * window is then one step. Periodicity looks for code that allocates once a step, with at
 * least six of ten steps about equally far apart. Between its allocations, the same code
 * must allocate again. Sizes may change, and the first step and single ones may be odd. A
 * loop in one line of a model's forward() goes over layers, and one in an optimizer's
 * step goes over parameters: neither is a loop of steps. Steps begin where the least
 * memory is in use.
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

#include <drystone/timeline.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_steps;

/* The source that the steps were found by. */
enum dry_steps_source {
    DRY_STEPS_NONE,        /* no steps could be told apart: the window is one */
    DRY_STEPS_ANNOTATIONS, /* ProfilerStep#N, Optimizer.step#..., by name */
    DRY_STEPS_METADATA,    /* user_metadata that counts */
    DRY_STEPS_PERIODICITY, /* an allocation site that comes once a step */
};
/* Return the name of a source: "none", "annotations", "metadata", "periodicity". */
DRY_API const char *dry_steps_source_name(enum dry_steps_source source);

/*
 * A step. It holds the moments begin <= m < end, and so the events begin .. end - 1. The
 * last step has one event less if it ends with the dump: there is no event after its last
 * moment. An allocation is born in the step if begin < allocation.begin <= end. Bytes are
 * those of blocks.
 */
struct dry_step {
    uint32_t begin, end; /* moments; steps lie one after the other */
    /*
     * Cut off by the window's beginning or end, or by an OOM. A step is cut off if it
     * holds an OOM. The first and the last are cut off if they lack over 5 % of the
     * allocations that neighbours share. The last is also cut off if it lacks over 5 % of
     * their frees.
     */
    bool is_partial;
    int64_t begin_us, end_us; /* its first and its last event, as the file says */
    struct dry_peak peak;     /* of the active curve, from begin to end inclusive */
    uint64_t active_end;      /* at its end */
    /*
     * Born in it and alive when the next step ends; for the last step, alive at its own
     * end.
     */
    uint64_t kept_bytes;
    uint64_t alloc_bytes; /* allocated in it, all together: churn */
    uint32_t alloc_count;
    /* of the allocated: freed before 8 other allocations were made */
    uint64_t temporary_bytes;
    uint32_t temporary_count;
    uint64_t reserved_end;
};

/*
 * The memory that one stack leaves behind, step after step. The whole steps between the
 * first and the last one are examined, two at least. Their allocations count if they are
 * alive at the end of the last: they have outlived a whole step.
 *
 * A stack grows if it left something behind in over half of the steps, and also in over
 * half of their first and last third. So a cache that filled up and a list of the last n
 * losses do not count. Code that allocates now and then grows if it left something in at
 * least three steps, one in each third. If a stack is empty or not recorded, allocations
 * of one size stand for one line.
 */
struct dry_growth {
    uint32_t stack;      /* may be DRY_NONE, or empty */
    uint32_t allocation; /* an example: the latest */
    /* The median over these steps; the mean if the code allocates now and then. */
    uint64_t bytes_per_step;
    uint64_t count_per_step; /* the median; 0: not every step */
    uint64_t bytes;      /* alive at the end of the last whole step, of all whole steps */
    uint32_t step_count; /* whole steps that left something behind that is still alive */
    /*
     * The share of the steps, 0 to 1, that left the median or within a tenth of it. Fewer
     * than four steps count a quarter each. Code that allocates now and then has at most
     * a half.
     */
    double confidence;
};

/* Options of dry_steps_create(). */
struct dry_steps_options {
    size_t struct_size; /* set by dry_steps_options_init() */
    const struct dry_memory *memory;
    uint32_t until; /* moments at and after this one are left out; default: the dump */
};
/* Set all options to their defaults. */
DRY_API void dry_steps_options_init_sized(struct dry_steps_options *options,
                                          size_t struct_size);
#define dry_steps_options_init(options)                                                  \
    dry_steps_options_init_sized(options, sizeof *(options))

/*
 * Find the steps of `timeline`; the result is *steps. O(events + allocations log
 * allocations), at most 64 passes over the allocations; about 40 bytes an allocation
 * while it runs. Errors: MEMORY, or ARGUMENT if `until` is 0.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_steps_create(
    const struct dry_timeline *timeline, const struct dry_steps_options *options,
    struct dry_steps **steps, struct dry_error *err);
/* End the steps. NULL is fine. */
DRY_API void dry_steps_destroy(struct dry_steps *steps);

/* Return the source of the steps. */
DRY_API enum dry_steps_source dry_steps_get_source(const struct dry_steps *steps);
/*
 * Return the reason why no steps could be told apart, for people, if the source is NONE;
 * otherwise "". The text is static.
 */
DRY_API const char *dry_steps_get_reason(const struct dry_steps *steps);
/*
 * Return the text of one of the marks ("ProfilerStep#12"), zero-terminated: bytes of the
 * file, not made safe for a terminal. "" if there are none. `length` may be NULL.
 */
DRY_API const char *dry_steps_get_marker(const struct dry_steps *steps, size_t *length);
/*
 * Return the allocation of the timeline that begins the first step found by periodicity;
 * its like begin the others. DRY_NONE for other sources.
 */
DRY_API uint32_t dry_steps_get_anchor(const struct dry_steps *steps);
/*
 * Return how regular the whole steps are, from 0 to 1: the share of a step's allocations,
 * by stack, that the next step has. 0 if no two whole steps follow each other.
 */
DRY_API double dry_steps_get_confidence(const struct dry_steps *steps);
/*
 * Return the steps in order, and their *count; together they hold the whole window. The
 * moments before the first mark are a step of their own, which is partial unless it holds
 * what the next one does.
 */
DRY_API const struct dry_step *dry_steps_get(const struct dry_steps *steps,
                                             uint32_t *count);
/*
 * Return the index of the step of `moment`; DRY_NONE outside. O(log steps). An allocation
 * of the window is born in the step of the moment before it, dry_steps_find(steps, begin
 * - 1).
 */
DRY_API uint32_t dry_steps_find(const struct dry_steps *steps, uint32_t moment);
/* Return the leak suspects, the largest growth a step first. */
DRY_API const struct dry_growth *dry_steps_get_growth(const struct dry_steps *steps,
                                                      size_t *count);
/*
 * Return the slope of the active bytes at the ends of the whole steps; 0 if it is flat or
 * falling. A slope goes from the median of the first third of some steps to that of the
 * last third. Three slopes are taken, and the least is returned: for all whole steps, for
 * their second half, and for their last third. It is 0 for fewer than four whole steps,
 * and if the bytes fall more than once for three times that they rise.
 */
DRY_API uint64_t dry_steps_growth_per_step(const struct dry_steps *steps);

#ifdef __cplusplus
}
#endif

#endif
