/* SPDX-License-Identifier: Apache-2.0 */

/* A skip list; see sim_ranges.h. */
#include "device/sim/sim_ranges.h"

#include "base/assert.h"
#include "base/bits.h"
#include "base/memory.h"

void
dryi_sim_ranges_init(struct dryi_sim_ranges *ranges, const struct dry_memory *memory)
{
    *ranges = (struct dryi_sim_ranges){.memory = *memory};
}

void
dryi_sim_ranges_finish(struct dryi_sim_ranges *ranges)
{
    dryi_memory_free(&ranges->memory, ranges->nodes, ranges->capacity,
                     sizeof *ranges->nodes);
    *ranges = (struct dryi_sim_ranges){.memory = ranges->memory};
}

bool
dryi_sim_ranges_reserve(struct dryi_sim_ranges *ranges, uint64_t more)
{
    uint64_t needed;
    if (__builtin_add_overflow(more, (uint64_t)ranges->count + 1, &needed) ||
        needed > UINT32_MAX)
        return false;
    if (!dryi_memory_grow(&ranges->memory, &ranges->nodes, &ranges->capacity,
                          (size_t)needed, sizeof *ranges->nodes))
        return false;
    if (ranges->made == 0) {
        ranges->nodes[0] = (struct dryi_sim_range){0};
        ranges->made = 1;
    }
    return true;
}

uint32_t
dryi_sim_ranges_find(const struct dryi_sim_ranges *ranges, uint64_t address)
{
    const struct dryi_sim_range *nodes = ranges->nodes;
    if (ranges->count == 0)
        return 0;
    uint32_t node = 0;
    for (int level = DRYI_SIM_LEVELS - 1; level >= 0; level--) {
        uint32_t next;
        while ((next = nodes[node].next[level]) != 0 && nodes[next].end <= address)
            node = next;
    }
    return nodes[node].next[0];
}

uint32_t
dryi_sim_ranges_next(const struct dryi_sim_ranges *ranges, uint32_t node)
{
    return ranges->nodes[node].next[0];
}

bool
dryi_sim_ranges_touch(const struct dryi_sim_ranges *ranges, uint64_t begin, uint64_t end)
{
    uint32_t node = dryi_sim_ranges_find(ranges, begin);
    return node != 0 && ranges->nodes[node].begin < end;
}

bool
dryi_sim_ranges_cover(const struct dryi_sim_ranges *ranges, uint64_t begin, uint64_t end)
{
    uint32_t node = dryi_sim_ranges_find(ranges, begin);
    while (begin < end) {
        if (node == 0 || ranges->nodes[node].begin > begin)
            return false;
        begin = ranges->nodes[node].end;
        node = ranges->nodes[node].next[0];
    }
    return true;
}

/* Find the last node of every level that begins before `begin`. */
static void
find_before(const struct dryi_sim_ranges *ranges, uint64_t begin,
            uint32_t before[DRYI_SIM_LEVELS])
{
    const struct dryi_sim_range *nodes = ranges->nodes;
    uint32_t node = 0;
    for (int level = DRYI_SIM_LEVELS - 1; level >= 0; level--) {
        uint32_t next;
        while ((next = nodes[node].next[level]) != 0 && nodes[next].begin < begin)
            node = next;
        before[level] = node;
    }
}

/* Draw a height: one in four nodes reaches level 2, one in sixteen level 3 ... */
static unsigned
draw_height(struct dryi_sim_ranges *ranges)
{
    uint64_t x = dryi_mix64(++ranges->draws * UINT64_C(0x9e3779b97f4a7c15));
    unsigned height = 1;
    for (; (x & 3) == 0 && height < DRYI_SIM_LEVELS; x >>= 2)
        height++;
    return height;
}

static uint32_t
take_node(struct dryi_sim_ranges *ranges)
{
    uint32_t node = ranges->first_free;
    if (node) {
        ranges->first_free = ranges->nodes[node].next[0];
        return node;
    }
    DRYI_ASSERT(ranges->made > 0 && ranges->made < ranges->capacity);
    return ranges->made++;
}

uint32_t
dryi_sim_ranges_insert(struct dryi_sim_ranges *ranges, uint64_t begin, uint64_t end,
                       uint32_t value)
{
    DRYI_ASSERT(begin < end);
    DRYI_ASSERT_SLOW(!dryi_sim_ranges_touch(ranges, begin, end));
    uint32_t before[DRYI_SIM_LEVELS];
    find_before(ranges, begin, before);
    uint32_t node = take_node(ranges);
    struct dryi_sim_range *nodes = ranges->nodes;
    nodes[node] = (struct dryi_sim_range){.begin = begin, .end = end, .value = value};
    unsigned height = draw_height(ranges);
    for (unsigned level = 0; level < height; level++) {
        nodes[node].next[level] = nodes[before[level]].next[level];
        nodes[before[level]].next[level] = node;
    }
    ranges->count++;
    return node;
}

static void
remove_node(struct dryi_sim_ranges *ranges, uint32_t node)
{
    uint32_t before[DRYI_SIM_LEVELS];
    struct dryi_sim_range *nodes = ranges->nodes;
    find_before(ranges, nodes[node].begin, before);
    for (unsigned level = 0; level < DRYI_SIM_LEVELS; level++) {
        if (nodes[before[level]].next[level] == node)
            nodes[before[level]].next[level] = nodes[node].next[level];
    }
    nodes[node].next[0] = ranges->first_free;
    ranges->first_free = node;
    ranges->count--;
}

int
dryi_sim_ranges_cut(struct dryi_sim_ranges *ranges, uint32_t node, uint64_t begin,
                    uint64_t end)
{
    struct dryi_sim_range *range = &ranges->nodes[node];
    uint64_t old_end = range->end;
    bool is_left = range->begin < begin, is_right = end < old_end;
    DRYI_ASSERT(begin < old_end && range->begin < end);
    if (is_left)
        range->end = begin;
    else if (is_right)
        range->begin = end; /* no range is in between, so the order does not change */
    else
        remove_node(ranges, node);
    if (is_left && is_right)
        dryi_sim_ranges_insert(ranges, end, old_end, range->value);
    return is_left + is_right - 1;
}
