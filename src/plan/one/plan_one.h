/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_ONE_H
#define DRYI_PLAN_ONE_H

/*
 * Plans of one level: each stage saves, by one of its options, or lies in a range that keeps
 * its last output and saves everything when it runs again.
 *
 * Left to right, the items of a plan hold more and more. Only what is held before an item
 * decides whether it is allowed: held + need <= memory. So a suffix of the chain is a problem
 * of its own, with the memory that is left for it:
 *
 *     least(i, m) = min over options k of stage i:  extra(k) + least(i + 1, m - held(k))
 *                   over ranges i to e:  forward(i to e) + least(e + 1, m - output(e))
 *
 * each if m is at least the item's need. Time is counted as what comes on top of one forward
 * and one backward of all.
 *
 * The bytes that an option offloads are there while the next stage runs. So the state has one
 * thing more: which of the options that offload the stage before took. A stage has a row for
 * each.
 *
 * A range that ends with the last stage is mostly left out: saving all of it needs as much
 * and takes less.
 *
 * Planning has four parts, a file each. plan_one_floor.c finds the floors, exactly.
 * plan_one_pruning.c finds what a byte is worth, and which items are worth looking at.
 * plan_one_table.c makes a table of lower bounds, and plan_one_search.c searches in exact
 * bytes, guided by the table. A chain of equal stages needs only plan_one_equal.c.
 */

#include "plan/one/plan_one_table.h"

/* --- the chain -------------------------------------------------------------------------- */

/* Sum up the chain, floors included. MEMORY: nothing is left. */
enum dry_status dryi_one_init(struct dryi_one *one, const struct dry_chain *chain,
                              const struct dry_memory *memory, struct dry_error *err);
/* Give everything back; `one` may be zeroed. */
void dryi_one_finish(struct dryi_one *one);

/* The need and the time of a plan of these items, for the whole chain, in exact bytes. */
struct dryi_one_cost dryi_one_evaluate(const struct dryi_one *one,
                                       const struct dryi_one_choice *choices,
                                       size_t count);

/* --- floors ------------------------------------------------------------------------------ */

/* Fill one->floors. */
void dryi_one_set_floors(struct dryi_one *one);
/*
 * Write a plan that fits one->floors[0]; `choices` has room for every stage. Returns its
 * items.
 */
size_t dryi_one_floor_plan(struct dryi_one *one, struct dryi_one_choice *choices);

/* --- search ------------------------------------------------------------------------------ */

struct dryi_one_plan {
    struct dryi_one_choice *choices;
    size_t count;
    struct dryi_one_cost cost;
    bool is_least; /* proved: the search left nothing out */
};

/*
 * Look for a plan for so much memory that takes less than *plan, which fits it, and less than
 * `limit`; if there is one, it replaces *plan. The table is pruned. `width` says how many
 * ways to come to a stage are kept, 1 at least.
 */
enum dry_status dryi_one_search(const struct dryi_one_table *t, uint64_t memory,
                                size_t width, double limit, struct dryi_one_plan *plan,
                                struct dry_error *err);
/* The bytes that a row takes for each way that is kept. */
size_t dryi_one_way_bytes(void);

/* --- equal stages ------------------------------------------------------------------------ */

/* Are all stages but the last the same, with no choice but to save or to lie in a range? */
bool dryi_one_is_equal(const struct dry_chain *chain);
/*
 * Put the best plan of such a chain into *plan, which fits, if it takes less than
 * plan->cost.extra; `ends` has room for every stage. Cost: one walk over the stages.
 */
void dryi_one_plan_equal(const struct dryi_one *one, uint64_t memory, size_t *ends,
                         struct dryi_one_plan *plan);

#endif
