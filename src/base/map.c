/* SPDX-License-Identifier: Apache-2.0 */

/* Linear probing in a table at most half full; see map.h. */

#include "base/map.h"

#include "base/bits.h"
#include "base/memory.h"

void
dryi_map_init(struct dryi_map *map, const struct dry_memory *memory)
{
    *map = (struct dryi_map){.memory = dryi_memory_or_default(memory),
                             .seed = dryi_seed_make(map)};
}

void
dryi_map_finish(struct dryi_map *map)
{
    dryi_memory_free(&map->memory, map->slots, map->slot_count, sizeof *map->slots);
    *map = (struct dryi_map){.memory = map->memory, .seed = map->seed};
}

static size_t
get_home(const struct dryi_map *map, uint64_t key)
{
    return dryi_mix64(key ^ map->seed) & (map->slot_count - 1);
}

/* Return the slot of the key, or the empty slot where it would go. */
static size_t
find_slot(const struct dryi_map *map, uint64_t key)
{
    size_t slot = get_home(map, key);
    while (map->slots[slot].is_used && map->slots[slot].key != key)
        slot = (slot + 1) & (map->slot_count - 1);
    return slot;
}

static bool
grow(struct dryi_map *map)
{
    if (map->slots && map->count < map->slot_count / 2)
        return true;
    struct dryi_map bigger = *map;
    bigger.slot_count = map->slot_count ? map->slot_count * 2 : 64;
    bigger.slots =
        dryi_memory_zalloc(&map->memory, bigger.slot_count, sizeof *map->slots);
    if (!bigger.slots)
        return false;
    for (size_t i = 0; i < map->slot_count; i++) {
        if (map->slots[i].is_used)
            bigger.slots[find_slot(&bigger, map->slots[i].key)] = map->slots[i];
    }
    dryi_memory_free(&map->memory, map->slots, map->slot_count, sizeof *map->slots);
    *map = bigger;
    return true;
}

bool
dryi_map_put(struct dryi_map *map, uint64_t key, uint32_t value)
{
    size_t slots = map->slot_count;
    size_t at = slots > 0 ? find_slot(map, key) : 0;
    bool is_known = slots > 0 && map->slots[at].is_used;
    if (!is_known && !grow(map))
        return false;
    if (map->slot_count != slots)
        at = find_slot(map, key);
    map->slots[at] = (struct dryi_map_slot){.key = key, .value = value, .is_used = 1};
    map->count += !is_known;
    return true;
}

uint32_t *
dryi_map_find(const struct dryi_map *map, uint64_t key)
{
    if (map->count == 0)
        return NULL;
    struct dryi_map_slot *slot = &map->slots[find_slot(map, key)];
    return slot->is_used ? &slot->value : NULL;
}

bool
dryi_map_take(struct dryi_map *map, uint64_t key)
{
    if (map->count == 0)
        return false;
    size_t mask = map->slot_count - 1;
    size_t hole = find_slot(map, key);
    if (!map->slots[hole].is_used)
        return false;
    map->slots[hole].is_used = 0;
    map->count--;
    for (size_t i = (hole + 1) & mask; map->slots[i].is_used; i = (i + 1) & mask) {
        /* Moving an entry before its home slot would make it unreachable. */
        size_t home = get_home(map, map->slots[i].key);
        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        map->slots[hole] = map->slots[i];
        map->slots[i].is_used = 0;
        hole = i;
    }
    return true;
}

const struct dryi_map_slot *
dryi_map_next(const struct dryi_map *map, size_t *slot)
{
    while (*slot < map->slot_count && !map->slots[*slot].is_used)
        ++*slot;
    return *slot < map->slot_count ? &map->slots[(*slot)++] : NULL;
}
