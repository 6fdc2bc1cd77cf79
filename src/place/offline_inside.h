/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_OFFLINE_INSIDE_H
#define DRYI_PLACE_OFFLINE_INSIDE_H

/*
 * What the parts of the offline packer share.
 *
 * Time is cut into sections: the maximal sets of lives that are alive at once (the cliques
 * of the interval graph, in order). Two lives overlap exactly when their ranges of sections
 * do, and there are never more sections than lives. Space is counted in units of the
 * alignment. A problem is a set of lives that is packed for itself: no life outside overlaps
 * one inside.
 */

#include "place/offline.h"

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
    int (*progress)(void *self, double done);
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

#endif
