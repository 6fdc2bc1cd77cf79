/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Unknown keys, kept for the writer.
 *
 * A later release of PyTorch may add keys anywhere. Their values are kept as a run of
 * pickle opcodes, key value key value ..., without the memo. The writer copies the run
 * between its own keys and SETITEMS. Without a memo, a shared value is written at each of
 * its uses, so a small file could grow without bound. Two limits prevent this: one on the
 * unknown keys of a dict, one on their sum relative to the bytes read.
 *
 * Nested values are walked with an explicit stack of levels, as deep as nesting is
 * allowed.
 */
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "trace/pickle/pickle.h"
#include "trace/pickle/pickle_extra.h"
#include "trace/pickle/pickle_field.h"
#include "trace/pickle/pickle_object.h"

#define EXTRA_BYTES_MAX ((size_t)64 << 10)
#define TOTAL_FACTOR 8u
#define TOTAL_BYTES_MIN DRYI_MIB

static enum dry_status
put(struct dryi_pickle_walk *w, const void *bytes, size_t count)
{
    if (count > EXTRA_BYTES_MAX || w->extra_count + count > EXTRA_BYTES_MAX)
        return dryi_fail_at(w->err, DRY_ERR_LIMIT, w->op_offset,
                            "unknown keys of one dict take more than %zu bytes",
                            EXTRA_BYTES_MAX);
    if (!dryi_memory_grow(&w->memory, &w->extra, &w->extra_capacity,
                          w->extra_count + count, 1))
        return dryi_fail_memory(w->err, "unknown keys");
    memcpy(w->extra + w->extra_count, bytes, count);
    w->extra_count += count;
    return DRY_OK;
}

static enum dry_status
put_op(struct dryi_pickle_walk *w, enum dryi_opcode opcode)
{
    uint8_t byte = (uint8_t)opcode;
    return put(w, &byte, 1);
}

/* Write an opcode, a length in `length_bytes` bytes, and the bytes. */
static enum dry_status
put_counted(struct dryi_pickle_walk *w, enum dryi_opcode opcode, size_t length_bytes,
            const void *bytes, size_t length)
{
    uint8_t head[9] = {(uint8_t)opcode};
    for (size_t i = 0; i < length_bytes; i++)
        head[1 + i] = (uint8_t)((uint64_t)length >> 8 * i);
    enum dry_status status = put(w, head, 1 + length_bytes);
    return status == DRY_OK ? put(w, bytes, length) : status;
}

static enum dry_status
put_string(struct dryi_pickle_walk *w, uint32_t id)
{
    size_t length;
    const char *bytes = dryi_intern_get(&w->trace->strings, id, &length);
    if (length > UINT8_MAX)
        return put_counted(w, DRYI_OP_BINUNICODE, 4, bytes, length);
    return put_counted(w, DRYI_OP_SHORT_BINUNICODE, 1, bytes, length);
}

static enum dry_status
put_bytes(struct dryi_pickle_walk *w, uint32_t id, bool is_array)
{
    size_t length;
    const char *bytes = dryi_intern_get(&w->trace->strings, id, &length);
    if (is_array)
        return put_counted(w, DRYI_OP_BYTEARRAY8, 8, bytes, length);
    if (length > UINT8_MAX)
        return put_counted(w, DRYI_OP_BINBYTES, 4, bytes, length);
    return put_counted(w, DRYI_OP_SHORT_BINBYTES, 1, bytes, length);
}

/* Write an integer in CPython's shortest form; LONG1 if it exceeds a signed 32 bits. */
static enum dry_status
put_int(struct dryi_pickle_walk *w, uint64_t bits, bool is_negative)
{
    uint8_t little[9];
    for (size_t i = 0; i < 8; i++)
        little[i] = (uint8_t)(bits >> 8 * i);
    little[8] = is_negative ? 0xff : 0;
    enum dryi_opcode opcode = DRYI_OP_BININT;
    size_t length = 4;
    if (!is_negative && bits <= UINT8_MAX) {
        opcode = DRYI_OP_BININT1;
        length = 1;
    } else if (!is_negative && bits <= UINT16_MAX) {
        opcode = DRYI_OP_BININT2;
        length = 2;
    } else if ((bits + (UINT64_C(1) << 31)) >> 32 != 0 ||
               is_negative != (bits >> 63 != 0)) {
        length = 9;
        while (little[length - 1] == little[8] &&
               (little[length - 2] & 0x80) == (little[8] & 0x80))
            length--;
        return put_counted(w, DRYI_OP_LONG1, 1, little, length);
    }
    enum dry_status status = put_op(w, opcode);
    return status == DRY_OK ? put(w, little, length) : status;
}

static enum dry_status
put_float(struct dryi_pickle_walk *w, uint64_t bits)
{
    uint8_t piece[9] = {DRYI_OP_BINFLOAT};
    for (size_t i = 0; i < 8; i++)
        piece[1 + i] = (uint8_t)(bits >> (56 - 8 * i));
    return put(w, piece, sizeof piece);
}

