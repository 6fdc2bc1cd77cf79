/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_LIVES_H
#define DRYI_LIVES_H

/*
 * Find the lives that contain a moment.
 *
 * Lives are begin <= m < end. The first `sorted_count` are sorted by begin, the rest (carried
 * over) are not. An implicit tree over the ends holds maxima of 16 children per node, so a subtree
 * whose latest end has passed is skipped. A query costs O(alive * log) at 4 bytes per 15 lives,
 * and needs no checkpoints.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>

#define DRYI_LIVES_LEVELS 8 /* 16^8 = 2^32 */
#define DRYI_LIVES_NONE UINT32_MAX

struct dryi_lives {
    struct dry_memory memory;
    /* The begin of life i is begins[i * step]. The caller owns both arrays. */
    const uint32_t *begins, *ends;
    size_t step;
    uint32_t count, sorted_count;
    uint32_t *maxima[DRYI_LIVES_LEVELS]; /* latest end of each 16^(level + 1) lives */
    uint32_t maxima_count[DRYI_LIVES_LEVELS];
    unsigned level_count;
};

/* Build the tree. Requires that memory, arrays and counts are set. Returns
   false if memory ran out. */
bool dryi_lives_index(struct dryi_lives *lives);
void dryi_lives_finish(struct dryi_lives *lives);

/* Return the first life with an index >= `from` that contains the moment; NONE at the end. */
uint32_t dryi_lives_next(const struct dryi_lives *lives, uint32_t moment, uint32_t from);
/* The same for the sorted lives; `begun` is the result of dryi_lives_begun(). */
uint32_t dryi_lives_next_sorted(const struct dryi_lives *lives, uint32_t moment,
                                uint32_t from, uint32_t begun);
/* Count the sorted lives that have begun at a moment. Cost: O(log n). */
uint32_t dryi_lives_begun(const struct dryi_lives *lives, uint32_t moment);

#endif
