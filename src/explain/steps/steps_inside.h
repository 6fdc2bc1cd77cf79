/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_STEPS_INSIDE_H
#define DRYI_STEPS_INSIDE_H

/*
 * The inside of steps, shared by steps.c (where steps begin, what is in them) and growth.c
 * (what they leave behind).
 *
 * Invariants
 *   S1  steps lie one after the other: rows[i].end == rows[i + 1].begin
 *   S2  the first begins at moment 0, the last ends at `until`
 *   S3  an allocation is born in the step with begin < allocation.begin <= end
 */

#include <stdbool.h>

#include <drystone/steps.h>

struct dry_steps {
    struct dry_memory memory;
    const struct dry_timeline *timeline;
    uint32_t until; /* moment */
    enum dry_steps_source source;
    double confidence;
    const char *reason;  /* of NONE */
    uint32_t marker;     /* string of the trace; DRY_NONE */
    uint32_t anchor;     /* allocation; DRY_NONE */
    uint32_t first_use;  /* the first event that allocates or frees */
    bool has_first_mark; /* a boundary stands before it */

    struct dry_step *rows;
    size_t capacity;
    uint32_t count;
    uint32_t first_whole, whole_end; /* the whole steps lie in this range; empty: none */

    struct dry_growth *growth;
    size_t growth_count, growth_capacity;
    uint64_t growth_per_step;
};

/* --- growth.c ----------------------------------------------------------------------------- */

/* Fill growth and growth_per_step from the rows. */
DRY_CHECK_RESULT enum dry_status dryi_growth_find(struct dry_steps *steps,
                                                  struct dry_error *err);

#endif
