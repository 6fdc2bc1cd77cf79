/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/pool_table.h"

#include "base/assert.h"
#include "base/bits.h"
#include "base/memory.h"

#define FIRST_SLOTS 1024

void
dryi_pool_table_init(struct dryi_pool_table *table, const struct dry_memory *memory)
{
    *table = (struct dryi_pool_table){.memory = dryi_memory_or_default(memory),
                                      .factor = dryi_seed_of(table) | 1};
}

void
dryi_pool_table_finish(struct dryi_pool_table *table)
{
    dryi_memory_free(&table->memory, table->slots, table->slot_count,
                     sizeof *table->slots);
    table->slots = NULL;
    table->slot_count = table->count = 0;
}

/* The high bits of a product depend on all bits of the address. */
static size_t
home_of(const struct dryi_pool_table *table, uint64_t address)
{
    return (size_t)((address >> 9) * table->factor >> table->hash_shift);
}

static size_t
slot_of(const struct dryi_pool_table *table, uint64_t address)
{
    size_t mask = table->slot_count - 1;
    size_t slot = home_of(table, address);
    while (table->slots[slot].address != 0 && table->slots[slot].address != address)
        slot = (slot + 1) & mask;
    return slot;
}

static bool
grow(struct dryi_pool_table *table)
{
    struct dryi_pool_table bigger = *table;
    bigger.slot_count = table->slot_count ? table->slot_count * 2 : FIRST_SLOTS;
    bigger.hash_shift = 64 - dryi_log2_floor(bigger.slot_count);
    bigger.slots =
        dryi_memory_zalloc(&table->memory, bigger.slot_count, sizeof *bigger.slots);
    if (!bigger.slots)
        return false;
    for (size_t i = 0; i < table->slot_count; i++) {
        uint64_t address = table->slots[i].address;
        if (address)
            bigger.slots[slot_of(&bigger, address)] = table->slots[i];
    }
    dryi_memory_free(&table->memory, table->slots, table->slot_count,
                     sizeof *table->slots);
    *table = bigger;
    return true;
}

bool
dryi_pool_table_reserve(struct dryi_pool_table *table)
{
    return table->count < table->slot_count / 2 || grow(table);
}

void
dryi_pool_table_put(struct dryi_pool_table *table, struct dryi_pool_slot slot)
{
    DRYI_ASSERT(slot.address != 0 && table->count < table->slot_count / 2);
    size_t at = slot_of(table, slot.address);
    DRYI_ASSERT(table->slots[at].address == 0);
    table->slots[at] = slot;
    table->count++;
}

struct dryi_pool_slot *
dryi_pool_table_find(const struct dryi_pool_table *table, uint64_t address)
{
    if (table->count == 0 || address == 0)
        return NULL;
    struct dryi_pool_slot *slot = &table->slots[slot_of(table, address)];
    return slot->address ? slot : NULL;
}

void
dryi_pool_table_remove(struct dryi_pool_table *table, struct dryi_pool_slot *slot)
{
    size_t mask = table->slot_count - 1;
    size_t hole = (size_t)(slot - table->slots);
    table->slots[hole].address = 0;
    table->count--;
    for (size_t i = (hole + 1) & mask; table->slots[i].address; i = (i + 1) & mask) {
        /* An entry may move back to the hole unless its home lies behind the hole. */
        size_t home = home_of(table, table->slots[i].address);
        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        table->slots[hole] = table->slots[i];
        table->slots[i].address = 0;
        hole = i;
    }
}
