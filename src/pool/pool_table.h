/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_TABLE_H
#define DRYI_POOL_TABLE_H

/*
 * Addresses handed out -> blocks.
 *
 * Open addressing with linear probes over slots of 16 bytes, at most half of them taken;
 * removal moves back what follows, so that there are no tombstones and a miss ends at the
 * first empty slot. It grows before anything else of a request is done, by doubling: a
 * table of n blocks has been copied less than twice for each. A free takes no memory.
 *
 * A slot is of a block in use, or of one that is kept on a front (place/place.h): the block
 * says which. What may go to a front by itself has the front's number. So alloc and free of
 * what fronts hold read the table and write nothing: threads do not meet in its lines.
 *
 * Threads    seek may be asked by anybody at any time. What it finds is to be believed only
 *            when the slot's front is held and read still says so. With the pool locked slots
 *            move; what is said of an address, put or removed, changes only with its front held,
 *            too. Outgrown slots are kept until the end, together less than the table, for those
 *            who still look.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

#define DRYI_SLOT_FRONTS 127u /* the highest number of a front; 0: none */

struct dryi_pool_slot {
    _Atomic uint64_t key; /* address | front; 0: empty */
    _Atomic uint32_t block;
};

struct dryi_pool_slots {
    struct dryi_pool_slots *outgrown;
    size_t count; /* a power of two */
    unsigned hash_shift;
    struct dryi_pool_slot slots[];
};

struct dryi_pool_table {
    struct dry_memory memory;
    _Atomic(struct dryi_pool_slots *) now; /* NULL: none yet */
    uint64_t factor; /* of the hash, odd; differs from table to table */
    char apart[DRYI_APART];
    size_t count; /* of addresses */
};

/* What a slot says. */
struct dryi_pool_entry {
    uint64_t address; /* a multiple of 512 */
    uint32_t block;   /* the place's handle */
    uint32_t front;   /* 0: none */
};

void dryi_pool_table_init(struct dryi_pool_table *table, const struct dry_memory *memory);
void dryi_pool_table_finish(struct dryi_pool_table *table);
/* Room for one more; false: no memory, nothing changed. */
bool dryi_pool_table_reserve(struct dryi_pool_table *table);
/* Room was reserved. A slot the address has, of a block that was on a front, becomes this. */
void dryi_pool_table_put(struct dryi_pool_table *table, struct dryi_pool_entry entry);
/* A slot that seek has just returned. */
void dryi_pool_table_remove(struct dryi_pool_table *table, struct dryi_pool_slot *slot);

static inline uint64_t
dryi_pool_slot_key(const struct dryi_pool_slot *slot)
{
    return atomic_load_explicit(&slot->key, memory_order_acquire);
}

static inline void
dryi_pool_slot_set_key(struct dryi_pool_slot *slot, uint64_t key)
{
    atomic_store_explicit(&slot->key, key, memory_order_release);
}

static inline uint32_t
dryi_pool_slot_block(const struct dryi_pool_slot *slot)
{
    return atomic_load_explicit(&slot->block, memory_order_relaxed);
}

static inline void
dryi_pool_slot_set_block(struct dryi_pool_slot *slot, uint32_t block)
{
    atomic_store_explicit(&slot->block, block, memory_order_release);
}

static inline uint64_t
dryi_pool_key_address(uint64_t key)
{
    return key & ~UINT64_C(511);
}

static inline uint32_t
dryi_pool_key_front(uint64_t key)
{
    return (uint32_t)key & DRYI_SLOT_FRONTS;
}

/* The high bits of a product depend on all bits of the address. */
static inline size_t
dryi_pool_table_home(const struct dryi_pool_table *table,
                     const struct dryi_pool_slots *now, uint64_t address)
{
    return (size_t)((address >> 9) * table->factor >> now->hash_shift);
}

/* NULL if it is not there, not a multiple of 512, or on its way to another slot. */
static inline struct dryi_pool_slot *
dryi_pool_table_seek(const struct dryi_pool_table *table, uint64_t address)
{
    struct dryi_pool_slots *now = atomic_load_explicit(&table->now, memory_order_acquire);
    if (!now || address == 0)
        return NULL;
    size_t mask = now->count - 1;
    size_t at = dryi_pool_table_home(table, now, address);
    for (;; at = (at + 1) & mask) {
        uint64_t key = dryi_pool_slot_key(&now->slots[at]);
        if (dryi_pool_key_address(key) == address)
            return &now->slots[at];
        if (key == 0)
            return NULL;
    }
}

/*
 * The block of a slot that was found before its front was held: is it one of the table, with
 * the key it had, and was so until the block had been read? Whoever gives a slot to another
 * address takes its key away before.
 */
static inline bool
dryi_pool_table_read(const struct dryi_pool_table *table,
                     const struct dryi_pool_slot *slot, uint64_t key, uint32_t *block)
{
    const struct dryi_pool_slots *now =
        atomic_load_explicit(&table->now, memory_order_relaxed);
    if ((uintptr_t)slot - (uintptr_t)now->slots >= now->count * sizeof *slot)
        return false; /* of outgrown ones */
    *block = atomic_load_explicit(&slot->block, memory_order_acquire);
    return dryi_pool_slot_key(slot) == key;
}

#endif
