/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_ONE_PRUNING_H
#define DRYI_PLAN_ONE_PRUNING_H

/*
 * Pruning: the price of a byte, a lower bound of the time, and the items that a better
 * plan can have. plan_one_pruning.c explains the method.
 */

#include "plan/one/plan_one_state.h"

#define DRYI_ONE_NEVER 1e300
#define DRYI_ONE_SUMS 7u
#define DRYI_ONE_BLOCK ((size_t)32)

/*
 * DRYI_ONE_BLOCK neighbouring stages. `range` sums them up, so that a range extends over
 * all of them in one step.
 */
struct dryi_one_block {
    struct dryi_one_range range;
    double least; /* the least of `to` over the block */
};

/*
 * Lower bounds of plans with a given item, with a price for memory and without a grid
 * (plan_one_pruning.c). An item passes if its bound is below `limit`.
 *
 * V1  from[i] + to[e], or over[i] + to[e] from e = at on, is at most the time of any plan with a
 *     range i to e, plus price * memory + slack.
 * V2  reach[i] does not fall with i. Ranges from i that fit end before it.
 */
struct dryi_one_pruning {
    const struct dryi_one *one;
    uint64_t memory;
    size_t at;        /* the stage whose memory limit has the price */
    double price;     /* time units for a byte */
    double bound;     /* no plan takes less time */
    double limit;     /* only plans that take less are searched for */
    double sum_limit; /* `limit` + price * memory + slack, for the sums of V1 */
    double slack;     /* bound of the rounding errors in the sums of doubles */
    /* The memory of all arrays below; each has an element for every stage and one for the end. */
    double *sums;
    /* work: forward time of all stages before; saved: their saved bytes */
    double *work, *saved;
    /*
     * The least over all lists up to a range's first stage; `over`: for a range that
     * includes stage `at`.
     */
    double *from, *over;
    /* For a range that ends here: its end's time, its output's price, and the least after it. */
    double *to;
    double *held; /* the bytes that the list of `to` holds */
    double *rest; /* the least over all lists from a stage on */
    size_t *reach, *queue;
    /* The first item of the best list from each stage on. */
    struct dryi_one_choice *items;
    struct dryi_one_block *blocks;
};

/* The limits that are known before pruning. */
struct dryi_one_ends {
    uint64_t memory;
    uint64_t all_need;                /* need of saving everything: more than memory */
    uint64_t floor_need, floor_extra; /* need and extra time of a plan that fits */
};

enum dry_status dryi_one_pruning_init(struct dryi_one_pruning *s,
                                      const struct dryi_one *one, struct dry_error *err);
void dryi_one_pruning_finish(struct dryi_one_pruning *s);
/* Find the price, the bound, and the sums of V1. `limit` is then infinite. */
void dryi_one_pruning_set(struct dryi_one_pruning *s, const struct dryi_one_ends *ends);
/* Restrict the pruning to plans that take less time than `limit`. */
void dryi_one_pruning_limit(struct dryi_one_pruning *s, double limit);
/*
 * Write a plan that fits into `choices`, which has an element for every stage. Its items are the
 * best ones at about the price. Returns the number of items; 0: no plan was found.
 */
size_t dryi_one_pruning_plan(struct dryi_one_pruning *s, struct dryi_one_choice *choices);
/* Return whether a plan below the limit can have option k, of dryi_one.options, of stage i. */
bool dryi_one_pruning_option(const struct dryi_one_pruning *s, size_t i, size_t k);

/* The ranges that begin with one stage, in order of length. */
struct dryi_one_walk {
    const struct dryi_one *one;
    const struct dryi_one_pruning *pruning; /* NULL: all ranges pass */
    size_t first, next;                     /* next: the stage after the range */
    uint64_t memory;                        /* ranges that need more are left out */
    struct dryi_one_range range;
};

/* Extend the walk to the next range that passes. Returns false if there is none. */
bool dryi_one_walk_on(struct dryi_one_walk *walk);

#endif
