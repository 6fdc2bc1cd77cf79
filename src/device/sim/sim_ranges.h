/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_SIM_RANGES_H
#define DRYI_SIM_RANGES_H

/*
 * Disjoint ranges of addresses in their order, each with a number of the user's.
 *
 * A skip list (Pugh, CACM 1990) whose heights come from a counter, so that a run is the same
 * every time. Nodes are indices; 0 is the list's head and means "none". A node keeps its index
 * while its range is not erased.
 *
 * Cost: O(log n) a search, insertion or removal; 72 bytes a range.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>

#define DRYI_SIM_LEVELS 12

struct dryi_sim_range {
    uint64_t begin, end;
    uint32_t value;
    uint32_t next[DRYI_SIM_LEVELS];
};

struct dryi_sim_ranges {
    struct dry_memory memory;
    struct dryi_sim_range *nodes;
    size_t capacity;
    uint32_t made;       /* nodes ever in use, the head included */
    uint32_t first_free; /* linked through next[0] */
    uint32_t count;      /* ranges */
    uint64_t draws;      /* of heights */
};

void dryi_sim_ranges_init(struct dryi_sim_ranges *ranges,
                          const struct dry_memory *memory);
void dryi_sim_ranges_finish(struct dryi_sim_ranges *ranges);

/* Room for `more` ranges beside those there are; false: no memory. */
bool dryi_sim_ranges_reserve(struct dryi_sim_ranges *ranges, uint64_t more);

/* The range that holds `address`, else the first behind it, else 0. */
uint32_t dryi_sim_ranges_find(const struct dryi_sim_ranges *ranges, uint64_t address);
uint32_t dryi_sim_ranges_next(const struct dryi_sim_ranges *ranges, uint32_t node);
/* Does any range have a byte in [begin, end)? */
bool dryi_sim_ranges_touch(const struct dryi_sim_ranges *ranges, uint64_t begin,
                           uint64_t end);
/* Do ranges cover all of [begin, end)? */
bool dryi_sim_ranges_cover(const struct dryi_sim_ranges *ranges, uint64_t begin,
                           uint64_t end);

/* A range that touches no other; there must be room. */
uint32_t dryi_sim_ranges_insert(struct dryi_sim_ranges *ranges, uint64_t begin,
                                uint64_t end, uint32_t value);
/*
 * Take [begin, end) out of this node's range; the change of the number of ranges. It is -1, 0,
 * or 1 if a piece is left on both sides, for which there must be room.
 */
int dryi_sim_ranges_cut(struct dryi_sim_ranges *ranges, uint32_t node, uint64_t begin,
                        uint64_t end);

#endif
