/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_KNAPSACK_STATE_H
#define DRYI_PLAN_KNAPSACK_STATE_H

/*
 * The state that the files of the knapsack share.
 *
 * A cluster is a maximal set of items that can only be kept together: groups and ties
 * join items. All decisions are about clusters.
 */

#include <drystone/knapsack.h>

/* For products of two 63-bit sums: at most 126 bits. */
__extension__ typedef unsigned __int128 dryi_wide;

enum dryi_keep_state {
    DRYI_KEEP_OPEN,
    DRYI_KEEP_KEPT,
    DRYI_KEEP_DROPPED,
};

struct dryi_cluster {
    uint64_t bytes;
    uint8_t state;   /* enum dryi_keep_state */
    bool is_certain; /* if dropped, one of its items is recomputed in any case */
    uint64_t value;  /* if open: the time of those items */
};

struct dryi_keep {
    struct dry_memory memory;
    const struct dry_keep_item *items;
    size_t count, input_count;
    uint32_t *first;   /* index into `inputs` of each item; count + 1 elements */
    uint32_t *inputs;  /* item numbers, grouped by item */
    uint32_t *cluster; /* index in `clusters` of each item */
    uint8_t *is_wanted;
    struct dryi_cluster *clusters;
    size_t cluster_count;
    /* Dropping a cluster always costs its value, whatever else is dropped. */
    bool is_additive;
    uint64_t budget;    /* at most the sum of all bytes */
    uint64_t always;    /* bytes of clusters that must be kept */
    uint64_t effort;    /* steps left before the search is cut off */
    uint8_t *best;      /* the cluster is kept */
    uint64_t best_time; /* UINT64_MAX: no choice is known */
    uint64_t bound;     /* no choice takes less time */
    uint64_t nodes;
};

/*
 * Pass over all items once, from the last to the first. Returns the time of items that
 * are certainly recomputed, given the states of the clusters. Sets value and is_certain
 * of open clusters.
 */
uint64_t dryi_keep_evaluate(struct dryi_keep *k);

/* Search by branch and bound. Afterwards `best` is feasible, and `bound` is at most best_time. */
DRY_CHECK_RESULT enum dry_status dryi_keep_search(struct dryi_keep *k);

/* --- the minimum cut, where items depend on each other: see knapsack_cut.c ------------------- */

struct dryi_cut;

/*
 * Build the network of the problem, whose items and inputs must outlive it. NULL: memory ran out.
 */
struct dryi_cut *dryi_cut_create(struct dryi_keep *k);
void dryi_cut_destroy(struct dryi_cut *c);
/* Set the price of a byte, in units of 2^-32. */
void dryi_cut_set_price(struct dryi_cut *c, uint64_t price);
/* Return a lower bound for all choices below the clusters' states with `left` bytes of budget. */
uint64_t dryi_cut_bound(struct dryi_cut *c, uint64_t left);
/* Return whether the cut of the last bound keeps an open item. */
bool dryi_cut_is_kept(const struct dryi_cut *c, uint32_t item);

/* Solve an additive problem by a table over a grid. May improve `best` and raise `bound`. */
DRY_CHECK_RESULT enum dry_status dryi_keep_table(struct dryi_keep *k);

#endif
