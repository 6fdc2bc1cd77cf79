/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a dict is, known by its keys, and what its values must be.
 *
 * PyTorch writes no types, only keys, and each kind of record has one or two that no other
 * has. Keys are interned first, in a fixed order, so that a key is a small number, a set of
 * keys is a word of bits, and reading a record is a switch.
 */
#include "trace/pickle/pickle_walk.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

static const char *const key_texts[DRYI_TEXT_COUNT] = {
    [DRYI_KEY_ACTION] = "action",
    [DRYI_KEY_ADDR] = "addr",
    [DRYI_KEY_SIZE] = "size",
    [DRYI_KEY_STREAM] = "stream",
    [DRYI_KEY_TIME_US] = "time_us",
    [DRYI_KEY_FRAMES] = "frames",
    [DRYI_KEY_FORWARD_FRAMES] = "forward_frames",
    [DRYI_KEY_COMPILE_CONTEXT] = "compile_context",
    [DRYI_KEY_USER_METADATA] = "user_metadata",
    [DRYI_KEY_POOL_ID] = "pool_id",
    [DRYI_KEY_DEVICE_FREE] = "device_free",
    [DRYI_KEY_NAME] = "name",
    [DRYI_KEY_FILENAME] = "filename",
    [DRYI_KEY_LINE] = "line",
    [DRYI_KEY_ADDRESS] = "address",
    [DRYI_KEY_REQUESTED_SIZE] = "requested_size",
    [DRYI_KEY_STATE] = "state",
    [DRYI_KEY_HISTORY] = "history",
    [DRYI_KEY_REAL_SIZE] = "real_size",
    [DRYI_KEY_DEVICE] = "device",
    [DRYI_KEY_TOTAL_SIZE] = "total_size",
    [DRYI_KEY_ALLOCATED_SIZE] = "allocated_size",
    [DRYI_KEY_ACTIVE_SIZE] = "active_size",
    [DRYI_KEY_SEGMENT_TYPE] = "segment_type",
    [DRYI_KEY_SEGMENT_POOL_ID] = "segment_pool_id",
    [DRYI_KEY_IS_EXPANDABLE] = "is_expandable",
    [DRYI_KEY_BLOCKS] = "blocks",
    [DRYI_KEY_STAGE] = "stage",
    [DRYI_KEY_SEGMENTS] = "segments",
    [DRYI_KEY_DEVICE_TRACES] = "device_traces",
    [DRYI_KEY_TRACES] = "traces",
    [DRYI_KEY_ALLOCATOR_SETTINGS] = "allocator_settings",
    [DRYI_KEY_EXTERNAL_ANNOTATIONS] = "external_annotations",
    [DRYI_KEY_HOST_SEGMENTS] = "host_segments",
    [DRYI_KEY_HOST_TRACES] = "host_traces",
    [DRYI_KEY_CONF] = "PYTORCH_CUDA_ALLOC_CONF",
    [DRYI_KEY_MAX_SPLIT_SIZE] = "max_split_size",
    [DRYI_KEY_GC_THRESHOLD] = "garbage_collection_threshold",
    [DRYI_KEY_EXPANDABLE_SEGMENTS] = "expandable_segments",
    [DRYI_KEY_ROUNDUP] = "roundup_power2_divisions",
    [DRYI_TEXT_LARGE] = "large",
    [DRYI_TEXT_SMALL] = "small",
    [DRYI_TEXT_INACTIVE] = "inactive",
    [DRYI_TEXT_ACTIVE] = "active_allocated",
    [DRYI_TEXT_PENDING_FREE] = "active_pending_free",
    [DRYI_TEXT_AWAITING_FREE] = "active_awaiting_free",
};

const char *
dryi_key_text(enum dryi_key key)
{
    return key_texts[key];
}

