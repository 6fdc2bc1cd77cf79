/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_SEARCH_H
#define DRYI_PLAN_SEARCH_H

/*
 * The search of rules with one number to choose: every plan the number gives is evaluated, and
 * the best is remembered by its number.
 */

#include "plan/chain/plan_state.h"

/* Every number of pieces is tried in chains with so many stages; in longer ones some. */
#define DRYI_PLAN_TRY_ALL_MAX 1024u

struct dryi_plan_search {
    struct dryi_planning *p;
    /* Fills the empty list by the number; false: no memory. */
    bool (*make)(struct dryi_planning *p, uint64_t number);
    bool prefers_time;
    bool has_best; /* something fits */
    uint64_t best;
    struct dry_plan_cost best_cost;
};

/*
 * Make and evaluate the plan of a number. The list stays for whoever wants to look at it, and
 * the floor of the planning is kept the least. Better is less time, then fewer bytes, or the
 * other way round; then the number tried first.
 */
DRY_CHECK_RESULT enum dry_status dryi_plan_try(struct dryi_plan_search *s,
                                               uint64_t number,
                                               struct dry_plan_cost *cost);
/* Write the best into the list, or return DRY_ERR_NO_SPACE. */
DRY_CHECK_RESULT enum dry_status dryi_plan_settle(struct dryi_plan_search *s);

#endif
