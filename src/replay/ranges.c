/* SPDX-License-Identifier: Apache-2.0 */

/* Ranges in a treap by address; see ranges.h. */
#include "replay/ranges.h"

#include "base/bits.h"
#include "base/memory.h"

void
dryi_ranges_init(struct dryi_ranges *r, const struct dry_memory *memory)
{
    *r = (struct dryi_ranges){.memory = dryi_memory_or_default(memory),
                              .free_item = DRYI_TREAP_NONE,
                              .root = DRYI_TREAP_NONE,
                              .seed = dryi_seed_make(r)};
}

void
dryi_ranges_finish(struct dryi_ranges *r)
{
    dryi_memory_free(&r->memory, r->items, r->item_capacity, sizeof *r->items);
    dryi_memory_free(&r->memory, r->nodes, r->node_capacity, sizeof *r->nodes);
    dryi_ranges_init(r, &r->memory);
}

static bool
insert(struct dryi_ranges *r, const struct range *range)
{
    uint32_t item = r->free_item;
    if (item != DRYI_TREAP_NONE) {
        r->free_item = r->nodes[item].left;
    } else {
        size_t count = (size_t)r->item_count + 1;
        if (!dryi_memory_grow(&r->memory, &r->items, &r->item_capacity, count,
                              sizeof *r->items) ||
            !dryi_memory_grow(&r->memory, &r->nodes, &r->node_capacity, count,
                              sizeof *r->nodes))
            return false;
        item = r->item_count++;
    }
    r->items[item] = *range;
    r->nodes[item] = (struct dryi_treap_node){
        .major = range->addr, .priority = (uint32_t)dryi_mix64(item ^ r->seed)};
    dryi_treap_insert(r->nodes, &r->root, item);
    r->live_count++;
    return true;
}

static void
erase(struct dryi_ranges *r, uint32_t item)
{
    dryi_treap_remove(r->nodes, &r->root, item);
    r->nodes[item].left = r->free_item;
    r->free_item = item;
    r->live_count--;
}

static bool
are_alike(const struct range *a, const struct range *b)
{
    return a->lane == b->lane &&
           (a->kind == b->kind || a->kind == RANGE_UNKNOWN || b->kind == RANGE_UNKNOWN);
}

enum ranges_result
dryi_ranges_add(struct dryi_ranges *r, const struct range *range)
{
    struct range whole = *range;
    uint64_t end;
    if (range->size == 0 || __builtin_add_overflow(range->addr, range->size, &end))
        return RANGES_CONTRADICTION;
    uint32_t below = dryi_treap_below(r->nodes, r->root, range->addr, 0);
    uint32_t above = dryi_treap_at_least(r->nodes, r->root, range->addr, 0);
    if ((below != DRYI_TREAP_NONE &&
         r->items[below].addr + r->items[below].size > range->addr) ||
        (above != DRYI_TREAP_NONE && r->items[above].addr < end))
        return RANGES_CONTRADICTION;
    if (above != DRYI_TREAP_NONE && r->items[above].addr == end &&
        are_alike(&whole, &r->items[above])) {
        whole.size += r->items[above].size;
        whole.kind |= r->items[above].kind;
        erase(r, above);
    }
    if (below != DRYI_TREAP_NONE &&
        r->items[below].addr + r->items[below].size == range->addr &&
        are_alike(&whole, &r->items[below])) {
        whole.addr = r->items[below].addr;
        whole.size += r->items[below].size;
        whole.kind |= r->items[below].kind;
        erase(r, below);
    }
    return insert(r, &whole) ? RANGES_DONE : RANGES_NO_MEMORY;
}

enum ranges_result
dryi_ranges_remove(struct dryi_ranges *r, uint64_t addr, uint64_t size)
{
    uint64_t end;
    if (size == 0 || __builtin_add_overflow(addr, size, &end))
        return RANGES_CONTRADICTION;
    uint32_t item = dryi_treap_below(r->nodes, r->root, addr, 1);
    if (item == DRYI_TREAP_NONE)
        return RANGES_CONTRADICTION;
    struct range front = r->items[item], back = front;
    if (end > front.addr + front.size)
        return RANGES_CONTRADICTION;
    back.addr = end;
    back.size = front.addr + front.size - end;
    front.size = addr - front.addr;
    erase(r, item);
    if ((front.size && !insert(r, &front)) || (back.size && !insert(r, &back)))
        return RANGES_NO_MEMORY;
    return RANGES_DONE;
}

const struct range *
dryi_ranges_from(const struct dryi_ranges *r, uint64_t addr)
{
    uint32_t item = dryi_treap_at_least(r->nodes, r->root, addr, 0);
    return item != DRYI_TREAP_NONE ? &r->items[item] : NULL;
}

struct range *
dryi_ranges_at(struct dryi_ranges *r, uint64_t addr)
{
    uint32_t item = dryi_treap_below(r->nodes, r->root, addr, 1);
    if (item == DRYI_TREAP_NONE || addr - r->items[item].addr >= r->items[item].size)
        return NULL;
    return &r->items[item];
}
