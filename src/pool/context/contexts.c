/* SPDX-License-Identifier: Apache-2.0 */

/* See contexts.h. */

#include "pool/context/contexts.h"

#include <drystone/trace.h>

#include "base/assert.h"
#include "base/memory.h"

void
dryi_contexts_init(struct dryi_contexts *c, const struct dry_memory *memory,
                   void (*release)(void *self, uint32_t number), void *release_self)
{
    *c = (struct dryi_contexts){
        .memory = *memory, .release = release, .release_self = release_self};
    dryi_map_init(&c->index, memory);
}

static void
release(const struct dryi_contexts *c, uint32_t number, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++)
        c->release(c->release_self, number);
}

void
dryi_contexts_finish(struct dryi_contexts *c)
{
    size_t at = 0;
    for (const struct dryi_map_slot *slot = dryi_map_next(&c->index, &at); slot;
         slot = dryi_map_next(&c->index, &at)) {
        const struct dryi_context *record = &c->records[slot->value];
        release(c, record->number, record->given);
    }
    dryi_map_finish(&c->index);
    dryi_memory_free(&c->memory, c->records, c->capacity, sizeof *c->records);
    c->records = NULL;
    c->capacity = 0;
    c->count = c->unused = 0;
}

static struct dryi_context *
find(const struct dryi_contexts *c, uint32_t number)
{
    const uint32_t *at = dryi_map_find(&c->index, number);
    return at ? &c->records[*at] : NULL;
}

/* Return the index for a new record; UINT32_MAX: out of memory. */
static uint32_t
take_index(struct dryi_contexts *c)
{
    if (c->unused > 0)
        return c->unused - 1;
    return dryi_memory_grow(&c->memory, &c->records, &c->capacity, (size_t)c->count + 1,
                            sizeof *c->records)
               ? c->count
               : UINT32_MAX;
}

bool
dryi_contexts_give(struct dryi_contexts *c, uint32_t number)
{
    DRYI_ASSERT_SLOW(number != DRY_NONE);
    if (!c->release)
        return true;
    struct dryi_context *record = find(c, number);
    if (record) {
        record->given++;
        record->holders++;
        return true;
    }
    uint32_t at = take_index(c);
    if (at == UINT32_MAX || !dryi_map_put(&c->index, number, at))
        return false;
    if (at == c->count)
        c->count++;
    else
        c->unused = (uint32_t)c->records[at].holders;
    c->records[at] = (struct dryi_context){.number = number, .given = 1, .holders = 1};
    return true;
}

bool
dryi_contexts_hold(struct dryi_contexts *c, uint32_t number)
{
    if (!c->release || number == DRY_NONE)
        return true;
    struct dryi_context *record = find(c, number);
    if (record)
        record->holders++;
    return record;
}

void
dryi_contexts_drop(struct dryi_contexts *c, uint32_t number)
{
    struct dryi_context *record = NULL;
    if (c->release && number != DRY_NONE)
        record = find(c, number);
    if (!record)
        return;
    DRYI_ASSERT_SLOW(record->holders > 0);
    if (--record->holders > 0)
        return;
    uint32_t given = record->given;
    record->holders = c->unused;
    c->unused = (uint32_t)(record - c->records) + 1;
    dryi_map_take(&c->index, number);
    release(c, number, given);
}
