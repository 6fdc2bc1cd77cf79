/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PLAN_TIMELINE_H
#define TOOL_PLAN_TIMELINE_H

/*
 * A plan over time in a fixed number of columns. Memory depends on the columns and not on
 * the steps, of which a nested plan may have very many. If no stage takes time, the axis
 * counts steps. The optimizer's step has no duration in a plan and is kept apart.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/plan.h>

#define PLAN_TIMELINE_PHASES 3 /* forward, recompute, backward */

struct plan_column {
    uint64_t needed_bytes; /* maximum over the column */
    uint64_t held_bytes;   /* maximum held at the start of a step in the column */
    /* Each phase's share of the column, and its range of stages. Without steps of a
       phase, low is above high. */
    double share[PLAN_TIMELINE_PHASES];
    uint32_t low[PLAN_TIMELINE_PHASES], high[PLAN_TIMELINE_PHASES];
};

struct plan_timeline {
    struct plan_column *columns;
    size_t column_count;
    bool is_by_time;
    uint64_t span; /* length of the axis: ns if is_by_time, else steps */
    uint64_t optimizer_bytes;
    size_t peak_column; /* column_count: the peak is in the optimizer's step */
    struct dry_plan_cost cost;
};

/* Compute the timeline of a plan. After DRY_OK, call plan_timeline_finish(). */
DRY_CHECK_RESULT enum dry_status plan_timeline_init(struct plan_timeline *timeline,
                                                    const struct dry_chain *chain,
                                                    const struct dry_plan_item *items,
                                                    size_t count, size_t column_count,
                                                    struct dry_error *err);
void plan_timeline_finish(struct plan_timeline *timeline);

/* Return the bytes held before the first stage runs. The gradient of the last output
   counts, because it comes from outside the chain. */
uint64_t plan_held_at_first(const struct dry_chain *chain);

#endif
