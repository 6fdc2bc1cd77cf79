/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_LIVE_H
#define DRYI_LIVE_H

/*
 * The allocations that are alive while a text is read: id -> what it was given.
 *
 * A text may free only what lives, and may not use an id twice at once. A free's size and
 * lane are those of its allocation, so that the file need not repeat them.
 *
 * Structure: open addressing with linear probing. The gap of an entry taken out is closed
 * by moving later ones back. So there are no tombstones, and memory follows the most that
 * ever lived at once. The hash is keyed with the table's own address: a file written to
 * make ids collide would have to know it. Cost: O(1) a call, 24 bytes a slot, at most
 * half of them used.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>

struct dryi_live_entry {
    uint64_t id, size;
    uint32_t lane;
    uint32_t used;
};

struct dryi_live {
    struct dry_memory memory;
    struct dryi_live_entry *slots;
    size_t slot_count, count;
    uint64_t key;
};

void dryi_live_init(struct dryi_live *live, const struct dry_memory *memory);
void dryi_live_finish(struct dryi_live *live);

/* The entry, until the next put or remove; NULL when the id is not alive. */
const struct dryi_live_entry *dryi_live_find(const struct dryi_live *live, uint64_t id);

/* Add an id that is not there; false when there is no memory. */
bool dryi_live_put(struct dryi_live *live, uint64_t id, uint64_t size, uint32_t lane);

/* Take out an entry that dryi_live_find() returned. */
void dryi_live_remove(struct dryi_live *live, const struct dryi_live_entry *entry);

#endif
