/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_SEARCH_H
#define DRYI_PLAN_SEARCH_H

/*
 * The search of rules that depend on one number. The plan of each number is evaluated,
 * and only the best number is stored.
 */

#include "plan/chain/plan_state.h"

/* In chains with up to this many stages every number of pieces is tried; in longer ones, some. */
#define DRYI_PLAN_TRY_ALL_MAX 1024u

struct dryi_plan_search {
    struct dryi_planning *p;
    /* Fill the empty list with the plan of a number. Returns false if memory ran out. */
    bool (*make)(struct dryi_planning *p, uint64_t number);
    bool prefers_time;
    bool has_best; /* some plan fit the budget */
    uint64_t best;
    struct dry_plan_cost best_cost;
};

/*
 * Make and evaluate the plan of a number. The list keeps the plan, and the floor becomes
 * the least peak so far. Better is less time, then fewer bytes, or without prefers_time
 * the reverse. The number tried first wins a tie.
 */
DRY_CHECK_RESULT enum dry_status dryi_plan_try(struct dryi_plan_search *s,
                                               uint64_t number,
                                               struct dry_plan_cost *cost);
/* Write the best plan into the list. Returns DRY_ERR_NO_SPACE if none fits. */
DRY_CHECK_RESULT enum dry_status dryi_plan_settle(struct dryi_plan_search *s);

#endif
