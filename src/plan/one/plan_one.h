/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_ONE_H
#define DRYI_PLAN_ONE_H

/*
 * Plans of one level: each stage saves, by one of its options, or belongs to a range that
 * keeps its last output and saves everything when it runs again.
 *
 * The items of a plan hold more and more from left to right. Only the bytes held before
 * an item decide whether it is allowed: held + need <= memory. So a suffix of the chain
 * is a problem of its own, in the memory that is left for it:
 *
 *     least(i, m) = min over options k of stage i:  extra(k) + least(i + 1, m - held(k))
 *                   over ranges i to e:  forward(i to e) + least(e + 1, m - output(e))
 *
 * Each candidate requires that m is at least the item's need. Time is counted beyond one
 * forward and one backward of all stages.
 *
 * Bytes that an option offloads stay on the device while the next stage runs. So the
 * state also holds which offloading option the stage before took: a stage has one row for
 * each of them, and one for none.
 *
 * A range that ends with the last stage is mostly left out: saving all of its stages
 * needs no more memory and takes less time.
 *
 * Planning has four steps, a file each. plan_one_floor.c finds the floors, exactly.
 * plan_one_pruning.c finds the price of a byte and the items that a good plan can have.
 * plan_one_table.c makes a table of lower bounds, and plan_one_search.c searches in exact
 * bytes, guided by the table. A chain of equal stages needs only plan_one_equal.c.
 */

#include "plan/one/plan_one_table.h"

/* --- the chain -------------------------------------------------------------------------- */

/* Copy and sum the chain, floors included. DRY_ERR_MEMORY: *one is zeroed. */
enum dry_status dryi_one_init(struct dryi_one *one, const struct dry_chain *chain,
                              const struct dry_memory *memory, struct dry_error *err);
/* Free all memory of `one`, which may be zeroed. */
void dryi_one_finish(struct dryi_one *one);

/* Compute the need and the time of a plan that covers the whole chain, in exact bytes. */
struct dryi_one_cost dryi_one_evaluate(const struct dryi_one *one,
                                       const struct dryi_one_choice *choices,
                                       size_t count);

/* --- floors ------------------------------------------------------------------------------ */

/* Compute one->floors. */
void dryi_one_set_floors(struct dryi_one *one);
/*
 * Write a plan that fits one->floors[0] into `choices`, which has an element for every
 * stage. Returns the number of items.
 */
size_t dryi_one_floor_plan(struct dryi_one *one, struct dryi_one_choice *choices);

/* --- search ------------------------------------------------------------------------------ */

struct dryi_one_plan {
    struct dryi_one_choice *choices;
    size_t count;
    struct dryi_one_cost cost;
    bool is_least; /* proved: no plan in the same memory takes less time */
};

/*
 * Search for a plan that fits `memory` and takes less time than *plan, which fits. A plan
 * that is found replaces *plan. Requires that the table has a pruning. `width`, at least 1, is the number of ways that each row keeps.
 * DRY_ERR_MEMORY, DRY_ERR_CANCELLED: *plan stays.
 */
enum dry_status dryi_one_search(const struct dryi_one_table *t, uint64_t memory,
                                size_t width, struct dryi_one_plan *plan,
                                struct dry_error *err);
/* Return the bytes of memory that one row needs for each way that it keeps. */
size_t dryi_one_way_bytes(void);

/* --- equal stages ------------------------------------------------------------------------ */

/* Return whether all stages but the last are the same, without options, and may all run twice. */
bool dryi_one_is_equal(const struct dry_chain *chain);
/*
 * Find the best plan of such a chain. It replaces *plan, which fits, if it takes less time. `ends`
 * is scratch with an element for every stage. Cost: one walk over the stages.
 */
void dryi_one_plan_equal(const struct dryi_one *one, uint64_t memory, size_t *ends,
                         struct dryi_one_plan *plan);

#endif
