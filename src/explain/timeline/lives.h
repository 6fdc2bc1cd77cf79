/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_LIVES_H
#define DRYI_LIVES_H

/*
 * Which of many lives contain a moment.
 *
 * Lives are begin <= m < end, numbered; the first `sorted_count` are in order of their
 * begin, the rest (carried over) in any. Over the ends lies an implicit tree of maxima,
 * 16 children a node: a subtree whose latest end has passed is stepped over. So any
 * moment is found in O(alive * log) at 4 bytes for 15 lives, and no checkpoint needs to
 * be kept or chosen.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>

#define DRYI_LIVES_LEVELS 8 /* 16^8 = 2^32 */
#define DRYI_LIVES_NONE UINT32_MAX

struct dryi_lives {
    struct dry_memory memory;
    /* begin of life i is begins[i * step]; the columns belong to the caller */
    const uint32_t *begins, *ends;
    size_t step;
    uint32_t count, sorted_count;
    uint32_t *maxima[DRYI_LIVES_LEVELS]; /* latest end of 16^(level + 1) lives */
    uint32_t maxima_count[DRYI_LIVES_LEVELS];
    unsigned level_count;
};

/* `lives` with memory, columns and counts set: builds the tree. False: no memory. */
bool dryi_lives_index(struct dryi_lives *lives);
void dryi_lives_finish(struct dryi_lives *lives);

/* The first life at or after number `from` that contains the moment; NONE at the end. */
uint32_t dryi_lives_next(const struct dryi_lives *lives, uint32_t moment, uint32_t from);
/* The same, among those in order of their begin; `begun` is dryi_lives_begun() of it. */
uint32_t dryi_lives_next_sorted(const struct dryi_lives *lives, uint32_t moment,
                                uint32_t from, uint32_t begun);
/* How many of those in order have begun at a moment. O(log). */
uint32_t dryi_lives_begun(const struct dryi_lives *lives, uint32_t moment);

#endif
