/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_ONE_PRUNING_H
#define DRYI_PLAN_ONE_PRUNING_H

/*
 * Pruning: a price for memory, a bound, and which items a better plan can have. The idea
 * stands in plan_one_pruning.c.
 */

#include "plan/one/plan_one_state.h"

#define DRYI_ONE_NEVER 1e300
#define DRYI_ONE_SUMS 7u
#define DRYI_ONE_BLOCK ((size_t)32)

/* So many stages, as what a range that goes on over all of them adds. */
struct dryi_one_block {
    struct dryi_one_range range;
    double least; /* of `to` */
};

/*
 * Lower bounds of plans with a given item, with a price for memory and without a grid
 * (plan_one_pruning.c). Items whose bound is not below a limit pass no more.
 *
 * V1  from[i] + to[e], or over[i] + to[e] from e = at on, is not more than any plan with a
 *     range i to e takes, and price * memory + slack.
 * V2  reach[i] does not fall with i. Ranges from i that fit end before it.
 */
struct dryi_one_pruning {
    const struct dryi_one *one;
    uint64_t memory;
    size_t at;            /* the stage with the limit */
    double price;         /* of a byte */
    double bound;         /* no plan takes less */
    double limit;         /* of plans that are looked for */
    double enough;        /* the same, as of V1 */
    double slack;         /* what sums of doubles may be wrong by */
    double *sums;         /* all of those below, by stage, and of the end */
    double *work, *saved; /* of all stages before */
    double *from,
        *over;    /* the least before a range's first stage; `over` of one over `at` */
    double *to;   /* its end's time, what it holds, and the least behind it */
    double *held; /* at `to`, in bytes */
    double *rest; /* the least from a stage on */
    size_t *reach, *queue;
    struct dryi_one_choice *items; /* the first of the least from a stage on */
    struct dryi_one_block *blocks;
};

/* The limits that are known before pruning. */
struct dryi_one_ends {
    uint64_t memory;
    uint64_t all_need;                /* of saving everything: more than memory */
    uint64_t floor_need, floor_extra; /* of a plan that fits */
};

enum dry_status dryi_one_pruning_init(struct dryi_one_pruning *s,
                                      const struct dryi_one *one, struct dry_error *err);
void dryi_one_pruning_finish(struct dryi_one_pruning *s);
/* Find the price, the bound, and the sums of V1. There is no limit yet. */
void dryi_one_pruning_set(struct dryi_one_pruning *s, const struct dryi_one_ends *ends);
/* Look only for plans that take less, from now on. */
void dryi_one_pruning_limit(struct dryi_one_pruning *s, double limit);
/*
 * Write a plan that fits, of items that are the least at about the price; `choices` has room
 * for every stage. Returns the number of items; 0: none was found.
 */
size_t dryi_one_pruning_plan(struct dryi_one_pruning *s, struct dryi_one_choice *choices);
/* Is option k of stage i, of dryi_one.options, of use? */
bool dryi_one_pruning_option(const struct dryi_one_pruning *s, size_t i, size_t k);

/* Ranges from a stage, longer and longer. */
struct dryi_one_walk {
    const struct dryi_one *one;
    const struct dryi_one_pruning *pruning; /* NULL: all pass */
    size_t first, next;                     /* next: the range ends before it */
    uint64_t memory;                        /* none that needs more */
    struct dryi_one_range range;
};

/* Go to the next range that passes; false: there is none. */
bool dryi_one_walk_on(struct dryi_one_walk *walk);

#endif
