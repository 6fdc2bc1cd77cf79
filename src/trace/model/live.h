/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_LIVE_H
#define DRYI_LIVE_H

/*
 * Live allocations while a text is read: id -> size and lane.
 *
 * A text may free only a live id, and may not allocate a live id again. A free takes size
 * and lane from the allocation, so the file need not repeat them.
 *
 * Structure: open addressing with linear probing. Removing an entry moves later entries
 * back into the hole. So there are no tombstones, and memory follows the largest number
 * of live ids. The hash is keyed with the table's address, which a file written to make
 * ids collide cannot know. Cost: O(1) a call, 24 bytes a slot; at most half of the slots
 * are used.
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

/* Find a live id, or return NULL. The entry is valid until the next put or remove. */
const struct dryi_live_entry *dryi_live_find(const struct dryi_live *live, uint64_t id);

/* Add an id that is not alive. Returns false if memory ran out. */
bool dryi_live_put(struct dryi_live *live, uint64_t id, uint64_t size, uint32_t lane);

/* Remove an entry that dryi_live_find() returned. */
void dryi_live_remove(struct dryi_live *live, const struct dryi_live_entry *entry);

#endif
