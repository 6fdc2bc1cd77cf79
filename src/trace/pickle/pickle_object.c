/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The containers of a pickle, while they are open.
 *
 * Objects are used again as soon as nothing refers to them (W1), so a file of ten million
 * events needs a handful. What a snapshot does not need stays an object to the end; their
 * number is limited, which bounds everything that a hostile file can build from them.
 */
#include <string.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/memory.h"
#include "trace/pickle/pickle_walk.h"

#define OBJECT_COUNT_MAX (1u << 20)
/* A recycled object keeps its array up to this length. */
#define KEPT_ITEM_COUNT_MAX 4096u

static struct dryi_object *
get_object(const struct dryi_walk *w, uint64_t value)
{
    size_t index = (size_t)dryi_value_payload(value);
    DRYI_ASSERT(index < w->object_count);
    DRYI_ASSERT(w->objects[index].kind == dryi_value_kind(value));
    return &w->objects[index];
}

static bool
is_object(uint64_t value)
{
    enum dryi_value_kind kind = dryi_value_kind(value);
    return kind >= DRYI_VALUE_DICT && kind <= DRYI_VALUE_TUPLE;
}

static bool
is_row(uint64_t value)
{
    return dryi_value_kind(value) >= DRYI_VALUE_EVENT;
}

void
dryi_object_keep_wide(struct dryi_walk *w, uint64_t value)
{
    enum dryi_value_kind kind = dryi_value_kind(value);
    size_t end = (size_t)dryi_value_payload(value) + 1;
    if (kind >= DRYI_VALUE_WIDE_INT && kind <= DRYI_VALUE_FLOAT && end > w->wides_kept)
        w->wides_kept = end;
}

static enum dry_status
take_free(struct dryi_walk *w, uint32_t *index)
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
dryi_object_new(struct dryi_walk *w, enum dryi_value_kind kind, uint64_t *value)
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

