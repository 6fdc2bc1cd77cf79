/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Take the values of a record's keys. A value of the wrong type is refused, naming the
 * record, the key and the value's type. A list taken as a stack or a pair becomes that,
 * so the next fetch from the memo costs O(1). Cost: O(1) a number, O(frames) a new stack.
 */
#include "trace/pickle/pickle_field.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "trace/pickle/pickle_object.h"

/* Write the record's name for an error text: "event 12" or "the snapshot". */
static const char *
write_owner(char *text, size_t size, const struct dryi_owner *owner)
{
    if (owner->row == DRYI_NO_ROW)
        return owner->what;
    snprintf(text, size, "%s %zu", owner->what, owner->row);
    return text;
}

const char *
dryi_value_noun(uint64_t value)
{
    static const char *const nouns[] = {
        [DRYI_VALUE_NONE] = "None",
        [DRYI_VALUE_BOOL] = "a bool",
        [DRYI_VALUE_INT] = "an integer",
        [DRYI_VALUE_STRING] = "a string",
        [DRYI_VALUE_BYTES] = "bytes",
        [DRYI_VALUE_BYTEARRAY] = "a bytearray",
        [DRYI_VALUE_PAIR] = "a tuple",
        [DRYI_VALUE_FRAME] = "a frame",
        [DRYI_VALUE_STACK] = "a list of frames",
        [DRYI_VALUE_EXTRA] = "something unknown",
        [DRYI_VALUE_WIDE_INT] = "an integer",
        [DRYI_VALUE_WIDE_UINT] = "an integer",
        [DRYI_VALUE_FLOAT] = "a float",
        [DRYI_VALUE_DICT] = "a dict",
        [DRYI_VALUE_LIST] = "a list",
        [DRYI_VALUE_TUPLE] = "a tuple",
        [DRYI_VALUE_FAR] = "a number",
        [DRYI_VALUE_EVENT] = "an event",
        [DRYI_VALUE_BLOCK] = "a block",
        [DRYI_VALUE_SEGMENT] = "a segment",
        [DRYI_VALUE_ANNOTATION] = "an annotation",
        [DRYI_VALUE_HISTORY] = "a block's history",
        [DRYI_VALUE_ROWS] = "a list that is used already",
    };
    return nouns[dryi_value_kind(value)];
}

enum dry_status
dryi_field_refuse(struct dryi_pickle_walk *w, const struct dryi_owner *owner,
                  enum dryi_key key, uint64_t value, const char *expected)
{
    char who[48];
    return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                        "%s: `%s` is %s, expected %s",
                        write_owner(who, sizeof who, owner), dryi_key_text(key),
                        dryi_value_noun(value), expected);
}

enum dry_status
dryi_field_refuse_item(struct dryi_pickle_walk *w, const struct dryi_owner *owner,
                       enum dryi_key key, uint64_t item, enum dryi_value_kind expected)
{
    char who[48];
    return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                        "%s: an item of `%s` is %s, expected %s",
                        write_owner(who, sizeof who, owner), dryi_key_text(key),
                        dryi_value_noun(item), dryi_value_noun(dryi_value(expected, 0)));
}

enum dry_status
dryi_field_miss(struct dryi_pickle_walk *w, const struct dryi_owner *owner,
                enum dryi_key key)
{
    char who[48];
    return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset, "%s: no `%s`",
                        write_owner(who, sizeof who, owner), dryi_key_text(key));
}

bool
dryi_field_int(const struct dryi_pickle_walk *w, uint64_t value, uint64_t *bits)
{
    enum dryi_value_kind kind = dryi_value_kind(value);
    if (kind == DRYI_VALUE_INT)
        *bits = (uint64_t)((int64_t)value >> DRYI_VALUE_KIND_BITS);
    else if (kind == DRYI_VALUE_WIDE_INT || kind == DRYI_VALUE_WIDE_UINT)
        *bits = w->wides[dryi_value_payload(value)];
    else
        return false;
    return true;
}

enum dry_status
dryi_field_take_int(struct dryi_pickle_walk *w, const struct dryi_owner *owner,
                    enum dryi_key key, uint64_t value, uint64_t *bits)
{
    if (dryi_field_int(w, value, bits))
        return DRY_OK;
    return dryi_field_refuse(w, owner, key, value, "an integer");
}

enum dry_status
dryi_field_take_bool(struct dryi_pickle_walk *w, const struct dryi_owner *owner,
                     enum dryi_key key, uint64_t value, bool *flag)
{
    if (!dryi_value_is(value, DRYI_VALUE_BOOL))
        return dryi_field_refuse(w, owner, key, value, "a bool");
    *flag = dryi_value_payload(value) != 0;
    return DRY_OK;
}

