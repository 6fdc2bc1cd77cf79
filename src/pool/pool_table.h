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
 * A slot is of a block in use, or rests: its block lies whole on a front and will begin
 * there again. What may go to a front by itself has the front's number.
 *
 * Threads    seek may be asked by anybody at any time. What it finds is to be believed only
 *            when the slot's front is held and is_same still says so: slots of a front change
 *            under its lock, all others and their places with everything held. Outgrown slots
 *            are kept until the end, together less than the table, for those who still look.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>

#define DRYI_SLOT_USED UINT64_C(1)
#define DRYI_SLOT_FRONTS 127u /* the highest number of a front; 0: none */

struct dryi_pool_slot {
    _Atomic uint64_t key;   /* address | front << 1 | in use; 0: empty */
    _Atomic uint64_t value; /* block << 32 | bytes requested, of blocks with a front */
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
    size_t count;                          /* slots in use and resting */
    uint64_t factor; /* of the hash, odd; differs from table to table */
};

/* What a slot says. */
struct dryi_pool_entry {
    uint64_t address;   /* a multiple of 512 */
    uint32_t block;     /* the place's handle */
    uint32_t requested; /* bytes, if there is a front */
    uint32_t front;     /* 0: none */
};

void dryi_pool_table_init(struct dryi_pool_table *table, const struct dry_memory *memory);
void dryi_pool_table_finish(struct dryi_pool_table *table);
/* Room for one more; false: no memory, nothing changed. */
bool dryi_pool_table_reserve(struct dryi_pool_table *table);
/* Room was reserved; a slot of the address that rests is used again. */
void dryi_pool_table_put(struct dryi_pool_table *table, struct dryi_pool_entry entry);
/* A block in use: NULL if it is not there. Valid until the next change. */
struct dryi_pool_slot *dryi_pool_table_find(const struct dryi_pool_table *table,
                                            uint64_t address);
/* A slot that find or seek has just returned. */
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
    return (uint32_t)(atomic_load_explicit(&slot->value, memory_order_relaxed) >> 32);
}

static inline uint32_t
dryi_pool_slot_requested(const struct dryi_pool_slot *slot)
{
    return (uint32_t)atomic_load_explicit(&slot->value, memory_order_relaxed);
}

static inline void
dryi_pool_slot_set_value(struct dryi_pool_slot *slot, uint32_t block, uint32_t requested)
{
    atomic_store_explicit(&slot->value, (uint64_t)block << 32 | requested,
                          memory_order_relaxed);
}

static inline uint64_t
dryi_pool_key_address(uint64_t key)
{
    return key & ~UINT64_C(511);
}

static inline uint32_t
dryi_pool_key_front(uint64_t key)
{
    return (uint32_t)(key >> 1) & DRYI_SLOT_FRONTS;
}

/* The high bits of a product depend on all bits of the address. */
static inline size_t
dryi_pool_table_home(const struct dryi_pool_table *table,
                     const struct dryi_pool_slots *now, uint64_t address)
{
    return (size_t)((address >> 9) * table->factor >> now->hash_shift);
}

/* In use or resting; NULL if it is not there, or on its way to another slot. */
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

/* Is the slot, found before its front was held, one of the table, with the key it had? */
static inline bool
dryi_pool_table_is_same(const struct dryi_pool_table *table,
                        const struct dryi_pool_slot *slot, uint64_t key)
{
    const struct dryi_pool_slots *now =
        atomic_load_explicit(&table->now, memory_order_relaxed);
    return slot >= now->slots && slot < now->slots + now->count &&
           dryi_pool_slot_key(slot) == key;
}

#endif
