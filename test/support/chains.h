/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_CHAINS_H
#define TEST_CHAINS_H

/*
 * Small chains and the truth about them, found without any of the planners' ideas. There
 * are a naive evaluation that keeps every tensor by itself, all one-level plans, and the
 * shortest way through all states of memory.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/plan.h>

#include "support/random.h"

#define CHAINS_STAGES_MAX 16u

/* --- chains ------------------------------------------------------------------------------- */

struct chains_form {
    uint32_t stages_min, stages_max; /* at most CHAINS_STAGES_MAX */
    uint32_t options_max;            /* of a stage */
    uint32_t bytes_max, ns_max;      /* of an output, of a forward; 0: 6 and 6 */
    bool has_frame, has_tmp, has_grads, has_fixed, has_offload;
    bool has_own_tmp; /* options have their own forward_tmp_bytes */
};

struct dry_chain *chains_make(struct random *r, const struct chains_form *form);

/*
 * A chain by rows, all of them `count` long; NULL: zeros. A gradient of NULL is the
 * output's size.
 */
struct chains_rows {
    size_t count;
    const uint64_t *forward, *backward, *output, *saved;
    const uint64_t *gradient; /* NULL: as the outputs */
    struct dry_chain_frame frame;
};

struct dry_chain *chains_of_rows(const struct chains_rows *rows);

/*
 * Make a random plan that may be nested; `items` has room for `capacity`. Returns the
 * number of items.
 */
size_t chains_random_plan(struct random *r, const struct dry_chain *chain,
                          struct dry_plan_item *items, size_t capacity);

/* --- truth -------------------------------------------------------------------------------- */

/*
 * Compute the cost of a valid plan by a list of operations on tensors, each of them there
 * or not. Dies if an operation needs a tensor that is not there.
 */
struct dry_plan_cost chains_evaluate(const struct dry_chain *chain,
                                     const struct dry_plan_item *items, size_t count);

/* A plan that no plan of the class beats in both figures. */
struct chains_point {
    uint64_t peak_bytes, time_ns;
};

/*
 * Try all plans of one level, including options (at most 12 stages, few options), and
 * write the best to `points`, bytes ascending, time descending. `points` has room for
 * CHAINS_POINTS_MAX. Returns their number.
 */
#define CHAINS_POINTS_MAX 4096u
size_t chains_one_level(const struct dry_chain *chain, struct chains_point *points);

/* Return the least time within a budget; UINT64_MAX: nothing fits. */
uint64_t chains_least_time(const struct chains_point *points, size_t count,
                           uint64_t budget_bytes);

/*
 * Return the least time of all ways to run and free, persistent or not, in which the
 * input of a stage that saves is kept. The chain has at most 6 stages, none of them
 * fixed, nothing offloaded. UINT64_MAX: nothing fits.
 */
uint64_t chains_optimum(const struct dry_chain *chain, uint64_t budget_bytes);

#endif