enum dry_status
dryi_walk_init_keys(struct dryi_walk *w)
{
    struct dryi_intern *strings = &w->trace->strings;
    for (unsigned i = 0; i < DRYI_TEXT_COUNT + DRY_ACTION_OTHER; i++) {
        const char *text = i < DRYI_TEXT_COUNT
                               ? key_texts[i]
                               : dry_action_name((enum dry_action)(i - DRYI_TEXT_COUNT));
        if (dryi_intern_put(strings, text, strlen(text)) != i)
            return dryi_fail_memory(w->err, "the keys");
    }
    return DRY_OK;
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

static uint64_t
bit(enum dryi_key key)
{
    return UINT64_C(1) << key;
}

static bool
has_all(uint64_t keys, uint64_t wanted)
{
    return (keys & wanted) == wanted;
}

enum dry_status
dryi_roles_take(struct dryi_walk *w, const uint64_t *pairs, size_t pair_count,
                uint64_t *value)
{
    uint64_t keys = 0;
    for (size_t i = 0; i < pair_count; i++)
        keys |= bit(dryi_value_key(pairs[2 * i]));
    if (keys & bit(DRYI_KEY_ACTION))
        return dryi_event_take(w, pairs, pair_count, value);
    if (keys & bit(DRYI_KEY_FILENAME) && keys & (bit(DRYI_KEY_LINE) | bit(DRYI_KEY_NAME)))
        return dryi_frame_take(w, pairs, pair_count, value);
    if (has_all(keys, bit(DRYI_KEY_STATE) | bit(DRYI_KEY_SIZE)))
        return dryi_block_take(w, pairs, pair_count, value);
    if (has_all(keys, bit(DRYI_KEY_BLOCKS) | bit(DRYI_KEY_TOTAL_SIZE)))
        return dryi_segment_take(w, pairs, pair_count, value);
    if (has_all(keys, bit(DRYI_KEY_STAGE) | bit(DRYI_KEY_NAME)))
        return dryi_annotation_take(w, pairs, pair_count, value);
    if (has_all(keys, bit(DRYI_KEY_ADDR) | bit(DRYI_KEY_REAL_SIZE)))
        return dryi_history_take(w, pairs, pair_count, value);
    *value = DRYI_VALUE_NONE;
    return DRY_OK;
}

/* "event 12" or "the snapshot". */
static const char *
write_owner(char *text, size_t size, const struct dryi_owner *owner)
{
    if (owner->row == DRYI_NO_ROW)
        return owner->what;
    snprintf(text, size, "%s %zu", owner->what, owner->row);
    return text;
}

enum dry_status
dryi_roles_refuse(struct dryi_walk *w, const struct dryi_owner *owner, enum dryi_key key,
                  uint64_t value, const char *expected)
{
    char who[48];
    return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                        "%s: `%s` is %s, expected %s",
                        write_owner(who, sizeof who, owner), dryi_key_text(key),
                        dryi_value_noun(value), expected);
}

enum dry_status
dryi_roles_refuse_item(struct dryi_walk *w, const struct dryi_owner *owner,
                       enum dryi_key key, uint64_t item, enum dryi_value_kind expected)
{
    char who[48];
    return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                        "%s: an item of `%s` is %s, expected %s",
                        write_owner(who, sizeof who, owner), dryi_key_text(key),
                        dryi_value_noun(item), dryi_value_noun(dryi_value(expected, 0)));
}

enum dry_status
dryi_roles_miss(struct dryi_walk *w, const struct dryi_owner *owner, enum dryi_key key)
{
    char who[48];
    return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset, "%s: no `%s`",
                        write_owner(who, sizeof who, owner), dryi_key_text(key));
}

bool
dryi_roles_int(const struct dryi_walk *w, uint64_t value, uint64_t *bits)
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
dryi_roles_take_int(struct dryi_walk *w, const struct dryi_owner *owner,
                    enum dryi_key key, uint64_t value, uint64_t *bits)
{
    if (dryi_roles_int(w, value, bits))
        return DRY_OK;
    return dryi_roles_refuse(w, owner, key, value, "an integer");
}

enum dry_status
dryi_roles_take_bool(struct dryi_walk *w, const struct dryi_owner *owner,
                     enum dryi_key key, uint64_t value, bool *flag)
{
    if (!dryi_value_is(value, DRYI_VALUE_BOOL))
        return dryi_roles_refuse(w, owner, key, value, "a bool");
    *flag = dryi_value_payload(value) != 0;
    return DRY_OK;
}

enum dry_status
dryi_roles_take_pool(struct dryi_walk *w, const struct dryi_owner *owner,
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
    if (!is_pair || count != 2 || !dryi_roles_int(w, items[0], &lane->pool_a) ||
        !dryi_roles_int(w, items[1], &lane->pool_b))
        return dryi_roles_refuse(w, owner, key, value, "a tuple of two integers");
    if (lane->pool_a > pair_mask || lane->pool_b > pair_mask)
        return DRY_OK;
    return dryi_object_become(
        w, value,
        dryi_value(DRYI_VALUE_PAIR, lane->pool_a << DRYI_PAIR_BITS | lane->pool_b));
}

enum dry_status
dryi_roles_take_lane(struct dryi_walk *w, const struct dry_lane *lane, uint32_t *id)
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
