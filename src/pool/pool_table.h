/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_POOL_TABLE_H
#define DRYI_POOL_TABLE_H

/*
 * Addresses handed out -> blocks.
 *
 * Open addressing with linear probes over slots of 16 bytes, at most half of them used;
 * removal moves back what follows, so that there are no tombstones and a miss ends at the
 * first empty slot. It grows before anything else of a request is done, by doubling: a
 * table of n blocks has been copied less than twice for each. A free takes no memory.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>

struct dryi_pool_slot {
    uint64_t address; /* 0: empty */
    uint32_t block;   /* the place's handle */
    uint32_t shift;   /* the address lies so many times 512 bytes behind the block's */
};

struct dryi_pool_table {
    struct dry_memory memory;
    struct dryi_pool_slot *slots;
    size_t slot_count; /* 0 or a power of two */
    size_t count;
    uint64_t factor; /* of the hash, odd; differs from table to table */
    unsigned hash_shift;
};

void dryi_pool_table_init(struct dryi_pool_table *table, const struct dry_memory *memory);
void dryi_pool_table_finish(struct dryi_pool_table *table);
/* Room for one more; false: no memory, nothing changed. */
bool dryi_pool_table_reserve(struct dryi_pool_table *table);
/* Room was reserved; the address is not there, and a multiple of 512. */
void dryi_pool_table_put(struct dryi_pool_table *table, struct dryi_pool_slot slot);
/* NULL if it is not there. Valid until the next change. */
struct dryi_pool_slot *dryi_pool_table_find(const struct dryi_pool_table *table,
                                            uint64_t address);
/* A slot that find has just returned. */
void dryi_pool_table_remove(struct dryi_pool_table *table, struct dryi_pool_slot *slot);

#endif
