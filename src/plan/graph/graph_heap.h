/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_GRAPH_HEAP_H
#define DRYI_GRAPH_HEAP_H

/* A binary heap: the item with the least key leaves first; if tied, with the least `value`. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dryi_heap_item {
    uint64_t key, value;
};

static inline bool
dryi_heap_is_before(struct dryi_heap_item a, struct dryi_heap_item b)
{
    return a.key != b.key ? a.key < b.key : a.value < b.value;
}

/* Add to a heap of `count` items. Requires room for one more. */
static inline void
dryi_heap_push(struct dryi_heap_item *heap, size_t count, struct dryi_heap_item item)
{
    size_t at = count;
    for (; at > 0 && dryi_heap_is_before(item, heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = item;
}

/* Remove the first of `count` items, at least one, and return it. */
static inline struct dryi_heap_item
dryi_heap_pop(struct dryi_heap_item *heap, size_t count)
{
    struct dryi_heap_item first = heap[0], item = heap[--count];
    size_t at = 0;
    for (size_t child = 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && dryi_heap_is_before(heap[child + 1], heap[child]))
            child++;
        if (dryi_heap_is_before(item, heap[child]))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = item;
    return first;
}

#endif
