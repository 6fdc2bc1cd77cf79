/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_STATE_H
#define DRYI_PLAN_STATE_H

/*
 * The state of a planner: its inputs and its results.
 *
 *     enum dry_status
 *     dryi_plan_METHOD(struct dryi_planning *p)
 *     {
 *         ... p->stages, p->free_budget_bytes, p->forward_before, p->grads_from ...
 *         p->floor = ...;                                    always, also when nothing fits
 *         if (nothing fits)
 *             return DRY_ERR_NO_SPACE;                       the caller writes the text
 *         if (!dryi_plan_go_on(p->progress, rows))           now and then
 *             return DRY_ERR_CANCELLED;                      likewise
 *         if (!dryi_plan_push_save(p, 0, 3, 0) || ...)
 *             return dryi_fail_memory(p->err, "a plan");
 *         p->bound_ns = ...;
 *         return DRY_OK;
 *     }
 *
 * The caller evaluates the items again. A plan that exceeds the budget is never returned;
 * it is a bug of the planner. The optimizer's step needs the same bytes in every plan. So
 * planners ignore the step, and the caller adds its bytes to the floor.
 *
 * P1  free_budget_bytes + base_bytes == options.budget_bytes, where that is a limit and at least
 *     base_bytes.
 * P2  forward_before, backward_before, grads_from have count + 1 elements; the first two
 *     begin with 0, the last one ends with it.
 * P3  Sums of bytes over different stages do not overflow (chain_state.h, C2). Sums of times
 *     do not if they count all stages once (C3); what is recomputed more than once has to be
 *     checked.
 */

#include <drystone/plan.h>

#include "plan/chain/chain_state.h"
#include "plan/chain/plan_progress.h"

/* The most forward runs of stages that one evaluation performs, each rerun counted. */
#define DRYI_PLAN_RUNS_MAX (UINT64_C(1) << 26)
#define DRYI_PLAN_SLOTS_MAX (1u << 20)
#define DRYI_NO_ITEM UINT32_MAX

/* A list of items under construction. */
struct dryi_plan_list {
    struct dry_plan_item *items;
    size_t count, capacity;
    size_t level; /* items from here on belong to the range being filled */
};

/* The least peak of any plan, with the whole frame, and where it occurs. */
struct dryi_plan_floor {
    uint64_t bytes;
    uint64_t stage;
    enum dry_plan_phase phase;
};

struct dryi_planning {
    /* Inputs. */
    struct dry_memory memory;
    struct dry_plan_options options;
    const struct dry_chain *chain;
    struct dry_error *err;
    struct dryi_plan_progress *progress; /* NULL: no reports */
    const struct dry_stage *stages;
    const uint32_t *kinds; /* equal numbers: equal stages */
    uint32_t count;        /* number of stages, at least 1 */
    uint64_t base_bytes; /* persistent and input bytes: held in all phases but the step */
    uint64_t free_budget_bytes; /* budget less base_bytes, or 0; UINT64_MAX: no limit */
    uint64_t base_ns;           /* all forwards and backwards, once each */
    uint64_t *forward_before, *backward_before; /* times of all stages before i */
    /* grads_bytes of stages i and above: G' of i is grads_from[i + 1] */
    uint64_t *grads_from;
    /* Results. */
    struct dryi_plan_list list;
    struct dryi_plan_floor floor;
    uint64_t bound_ns; /* initially base_ns */
    uint32_t slots, window;
    uint64_t table_bytes;
};

/* Take and check the options, and compute the sums. Requires dryi_planning_finish() in any case. */
DRY_CHECK_RESULT enum dry_status dryi_planning_init(
    struct dryi_planning *p, const struct dry_chain *chain,
    const struct dry_plan_options *options, struct dry_error *err);
void dryi_planning_finish(struct dryi_planning *p);

/* Return the bytes of the gradient that stage i's backward makes for its input. */
static inline uint64_t
dryi_input_gradient(const struct dryi_planning *p, uint32_t i)
{
    return i ? p->stages[i - 1].gradient_bytes : p->chain->frame.input_gradient_bytes;
}

/* Return the time of one forward of stages first to last. */
static inline uint64_t
dryi_forward_ns(const struct dryi_planning *p, uint32_t first, uint32_t last)
{
    return p->forward_before[last + 1] - p->forward_before[first];
}

/* --- items -------------------------------------------------------------------------------- */

/*
 * Append saved stages to p->list. All functions here return false if memory ran out.
 * Neighbours saved by the same option are joined into one item. A range drops inner items
 * that only save all as it is. So equal plans have equal items.
 */
DRY_CHECK_RESULT bool dryi_plan_push_save(struct dryi_planning *p, uint32_t first,
                                          uint32_t last, uint32_t option);
/* Append a range that saves everything in its second run. */
DRY_CHECK_RESULT bool dryi_plan_push_range(struct dryi_planning *p, uint32_t first,
                                           uint32_t last);
/* Append such a range. Stages that must not run twice are saved instead, and divide it. */
DRY_CHECK_RESULT bool dryi_plan_push_cut(struct dryi_planning *p, uint32_t first,
                                         uint32_t last);
/*
 * Open a range: items pushed until it is closed are its inner items. *item is for
 * closing. Ranges close in the reverse order of opening.
 */
DRY_CHECK_RESULT bool dryi_plan_open_range(struct dryi_planning *p, uint32_t first,
                                           uint32_t last, uint32_t *item);
void dryi_plan_close_range(struct dryi_planning *p, uint32_t item);
void dryi_plan_clear(struct dryi_planning *p);
/* Compute the cost of p->list. */
DRY_CHECK_RESULT enum dry_status dryi_plan_price(const struct dryi_planning *p,
                                                 struct dry_plan_cost *cost);
/* Compute the cost of p->list, and report every step to the observer, which may be NULL. */
DRY_CHECK_RESULT enum dry_status dryi_plan_observe(
    const struct dryi_planning *p, const struct dry_plan_observer *observer,
    struct dry_plan_cost *cost);

/* The tree of items; DRYI_NO_ITEM where an item is missing. */
struct dryi_plan_link {
    uint32_t parent, prev; /* the enclosing range, and the previous item in it */
    uint32_t last_inner;   /* a range's last direct inner item */
};

/* Check a list of items by the rules of plan.h, and fill links[0] to links[count - 1]. */
DRY_CHECK_RESULT enum dry_status dryi_plan_check(const struct dry_chain *chain,
                                                 const struct dry_plan_item *items,
                                                 uint32_t count,
                                                 struct dryi_plan_link *links,
                                                 struct dry_error *err);

/* --- planners ----------------------------------------------------------------------------- */

DRY_CHECK_RESULT enum dry_status dryi_plan_one_level(struct dryi_planning *p);
DRY_CHECK_RESULT enum dry_status dryi_plan_nested(struct dryi_planning *p);
DRY_CHECK_RESULT enum dry_status dryi_plan_none(struct dryi_planning *p);
DRY_CHECK_RESULT enum dry_status dryi_plan_block(struct dryi_planning *p);
DRY_CHECK_RESULT enum dry_status dryi_plan_every(struct dryi_planning *p);
DRY_CHECK_RESULT enum dry_status dryi_plan_sqrt(struct dryi_planning *p);
DRY_CHECK_RESULT enum dry_status dryi_plan_greedy(struct dryi_planning *p);
DRY_CHECK_RESULT enum dry_status dryi_plan_revolve(struct dryi_planning *p);

#endif
