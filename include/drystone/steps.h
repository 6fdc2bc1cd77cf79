/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_STEPS_H
#define DRY_STEPS_H

/*
 * Iterations: where each step of a training or serving loop begins, by markers if there are
 * any (ProfilerStep#N and the like in the annotations, steps named in user_metadata), else by
 * periodicity of the allocations' stacks and sizes. What grows from step to step.
 *
 *     struct dry_steps *steps;
 *     if (dry_steps_create(timeline, NULL, &steps, &err) != DRY_OK) ...
 *     const struct dry_step *rows = dry_steps_get(steps, &count);
 *     use(rows[0].peak.bytes);
 *     dry_steps_destroy(steps);
 *
 * Two marks are the least, or three repetitions: fewer prove no loop, and the window is one
 * step. Periodicity looks for code that allocates once a step, for at least six of ten steps
 * about equally far apart, between whose allocations the same code allocates again; sizes
 * may change, the first step and single ones may be odd. A loop in one line of a
 * model's forward() goes over layers, one in an optimizer's step over parameters: neither is
 * one of steps. Steps begin where least is in use.
 *
 * Ownership  create / destroy; the timeline must outlive the steps.
 * Threads    Read by any number at once.
 * Units      Bytes; microseconds.
 */

#include <drystone/timeline.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_steps;

enum dry_steps_source {
    DRY_STEPS_NONE,        /* no steps could be told apart: the window is one */
    DRY_STEPS_ANNOTATIONS, /* ProfilerStep#N, Optimizer.step#..., by name */
    DRY_STEPS_METADATA,    /* user_metadata that counts */
    DRY_STEPS_PERIODICITY, /* an allocation site that comes once a step */
};
/* "none", "annotations", "metadata", "periodicity". */
DRY_API const char *dry_steps_source_name(enum dry_steps_source source);

/*
 * A step holds the moments begin <= m < end, and so the events begin .. end - 1; the last,
 * where it ends with the dump, one event less: there is none after its last moment. An
 * allocation is born in it if begin < allocation.begin <= end. Bytes are those of blocks.
 */
struct dry_step {
    uint32_t begin, end; /* moments; steps lie one after the other */
    /* Cut off by the window's beginning or end, or by an OOM: it holds an OOM, or it is the
       first or the last and lacks over 5 % of the allocations that neighbours share; the
       last also where it lacks over 5 % of their frees. */
    int is_partial;
    int64_t begin_us, end_us; /* its first and its last event, as the file says */
    struct dry_peak peak;     /* of the active curve */
    uint64_t active_end;      /* at its end */
    uint64_t
        kept_bytes; /* born in it and alive when the next step ends; of the last: when
                            it ends itself */
    uint64_t alloc_bytes; /* allocated in it, all together: churn */
    uint32_t alloc_count;
    uint64_t temporary_bytes; /* of these: freed before 8 other allocations were made */
    uint32_t temporary_count;
    uint64_t reserved_end;
};

/*
 * What one stack leaves behind, step after step. Looked at are the whole steps between the
 * first and the last one (two at least), and what of theirs is alive at the end of the last,
 * so that it has outlived a whole step: in over half of the steps, and also of their first
 * and last third, so that a cache that filled up and a list of the last n losses are none;
 * or, for code that does so now and then, at least three steps, one in each third. Where a
 * stack is empty or not recorded, allocations of one size stand for one line.
 */
struct dry_growth {
    uint32_t stack;      /* may be DRY_NONE, or empty */
    uint32_t allocation; /* a specimen: the latest */
    uint64_t
        bytes_per_step; /* median over these steps; the mean where it is now and then */
    uint64_t count_per_step; /* median; 0: not every step */
    uint64_t bytes;      /* alive at the end of the last whole step, of all whole steps */
    uint32_t step_count; /* whole steps that left something behind that is still alive */
    /* 0..1: the share of the steps that left the median or within a tenth of it; of fewer
       than four steps, a quarter for each. Now and then: at most a half. */
    double confidence;
};

struct dry_steps_options {
    size_t struct_size; /* set by dry_steps_options_init() */
    const struct dry_memory *memory;
    uint32_t until; /* moments at and after this are left out; default: the dump */
};
DRY_API void dry_steps_options_init(struct dry_steps_options *options);

/*
 * O(events + allocations log allocations), at most 64 passes over the allocations; about 40
 * bytes an allocation while it runs. Fails with MEMORY, or ARGUMENT where `until` is 0.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_steps_create(
    const struct dry_timeline *timeline, const struct dry_steps_options *options,
    struct dry_steps **steps, struct dry_error *err);
/* NULL is fine. */
DRY_API void dry_steps_destroy(struct dry_steps *steps);

DRY_API enum dry_steps_source dry_steps_get_source(const struct dry_steps *steps);
/* Of NONE: why no steps could be told apart, for people; else "". It is static. */
DRY_API const char *dry_steps_get_reason(const struct dry_steps *steps);
/*
 * The text of one of the marks ("ProfilerStep#12"), zero-terminated: bytes of the file, not
 * made safe for a terminal. "" where there are none. `length` may be NULL.
 */
DRY_API const char *dry_steps_get_marker(const struct dry_steps *steps, size_t *length);
/* By periodicity: the allocation of the timeline that begins the first step found, whose
   like begins the others. Else DRY_NONE. */
DRY_API uint32_t dry_steps_get_anchor(const struct dry_steps *steps);
/* 0..1: how regular the whole steps are: the share of a step's allocations, by stack, found
   in the next. 0 where no two whole steps follow each other. */
DRY_API double dry_steps_get_confidence(const struct dry_steps *steps);
/*
 * In order; together they hold the whole window. What lies before the first mark is a step of
 * its own, partial unless it holds what the next one does.
 */
DRY_API const struct dry_step *dry_steps_get(const struct dry_steps *steps,
                                             uint32_t *count);
/*
 * The step of a moment, as an index; DRY_NONE outside. O(log steps). An allocation of the
 * window is born in the step of the moment before it, dry_steps_find(steps, begin - 1).
 */
DRY_API uint32_t dry_steps_find(const struct dry_steps *steps, uint32_t moment);
/* Leak suspects, the largest growth a step first. */
DRY_API const struct dry_growth *dry_steps_get_growth(const struct dry_steps *steps,
                                                      size_t *count);
/*
 * Active bytes at the ends of the whole steps: the slope, 0 if flat or falling. From the
 * median of the first third to that of the last: for all of them, for their second half and
 * for their last third, whichever is least; 0 for fewer than
 * four whole steps, and where it falls more than once for three times that it rises.
 */
DRY_API uint64_t dry_steps_growth_per_step(const struct dry_steps *steps);

#ifdef __cplusplus
}
#endif

#endif
