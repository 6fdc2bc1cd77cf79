/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_TREAP_H
#define DRYI_TREAP_H

/*
 * Ordered sets whose links lie in the items, so that insert and remove never take memory.
 *
 * A treap (Seidel and Aragon, "Randomized Search Trees", Algorithmica 16, 1996), unzipped
 * and zipped top-down without parents (Tarjan, Levy and Timmel, "Zip Trees", 2019). Items
 * are indices into one array of nodes; a set is a root. An item is in one set at a time.
 *
 * Cost: expected 1.39 log2 n node visits a call; a node is half a cache line.
 */

#include <stdbool.h>
#include <stdint.h>

#define DRYI_TREAP_NONE UINT32_MAX

/*
 * An item, sorted by (major, minor), then by index. Keys are unique in every sound set. A
 * contradictory record may give a set overlapping addresses; then dryi_treap_after() passes over
 * equals, and nothing worse happens.
 */
struct dryi_treap_node {
    uint64_t major, minor;
    uint32_t left, right;
    uint32_t priority; /* fixed when the item is made: any well mixed number */
    uint32_t in_set;
};

void dryi_treap_insert(struct dryi_treap_node *nodes, uint32_t *root, uint32_t item);
/* The item must be in the set, its key unchanged since it came in. */
void dryi_treap_remove(struct dryi_treap_node *nodes, uint32_t *root, uint32_t item);
/* The smallest item >= (major, minor); DRYI_TREAP_NONE if there is none. */
uint32_t dryi_treap_at_least(const struct dryi_treap_node *nodes, uint32_t root,
                             uint64_t major, uint64_t minor);
/* The greatest item < (major, minor). */
uint32_t dryi_treap_below(const struct dryi_treap_node *nodes, uint32_t root,
                          uint64_t major, uint64_t minor);
/* The neighbour after `item`. */
uint32_t dryi_treap_after(const struct dryi_treap_node *nodes, uint32_t root,
                          uint32_t item);

#endif
