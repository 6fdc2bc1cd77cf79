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
    atomic_init(&table->now, NULL);
}

static size_t
bytes_of(size_t count)
{
    return sizeof(struct dryi_pool_slots) + count * sizeof(struct dryi_pool_slot);
}

void
dryi_pool_table_finish(struct dryi_pool_table *table)
{
    struct dryi_pool_slots *now = atomic_load(&table->now);
    while (now) {
        struct dryi_pool_slots *outgrown = now->outgrown;
        dryi_memory_free(&table->memory, now, bytes_of(now->count), 1);
        now = outgrown;
    }
    atomic_store(&table->now, NULL);
    table->count = 0;
}

static struct dryi_pool_slots *
now_of(const struct dryi_pool_table *table)
{
    return atomic_load_explicit(&table->now, memory_order_relaxed);
}

/* Between two addresses a slot has none, for those who read it meanwhile. */
static void
copy_slot(struct dryi_pool_slot *to, const struct dryi_pool_slot *from)
{
    dryi_pool_slot_set_key(to, 0);
    dryi_pool_slot_set_block(to, dryi_pool_slot_block(from));
    dryi_pool_slot_set_key(to, dryi_pool_slot_key(from));
}

/* The address, or the empty slot where its probes end. */
static struct dryi_pool_slot *
slot_for(const struct dryi_pool_table *table, struct dryi_pool_slots *slots,
         uint64_t address)
{
    size_t at = dryi_pool_table_home(table, slots, address);
    for (;; at = (at + 1) & (slots->count - 1)) {
        uint64_t key = dryi_pool_slot_key(&slots->slots[at]);
        if (key == 0 || dryi_pool_key_address(key) == address)
            return &slots->slots[at];
    }
}

static bool
grow(struct dryi_pool_table *table)
{
    struct dryi_pool_slots *now = now_of(table);
    size_t count = now ? 2 * now->count : FIRST_SLOTS;
    struct dryi_pool_slots *bigger =
        dryi_memory_zalloc(&table->memory, bytes_of(count), 1);
    if (!bigger)
        return false;
    bigger->outgrown = now;
    bigger->count = count;
    bigger->hash_shift = 64 - dryi_log2_floor(count);
    for (size_t i = 0; now && i < now->count; i++) {
        uint64_t key = dryi_pool_slot_key(&now->slots[i]);
        if (key)
            copy_slot(slot_for(table, bigger, dryi_pool_key_address(key)),
                      &now->slots[i]);
    }
    atomic_store_explicit(&table->now, bigger, memory_order_release);
    return true;
}

bool
dryi_pool_table_reserve(struct dryi_pool_table *table)
{
    const struct dryi_pool_slots *now = now_of(table);
    return (now && table->count < now->count / 2) || grow(table);
}

void
dryi_pool_table_put(struct dryi_pool_table *table, struct dryi_pool_entry entry)
{
    struct dryi_pool_slots *now = now_of(table);
    DRYI_ASSERT(entry.address != 0 && entry.address % 512 == 0);
    DRYI_ASSERT(table->count < now->count / 2 && entry.front <= DRYI_SLOT_FRONTS);
    struct dryi_pool_slot *slot = slot_for(table, now, entry.address);
    table->count += dryi_pool_slot_key(slot) == 0;
    dryi_pool_slot_set_block(slot, entry.block);
    dryi_pool_slot_set_key(slot, entry.address | entry.front);
}

void
dryi_pool_table_remove(struct dryi_pool_table *table, struct dryi_pool_slot *slot)
{
    struct dryi_pool_slots *now = now_of(table);
    size_t mask = now->count - 1;
    size_t hole = (size_t)(slot - now->slots);
    table->count--;
    for (size_t i = (hole + 1) & mask;; i = (i + 1) & mask) {
        uint64_t key = dryi_pool_slot_key(&now->slots[i]);
        if (key == 0)
            break;
        /* An entry may move back to the hole unless its home lies behind the hole. */
        size_t home = dryi_pool_table_home(table, now, dryi_pool_key_address(key));
        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        copy_slot(&now->slots[hole], &now->slots[i]);
        hole = i;
    }
    dryi_pool_slot_set_key(&now->slots[hole], 0);
}
