/* SPDX-License-Identifier: Apache-2.0 */

/* A sweep over time: the ranges of the lives that are alive are a search tree, by offset. */

#include "support/find_clash.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/sort.h"
#include "base/treap.h"

/* Sort begins and ends, with room behind both, of the lives that are ever alive. Returns how many. */
static size_t
sort_times(const struct dryi_life *lives, size_t count, struct dryi_sort_item *items)
{
    size_t alive = 0;
    for (size_t i = 0; i < count; i++) {
        if (lives[i].begin == lives[i].end)
            continue;
        items[alive] = (struct dryi_sort_item){lives[i].begin, (uint32_t)i};
        items[count + alive++] = (struct dryi_sort_item){lives[i].end, (uint32_t)i};
    }
    dryi_sort_items(items, items + 2 * count, alive);
    dryi_sort_items(items + count, items + 2 * count, alive);
    return alive;
}

/* The life in the set that `i` would overlap, or NONE. The set's ranges are disjoint. */
static uint32_t
clash_of(const struct dryi_life *lives, const uint64_t *offsets,
         const struct dryi_treap_node *nodes, uint32_t root, uint32_t i)
{
    DRYI_ASSERT_SLOW(!nodes[i].in_set && lives[i].size > 0);
    uint32_t above = dryi_treap_at_least(nodes, root, offsets[i], 0);
    if (above != DRYI_TREAP_NONE &&
        offsets[above] < dryi_add_saturating(offsets[i], lives[i].size))
        return above;
    uint32_t below = dryi_treap_below(nodes, root, offsets[i], 0);
    if (below != DRYI_TREAP_NONE &&
        dryi_add_saturating(offsets[below], lives[below].size) > offsets[i])
        return below;
    return DRYI_TREAP_NONE;
}

static struct clash
sweep(const struct dryi_life *lives, const uint64_t *offsets,
      struct dryi_sort_item *items, struct dryi_treap_node *nodes, size_t count)
{
    size_t alive = sort_times(lives, count, items);
    const struct dryi_sort_item *ends = items + count;
    uint32_t root = DRYI_TREAP_NONE;
    size_t ended = 0;
    for (size_t begun = 0; begun < alive; begun++) {
        uint32_t i = items[begun].value;
        for (; ends[ended].key <= items[begun].key; ended++) {
            if (nodes[ends[ended].value].in_set)
                dryi_treap_remove(nodes, &root, ends[ended].value);
        }
        if (lives[i].size == 0)
            continue;
        uint32_t other = clash_of(lives, offsets, nodes, root, i);
        if (other != DRYI_TREAP_NONE)
            return (struct clash){true, other, i};
        nodes[i].major = offsets[i];
        nodes[i].priority = (uint32_t)dryi_mix64(i + UINT64_C(1));
        dryi_treap_insert(nodes, &root, i);
    }
    return (struct clash){0};
}

struct clash
find_clash(const struct dryi_life *lives, size_t count, const uint64_t *offsets)
{
    struct dryi_sort_item *items = calloc(count + 1, 3 * sizeof *items);
    struct dryi_treap_node *nodes = calloc(count + 1, sizeof *nodes);
    if (!items || !nodes)
        abort();
    struct clash clash = sweep(lives, offsets, items, nodes, count);
    free(items);
    free(nodes);
    return clash;
}
