/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_ADDRESS_H
#define DRYI_POOL_ADDRESS_H

/*
 * Finding blocks by address. Each cache has its own table (pool_table.h). A hint, shared by nearby
 * addresses, guesses the table. A table is accessed with its cache locked, or with all locks held
 * (dryi_pool_lock()).
 *
 * Cost: one probe if the hint is right, else one per cache.
 */

#include "base/assert.h"
#include "base/bits.h"
#include "pool/pool_lock.h"
#include "pool/pool_state.h"
#include "pool/pool_table.h"

/* An address's slot and its cache. */
struct dryi_pool_found {
    struct dryi_pool_slot *slot; /* NULL: not found */
    struct dryi_pool_cache *cache;
};

static inline _Atomic uint8_t *
dryi_pool_hint(struct dry_pool *pool, uint64_t address)
{
    return &pool->caches
                .hints[dryi_spread(address >> DRYI_POOL_HINT_SHIFT, DRYI_POOL_HINT_BITS)];
}

static inline void
dryi_pool_note_hint(_Atomic uint8_t *hint, const struct dryi_pool_cache *cache)
{
    uint8_t number = (uint8_t)cache->number;
    if (atomic_load_explicit(hint, memory_order_relaxed) != number)
        atomic_store_explicit(hint, number, memory_order_release);
}

static inline struct dryi_pool_cache *
dryi_pool_hinted(const struct dry_pool *pool, const _Atomic uint8_t *hint)
{
    return pool->caches.all[atomic_load_explicit(hint, memory_order_acquire)];
}

/*
 * Store the hint for an address. Skipped if there is only one table. Requires the lock of the
 * cache, or all locks.
 */
static inline void
dryi_pool_note(struct dry_pool *pool, uint64_t address,
               const struct dryi_pool_cache *cache)
{
    if (pool->caches.count > 1)
        dryi_pool_note_hint(dryi_pool_hint(pool, address), cache);
}

static inline struct dryi_pool_cache *
dryi_pool_guess(struct dry_pool *pool, uint64_t address)
{
    return pool->caches.count == 1
               ? pool->caches.all[1]
               : dryi_pool_hinted(pool, dryi_pool_hint(pool, address));
}

static inline struct dryi_pool_found
dryi_pool_seek_at(struct dryi_pool_cache *cache, uint64_t address)
{
    return (struct dryi_pool_found){dryi_pool_table_seek(&cache->table, address), cache};
}

/* Search all tables, after the hint was wrong. Requires all locks. */
struct dryi_pool_found dryi_pool_seek_further(struct dry_pool *pool, uint64_t address);

/* Find the slot of a block in use or in a cache. Requires all locks. */
static inline struct dryi_pool_found
dryi_pool_seek(struct dry_pool *pool, uint64_t address)
{
    struct dryi_pool_found found =
        dryi_pool_seek_at(dryi_pool_guess(pool, address), address);
    return found.slot ? found : dryi_pool_seek_further(pool, address);
}

/* Enter an address into the cache's table. Requires space there. */
static inline void
dryi_pool_put(struct dry_pool *pool, struct dryi_pool_cache *cache,
              struct dryi_pool_entry entry)
{
    dryi_pool_table_put(&cache->table, entry);
    dryi_pool_note(pool, entry.address, cache);
}

/* Is the slot's block in use? A registered block that is not in use is in its stream cache. */
static inline bool
dryi_pool_slot_is_used(const struct dry_pool *pool, const struct dryi_pool_slot *slot)
{
    return !dryi_pool_slot_is_registered(slot) ||
           !pool->place.caches->holds(pool->place.self, slot->block);
}

/* Does the place find blocks by address itself? Blocks that it finds are in no table. */
static inline bool
dryi_pool_place_finds(const struct dry_pool *pool)
{
    return pool->place.ops->find;
}

/* Return the block in use with this address, or DRYI_NO_BLOCK. Requires all locks. */
static inline dryi_block
dryi_pool_find(struct dry_pool *pool, uint64_t address)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    dryi_block block = DRYI_NO_BLOCK;
    if (dryi_pool_place_finds(pool))
        block = pool->place.ops->find(pool->place.self, address);
    if (block != DRYI_NO_BLOCK)
        return block;
    const struct dryi_pool_slot *slot = dryi_pool_seek(pool, address).slot;
    return slot && dryi_pool_slot_is_used(pool, slot) ? slot->block : DRYI_NO_BLOCK;
}

#endif
