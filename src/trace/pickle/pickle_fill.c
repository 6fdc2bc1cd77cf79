/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fill containers, and turn dicts into records.
 *
 * A dict whose pairs come at once (SETITEMS) becomes its record before anything is
 * stored. A dict filled key by key is stored, and becomes its record when a container
 * takes it. A list of rows stores only the first row and their number, because rows of
 * one list are made in sequence. Cost: O(values), plus a copy in a list of frames.
 */
#include "trace/pickle/pickle_fill.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "trace/pickle/pickle_object.h"
#include "trace/pickle/pickle_record.h"

static enum dry_status
check_open(struct dryi_pickle_walk *w, const struct dryi_object *object, const char *what)
{
    if (!object->is_sealed)
        return DRY_OK;
    return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                        "a %s is filled after something else holds it, as only a "
                        "structure that contains itself needs",
                        what);
}

/* Seal a dict's containers, or unseal them while its record takes its items. */
static void
seal_items(struct dryi_pickle_walk *w, uint64_t dict, bool sealed)
{
    const struct dryi_object *object = dryi_object_get(w, dict);
    for (size_t i = 0; i < object->count; i++) {
        if (!dryi_value_is_object(object->items[i]))
            continue;
        if (sealed)
            dryi_object_get(w, object->items[i])->is_sealed = true;
        else
            dryi_object_unseal(w, object->items[i]);
    }
}

/*
 * Turn a dict that was filled key by key into its record. All its keys are known only
 * when a container takes it.
 */
static enum dry_status
take_late(struct dryi_pickle_walk *w, uint64_t dict, uint64_t *role)
{
    const struct dryi_object *object = dryi_object_get(w, dict);
    *role = DRYI_VALUE_NONE;
    seal_items(w, dict, false);
    enum dry_status status = dryi_roles_take(w, object->items, object->count / 2, role);
    if (status == DRY_OK && *role != DRYI_VALUE_NONE)
        return dryi_object_become(w, dict, *role);
    if (status == DRY_OK)
        seal_items(w, dict, true);
    return status;
}

/* Make *value ready to be held by `parent`, sealing it if it is an object. */
static enum dry_status
adopt(struct dryi_pickle_walk *w, uint64_t parent, uint64_t *value)
{
    if (!dryi_value_is_object(*value))
        return DRY_OK;
    if (*value == parent)
        return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset, "%s contains itself",
                            dryi_value_noun(parent));
    struct dryi_object *child = dryi_object_get(w, *value);
    if (child->kind == DRYI_VALUE_DICT && !child->is_sealed) { /* filled key by key */
        uint64_t role;
        enum dry_status status = take_late(w, *value, &role);
        if (status != DRY_OK || role != DRYI_VALUE_NONE) {
            *value = role;
            return status;
        }
    }
    if (child->settled &&
        (dryi_value_is_row(child->settled) || child->kind == DRYI_VALUE_DICT)) {
        if (dryi_value_is_row(child->settled))
            return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset, "%s is used twice",
                                dryi_value_noun(child->settled));
        *value = child->settled;
        return DRY_OK;
    }
    child->is_sealed = true;
    struct dryi_object *holder = dryi_object_get(w, parent);
    if (holder->depth <= child->depth)
        holder->depth = child->depth + 1;
    if (holder->depth > w->depth_max)
        return dryi_fail_at(w->err, DRY_ERR_LIMIT, w->op_offset,
                            "containers nested deeper than %zu", w->depth_max);
    return DRY_OK;
}

/* Append a row to a list of rows. Requires it to follow the last row of the list. */
static enum dry_status
push_row(struct dryi_pickle_walk *w, struct dryi_object *list, uint64_t value)
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
push_item(struct dryi_pickle_walk *w, uint64_t parent, uint64_t item)
{
    enum dry_status status = adopt(w, parent, &item);
    if (status != DRY_OK)
        return status;
    struct dryi_object *object = dryi_object_get(w, parent);
    if (dryi_value_is_row(item) && object->kind == DRYI_VALUE_LIST)
        return push_row(w, object, item);
    if (dryi_value_is_row(item) || object->row_kind != DRYI_VALUE_NONE)
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

/*
 * Count the leading values that need no sealing and are copied at once. In a list of
 * frames, that is all of them.
 */
static size_t
count_plain(const uint64_t *values, size_t count)
{
    size_t i = 0;
    while (i < count && dryi_value_kind(values[i]) < DRYI_VALUE_WIDE_INT)
        i++;
    return i;
}

static enum dry_status
append_plain(struct dryi_pickle_walk *w, struct dryi_object *list, const uint64_t *values,
             size_t count)
{
    if (!dryi_memory_grow(&w->memory, &list->items, &list->capacity, list->count + count,
                          sizeof *list->items))
        return dryi_fail_memory(w->err, "a list");
    memcpy(list->items + list->count, values, count * sizeof *values);
    list->count += count;
    return DRY_OK;
}

/* Append the leading values that continue the list's rows. Returns their number. */
static size_t
append_rows(struct dryi_object *list, const uint64_t *values, size_t count)
{
    uint64_t next = dryi_value(list->row_kind, list->first_row + list->count);
    size_t i = 0;
    while (i < count && values[i] == next) {
        next += UINT64_C(1) << DRYI_VALUE_KIND_BITS;
        i++;
    }
    list->count += i;
    return i;
}

enum dry_status
dryi_object_append(struct dryi_pickle_walk *w, uint64_t list, const uint64_t *values,
                   size_t count)
{
    if (!dryi_value_is(list, DRYI_VALUE_LIST))
        return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                            "append to %s, expected a list", dryi_value_noun(list));
    struct dryi_object *object = dryi_object_get(w, list);
    enum dry_status status = check_open(w, object, "list");
    size_t plain = object->row_kind == DRYI_VALUE_NONE ? count_plain(values, count) : 0;
    if (status == DRY_OK && plain)
        status = append_plain(w, object, values, plain);
    size_t i = plain;
    while (status == DRY_OK && i < count) {
        status = push_item(w, list, values[i++]);
        object = dryi_object_get(w, list);
        if (status == DRY_OK && object->row_kind != DRYI_VALUE_NONE)
            i += append_rows(object, values + i, count - i);
    }
    return status;
}

enum dry_status
dryi_object_fill(struct dryi_pickle_walk *w, uint64_t *dict, const uint64_t *pairs,
                 size_t pair_count)
{
    if (!dryi_value_is(*dict, DRYI_VALUE_DICT))
        return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                            "keys for %s, expected a dict that is not complete",
                            dryi_value_noun(*dict));
    const struct dryi_object *object = dryi_object_get(w, *dict);
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
dryi_object_make_tuple(struct dryi_pickle_walk *w, const uint64_t *values, size_t count,
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
