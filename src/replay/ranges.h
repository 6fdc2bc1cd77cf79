/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_REPLAY_RANGES_H
#define DRYI_REPLAY_RANGES_H

/*
 * A set of labelled address ranges that do not overlap: the mapped memory of expandable segments
 * while maps and unmaps are undone.
 *
 * Cost: O(log n) per call, by the treap in base/treap.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>

#include "base/treap.h"

enum range_kind { RANGE_UNKNOWN, RANGE_SMALL, RANGE_LARGE };

struct range {
    uint64_t addr, size; /* `addr` first, to sort by it */
    uint32_t lane;
    enum range_kind kind; /* kind of its pool */
};

enum ranges_result { RANGES_DONE, RANGES_CONTRADICTION, RANGES_NO_MEMORY };

struct dryi_ranges {
    struct dry_memory memory;
    struct range *items;
    struct dryi_treap_node *nodes; /* parallel to `items`; treap by address */
    size_t item_capacity, node_capacity;
    uint32_t item_count, free_item, root;
    uint64_t seed; /* seed of the treap's priorities */
    size_t live_count;
};

void dryi_ranges_init(struct dryi_ranges *ranges, const struct dry_memory *memory);
void dryi_ranges_finish(struct dryi_ranges *ranges);

/* Add a range that overlaps none. Merges it with neighbours of the same lane. */
enum ranges_result dryi_ranges_add(struct dryi_ranges *ranges, const struct range *range);
/* Remove part of exactly one range; it may split into two. */
enum ranges_result dryi_ranges_remove(struct dryi_ranges *ranges, uint64_t addr,
                                      uint64_t size);
/* Return the first range at or after an address, or NULL. */
const struct range *dryi_ranges_from(const struct dryi_ranges *ranges, uint64_t addr);

/* Return the range that contains an address, or NULL. The caller may set its kind. */
struct range *dryi_ranges_at(struct dryi_ranges *ranges, uint64_t addr);

#endif
