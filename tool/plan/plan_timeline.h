/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PLAN_TIMELINE_H
#define TOOL_PLAN_TIMELINE_H

/*
 * The course of a plan over time, in so many columns: the memory follows the columns and
 * not the steps, of which a nested plan may have very many. If no stage takes any time, the
 * axis counts steps. The optimizer's step has no time in a plan and stands apart.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/plan.h>

#define PLAN_TIMELINE_PHASES 3 /* forward, recompute, backward */

struct plan_column {
    uint64_t needed_bytes; /* the most */
    uint64_t held_bytes;   /* the most that was held when a step of it began */
    /* The share of each phase in the column, and its stages; none: low is above high. */
    double share[PLAN_TIMELINE_PHASES];
    uint32_t low[PLAN_TIMELINE_PHASES], high[PLAN_TIMELINE_PHASES];
};

struct plan_timeline {
    struct plan_column *columns;
    size_t column_count;
    bool is_by_time;
    uint64_t span; /* ns, or steps */
    uint64_t optimizer_bytes;
    size_t peak_column; /* column_count: in the optimizer's step */
    struct dry_plan_cost cost;
};

/* plan_timeline_finish() is due after DRY_OK. */
DRY_CHECK_RESULT enum dry_status plan_timeline_init(struct plan_timeline *timeline,
                                                    const struct dry_chain *chain,
                                                    const struct dry_plan_item *items,
                                                    size_t count, size_t column_count,
                                                    struct dry_error *err);
void plan_timeline_finish(struct plan_timeline *timeline);

/* Before the first stage runs; the gradient of the last output comes from outside. */
uint64_t plan_held_at_first(const struct dry_chain *chain);

#endif
