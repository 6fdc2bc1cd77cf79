/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_STATE_H
#define DRYI_PLAN_STATE_H

/*
 * The state of a planner: what it gets and what it fills.
 *
 *     enum dry_status
 *     dryi_plan_METHOD(struct dryi_planning *p)
 *     {
 *         ... p->stages, p->room_bytes, p->forward_before, p->grads_from ...
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
 * The caller evaluates the items again: a plan that needs more than the budget never gets out,
 * and is a broken invariant of the planner. The optimizer's step needs the same whatever the
 * plan, so planners need not look at it: the caller adds it to the floor.
 *
 * P1  room_bytes + base_bytes == options.budget_bytes, where that is a limit and at least
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

/* All stages that one evaluation runs forward, each time counted, are no more. */
#define DRYI_PLAN_RUNS_MAX (UINT64_C(1) << 26)
#define DRYI_PLAN_SLOTS_MAX (1u << 20)
#define DRYI_NO_ITEM UINT32_MAX

/* Items under way. */
struct dryi_plan_list {
    struct dry_plan_item *items;
    size_t count, capacity;
    size_t level; /* items from here on are of the level that is being filled */
};

/* The least that some plan needs, with all that the frame has, and where. */
struct dryi_plan_floor {
    uint64_t bytes;
    uint64_t stage;
    enum dry_plan_phase phase;
};

struct dryi_planning {
    /* given */
    struct dry_memory memory;
    struct dry_plan_options options;
    const struct dry_chain *chain;
    struct dry_error *err;
    struct dryi_plan_progress *progress; /* NULL: nobody is told */
    const struct dry_stage *stages;
    const uint32_t *kinds; /* equal numbers: equal stages */
    uint32_t count;        /* of stages, at least 1 */
    uint64_t base_bytes;   /* persistent and input: under everything but the step */
    uint64_t room_bytes;   /* the budget above that; UINT64_MAX: no limit; 0 when less */
    uint64_t base_ns;      /* all forwards and backwards, once each */
    uint64_t *forward_before, *backward_before; /* times of stages below i */
    uint64_t
        *grads_from; /* grads_bytes of stages i and above: G' of i is grads_from[i + 1] */
    /* filled */
    struct dryi_plan_list list;
    struct dryi_plan_floor floor;
    uint64_t bound_ns; /* at first base_ns */
    uint32_t slots, window;
    uint64_t table_bytes;
};

/*
 * Take and check the options, and make the sums. Requires dryi_planning_finish() in any case.
 */
DRY_CHECK_RESULT enum dry_status dryi_planning_init(
    struct dryi_planning *p, const struct dry_chain *chain,
    const struct dry_plan_options *options, struct dry_error *err);
void dryi_planning_finish(struct dryi_planning *p);

/* The gradient that stage i's backward makes: of its input. */
static inline uint64_t
dryi_input_gradient(const struct dryi_planning *p, uint32_t i)
{
    return i ? p->stages[i - 1].gradient_bytes : p->chain->frame.input_gradient_bytes;
}

/* Stages first to last forward, once. */
static inline uint64_t
dryi_forward_ns(const struct dryi_planning *p, uint32_t first, uint32_t last)
{
    return p->forward_before[last + 1] - p->forward_before[first];
}

/* --- items -------------------------------------------------------------------------------- */

/*
 * These fill p->list in order; false: no memory. Saved stages side by side with the same
 * option become one item, and a range whose inner items say "save all as it is" gets none, so
 * that equal plans have equal items.
 */
DRY_CHECK_RESULT bool dryi_plan_push_save(struct dryi_planning *p, uint32_t first,
                                          uint32_t last, uint32_t option);
/* Push a range that keeps all in its second run. */
DRY_CHECK_RESULT bool dryi_plan_push_range(struct dryi_planning *p, uint32_t first,
                                           uint32_t last);
/* Push such a range, but stages that must not run twice are saved, and cut it. */
DRY_CHECK_RESULT bool dryi_plan_push_cut(struct dryi_planning *p, uint32_t first,
                                         uint32_t last);
/*
 * Open a range with items of its own: those pushed until it is closed. *item is for closing;
 * ranges are closed in the reverse order of opening.
 */
DRY_CHECK_RESULT bool dryi_plan_open_range(struct dryi_planning *p, uint32_t first,
                                           uint32_t last, uint32_t *item);
void dryi_plan_close_range(struct dryi_planning *p, uint32_t item);
void dryi_plan_clear(struct dryi_planning *p);
/* Evaluate what p->list costs. */
DRY_CHECK_RESULT enum dry_status dryi_plan_price(const struct dryi_planning *p,
                                                 struct dry_plan_cost *cost);
/* Evaluate p->list, and tell the observer every step; NULL: nobody. */
DRY_CHECK_RESULT enum dry_status dryi_plan_observe(
    const struct dryi_planning *p, const struct dry_plan_observer *observer,
    struct dry_plan_cost *cost);

/* How items hang together; DRYI_NO_ITEM where there is none. */
struct dryi_plan_link {
    uint32_t parent, prev; /* the range it is in, the item before it there */
    uint32_t last_inner;   /* of a range */
};

/* Check a list of items (plan.h) and link it; `links` has room for `count`. */
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
