/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_STEPS_INSIDE_H
#define DRYI_STEPS_INSIDE_H

/*
 * The state of steps, shared by steps.c (finds and measures steps) and growth.c (finds what
 * they leave allocated).
 *
 * Invariants
 *   S1  steps are contiguous: rows[i].end == rows[i + 1].begin
 *   S2  the first begins at moment 0, the last ends at `until`
 *   S3  an allocation is born in the step with begin < allocation.begin <= end
 */

#include <stdbool.h>

#include <drystone/steps.h>

struct dry_steps {
    struct dry_memory memory;
    const struct dry_timeline *timeline;
    uint32_t until; /* the moment at which the analysis ends */
    enum dry_steps_source source;
    bool
        encloses_models; /* see dryi_steps_enclose_models(); false if marks tell the steps */
    double confidence;
    const char *reason;  /* why no steps were found; valid if `source` is NONE */
    uint32_t marker;     /* example of a mark, string of the trace; DRY_NONE */
    uint32_t anchor;     /* an allocation of the anchor symbol, or DRY_NONE */
    uint32_t first_use;  /* first event that allocates or frees */
    bool has_first_mark; /* a boundary comes before first_use */

    struct dry_step *rows;
    size_t capacity;
    uint32_t count;
    uint32_t first_whole, whole_end; /* range of the whole steps; may be empty */

    struct dry_growth *growth;
    size_t growth_count, growth_capacity;
    uint64_t growth_per_step;
};

/* Return whether names tell that a step found by periodicity calls a model, and that it is not the
   call of one layer: steps contain calls of layers, or there are more than what a model holds. */
bool dryi_steps_enclose_models(const struct dry_steps *steps);

/* --- growth.c ----------------------------------------------------------------------------- */

/* Find the growth per step and its suspects. Requires that the rows are complete. */
DRY_CHECK_RESULT enum dry_status dryi_growth_find(struct dry_steps *steps,
                                                  struct dry_error *err);
/* Return whether an allocation is one of those that `growth` counts: its code left it behind. */
bool dryi_growth_counts(const struct dry_steps *steps, const struct dry_growth *growth,
                        const struct dry_allocation *allocation);

#endif