static void
recycle(struct dryi_walk *w, uint64_t value)
{
    struct dryi_object *object = get_object(w, value);
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
dryi_memo_entry(struct dryi_walk *w, uint64_t value, uint32_t *entry)
{
    if (is_row(value)) /* used once, never fetched (W4) */
        value = (uint64_t)dryi_value_kind(value);
    dryi_object_keep_wide(w, value);
    *entry = (uint32_t)value;
    if (value <= UINT32_MAX)
        return DRY_OK;
    if (w->far_count > UINT32_MAX >> DRYI_VALUE_KIND_BITS)
        return dryi_fail_at(w->err, DRY_ERR_LIMIT, w->op_offset,
                            "too many large numbers are memoised");
    if (!dryi_memory_grow(&w->memory, &w->far_words, &w->far_capacity, w->far_count + 1,
                          sizeof *w->far_words))
        return dryi_fail_memory(w->err, "the memo");
    *entry = (uint32_t)dryi_value(DRYI_VALUE_FAR, w->far_count);
    w->far_words[w->far_count++] = value;
    return DRY_OK;
}

enum dry_status
dryi_object_become(struct dryi_walk *w, uint64_t value, uint64_t what)
{
    struct dryi_object *object = get_object(w, value);
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
dryi_object_note_memo(struct dryi_walk *w, uint64_t value, uint32_t index)
{
    if (!is_object(value))
        return;
    struct dryi_object *object = get_object(w, value);
    if (object->memo == DRY_NONE)
        object->memo = index;
    else if (object->memo != index)
        object->is_shared = true;
}

void
dryi_object_share(struct dryi_walk *w, uint64_t value)
{
    get_object(w, value)->is_shared = true;
}

bool
dryi_object_release(struct dryi_walk *w, uint64_t value)
{
    const struct dryi_object *object = get_object(w, value);
    bool is_free = object->memo == DRY_NONE && !object->is_shared && !object->is_sealed;
    if (is_free)
        recycle(w, value);
    return is_free;
}

void
dryi_object_unseal(struct dryi_walk *w, uint64_t value)
{
    struct dryi_object *object = get_object(w, value);
    object->is_sealed = object->is_shared;
}

uint64_t
dryi_object_settled(const struct dryi_walk *w, uint64_t value)
{
    if (is_object(value) && get_object(w, value)->settled)
        return get_object(w, value)->settled;
    return value;
}

static enum dry_status
check_open(struct dryi_walk *w, const struct dryi_object *object, const char *what)
{
    if (!object->is_sealed)
        return DRY_OK;
    return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                        "a %s is filled after something else holds it, as only a "
                        "structure that contains itself needs",
                        what);
}

/* A dict's containers are its own while it turns into a record, or again are not. */
static void
seal_items(struct dryi_walk *w, uint64_t dict, bool sealed)
{
    const struct dryi_object *object = get_object(w, dict);
    for (size_t i = 0; i < object->count; i++) {
        if (!is_object(object->items[i]))
            continue;
        if (sealed)
            get_object(w, object->items[i])->is_sealed = true;
        else
            dryi_object_unseal(w, object->items[i]);
    }
}

/* A dict that was filled key by key is known when something takes it. */
static enum dry_status
take_late(struct dryi_walk *w, uint64_t dict, uint64_t *role)
{
    const struct dryi_object *object = get_object(w, dict);
    *role = DRYI_VALUE_NONE;
    seal_items(w, dict, false);
    enum dry_status status = dryi_roles_take(w, object->items, object->count / 2, role);
    if (status == DRY_OK && *role != DRYI_VALUE_NONE)
        return dryi_object_become(w, dict, *role);
    if (status == DRY_OK)
        seal_items(w, dict, true);
    return status;
}

/* The value as a container may hold it; objects in it are sealed. */
static enum dry_status
adopt(struct dryi_walk *w, uint64_t parent, uint64_t *value)
{
    if (!is_object(*value))
        return DRY_OK;
    if (*value == parent)
        return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset, "%s contains itself",
                            dryi_value_noun(parent));
    struct dryi_object *child = get_object(w, *value);
    if (child->kind == DRYI_VALUE_DICT && !child->is_sealed) { /* filled key by key */
        uint64_t role;
        enum dry_status status = take_late(w, *value, &role);
        if (status != DRY_OK || role != DRYI_VALUE_NONE) {
            *value = role;
            return status;
        }
    }
    if (child->settled && (is_row(child->settled) || child->kind == DRYI_VALUE_DICT)) {
        if (is_row(child->settled))
            return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset, "%s is used twice",
                                dryi_value_noun(child->settled));
        *value = child->settled;
        return DRY_OK;
    }
    child->is_sealed = true;
    struct dryi_object *holder = get_object(w, parent);
    if (holder->depth <= child->depth)
        holder->depth = child->depth + 1;
    if (holder->depth > w->depth_max)
        return dryi_fail_at(w->err, DRY_ERR_LIMIT, w->op_offset,
                            "containers nested deeper than %zu", w->depth_max);
    return DRY_OK;
}

/* A row joins the rows before it in its list. */
static enum dry_status
push_row(struct dryi_walk *w, struct dryi_object *list, uint64_t value)
{
    enum dryi_value_kind kind = dryi_value_kind(value);
    size_t row = (size_t)dryi_value_payload(value);
    if (list->count == 0) {
        list->row_kind = kind;
        list->first_row = row;
    }
    if (list->row_kind != kind)
        return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                            "%s in a list, expected it in a list of its kind",
                            dryi_value_noun(value));
    if (row != list->first_row + list->count)
        return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                            "%s in a list in another order than it was written",
                            dryi_value_noun(value));
    list->count++;
    return DRY_OK;
}

static enum dry_status
push_item(struct dryi_walk *w, uint64_t parent, uint64_t item)
{
    enum dry_status status = adopt(w, parent, &item);
    if (status != DRY_OK)
        return status;
    struct dryi_object *object = get_object(w, parent);
    if (is_row(item) && object->kind == DRYI_VALUE_LIST)
        return push_row(w, object, item);
    if (is_row(item) || object->row_kind != DRYI_VALUE_NONE)
        return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                            "%s in %s, expected it in a list of its kind",
                            dryi_value_noun(item), dryi_value_noun(parent));
    if (!dryi_memory_grow(&w->memory, &object->items, &object->capacity,
                          object->count + 1, sizeof *object->items))
        return dryi_fail_memory(w->err, "a container");
    object->items[object->count++] = item;
    dryi_object_keep_wide(w, item);
    return DRY_OK;
}

