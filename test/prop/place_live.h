/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_PLACE_LIVE_H
#define TEST_PLACE_LIVE_H

/*
 * What is alive, as naively as can be: a flat list of ranges, and sums.
 *
 * begin and end of every slot lie in two plain arrays, so that one loop over all of them
 * says whether a range overlaps any: no clever structure that could be wrong. Slots are
 * also chained in the order they came and listed densely, for frees of the newest, the
 * oldest and any.
 */

#include <stdbool.h>
#include <stdint.h>

#include "place/place.h"

#define LIVE_MAX 2048
#define LIVE_NONE UINT32_MAX

struct live_block {
    uint64_t requested;
    uint64_t owner; /* a number no other block has */
    struct dryi_pool_id pool;
    dryi_block handle;
    uint32_t recorded; /* streams, as bits; its own is not among them */
    uint32_t usable;   /* of these, those that waited for its own */
    uint32_t previous, next, at;
    uint8_t stream; /* an index */
};

struct live_list {
    uint64_t begin[LIVE_MAX], end[LIVE_MAX]; /* an empty slot: both 0 */
    struct live_block blocks[LIVE_MAX];
    uint32_t dense[LIVE_MAX]; /* slots, in no order */
    uint32_t empty[LIVE_MAX];
    uint32_t count, empty_count, slot_count;
    uint32_t oldest, newest;
    uint64_t requested_bytes, size_bytes, size_peak, count_peak;
};

void live_init(struct live_list *list);
/* LIVE_NONE: full. */
uint32_t live_add(struct live_list *list, const struct live_block *block, uint64_t addr,
                  uint64_t size);
void live_remove(struct live_list *list, uint32_t slot);
/* A slot whose range overlaps this one; LIVE_NONE. */
uint32_t live_overlap(const struct live_list *list, uint64_t addr, uint64_t size);

#endif
