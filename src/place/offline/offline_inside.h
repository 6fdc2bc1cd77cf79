/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_OFFLINE_INSIDE_H
#define DRYI_PLACE_OFFLINE_INSIDE_H

/*
 * Data structures shared by the parts of the offline packer.
 *
 * Time is divided into sections: the maximal sets of lives alive at once (the cliques of the
 * interval graph, in order). Two lives overlap exactly if their section ranges do. There are at
 * most as many sections as lives. Space is measured in units of the alignment. A problem is a set
 * of lives packed on its own: no life outside overlaps one inside.
 */

#include "base/sort.h"
#include "place/offline/offline.h"

struct dryi_problem {
    struct dry_memory memory;
    uint32_t count, section_count;
    const uint32_t *lo, *hi;   /* alive in sections [lo, hi), hi > lo */
    const uint64_t *sizes;     /* units */
    const uint64_t *durations; /* in the caller's unit of time */
    const uint64_t *fixed;     /* units or DRYI_OFFLINE_ANYWHERE; NULL: none fixed */
    uint64_t bound;            /* units; lower bound of the height */
    uint64_t wanted;           /* units, >= bound; a packing this low ends the search */
    uint64_t effort;           /* remaining visits to lives */
    bool (*progress)(void *self, double done);
    void *progress_self;
    uint64_t *offsets; /* units; best packing so far, of height `height` */
    uint64_t height;
    const char *method;
    bool is_proved; /* no packing is lower than `height` */
    bool is_ended;  /* progress() returned true */
};

/* Store the best of the greedy orders in offsets, height and method. */
DRY_CHECK_RESULT enum dry_status dryi_offline_greedy(struct dryi_problem *p);
/*
 * Search for a packing below `height`, down to `wanted`, or prove that none exists, within the
 * effort. A failure to improve is OK.
 */
DRY_CHECK_RESULT enum dry_status dryi_offline_exact(struct dryi_problem *p);

/*
 * The preferences of the exact search between lives. Each run uses other ranks. They affect only
 * how soon a packing is found, never the correctness of a proof.
 */
struct dryi_ranks {
    uint32_t *ranks; /* Permutation, by life; the lowest is preferred */
    /* Prefer the life that can be placed lower; ranks break ties. */
    bool is_lowest_first;
    uint64_t *loads;              /* sum of the sizes alive in each section */
    uint64_t *fails;              /* recent failures in each section, decaying */
    struct dryi_sort_item *items; /* twice as many as lives */
    uint64_t longest, largest;
};

/* Allocate and initialize. False: out of memory; dryi_ranks_finish() is required even then. */
bool dryi_ranks_init(struct dryi_ranks *r, const struct dryi_problem *p);
void dryi_ranks_finish(struct dryi_ranks *r, const struct dryi_problem *p);
/* Note that the search failed in this section. */
void dryi_ranks_fail(struct dryi_ranks *r, uint32_t section);
/*
 * Compute the ranks for run number `run` under one limit. `seed` differs in each call. O(pairs +
 * n), where pairs are those of life and section.
 */
void dryi_ranks_make(struct dryi_ranks *r, const struct dryi_problem *p, uint64_t run,
                     uint64_t seed);

#endif