/* Those at the front that are copied at once: all of them in a list of frames. */
static size_t
count_plain(const uint64_t *values, size_t count)
{
    size_t i = 0;
    while (i < count && dryi_value_kind(values[i]) < DRYI_VALUE_WIDE_INT)
        i++;
    return i;
}

static enum dry_status
append_plain(struct dryi_walk *w, struct dryi_object *list, const uint64_t *values,
             size_t count)
{
    if (!dryi_memory_grow(&w->memory, &list->items, &list->capacity, list->count + count,
                          sizeof *list->items))
        return dryi_fail_memory(w->err, "a list");
    memcpy(list->items + list->count, values, count * sizeof *values);
    list->count += count;
    return DRY_OK;
}

enum dry_status
dryi_object_append(struct dryi_walk *w, uint64_t list, const uint64_t *values,
                   size_t count)
{
    if (!dryi_value_is(list, DRYI_VALUE_LIST))
        return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                            "append to %s, expected a list", dryi_value_noun(list));
    struct dryi_object *object = get_object(w, list);
    enum dry_status status = check_open(w, object, "list");
    size_t plain = object->row_kind == DRYI_VALUE_NONE ? count_plain(values, count) : 0;
    if (status == DRY_OK && plain)
        status = append_plain(w, object, values, plain);
    for (size_t i = plain; status == DRY_OK && i < count; i++)
        status = push_item(w, list, values[i]);
    return status;
}

enum dry_status
dryi_object_fill(struct dryi_walk *w, uint64_t *dict, const uint64_t *pairs,
                 size_t pair_count)
{
    if (!dryi_value_is(*dict, DRYI_VALUE_DICT))
        return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                            "keys for %s, expected a dict that is not complete",
                            dryi_value_noun(*dict));
    const struct dryi_object *object = get_object(w, *dict);
    enum dry_status status = check_open(w, object, "dict");
    if (status != DRY_OK)
        return status;
    if (object->count == 0 && !object->is_shared && pair_count > 1) {
        uint64_t role;
        status = dryi_roles_take(w, pairs, pair_count, &role);
        if (status != DRY_OK)
            return status;
        if (role != DRYI_VALUE_NONE) {
            status = dryi_object_become(w, *dict, role);
            *dict = role;
            return status;
        }
    }
    for (size_t i = 0; status == DRY_OK && i < 2 * pair_count; i++)
        status = push_item(w, *dict, pairs[i]);
    return status;
}

static bool
fits_pair(uint64_t value)
{
    return dryi_value_is(value, DRYI_VALUE_INT) &&
           dryi_value_payload(value) >> DRYI_PAIR_BITS == 0;
}

enum dry_status
dryi_object_make_tuple(struct dryi_walk *w, const uint64_t *values, size_t count,
                       uint64_t *tuple)
{
    if (count == 2 && fits_pair(values[0]) && fits_pair(values[1])) {
        *tuple =
            dryi_value(DRYI_VALUE_PAIR, dryi_value_payload(values[0]) << DRYI_PAIR_BITS |
                                            dryi_value_payload(values[1]));
        return DRY_OK;
    }
    enum dry_status status = dryi_object_new(w, DRYI_VALUE_TUPLE, tuple);
    for (size_t i = 0; status == DRY_OK && i < count; i++)
        status = push_item(w, *tuple, values[i]);
    return status;
}

