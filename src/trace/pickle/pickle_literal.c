/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Literals of a pickle: integers of any length, doubles and strings, read from the window
 * of the file and pushed. A claimed length is checked before the bytes are requested.
 * Strings are interned, so equal texts are stored once. Cost: O(bytes of the literal).
 */
#include "trace/pickle/pickle_literal.h"

#include <string.h>

#include "trace/model/utf8.h"
#include "trace/pickle/pickle_stack.h"

/* Eight bytes of value and one of sign. */
#define LONG_BYTES_MAX 9u

enum dry_status
dryi_literal_fail_truncated(struct dryi_pickle_walk *w, const char *what)
{
    return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->in->window_offset + w->in->end,
                        "the file ends inside %s at byte %llu", what,
                        (unsigned long long)w->op_offset);
}

static enum dry_status
fail_long(struct dryi_pickle_walk *w, uint64_t length)
{
    return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                        "an integer of %llu bytes, expected at most 64 bits",
                        (unsigned long long)length);
}

/* Push a two's complement integer: 64 bits and a sign. Eight bytes must be readable. */
static enum dry_status
push_long(struct dryi_pickle_walk *w, const unsigned char *bytes, size_t length)
{
    if (length == 0)
        return dryi_stack_push_int(w, 0);
    uint64_t bits = dryi_pickle_u64(bytes);
    unsigned unused = length < 8 ? 64 - 8 * (unsigned)length : 0;
    if (length <= 8)
        return dryi_stack_push_int(w, (int64_t)(bits << unused) >> unused);
    if (bytes[8] == 0)
        return bits >> 63 ? dryi_stack_push_wide(w, DRYI_VALUE_WIDE_UINT, bits)
                          : dryi_stack_push_int(w, (int64_t)bits);
    if (bytes[8] == 0xff && bits >> 63)
        return dryi_stack_push_int(w, (int64_t)bits);
    return fail_long(w, length);
}

/*
 * Escape a string that is not UTF-8 as Python does; PyTorch's C++ dumper writes names as
 * raw bytes. w->escaped maps the raw string to the escaped one, so this happens once.
 */
static enum dry_status
escape_string(struct dryi_pickle_walk *w, uint32_t raw, const unsigned char *bytes,
              size_t length, uint32_t *id)
{
    size_t capacity = length * DRYI_UTF8_ESCAPE_BYTES;
    char *escaped = dryi_memory_zalloc(&w->memory, capacity, 1);
    if (!escaped)
        return dryi_fail_memory(w->err, "strings");
    *id = dryi_intern_put(&w->trace->strings, escaped,
                          dryi_utf8_escape(escaped, bytes, length));
    dryi_memory_free(&w->memory, escaped, capacity, 1);
    if (*id == DRYI_INTERN_NONE || !dryi_map_put(&w->escaped, raw, *id))
        return dryi_fail_memory(w->err, "strings");
    return DRY_OK;
}

enum dry_status
dryi_literal_intern(struct dryi_pickle_walk *w, const unsigned char *bytes, size_t length,
                    enum dryi_value_kind kind, uint32_t *id)
{
    struct dryi_intern *strings = &w->trace->strings;
    uint32_t known_count = strings->count;
    *id = dryi_intern_put(strings, bytes, length);
    if (*id == DRYI_INTERN_NONE)
        return dryi_fail_memory(w->err, "strings");
    enum dry_status status = DRY_OK;
    if (kind == DRYI_VALUE_STRING) {
        /* A known string was checked before, unless it was first seen as opaque bytes. */
        bool is_new = *id == known_count || w->has_bytes;
        const uint32_t *escaped =
            w->escaped.count > 0 ? dryi_map_find(&w->escaped, *id) : NULL;
        if (escaped)
            *id = *escaped;
        else if (is_new && !dryi_utf8_is_valid(bytes, length))
            status = escape_string(w, *id, bytes, length, id);
    }
    w->has_bytes |= kind != DRYI_VALUE_STRING;
    return status;
}

/* Requires that the opcode and its length are already consumed. */
enum dry_status
dryi_literal_read_string(struct dryi_pickle_walk *w, uint64_t length,
                         enum dryi_value_kind kind)
{
    struct dryi_input *in = w->in;
    if (length > w->string_bytes_max)
        return dryi_fail_at(w->err, DRY_ERR_LIMIT, w->op_offset,
                            "a string of %llu bytes, the limit is %zu",
                            (unsigned long long)length, w->string_bytes_max);
    enum dry_status status = dryi_input_fill(in, (size_t)length, w->err);
    if (status != DRY_OK)
        return status;
    if (dryi_input_unread(in) < length)
        return dryi_literal_fail_truncated(w, "a string");
    const unsigned char *bytes = in->window + in->at;
    in->at += (size_t)length;
    uint32_t id = 0;
    status = dryi_literal_intern(w, bytes, (size_t)length, kind, &id);
    return status == DRY_OK ? dryi_stack_push(w, dryi_value(kind, id)) : status;
}

/* Read an integer at the end of the file through a buffer of nine bytes, zeroed. */
static enum dry_status
read_last_long(struct dryi_pickle_walk *w, size_t length)
{
    struct dryi_input *in = w->in;
    unsigned char bytes[LONG_BYTES_MAX] = {0};
    enum dry_status status = dryi_input_fill(in, LONG_BYTES_MAX, w->err);
    if (status != DRY_OK)
        return status;
    if (dryi_input_unread(in) < length)
        return dryi_literal_fail_truncated(w, "an integer");
    memcpy(bytes, in->window + in->at, length);
    in->at += length;
    return push_long(w, bytes, length);
}

enum dry_status
dryi_literal_read_long(struct dryi_pickle_walk *w, uint64_t length)
{
    struct dryi_input *in = w->in;
    if (length > LONG_BYTES_MAX)
        return fail_long(w, length);
    if (dryi_input_unread(in) < LONG_BYTES_MAX)
        return read_last_long(w, (size_t)length);
    const unsigned char *bytes = in->window + in->at;
    in->at += (size_t)length;
    return push_long(w, bytes, (size_t)length);
}

enum dry_status
dryi_literal_read_float(struct dryi_pickle_walk *w, const unsigned char *argument)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < 8; i++)
        bits = bits << 8 | argument[i];
    return dryi_stack_push_wide(w, DRYI_VALUE_FLOAT, bits);
}
