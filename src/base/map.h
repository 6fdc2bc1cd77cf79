/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_MAP_H
#define DRYI_MAP_H

/*
 * A map of 64-bit keys to 32-bit values: addresses to blocks, ids to requests.
 *
 * Open addressing with linear probing, at most half full. Removal closes the gap and leaves no
 * tombstone (Knuth, TAOCP 3, 6.4, algorithm R), so look-ups stay fast after millions of insertions
 * and removals. Keys are mixed, because addresses are multiples of 512.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>

struct dryi_map_slot {
    uint64_t key;
    uint32_t value;
    uint32_t is_used;
};

struct dryi_map {
    struct dry_memory memory;
    struct dryi_map_slot *slots;
    size_t slot_count, count;
    uint64_t seed; /* mixed into keys, so that no input can choose collisions */
};

void dryi_map_init(struct dryi_map *map, const struct dry_memory *memory);
void dryi_map_finish(struct dryi_map *map);

/* Set the value of a key. Returns false if memory ran out; replacing a value takes no memory. */
bool dryi_map_put(struct dryi_map *map, uint64_t key, uint32_t value);
/* Return a pointer to the key's value, or NULL. Valid until the next put or take. */
uint32_t *dryi_map_find(const struct dryi_map *map, uint64_t key);
/* Remove a key. Returns false if the key is not in the map. */
bool dryi_map_take(struct dryi_map *map, uint64_t key);
/* Iterate in slot order. Return the first used slot from *slot on, and set *slot to the next one;
   return NULL at the end. */
const struct dryi_map_slot *dryi_map_next(const struct dryi_map *map, size_t *slot);

#endif
