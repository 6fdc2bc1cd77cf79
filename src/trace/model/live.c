/* SPDX-License-Identifier: Apache-2.0 */

/* The idea and the structure are in live.h. Cost: O(1) a call, expected. */
#include "trace/model/live.h"

#include "base/assert.h"
#include "base/bits.h"
#include "base/memory.h"

void
dryi_live_init(struct dryi_live *live, const struct dry_memory *memory)
{
    *live = (struct dryi_live){.memory = dryi_memory_or_default(memory),
                               .key = dryi_mix64((uint64_t)(uintptr_t)live)};
}

void
dryi_live_finish(struct dryi_live *live)
{
    dryi_memory_free(&live->memory, live->slots, live->slot_count, sizeof *live->slots);
    *live = (struct dryi_live){.memory = live->memory};
}

static size_t
get_home(const struct dryi_live *live, uint64_t id)
{
    return (size_t)dryi_mix64(id ^ live->key) & (live->slot_count - 1);
}

/* Return the slot of an id, or the empty slot where it would be inserted. */
static size_t
find_slot(const struct dryi_live *live, uint64_t id)
{
    size_t slot = get_home(live, id);
    while (live->slots[slot].used && live->slots[slot].id != id)
        slot = (slot + 1) & (live->slot_count - 1);
    return slot;
}

const struct dryi_live_entry *
dryi_live_find(const struct dryi_live *live, uint64_t id)
{
    if (live->count == 0)
        return NULL;
    const struct dryi_live_entry *entry = &live->slots[find_slot(live, id)];
    return entry->used ? entry : NULL;
}

static bool
grow(struct dryi_live *live)
{
    struct dryi_live old = *live;
    size_t slot_count = old.slot_count ? old.slot_count * 2 : 64;
    struct dryi_live_entry *slots =
        dryi_memory_zalloc(&live->memory, slot_count, sizeof *slots);
    if (!slots)
        return false;
    live->slots = slots;
    live->slot_count = slot_count;
    for (size_t i = 0; i < old.slot_count; i++) {
        if (old.slots[i].used)
            slots[find_slot(live, old.slots[i].id)] = old.slots[i];
    }
    dryi_memory_free(&live->memory, old.slots, old.slot_count, sizeof *old.slots);
    return true;
}

bool
dryi_live_put(struct dryi_live *live, uint64_t id, uint64_t size, uint32_t lane)
{
    if (live->count >= live->slot_count / 2 && !grow(live))
        return false;
    struct dryi_live_entry *entry = &live->slots[find_slot(live, id)];
    DRYI_ASSERT(!entry->used);
    *entry = (struct dryi_live_entry){.id = id, .size = size, .lane = lane, .used = 1};
    live->count++;
    return true;
}

void
dryi_live_remove(struct dryi_live *live, const struct dryi_live_entry *entry)
{
    size_t mask = live->slot_count - 1;
    size_t hole = (size_t)(entry - live->slots);
    DRYI_ASSERT(live->slots[hole].used);
    /* An entry may move back into the hole unless its home slot is after the hole. */
    for (size_t next = (hole + 1) & mask; live->slots[next].used;
         next = (next + 1) & mask) {
        size_t home = get_home(live, live->slots[next].id);
        if (((next - home) & mask) >= ((next - hole) & mask)) {
            live->slots[hole] = live->slots[next];
            hole = next;
        }
    }
    live->slots[hole].used = 0;
    live->count--;
}
