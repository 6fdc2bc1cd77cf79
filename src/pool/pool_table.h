/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_TABLE_H
#define DRYI_POOL_TABLE_H

/*
 * Addresses handed out -> blocks, but for those that the place finds itself (place/place.h).
 *
 * Open addressing with linear probes over slots of 16 bytes, at most half of them taken. Removal
 * moves back what follows, so that there are no tombstones and a miss ends at the first empty slot.
 * The table grows before anything else of a request is done, by doubling. A table of n blocks has
 * been copied less than twice for each. A free takes no memory.
 *
 * A slot is of a block in use, or of a block in a stream cache (place/place_cache.h): the block
 * says which. The slot says whether its address is registered with the cache. So alloc and free of
 * blocks in caches read the table and write nothing.
 *
 * Each stream with a cache has a table of its own (pool_cache.h): threads on streams of their own
 * do not meet in its lines. Threads: one at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/inline.h"
#include "base/memory.h"

struct dryi_pool_slot {
    uint64_t key; /* address | is_registered; 0: empty */
    uint32_t block;
};

struct dryi_pool_table {
    struct dry_memory memory;
    struct dryi_pool_slot *slots;
    size_t slot_count; /* a power of two; 0: none yet */
    size_t count;      /* of addresses */
    uint64_t factor;   /* of the hash, odd; differs from table to table */
    unsigned hash_shift;
};

/* The content of a slot. */
struct dryi_pool_entry {
    uint64_t address;   /* a multiple of 512 */
    uint32_t block;     /* the place's handle */
    bool is_registered; /* with its cache */
};

void dryi_pool_table_init(struct dryi_pool_table *table, const struct dry_memory *memory);
void dryi_pool_table_finish(struct dryi_pool_table *table);
/* Make the table larger: the slow half of reserve. */
DRYI_NOINLINE bool dryi_pool_table_grow(struct dryi_pool_table *table);
/* Empty the slot. The slots behind it move up. */
void dryi_pool_table_close_gap(struct dryi_pool_table *table, struct dryi_pool_slot *gap);

/* Is there room for one more address, without memory? */
static inline bool
dryi_pool_table_has_room(const struct dryi_pool_table *table)
{
    return table->count < table->slot_count / 2;
}

/* Make room for one more. False: no memory, and nothing changed. */
static inline bool
dryi_pool_table_reserve(struct dryi_pool_table *table)
{
    return dryi_pool_table_has_room(table) || dryi_pool_table_grow(table);
}

static inline uint64_t
dryi_pool_slot_address(const struct dryi_pool_slot *slot)
{
    return slot->key & ~UINT64_C(511);
}

static inline bool
dryi_pool_slot_is_registered(const struct dryi_pool_slot *slot)
{
    return slot->key & 1;
}

/*
 * Return where the probes for an address begin. The high bits of a product depend on all bits of
 * the address.
 */
static inline size_t
dryi_pool_table_home(const struct dryi_pool_table *table, uint64_t address)
{
    return (size_t)((address >> 9) * table->factor >> table->hash_shift);
}

/* Find the slot of the address, or the empty slot where its probes end. */
static inline struct dryi_pool_slot *
dryi_pool_table_slot_for(const struct dryi_pool_table *table, uint64_t address)
{
    size_t at = dryi_pool_table_home(table, address);
    for (;; at = (at + 1) & (table->slot_count - 1)) {
        struct dryi_pool_slot *slot = &table->slots[at];
        if (slot->key == 0 || dryi_pool_slot_address(slot) == address)
            return slot;
    }
}

/* Find the slot of an address. NULL: it is not there, or not a multiple of 512. */
static inline struct dryi_pool_slot *
dryi_pool_table_seek(const struct dryi_pool_table *table, uint64_t address)
{
    if (table->slot_count == 0 || address == 0)
        return NULL;
    struct dryi_pool_slot *slot = dryi_pool_table_slot_for(table, address);
    return slot->key ? slot : NULL;
}

/*
 * Enter an address. If it has a slot, of a block that was in a cache, the slot becomes this entry.
 * Requires room.
 */
static inline void
dryi_pool_table_put(struct dryi_pool_table *table, struct dryi_pool_entry entry)
{
    DRYI_ASSERT(entry.address != 0 && entry.address % 512 == 0);
    DRYI_ASSERT(table->count < table->slot_count / 2);
    struct dryi_pool_slot *slot = dryi_pool_table_slot_for(table, entry.address);
    table->count += slot->key == 0;
    *slot = (struct dryi_pool_slot){entry.address | entry.is_registered, entry.block};
}

/* Remove a slot that seek has just returned. */
static inline void
dryi_pool_table_remove(struct dryi_pool_table *table, struct dryi_pool_slot *slot)
{
    DRYI_ASSERT_SLOW(slot->key && table->count > 0);
    size_t next = (size_t)(slot - table->slots + 1) & (table->slot_count - 1);
    table->count--;
    if (table->slots[next].key)
        dryi_pool_table_close_gap(table, slot);
    else
        *slot = (struct dryi_pool_slot){0};
}

#endif