static enum dry_status
put_pair(struct dryi_pickle_walk *w, uint64_t payload)
{
    enum dry_status status = put_int(w, payload >> DRYI_PAIR_BITS, false);
    if (status == DRY_OK)
        status = put_int(w, payload & ((UINT64_C(1) << DRYI_PAIR_BITS) - 1), false);
    return status == DRY_OK ? put_op(w, DRYI_OP_TUPLE2) : status;
}

static enum dry_status
put_key_string(struct dryi_pickle_walk *w, enum dryi_key key, uint32_t string)
{
    if (string == DRY_NONE)
        return DRY_OK;
    enum dry_status status = put_string(w, (uint32_t)key);
    return status == DRY_OK ? put_string(w, string) : status;
}

static enum dry_status
put_frame(struct dryi_pickle_walk *w, uint32_t id)
{
    struct dry_frame frame =
        *(const struct dry_frame *)dryi_intern_get(&w->trace->frames, id, NULL);
    if (frame.flags & DRY_FRAME_TEXT)
        return put_string(w, frame.extra);
    enum dry_status status = put(w, (uint8_t[]){DRYI_OP_EMPTY_DICT, DRYI_OP_MARK}, 2);
    if (status == DRY_OK)
        status = put_key_string(w, DRYI_KEY_NAME, frame.name);
    if (status == DRY_OK)
        status = put_key_string(w, DRYI_KEY_FILENAME, frame.file);
    if (status == DRY_OK)
        status = put_string(w, DRYI_KEY_LINE);
    if (status == DRY_OK)
        status = put_int(w, frame.line, false);
    if (status == DRY_OK && frame.extra != DRY_NONE) {
        size_t length;
        const char *bytes = dryi_intern_get(&w->trace->strings, frame.extra, &length);
        status = put(w, bytes, length);
    }
    return status == DRY_OK ? put_op(w, DRYI_OP_SETITEMS) : status;
}

static enum dry_status
put_stack(struct dryi_pickle_walk *w, uint32_t id)
{
    size_t length;
    const uint32_t *frames = dryi_intern_get(&w->trace->stacks, id, &length);
    size_t count = length / sizeof *frames;
    enum dry_status status = put_op(w, DRYI_OP_EMPTY_LIST);
    if (count == 0 || status != DRY_OK)
        return status;
    status = put_op(w, DRYI_OP_MARK);
    const struct dry_frame *first = dryi_intern_get(&w->trace->frames, frames[0], NULL);
    bool is_reversed = first->flags & DRY_FRAME_TEXT;
    for (size_t i = 0; status == DRY_OK && i < count; i++)
        status = put_frame(w, frames[is_reversed ? count - 1 - i : i]);
    return status == DRY_OK ? put_op(w, DRYI_OP_APPENDS) : status;
}

static enum dry_status
put_extra(struct dryi_pickle_walk *w, uint32_t id)
{
    size_t length;
    const char *bytes = dryi_intern_get(&w->trace->strings, id, &length);
    return put(w, bytes, length);
}

/* Write any value except a container. */
static enum dry_status
put_plain(struct dryi_pickle_walk *w, uint64_t value)
{
    uint64_t payload = dryi_value_payload(value);
    uint32_t id = (uint32_t)payload;
    enum dryi_value_kind kind = dryi_value_kind(value);
    if (kind == DRYI_VALUE_NONE)
        return put_op(w, DRYI_OP_NONE);
    if (kind == DRYI_VALUE_BOOL)
        return put_op(w, payload ? DRYI_OP_NEWTRUE : DRYI_OP_NEWFALSE);
    if (kind == DRYI_VALUE_INT || kind == DRYI_VALUE_WIDE_INT ||
        kind == DRYI_VALUE_WIDE_UINT) {
        uint64_t bits = 0;
        dryi_field_int(w, value, &bits);
        return put_int(w, bits, kind != DRYI_VALUE_WIDE_UINT && bits >> 63 != 0);
    }
    if (kind == DRYI_VALUE_FLOAT)
        return put_float(w, w->wides[payload]);
    if (kind == DRYI_VALUE_STRING)
        return put_string(w, id);
    if (kind == DRYI_VALUE_BYTES || kind == DRYI_VALUE_BYTEARRAY)
        return put_bytes(w, id, kind == DRYI_VALUE_BYTEARRAY);
    if (kind == DRYI_VALUE_PAIR)
        return put_pair(w, payload);
    if (kind == DRYI_VALUE_FRAME)
        return put_frame(w, id);
    if (kind == DRYI_VALUE_STACK)
        return put_stack(w, id);
    if (kind == DRYI_VALUE_EXTRA)
        return put_extra(w, id);
    return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                        "%s in a place where a snapshot has none",
                        dryi_value_noun(value));
}

static bool
is_container(uint64_t value)
{
    return dryi_value_is(value, DRYI_VALUE_DICT) ||
           dryi_value_is(value, DRYI_VALUE_LIST) ||
           dryi_value_is(value, DRYI_VALUE_TUPLE);
}

