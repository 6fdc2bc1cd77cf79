/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_MAP_H
#define DRYI_MAP_H

/*
 * A map of 64-bit keys to 32-bit values: addresses to blocks, ids to requests.
 *
 * Open addressing with linear probing, at most half full. Removal closes the gap instead of
 * leaving a mark (Knuth, TAOCP 3, 6.4, algorithm R): a table does not age, whatever millions of
 * puts and takes it lives through. Keys are mixed, so that addresses may be multiples of 512.
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
    uint64_t seed; /* mixed into the keys */
};

void dryi_map_init(struct dryi_map *map, const struct dry_memory *memory);
void dryi_map_finish(struct dryi_map *map);

/* Set the value of a key; false when there is no memory, which only a new one needs. */
bool dryi_map_put(struct dryi_map *map, uint64_t key, uint32_t value);
/* The value's place, or NULL; valid until the next put or take. */
uint32_t *dryi_map_find(const struct dryi_map *map, uint64_t key);
/* Forget a key; false if it was not there. */
bool dryi_map_take(struct dryi_map *map, uint64_t key);
/* Walk: the first used slot at or after *slot, which is moved behind it; NULL at the end. */
const struct dryi_map_slot *dryi_map_next(const struct dryi_map *map, size_t *slot);

#endif
