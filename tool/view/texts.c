/* SPDX-License-Identifier: Apache-2.0 */
/* See texts.h. */
#include "view/texts.h"

#include <stdlib.h>
#include <string.h>

#include "base/fnv.h"

#define SLOTS_FIRST 1024 /* must be a power of 2 */

bool
texts_init(struct texts *t, const struct dry_trace *trace, struct pack *pack)
{
    *t = (struct texts){.trace = trace, .pack = pack, .slot_count = SLOTS_FIRST};
    size_t bytes = dry_trace_get_view(trace)->string_count * sizeof *t->number_of;
    t->number_of = malloc(bytes + 1);
    t->slots = malloc(t->slot_count * sizeof *t->slots);
    t->text = pack_column(pack, "text", PACK_U8);
    t->from = pack_column(pack, "text_from", PACK_U32);
    pack_u32(pack, t->from, 0);
    if (!t->number_of || !t->slots)
        return false;
    memset(t->number_of, 0xff, bytes); /* DRY_NONE */
    memset(t->slots, 0xff, t->slot_count * sizeof *t->slots);
    return true;
}

void
texts_finish(struct texts *t)
{
    free(t->number_of);
    free(t->slots);
}

static uint32_t
add_text(struct texts *t, const char *bytes, size_t length)
{
    pack_text(t->pack, t->text, bytes, length);
    pack_u32(t->pack, t->from, (uint32_t)pack_length(t->pack, t->text));
    return t->count++;
}

uint32_t
texts_find_string(struct texts *t, uint32_t string)
{
    if (string == DRY_NONE)
        return DRY_NONE;
    uint32_t *number = &t->number_of[string];
    if (*number == DRY_NONE) {
        size_t length;
        const char *bytes = dry_trace_string(t->trace, string, &length);
        *number = add_text(t, bytes, length);
    }
    return *number;
}

/* --- texts that were made ----------------------------------------------------------------- */

/* Return the bytes of a text. Requires that the pack has not failed. */
static const char *
get_bytes(const struct texts *t, uint32_t number, size_t *length)
{
    const unsigned char *column = t->pack->columns[t->from].bytes;
    uint32_t bounds[2];
    memcpy(bounds, column + number * sizeof *bounds, sizeof bounds);
    *length = bounds[1] - bounds[0];
    return (const char *)t->pack->columns[t->text].bytes + bounds[0];
}

/* Return the slot of a text with these bytes, or the empty slot for it. */
static uint32_t *
find_slot(const struct texts *t, const char *bytes, size_t length)
{
    uint64_t hash = fnv_add(FNV_BEGIN, bytes, length);
    for (size_t at = (size_t)(hash ^ hash >> 32);; at++) {
        uint32_t *slot = &t->slots[at & (t->slot_count - 1)];
        size_t other_length;
        if (*slot == DRY_NONE)
            return slot;
        const char *other = get_bytes(t, *slot, &other_length);
        if (other_length == length && memcmp(other, bytes, length) == 0)
            return slot;
    }
}

static bool
grow(struct texts *t)
{
    uint32_t *old = t->slots;
    size_t old_count = t->slot_count, bytes = old_count * 2 * sizeof *old;
    uint32_t *larger = malloc(bytes);
    if (!larger)
        return false;
    memset(larger, 0xff, bytes);
    t->slots = larger;
    t->slot_count *= 2;
    for (size_t i = 0; i < old_count; i++) {
        size_t length;
        if (old[i] == DRY_NONE)
            continue;
        const char *text = get_bytes(t, old[i], &length);
        *find_slot(t, text, length) = old[i];
    }
    free(old);
    return true;
}

uint32_t
texts_find(struct texts *t, const char *bytes, size_t length)
{
    if (!t->pack->has_failed && t->made_count * 2 >= t->slot_count)
        t->pack->has_failed = !grow(t);
    if (t->pack->has_failed)
        return 0;
    uint32_t *slot = find_slot(t, bytes, length);
    if (*slot == DRY_NONE) {
        uint32_t number = add_text(t, bytes, length);
        *slot = number;
        t->made_count++;
    }
    return *slot;
}
