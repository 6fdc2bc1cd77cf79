/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_OFFLINE_INSIDE_H
#define DRYI_PLACE_OFFLINE_INSIDE_H

/*
 * The nouns that the parts of the offline packer share.
 *
 * Time is cut into sections: the maximal sets of lives that are alive at once (the cliques
 * of the interval graph, in order). Two lives overlap exactly when their ranges of sections
 * do, and there are never more sections than lives. Space is counted in units of the
 * alignment. A problem is a set of lives that is packed for itself: no life outside overlaps
 * one inside.
 */

#include "base/sort.h"
#include "place/offline/offline.h"

struct dryi_problem {
    struct dry_memory memory;
    uint32_t count, section_count;
    const uint32_t *lo, *hi;   /* alive in sections [lo, hi), hi > lo */
    const uint64_t *sizes;     /* units */
    const uint64_t *durations; /* in the caller's unit of time */
    const uint64_t *fixed;     /* units or DRYI_OFFLINE_ANYWHERE; NULL: none is */
    uint64_t bound;            /* no packing is lower */
    uint64_t wanted;           /* >= bound: good enough */
    uint64_t effort;           /* what is left of it */
    bool (*progress)(void *self, double done);
    void *progress_self;
    uint64_t *offsets; /* the best packing so far */
    uint64_t height;
    const char *method;
    bool is_proved; /* nothing is lower than `height` */
    bool is_ended;  /* by progress() */
};

/* The best of the greedy orders into offsets, height, method. */
DRY_CHECK_RESULT enum dry_status dryi_offline_greedy(struct dryi_problem *p);
/* Better than `height` within the effort, down to `wanted`, or the proof that none is. */
DRY_CHECK_RESULT enum dry_status dryi_offline_exact(struct dryi_problem *p);

/*
 * Which life the exact search prefers where it has a choice. Every run of the search has
 * other ranks; they decide how soon it finds a packing, never whether a proof is right.
 */
struct dryi_ranks {
    uint32_t *ranks;      /* by life, each once; the least is preferred ... */
    bool is_lowest_first; /* ... of those that can lie equally low, if this is set */
    uint64_t *loads;      /* by section: sizes of all that are alive */
    uint64_t *fails;      /* by section: where runs failed, lately */
    struct dryi_sort_item *items; /* twice as many as lives */
    uint64_t longest, largest;
};

/* False: no memory. Finish in any case. */
bool dryi_ranks_init(struct dryi_ranks *r, const struct dryi_problem *p);
void dryi_ranks_finish(struct dryi_ranks *r, const struct dryi_problem *p);
/* The search failed in this section. */
void dryi_ranks_fail(struct dryi_ranks *r, uint32_t section);
/* For the run-th run under a limit; `seed` is another one each time. O(pairs + n). */
void dryi_ranks_make(struct dryi_ranks *r, const struct dryi_problem *p, uint64_t run,
                     uint64_t seed);

#endif
