/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The containers of a pickle, while they are open: an array of objects, and a free list
 * chained through it. Every operation is O(1).
 *
 * An object is reused once no value refers to it (W1), so even ten million events need
 * only a few. A container that no record takes stays an object to the end. The number of
 * objects is limited, which bounds what a hostile file can build.
 */
#include "trace/pickle/pickle_object.h"

#include "base/fail.h"
#include "base/memory.h"

#define OBJECT_COUNT_MAX (1u << 20)
/* A recycled object keeps its array of items up to this capacity. */
#define KEPT_ITEM_COUNT_MAX 4096u

void
dryi_object_keep_wide(struct dryi_pickle_walk *w, uint64_t value)
{
    enum dryi_value_kind kind = dryi_value_kind(value);
    size_t end = (size_t)dryi_value_payload(value) + 1;
    if (kind >= DRYI_VALUE_WIDE_INT && kind <= DRYI_VALUE_FLOAT && end > w->wides_kept)
        w->wides_kept = end;
}

static enum dry_status
take_free(struct dryi_pickle_walk *w, uint32_t *index)
{
    if (w->first_free != DRY_NONE) {
        *index = w->first_free;
        w->first_free = w->objects[*index].next_free;
        return DRY_OK;
    }
    if (w->object_count == OBJECT_COUNT_MAX)
        return dryi_fail_at(w->err, DRY_ERR_LIMIT, w->op_offset,
                            "more than %u containers are open or unknown to a snapshot",
                            OBJECT_COUNT_MAX);
    if (!dryi_memory_grow(&w->memory, &w->objects, &w->object_capacity,
                          w->object_count + 1, sizeof *w->objects))
        return dryi_fail_memory(w->err, "the containers");
    *index = (uint32_t)w->object_count++;
    w->objects[*index] = (struct dryi_object){0};
    return DRY_OK;
}

enum dry_status
dryi_object_new(struct dryi_pickle_walk *w, enum dryi_value_kind kind, uint64_t *value)
{
    uint32_t index = 0;
    enum dry_status status = take_free(w, &index);
    if (status != DRY_OK)
        return status;
    struct dryi_object *object = &w->objects[index];
    object->count = 0;
    object->settled = 0;
    object->memo = DRY_NONE;
    object->kind = kind;
    object->row_kind = DRYI_VALUE_NONE;
    object->depth = 0;
    object->is_shared = object->is_sealed = false;
    *value = dryi_value(kind, index);
    return DRY_OK;
}

bool
dryi_object_has_room(const struct dryi_pickle_walk *w, uint32_t count)
{
    return w->object_count <= OBJECT_COUNT_MAX - count;
}

static void
recycle(struct dryi_pickle_walk *w, uint64_t value)
{
    struct dryi_object *object = dryi_object_get(w, value);
    if (object->capacity > KEPT_ITEM_COUNT_MAX) {
        dryi_memory_free(&w->memory, object->items, object->capacity,
                         sizeof *object->items);
        object->items = NULL;
        object->capacity = 0;
    }
    object->kind = DRYI_VALUE_NONE;
    object->next_free = w->first_free;
    w->first_free = (uint32_t)dryi_value_payload(value);
}

enum dry_status
dryi_memo_entry(struct dryi_pickle_walk *w, uint64_t value, uint32_t *entry)
{
    if (dryi_value_is_row(value)) /* rows are used once and never fetched (W4) */
        value = (uint64_t)dryi_value_kind(value);
    dryi_object_keep_wide(w, value);
    *entry = (uint32_t)value;
    if (value <= UINT32_MAX)
        return DRY_OK;
    if (w->far_count > UINT32_MAX >> DRYI_VALUE_KIND_BITS)
        return dryi_fail_at(w->err, DRY_ERR_LIMIT, w->op_offset,
                            "too many large numbers are memoised");
    if (!dryi_memory_grow(&w->memory, &w->far_values, &w->far_capacity, w->far_count + 1,
                          sizeof *w->far_values))
        return dryi_fail_memory(w->err, "the memo");
    *entry = (uint32_t)dryi_value(DRYI_VALUE_FAR, w->far_count);
    w->far_values[w->far_count++] = value;
    return DRY_OK;
}

enum dry_status
dryi_object_become(struct dryi_pickle_walk *w, uint64_t value, uint64_t what)
{
    struct dryi_object *object = dryi_object_get(w, value);
    enum dry_status status = DRY_OK;
    if (object->memo < w->memo_count && w->memo[object->memo] == (uint32_t)value)
        status = dryi_memo_entry(w, what, &w->memo[object->memo]);
    object->settled = what;
    if (object->is_shared || object->is_sealed)
        object->is_sealed = true;
    else
        recycle(w, value);
    return status;
}

void
dryi_object_note_memo(struct dryi_pickle_walk *w, uint64_t value, uint32_t index)
{
    if (!dryi_value_is_object(value))
        return;
    struct dryi_object *object = dryi_object_get(w, value);
    if (object->memo == DRY_NONE)
        object->memo = index;
    else if (object->memo != index)
        object->is_shared = true;
}

void
dryi_object_share(struct dryi_pickle_walk *w, uint64_t value)
{
    dryi_object_get(w, value)->is_shared = true;
}

bool
dryi_object_release(struct dryi_pickle_walk *w, uint64_t value)
{
    const struct dryi_object *object = dryi_object_get(w, value);
    bool is_free = object->memo == DRY_NONE && !object->is_shared && !object->is_sealed;
    if (is_free)
        recycle(w, value);
    return is_free;
}

void
dryi_object_unseal(struct dryi_pickle_walk *w, uint64_t value)
{
    struct dryi_object *object = dryi_object_get(w, value);
    object->is_sealed = object->is_shared;
}

uint64_t
dryi_object_settled(const struct dryi_pickle_walk *w, uint64_t value)
{
    if (dryi_value_is_object(value) && dryi_object_get(w, value)->settled)
        return dryi_object_get(w, value)->settled;
    return value;
}

bool
dryi_object_is_empty_list(const struct dryi_pickle_walk *w, uint64_t value)
{
    size_t count = 1;
    if (dryi_value_is(value, DRYI_VALUE_LIST))
        return dryi_object_get(w, value)->count == 0;
    if (dryi_value_is(value, DRYI_VALUE_STACK))
        dryi_intern_get(&w->trace->stacks, (uint32_t)dryi_value_payload(value), &count);
    return count == 0;
}

bool
dryi_object_items(const struct dryi_pickle_walk *w, uint64_t value,
                  enum dryi_value_kind kind, const uint64_t **items, size_t *count)
{
    if (!dryi_value_is(value, kind))
        return false;
    const struct dryi_object *object = dryi_object_get(w, value);
    *items = object->items;
    *count = object->count;
    return object->row_kind == DRYI_VALUE_NONE && !object->settled;
}
