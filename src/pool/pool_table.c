/* SPDX-License-Identifier: Apache-2.0 */

/* See pool_table.h. */

#include "pool/pool_table.h"

#include "base/assert.h"
#include "base/bits.h"
#include "base/memory.h"

#define FIRST_SLOTS 1024

void
dryi_pool_table_init(struct dryi_pool_table *table, const struct dry_memory *memory)
{
    *table = (struct dryi_pool_table){.memory = dryi_memory_or_default(memory),
                                      .factor = dryi_seed_make(table) | 1};
}

void
dryi_pool_table_finish(struct dryi_pool_table *table)
{
    dryi_memory_free(&table->memory, table->slots, table->slot_count,
                     sizeof *table->slots);
    table->slots = NULL;
    table->slot_count = table->count = 0;
}

bool
dryi_pool_table_grow(struct dryi_pool_table *table)
{
    DRYI_ASSERT_SLOW(table->count <= table->slot_count);
    struct dryi_pool_table bigger = *table;
    bigger.slot_count = table->slot_count > 0 ? 2 * table->slot_count : FIRST_SLOTS;
    bigger.hash_shift = 64 - dryi_log2_floor(bigger.slot_count);
    bigger.slots =
        dryi_memory_zalloc(&table->memory, bigger.slot_count, sizeof *bigger.slots);
    if (!bigger.slots)
        return false;
    for (size_t i = 0; i < table->slot_count; i++) {
        const struct dryi_pool_slot *slot = &table->slots[i];
        if (slot->key)
            *dryi_pool_table_slot_for(&bigger, dryi_pool_slot_address(slot)) = *slot;
    }
    dryi_memory_free(&table->memory, table->slots, table->slot_count,
                     sizeof *table->slots);
    *table = bigger;
    return true;
}

void
dryi_pool_table_close_gap(struct dryi_pool_table *table, struct dryi_pool_slot *gap)
{
    DRYI_ASSERT_SLOW(gap >= table->slots && gap < table->slots + table->slot_count);
    size_t mask = table->slot_count - 1;
    size_t hole = (size_t)(gap - table->slots);
    for (size_t i = (hole + 1) & mask; table->slots[i].key; i = (i + 1) & mask) {
        /* An entry may move back to the hole unless its probes begin after the hole. */
        size_t home =
            dryi_pool_table_home(table, dryi_pool_slot_address(&table->slots[i]));
        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        table->slots[hole] = table->slots[i];
        hole = i;
    }
    table->slots[hole] = (struct dryi_pool_slot){0};
}
