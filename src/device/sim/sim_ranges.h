/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_SIM_RANGES_H
#define DRYI_SIM_RANGES_H

/*
 * Disjoint ranges of addresses, sorted, each with a number that the user chooses.
 *
 * A skip list (Pugh, CACM 1990). Heights come from a counter, so that runs are
 * reproducible. Nodes are indices; 0 is the list's head and means "none". A node keeps
 * its index until its range is removed.
 *
 * Cost: O(log n) per search, insertion or removal; 72 bytes per range.
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
    uint32_t made;       /* nodes used so far, including the head */
    uint32_t first_free; /* first of the list of free nodes, linked through next[0] */
    uint32_t count;      /* number of ranges */
    uint64_t draws;      /* number of heights drawn */
};

void dryi_sim_ranges_init(struct dryi_sim_ranges *ranges,
                          const struct dry_memory *memory);
void dryi_sim_ranges_finish(struct dryi_sim_ranges *ranges);

/* Reserve space for `more` additional ranges; false: no memory. */
bool dryi_sim_ranges_reserve(struct dryi_sim_ranges *ranges, uint64_t more);

/* Return the range that contains `address`, or else the next one, or else 0. */
uint32_t dryi_sim_ranges_find(const struct dryi_sim_ranges *ranges, uint64_t address);
uint32_t dryi_sim_ranges_next(const struct dryi_sim_ranges *ranges, uint32_t node);
/* Return whether any range overlaps [begin, end). */
bool dryi_sim_ranges_touch(const struct dryi_sim_ranges *ranges, uint64_t begin,
                           uint64_t end);
/* Return whether ranges cover all of [begin, end). */
bool dryi_sim_ranges_cover(const struct dryi_sim_ranges *ranges, uint64_t begin,
                           uint64_t end);

/* Insert a range that overlaps no other. Requires reserved space. */
uint32_t dryi_sim_ranges_insert(struct dryi_sim_ranges *ranges, uint64_t begin,
                                uint64_t end, uint32_t value);
/* Remove [begin, end) from this node's range. Returns the change in the number of ranges:
   -1, 0, or 1 if a part remains on both sides, which requires reserved space. */
int dryi_sim_ranges_cut(struct dryi_sim_ranges *ranges, uint32_t node, uint64_t begin,
                        uint64_t end);

#endif