static enum dry_status
begin_container(struct dryi_pickle_walk *w, uint64_t value, size_t count)
{
    if (dryi_value_is(value, DRYI_VALUE_TUPLE))
        return put_op(w, count ? DRYI_OP_MARK : DRYI_OP_EMPTY_TUPLE);
    enum dry_status status =
        put_op(w, dryi_value_is(value, DRYI_VALUE_DICT) ? DRYI_OP_EMPTY_DICT
                                                        : DRYI_OP_EMPTY_LIST);
    return status == DRY_OK && count ? put_op(w, DRYI_OP_MARK) : status;
}

static enum dry_status
end_container(struct dryi_pickle_walk *w, uint64_t value, size_t count)
{
    if (count == 0)
        return DRY_OK;
    if (dryi_value_is(value, DRYI_VALUE_TUPLE))
        return put_op(w, DRYI_OP_TUPLE);
    return put_op(w, dryi_value_is(value, DRYI_VALUE_DICT) ? DRYI_OP_SETITEMS
                                                           : DRYI_OP_APPENDS);
}

static enum dry_status
keep(struct dryi_pickle_walk *w, size_t first, uint32_t *id)
{
    size_t count = w->extra_count - first;
    w->extra_total += count;
    if (w->extra_total > dryi_input_offset(w->in) * TOTAL_FACTOR + TOTAL_BYTES_MIN)
        return dryi_fail_at(w->err, DRY_ERR_LIMIT, w->op_offset,
                            "unknown keys take %llu bytes, more than %u times what was "
                            "read",
                            (unsigned long long)w->extra_total, TOTAL_FACTOR);
    *id = dryi_intern_put(&w->trace->strings, w->extra + first, count);
    return *id == DRYI_INTERN_NONE ? dryi_fail_memory(w->err, "unknown keys") : DRY_OK;
}

/* Free a written container. If it is shared, its opcodes replace it instead. */
static enum dry_status
settle(struct dryi_pickle_walk *w, uint64_t value, size_t first)
{
    if (dryi_object_release(w, value))
        return DRY_OK;
    uint32_t id;
    enum dry_status status = keep(w, first, &id);
    if (status != DRY_OK)
        return status;
    return dryi_object_become(w, value, dryi_value(DRYI_VALUE_EXTRA, id));
}

static enum dry_status
begin_level(struct dryi_pickle_walk *w, uint64_t container, size_t *level_count)
{
    DRYI_ASSERT(*level_count <= w->depth_max);
    if (!dryi_memory_grow(&w->memory, &w->levels, &w->level_capacity, *level_count + 1,
                          sizeof *w->levels))
        return dryi_fail_memory(w->err, "unknown keys");
    w->levels[(*level_count)++] =
        (struct dryi_level){.container = container, .first = w->extra_count};
    return DRY_OK;
}

/* End a container. Its parent ends, too, so it is unsealed and can be freed. */
static enum dry_status
end_level(struct dryi_pickle_walk *w, size_t *level_count, size_t count)
{
    struct dryi_level level = w->levels[--*level_count];
    enum dry_status status = end_container(w, level.container, count);
    if (status != DRY_OK)
        return status;
    if (*level_count)
        dryi_object_unseal(w, level.container);
    return settle(w, level.container, level.first);
}

/* Write the next item of the innermost level, or end that level. */
static enum dry_status
put_step(struct dryi_pickle_walk *w, size_t *level_count)
{
    struct dryi_level *level = &w->levels[*level_count - 1];
    const uint64_t *items;
    size_t count;
    if (!dryi_object_items(w, level->container, dryi_value_kind(level->container), &items,
                           &count))
        return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                            "events, blocks or the like under a key that is unknown");
    enum dry_status status = DRY_OK;
    if (level->next == 0)
        status = begin_container(w, level->container, count);
    if (status != DRY_OK)
        return status;
    if (level->next == count)
        return end_level(w, level_count, count);
    uint64_t item = dryi_object_settled(w, items[level->next++]);
    if (!is_container(item))
        return put_plain(w, item);
    return begin_level(w, item, level_count);
}

static enum dry_status
put_value(struct dryi_pickle_walk *w, uint64_t value)
{
    if (!is_container(value))
        return put_plain(w, value);
    size_t level_count = 0;
    enum dry_status status = begin_level(w, value, &level_count);
    while (status == DRY_OK && level_count)
        status = put_step(w, &level_count);
    return status;
}

void
dryi_extra_begin(struct dryi_pickle_walk *w)
{
    w->extra_count = 0;
}

enum dry_status
dryi_extra_add(struct dryi_pickle_walk *w, const struct dryi_owner *owner, uint64_t key,
               uint64_t value)
{
    if (owner->unknown != DRY_NONE && dryi_value_is(key, DRYI_VALUE_STRING) &&
        dryi_value_key(key) == DRYI_KEY_COUNT)
        dryi_builder_add_unknown(w->builder, (uint32_t)dryi_value_payload(key),
                                 owner->unknown);
    enum dry_status status = put_value(w, dryi_object_settled(w, key));
    return status == DRY_OK ? put_value(w, dryi_object_settled(w, value)) : status;
}

enum dry_status
dryi_extra_end(struct dryi_pickle_walk *w, uint32_t *extra)
{
    *extra = DRY_NONE;
    return w->extra_count ? keep(w, 0, extra) : DRY_OK;
}
