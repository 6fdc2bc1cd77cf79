/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The index is a hash table of ids with linear probing, at most half full. The hash is seeded, so
 * that no file can choose keys that collide. After dryi_intern_seal() there is no index, and a
 * look-up scans all entries. intern.h describes the arena.
 */

#include "base/intern.h"

#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/memory.h"

void
dryi_intern_init(struct dryi_intern *in, const struct dry_memory *memory)
{
    *in = (struct dryi_intern){.memory = dryi_memory_or_default(memory),
                               .seed = dryi_seed_make(in)};
}

void
dryi_intern_finish(struct dryi_intern *in)
{
    const struct dry_memory *m = &in->memory;
    dryi_memory_free(m, in->bytes, in->byte_capacity, 1);
    dryi_memory_free(m, in->begins, in->begin_capacity, sizeof *in->begins);
    dryi_memory_free(m, in->lengths, in->length_capacity, sizeof *in->lengths);
    dryi_memory_free(m, in->hashes, in->hash_capacity, sizeof *in->hashes);
    dryi_memory_free(m, in->slots, in->slot_count, sizeof *in->slots);
    *in = (struct dryi_intern){.memory = in->memory, .seed = in->seed};
}

/* Hash eight bytes per step: stacks of a hundred frames are looked up for every event. */
static uint32_t
hash_bytes(const struct dryi_intern *in, const void *bytes, size_t length)
{
    const unsigned char *p = bytes;
    uint64_t hash = in->seed ^ length * UINT64_C(0x9e3779b97f4a7c15);
    while (length >= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
        hash ^= hash >> 32;
        p += 8;
        length -= 8;
    }
    uint64_t tail = 0;
    memcpy(&tail, p, length);
    return (uint32_t)(dryi_mix64(hash ^ tail) >> 32);
}

static bool
is_entry(const struct dryi_intern *in, uint32_t id, uint32_t hash, const void *bytes,
         size_t length)
{
    return in->hashes[id] == hash && in->lengths[id] == length &&
           memcmp(in->bytes + in->begins[id], bytes, length) == 0;
}

/* Return the slot that holds these bytes, or the empty slot where they would go. */
static size_t
find_slot(const struct dryi_intern *in, uint32_t hash, const void *bytes, size_t length)
{
    size_t mask = in->slot_count - 1;
    size_t slot = hash & mask;
    while (in->slots[slot] && !is_entry(in, in->slots[slot] - 1, hash, bytes, length))
        slot = (slot + 1) & mask;
    return slot;
}

static bool
grow_slots(struct dryi_intern *in)
{
    if (in->slots && in->count < in->slot_count / 2)
        return true;
    size_t slot_count = in->slot_count ? in->slot_count * 2 : 64;
    while (in->count >= slot_count / 2)
        slot_count *= 2;
    uint32_t *slots = dryi_memory_zalloc(&in->memory, slot_count, sizeof *slots);
    if (!slots)
        return false;
    for (uint32_t id = 0; id < in->count; id++) {
        size_t slot = in->hashes[id] & (slot_count - 1);
        while (slots[slot])
            slot = (slot + 1) & (slot_count - 1);
        slots[slot] = id + 1;
    }
    dryi_memory_free(&in->memory, in->slots, in->slot_count, sizeof *in->slots);
    in->slots = slots;
    in->slot_count = slot_count;
    return true;
}

static bool
append_entry(struct dryi_intern *in, uint32_t hash, const void *bytes, size_t length)
{
    const struct dry_memory *m = &in->memory;
    size_t count = in->count;
    size_t padded = (size_t)dryi_round_up(length + 1, 8);
    if (!dryi_memory_grow(m, &in->bytes, &in->byte_capacity, in->byte_count + padded,
                          1) ||
        !dryi_memory_grow(m, &in->begins, &in->begin_capacity, count + 1, 8) ||
        !dryi_memory_grow(m, &in->lengths, &in->length_capacity, count + 1, 4) ||
        !dryi_memory_grow(m, &in->hashes, &in->hash_capacity, count + 1, 4))
        return false;
    char *to = in->bytes + in->byte_count;
    memcpy(to, bytes, length);
    memset(to + length, 0, padded - length);
    in->begins[count] = in->byte_count;
    in->lengths[count] = (uint32_t)length;
    in->hashes[count] = hash;
    in->byte_count += padded;
    in->count++;
    return true;
}

uint32_t
dryi_intern_put(struct dryi_intern *in, const void *bytes, size_t length)
{
    if (length >= UINT32_MAX || in->count == DRYI_INTERN_NONE - 1 || !grow_slots(in))
        return DRYI_INTERN_NONE;
    static const char nothing[1];
    if (length == 0)
        bytes = nothing;
    uint32_t hash = hash_bytes(in, bytes, length);
    size_t slot = find_slot(in, hash, bytes, length);
    if (in->slots[slot])
        return in->slots[slot] - 1;
    if (!append_entry(in, hash, bytes, length))
        return DRYI_INTERN_NONE;
    in->slots[slot] = in->count;
    return in->count - 1;
}

uint32_t
dryi_intern_find(const struct dryi_intern *in, const void *bytes, size_t length)
{
    static const char nothing[1];
    if (length == 0)
        bytes = nothing;
    uint32_t hash = hash_bytes(in, bytes, length);
    if (in->slots) {
        size_t slot = find_slot(in, hash, bytes, length);
        return in->slots[slot] ? in->slots[slot] - 1 : DRYI_INTERN_NONE;
    }
    for (uint32_t id = 0; id < in->count; id++) { /* sealed: no index, scan all entries */
        if (is_entry(in, id, hash, bytes, length))
            return id;
    }
    return DRYI_INTERN_NONE;
}

const void *
dryi_intern_get(const struct dryi_intern *in, uint32_t id, size_t *length)
{
    DRYI_ASSERT(id < in->count);
    if (length)
        *length = in->lengths[id];
    return in->bytes + in->begins[id];
}

void
dryi_intern_seal(struct dryi_intern *in)
{
    dryi_memory_free(&in->memory, in->slots, in->slot_count, sizeof *in->slots);
    in->slots = NULL;
    in->slot_count = 0;
}
