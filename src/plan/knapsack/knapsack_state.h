/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_KNAPSACK_STATE_H
#define DRYI_PLAN_KNAPSACK_STATE_H

/*
 * The state that the parts of the knapsack share.
 *
 * A cluster is a maximal set of items that can only be kept together: groups and ties make
 * one of several. All decisions are about clusters.
 */

#include <drystone/knapsack.h>

/* a * b is never more than 126 bits here. */
__extension__ typedef unsigned __int128 dryi_wide;

enum dryi_keep_state {
    DRYI_KEEP_OPEN,
    DRYI_KEEP_KEPT,
    DRYI_KEEP_DROPPED,
};

struct dryi_cluster {
    uint64_t bytes;
    uint8_t state; /* enum dryi_keep_state */
    bool
        is_certain; /* one of its items is run again, whatever is kept, if it is dropped */
    uint64_t value; /* open: the time of those that certainly are */
};

struct dryi_keep {
    struct dry_memory memory;
    const struct dry_keep_item *items;
    size_t count, input_count;
    uint32_t *first;   /* by item, into `inputs`; one more */
    uint32_t *inputs;  /* of the items, one after the other */
    uint32_t *cluster; /* by item */
    uint8_t *is_wanted;
    struct dryi_cluster *clusters;
    size_t cluster_count;
    bool is_additive;   /* dropping a cluster costs its value, whatever else is dropped */
    uint64_t budget;    /* at most the sum of all bytes */
    uint64_t always;    /* bytes of what must be kept */
    uint64_t effort;    /* what is left of it */
    uint8_t *best;      /* by cluster: is it kept? */
    uint64_t best_time; /* UINT64_MAX: there is none yet */
    uint64_t bound;     /* no choice takes less */
    uint64_t nodes;
};

/*
 * Pass over all items once, from the last to the first. Returns the time of what is certainly
 * run again, given the states of the clusters; sets value and is_certain of open clusters.
 */
uint64_t dryi_keep_look(struct dryi_keep *k);

/*
 * Search by branch and bound. `best` is feasible afterwards, and `bound` at most best_time.
 */
DRY_CHECK_RESULT enum dry_status dryi_keep_search(struct dryi_keep *k);

/* --- the minimum cut, where items depend on each other: see knapsack_cut.c ------------------- */

struct dryi_cut;

/* Make the network of the problem, whose items and inputs must stay. NULL: no memory. */
struct dryi_cut *dryi_cut_create(struct dryi_keep *k);
void dryi_cut_destroy(struct dryi_cut *c);
/* Set the price of a byte, in parts of 2^-32. */
void dryi_cut_set_price(struct dryi_cut *c, uint64_t price);
/* No choice below the states that the clusters have, with `left` bytes, takes less. */
uint64_t dryi_cut_bound(struct dryi_cut *c, uint64_t left);
/* Is an open item kept by the cut of the last bound? */
bool dryi_cut_is_kept(const struct dryi_cut *c, uint32_t item);

/* The table over a grid, for additive problems: improves best, may raise the bound. */
DRY_CHECK_RESULT enum dry_status dryi_keep_table(struct dryi_keep *k);

#endif