static enum dry_status
put_stack(struct dryi_walk *w, const struct dryi_owner *owner, enum dryi_key key,
          const struct dryi_object *list, uint32_t *stack)
{
    *stack = DRY_NONE;
    if (!dryi_memory_grow(&w->memory, &w->frame_ids, &w->frame_id_capacity, list->count,
                          sizeof *w->frame_ids))
        return dryi_fail_memory(w->err, "a stack");
    uint64_t wrong = 0;
    for (size_t i = 0; i < list->count; i++) {
        wrong |= (list->items[i] ^ DRYI_VALUE_FRAME) & DRYI_VALUE_KIND_MASK;
        w->frame_ids[i] = (uint32_t)dryi_value_payload(list->items[i]);
    }
    for (size_t i = 0; wrong && i < list->count; i++) {
        if (!dryi_value_is(list->items[i], DRYI_VALUE_FRAME))
            return dryi_roles_refuse_item(w, owner, key, list->items[i],
                                          DRYI_VALUE_FRAME);
    }
    *stack = dryi_intern_put(&w->trace->stacks, w->frame_ids,
                             list->count * sizeof *w->frame_ids);
    return *stack == DRYI_INTERN_NONE ? dryi_fail_memory(w->err, "a stack") : DRY_OK;
}

enum dry_status
dryi_object_take_stack(struct dryi_walk *w, const struct dryi_owner *owner,
                       enum dryi_key key, uint64_t value, uint32_t *stack)
{
    uint64_t settled = dryi_object_settled(w, value);
    if (dryi_value_is(settled, DRYI_VALUE_STACK)) {
        *stack = (uint32_t)dryi_value_payload(settled);
        return DRY_OK;
    }
    const struct dryi_object *list =
        dryi_value_is(value, DRYI_VALUE_LIST) ? get_object(w, value) : NULL;
    if (!list)
        return dryi_roles_refuse(w, owner, key, value, "a list of frames");
    if (list->row_kind != DRYI_VALUE_NONE)
        return dryi_roles_refuse_item(w, owner, key, dryi_value(list->row_kind, 0),
                                      DRYI_VALUE_FRAME);
    enum dry_status status = put_stack(w, owner, key, list, stack);
    if (status == DRY_OK)
        status = dryi_object_become(w, value, dryi_value(DRYI_VALUE_STACK, *stack));
    return status;
}

bool
dryi_object_is_empty_list(const struct dryi_walk *w, uint64_t value)
{
    size_t count = 1;
    if (dryi_value_is(value, DRYI_VALUE_LIST))
        return get_object(w, value)->count == 0;
    if (dryi_value_is(value, DRYI_VALUE_STACK))
        dryi_intern_get(&w->trace->stacks, (uint32_t)dryi_value_payload(value), &count);
    return count == 0;
}

enum dry_status
dryi_object_take_rows(struct dryi_walk *w, const struct dryi_owner *owner,
                      enum dryi_key key, uint64_t value, enum dryi_value_kind kind,
                      struct dryi_rows *rows)
{
    *rows = (struct dryi_rows){0};
    if (dryi_object_is_empty_list(w, value)) {
        uint32_t stack;
        return dryi_object_take_stack(w, owner, key, value, &stack);
    }
    if (!dryi_value_is(value, DRYI_VALUE_LIST))
        return dryi_roles_refuse(w, owner, key, value, "a list");
    const struct dryi_object *list = get_object(w, value);
    if (list->settled)
        return dryi_roles_refuse(w, owner, key, list->settled, "a list of its own");
    if (list->row_kind != kind) {
        uint64_t first = list->row_kind == DRYI_VALUE_NONE
                             ? list->items[0]
                             : dryi_value(list->row_kind, 0);
        return dryi_roles_refuse_item(w, owner, key, first, kind);
    }
    rows->first = list->first_row;
    rows->count = list->count;
    return dryi_object_become(w, value, DRYI_VALUE_ROWS);
}

bool
dryi_object_items(const struct dryi_walk *w, uint64_t value, enum dryi_value_kind kind,
                  const uint64_t **items, size_t *count)
{
    if (!dryi_value_is(value, kind))
        return false;
    const struct dryi_object *object = get_object(w, value);
    *items = object->items;
    *count = object->count;
    return object->row_kind == DRYI_VALUE_NONE && !object->settled;
}