enum dry_status
dryi_field_take_pool(struct dryi_pickle_walk *w, const struct dryi_owner *owner,
                     enum dryi_key key, uint64_t value, struct dry_lane *lane)
{
    static const uint64_t pair_mask = (UINT64_C(1) << DRYI_PAIR_BITS) - 1;
    const uint64_t *items;
    size_t count = 0;
    lane->pool_known = true;
    value = dryi_object_settled(w, value);
    if (dryi_value_is(value, DRYI_VALUE_PAIR)) {
        lane->pool_a = dryi_value_payload(value) >> DRYI_PAIR_BITS;
        lane->pool_b = dryi_value_payload(value) & pair_mask;
        return DRY_OK;
    }
    bool is_pair = dryi_object_items(w, value, DRYI_VALUE_TUPLE, &items, &count) ||
                   dryi_object_items(w, value, DRYI_VALUE_LIST, &items, &count);
    if (!is_pair || count != 2 || !dryi_field_int(w, items[0], &lane->pool_a) ||
        !dryi_field_int(w, items[1], &lane->pool_b))
        return dryi_field_refuse(w, owner, key, value, "a tuple of two integers");
    if (lane->pool_a > pair_mask || lane->pool_b > pair_mask)
        return DRY_OK;
    return dryi_object_become(
        w, value,
        dryi_value(DRYI_VALUE_PAIR, lane->pool_a << DRYI_PAIR_BITS | lane->pool_b));
}

enum dry_status
dryi_field_take_lane(struct dryi_pickle_walk *w, const struct dry_lane *lane,
                     uint32_t *id)
{
    if (w->lane_id == DRY_NONE || memcmp(lane, &w->lane, sizeof *lane) != 0) {
        w->lane = *lane;
        w->lane_id = dryi_intern_put(&w->trace->lanes, lane, sizeof *lane);
        if (w->lane_id == DRYI_INTERN_NONE)
            return dryi_fail_memory(w->err, "a lane");
    }
    *id = w->lane_id;
    return DRY_OK;
}

static enum dry_status
put_stack(struct dryi_pickle_walk *w, const struct dryi_owner *owner, enum dryi_key key,
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
            return dryi_field_refuse_item(w, owner, key, list->items[i],
                                          DRYI_VALUE_FRAME);
    }
    *stack = dryi_intern_put(&w->trace->stacks, w->frame_ids,
                             list->count * sizeof *w->frame_ids);
    return *stack == DRYI_INTERN_NONE ? dryi_fail_memory(w->err, "a stack") : DRY_OK;
}

/* Return whether the stack was a list of strings, which only forward_frames may be. */
static bool
is_text(const struct dryi_pickle_walk *w, uint32_t stack)
{
    size_t length;
    const uint32_t *frames = dryi_intern_get(&w->trace->stacks, stack, &length);
    const struct dry_frame *first =
        length > 0 ? dryi_intern_get(&w->trace->frames, frames[0], NULL) : NULL;
    return first && first->flags & DRY_FRAME_TEXT;
}

enum dry_status
dryi_field_take_stack(struct dryi_pickle_walk *w, const struct dryi_owner *owner,
                      enum dryi_key key, uint64_t value, uint32_t *stack)
{
    uint64_t settled = dryi_object_settled(w, value);
    if (dryi_value_is(settled, DRYI_VALUE_STACK)) {
        *stack = (uint32_t)dryi_value_payload(settled);
        if (key == DRYI_KEY_FRAMES && is_text(w, *stack))
            return dryi_field_refuse_item(w, owner, key, DRYI_VALUE_STRING,
                                          DRYI_VALUE_FRAME);
        return DRY_OK;
    }
    const struct dryi_object *list =
        dryi_value_is(value, DRYI_VALUE_LIST) ? dryi_object_get(w, value) : NULL;
    if (!list)
        return dryi_field_refuse(w, owner, key, value, "a list of frames");
    if (list->row_kind != DRYI_VALUE_NONE)
        return dryi_field_refuse_item(w, owner, key, dryi_value(list->row_kind, 0),
                                      DRYI_VALUE_FRAME);
    enum dry_status status = put_stack(w, owner, key, list, stack);
    if (status == DRY_OK)
        status = dryi_object_become(w, value, dryi_value(DRYI_VALUE_STACK, *stack));
    return status;
}

enum dry_status
dryi_field_take_rows(struct dryi_pickle_walk *w, const struct dryi_owner *owner,
                     enum dryi_key key, uint64_t value, enum dryi_value_kind kind,
                     struct dryi_rows *rows)
{
    *rows = (struct dryi_rows){0};
    if (dryi_object_is_empty_list(w, value)) {
        uint32_t stack;
        return dryi_field_take_stack(w, owner, key, value, &stack);
    }
    if (!dryi_value_is(value, DRYI_VALUE_LIST))
        return dryi_field_refuse(w, owner, key, value, "a list");
    const struct dryi_object *list = dryi_object_get(w, value);
    if (list->settled)
        return dryi_field_refuse(w, owner, key, list->settled, "a list of its own");
    if (list->row_kind != kind) {
        uint64_t first = list->row_kind == DRYI_VALUE_NONE
                             ? list->items[0]
                             : dryi_value(list->row_kind, 0);
        return dryi_field_refuse_item(w, owner, key, first, kind);
    }
    rows->first = list->first_row;
    rows->count = list->count;
    return dryi_object_become(w, value, DRYI_VALUE_ROWS);
}
