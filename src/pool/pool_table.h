/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_TABLE_H
#define DRYI_POOL_TABLE_H

/*
 * A hash table from addresses to blocks in use, except blocks that the place finds itself
 * (place/place.h).
 *
 * Open addressing with linear probing; 16-byte slots, at most half of them used. A removal shifts
 * later entries back, so there are no tombstones, and a miss ends at the first empty slot. The
 * table doubles before any other step of a request, so a failure has no effect. On average each
 * entry is copied less than twice. A free allocates no memory.
 *
 * A slot belongs to a block in use, or to a block in a stream cache (place/place_cache.h); the
 * block's state tells which. The slot tells whether the address is registered with the cache. So
 * alloc and free of cached blocks read the table and write nothing.
 *
 * Each stream with a cache has its own table (pool_cache.h), so threads on different streams share
 * no cache lines of it. One thread at a time.
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
    size_t slot_count; /* a power of two; 0: not allocated */
    size_t count;      /* number of addresses */
    uint64_t factor;   /* multiplier of the hash; odd, random per table */
    unsigned hash_shift;
};

/* The content of a slot. */
struct dryi_pool_entry {
    uint64_t address;   /* a multiple of 512 */
    uint32_t block;     /* the place's handle */
    bool is_registered; /* registered with its cache */
};

void dryi_pool_table_init(struct dryi_pool_table *table, const struct dry_memory *memory);
void dryi_pool_table_finish(struct dryi_pool_table *table);
/* Double the table. False: out of memory, and the table is unchanged. */
DRYI_NOINLINE bool dryi_pool_table_grow(struct dryi_pool_table *table);
/* Empty the slot, and shift later entries back. */
void dryi_pool_table_close_gap(struct dryi_pool_table *table, struct dryi_pool_slot *gap);

/* Can another address be entered without allocation? */
static inline bool
dryi_pool_table_has_room(const struct dryi_pool_table *table)
{
    return table->count < table->slot_count / 2;
}

/* Ensure space for one more address. False: out of memory, and the table is unchanged. */
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
 * Return the first slot to probe for an address. Multiplicative hashing: the high bits of the
 * product depend on all bits of the address.
 */
static inline size_t
dryi_pool_table_home(const struct dryi_pool_table *table, uint64_t address)
{
    return (size_t)((address >> 9) * table->factor >> table->hash_shift);
}

/* Return the slot of the address, or the empty slot that ends its probes. */
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

/* Return the slot of an address. NULL: not found, or not a multiple of 512. */
static inline struct dryi_pool_slot *
dryi_pool_table_seek(const struct dryi_pool_table *table, uint64_t address)
{
    if (table->slot_count == 0 || address == 0)
        return NULL;
    struct dryi_pool_slot *slot = dryi_pool_table_slot_for(table, address);
    return slot->key ? slot : NULL;
}

/*
 * Enter an address. An existing slot, of a formerly cached block, is overwritten. Requires space.
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

/* Remove a slot. Requires that no entry changed since the slot was found. */
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
