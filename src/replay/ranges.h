/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_REPLAY_RANGES_H
#define DRYI_REPLAY_RANGES_H

/*
 * A set of address ranges that do not overlap, each with a label: the mapped memory of
 * expandable segments, walked backwards through its maps and unmaps.
 *
 * Cost: O(log n) a call, by the ordered sets of base/treap.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>

#include "base/treap.h"

enum range_kind { RANGE_UNKNOWN, RANGE_SMALL, RANGE_LARGE };

struct range {
    uint64_t addr, size;
    uint32_t lane;
    enum range_kind kind; /* of the pool it belongs to, if known */
};

enum ranges_result { RANGES_DONE, RANGES_CONTRADICTION, RANGES_NO_MEMORY };

struct dryi_ranges {
    struct dry_memory memory;
    struct range *items;
    struct dryi_treap_node *nodes; /* parallel to items */
    size_t item_capacity, node_capacity;
    uint32_t item_count, free_item, root;
    uint64_t seed; /* of the priorities in the tree */
    size_t live_count;
};

void dryi_ranges_init(struct dryi_ranges *ranges, const struct dry_memory *memory);
void dryi_ranges_finish(struct dryi_ranges *ranges);

/* Add a range that overlaps none; it joins neighbours of its lane. */
enum ranges_result dryi_ranges_add(struct dryi_ranges *ranges, const struct range *range);
/* Take out a part of exactly one range. */
enum ranges_result dryi_ranges_remove(struct dryi_ranges *ranges, uint64_t addr,
                                      uint64_t size);
/* The first range at or after an address; NULL at the end. */
const struct range *dryi_ranges_from(const struct dryi_ranges *ranges, uint64_t addr);

/* The range that holds an address, or NULL; its kind may be set through it. */
struct range *dryi_ranges_at(struct dryi_ranges *ranges, uint64_t addr);

#endif
