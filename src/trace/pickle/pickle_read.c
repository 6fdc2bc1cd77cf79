/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The walk over a pickle, opcode by opcode.
 *
 * A pickle is a program for a stack machine. We run the opcodes that build data, and
 * refuse by name every opcode that could name code. One pass reads a window of the file.
 * Only the stack, the memo and the columns are kept (pickle_walk.h). Source of the
 * opcodes: CPython, Lib/pickletools.py.
 *
 * Bounds: an opcode adds at most one value, one mark or one memo entry. A claimed length
 * costs memory only as its bytes arrive. Open containers are counted, and
 * options.memory_bytes_max limits all memory.
 *
 * Cost: most of a snapshot is events, read straight from their bytes (pickle_straight.h).
 * Most bytes of an event are BINGET and LONG_BINGET of frames. Runs of these are
 * recognised by their bytes (pickle_run.h), or copied in an inner loop of a few
 * instructions each.
 */
#include "trace/pickle/pickle.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/memory.h"
#include "trace/pickle/pickle_fill.h"
#include "trace/pickle/pickle_key.h"
#include "trace/pickle/pickle_literal.h"
#include "trace/pickle/pickle_object.h"
#include "trace/pickle/pickle_record.h"
#include "trace/pickle/pickle_run.h"
#include "trace/pickle/pickle_stack.h"
#include "trace/pickle/pickle_straight.h"

#define ARGUMENT_BYTES_MAX 8u
#define PROTOCOL_MIN 2u
#define PROTOCOL_MAX 5u
/* Bytes after GLOBAL that are searched for its two names, for the error text. */
#define GLOBAL_BYTES_MAX 256u

/* Return the fixed bytes after an opcode that is accepted. */
static size_t
count_argument_bytes(uint8_t opcode)
{
    switch (opcode) {
    case DRYI_OP_PROTO:
    case DRYI_OP_BININT1:
    case DRYI_OP_BINGET:
    case DRYI_OP_BINPUT:
    case DRYI_OP_LONG1:
    case DRYI_OP_SHORT_BINUNICODE:
    case DRYI_OP_SHORT_BINBYTES:
        return 1;
    case DRYI_OP_BININT2:
        return 2;
    case DRYI_OP_BININT:
    case DRYI_OP_LONG_BINGET:
    case DRYI_OP_LONG_BINPUT:
    case DRYI_OP_LONG4:
    case DRYI_OP_BINUNICODE:
    case DRYI_OP_BINBYTES:
        return 4;
    case DRYI_OP_FRAME:
    case DRYI_OP_BINFLOAT:
    case DRYI_OP_BINUNICODE8:
    case DRYI_OP_BINBYTES8:
    case DRYI_OP_BYTEARRAY8:
        return 8;
    default:
        return 0;
    }
}

static enum dry_status
do_setitems(struct dryi_pickle_walk *w)
{
    size_t first = 0, count = 0;
    enum dry_status status = dryi_stack_pop_items(w, "SETITEMS", &first, &count);
    if (status != DRY_OK)
        return status;
    if (count % 2)
        return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                            "opcode SETITEMS finds a key without a value");
    status = dryi_object_fill(w, &w->values[first - 1], w->values + first, count / 2);
    w->value_count = first;
    dryi_stack_drop_wides(w, w->marks[w->mark_count].wide_count);
    return status;
}

static enum dry_status
do_setitem(struct dryi_pickle_walk *w)
{
    if (w->value_count - w->floor < 3)
        return dryi_stack_fail_underflow(w, "SETITEM");
    w->value_count -= 2;
    uint64_t *top = w->values + w->value_count;
    return dryi_object_fill(w, top - 1, top, 1);
}

static enum dry_status
do_appends(struct dryi_pickle_walk *w)
{
    size_t first = 0, count = 0;
    enum dry_status status = dryi_stack_pop_items(w, "APPENDS", &first, &count);
    if (status != DRY_OK)
        return status;
    w->value_count = first;
    return dryi_object_append(w, w->values[first - 1], w->values + first, count);
}

static enum dry_status
do_append(struct dryi_pickle_walk *w)
{
    if (w->value_count - w->floor < 2)
        return dryi_stack_fail_underflow(w, "APPEND");
    uint64_t *top = w->values + --w->value_count;
    return dryi_object_append(w, top[-1], top, 1);
}

static enum dry_status
push_new(struct dryi_pickle_walk *w, enum dryi_value_kind kind)
{
    uint64_t value;
    enum dry_status status = dryi_object_new(w, kind, &value);
    return status == DRY_OK ? dryi_stack_push(w, value) : status;
}

static enum dry_status
make_tuple(struct dryi_pickle_walk *w, size_t first, size_t count)
{
    uint64_t tuple;
    enum dry_status status = dryi_object_make_tuple(w, w->values + first, count, &tuple);
    w->value_count = first;
    return status == DRY_OK ? dryi_stack_push(w, tuple) : status;
}

static enum dry_status
do_short_tuple(struct dryi_pickle_walk *w, const char *opcode, size_t count)
{
    if (w->value_count - w->floor < count)
        return dryi_stack_fail_underflow(w, opcode);
    return make_tuple(w, w->value_count - count, count);
}

/* Build a TUPLE, LIST or DICT from all values above the mark. */
static enum dry_status
do_from_mark(struct dryi_pickle_walk *w, uint8_t opcode)
{
    size_t first = 0, count = 0;
    enum dry_status status =
        dryi_stack_pop_mark(w, dryi_opcode_name(opcode), &first, &count);
    if (status != DRY_OK)
        return status;
    if (opcode == DRYI_OP_TUPLE)
        return make_tuple(w, first, count);
    if (opcode == DRYI_OP_DICT && count % 2)
        return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                            "opcode DICT finds a key without a value");
    uint64_t value;
    bool is_list = opcode == DRYI_OP_LIST;
    status = dryi_object_new(w, is_list ? DRYI_VALUE_LIST : DRYI_VALUE_DICT, &value);
    if (status != DRY_OK)
        return status;
    const uint64_t *items = w->values + first;
    if (count)
        status = is_list ? dryi_object_append(w, value, items, count)
                         : dryi_object_fill(w, &value, items, count / 2);
    w->value_count = first;
    return status == DRY_OK ? dryi_stack_push(w, value) : status;
}

static enum dry_status
do_pop(struct dryi_pickle_walk *w)
{
    size_t first = 0, count = 0;
    if (w->value_count == w->floor)
        return dryi_stack_pop_mark(w, "POP", &first, &count);
    w->value_count--;
    return DRY_OK;
}

/*
 * Put the top value into the memo at `index`. Only the next free index is accepted: a
 * larger one would let a file claim memory.
 */
static enum dry_status
do_put(struct dryi_pickle_walk *w, size_t index)
{
    if (w->value_count == w->floor)
        return dryi_stack_fail_underflow(w, "MEMOIZE or BINPUT");
    if (index > w->memo_count || index >= DRY_NONE)
        return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                            "memo %zu is put, expected at most %zu", index,
                            w->memo_count);
    if (!dryi_memory_grow(&w->memory, &w->memo, &w->memo_capacity, index + 1,
                          sizeof *w->memo))
        return dryi_fail_memory(w->err, "the memo");
    uint64_t value = w->values[w->value_count - 1];
    dryi_object_note_memo(w, value, (uint32_t)index);
    uint32_t entry = 0;
    enum dry_status status = dryi_memo_entry(w, value, &entry);
    w->memo[index] = entry;
    if (index == w->memo_count)
        w->memo_count++;
    else
        dryi_run_forget(w);
    return status;
}

static enum dry_status
fail_get(struct dryi_pickle_walk *w, size_t index)
{
    return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                        "memo %zu is fetched, only %zu were put", index, w->memo_count);
}

/* Fetch a memo entry that cannot be pushed as it is: a far word, a row or a container. */
static enum dry_status
get_special(struct dryi_pickle_walk *w, uint32_t entry)
{
    uint64_t value = entry;
    if (dryi_value_is(value, DRYI_VALUE_FAR))
        return dryi_stack_push(w, w->far_values[dryi_value_payload(value)]);
    if (dryi_value_kind(value) >= DRYI_VALUE_EVENT)
        return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                            "%s is used a second time, expected each to be written once",
                            dryi_value_noun(value));
    dryi_object_share(w, value);
    return dryi_stack_push(w, value);
}

/* Execute a single BINGET: the last one in the window, or one whose value is a container. */
static enum dry_status
get_one(struct dryi_pickle_walk *w)
{
    struct dryi_input *in = w->in;
    const unsigned char *p = in->window + in->at;
    bool is_long = *p == DRYI_OP_LONG_BINGET;
    size_t index = is_long ? dryi_pickle_u32(p + 1) : p[1];
    in->at += is_long ? 5 : 2;
    if (index >= w->memo_count)
        return fail_get(w, index);
    uint32_t entry = w->memo[index];
    if (dryi_value_kind(entry) >= DRYI_VALUE_DICT)
        return get_special(w, entry);
    return dryi_stack_push(w, entry);
}

/*
 * Execute a run of fetches and small numbers from in->at on: the keys and values of a
 * dict. The loop touches only the window, the memo and the stack. Short and long fetches
 * are told apart by branches: these predict well, and p need not wait for a length.
 */
static enum dry_status
do_gets(struct dryi_pickle_walk *w)
{
    struct dryi_input *in = w->in;
    const unsigned char *begin = in->window + in->at, *p = begin;
    const unsigned char *end = in->window + in->end;
    const uint32_t *memo = w->memo;
    size_t memo_count = w->memo_count;
    uint64_t *top = w->values + w->value_count;
    const uint64_t *top_end = w->values + w->value_capacity;
    while (end - p > 1 + (ptrdiff_t)ARGUMENT_BYTES_MAX && top < top_end) {
        size_t index, length;
        if (*p == DRYI_OP_LONG_BINGET) {
            index = dryi_pickle_u32(p + 1);
            length = 5;
        } else if (*p == DRYI_OP_BINGET) {
            index = p[1];
            length = 2;
        } else {
            *top = dryi_literal_integer(p, &length);
            if (length == 0)
                break;
            top++;
            p += length;
            continue;
        }
        if (index >= memo_count ||
            (memo[index] & DRYI_VALUE_KIND_MASK) >= DRYI_VALUE_DICT)
            break;
        *top++ = memo[index];
        p += length;
    }
    if (p == begin)
        return get_one(w);
    w->value_count = (size_t)(top - w->values);
    in->at += (size_t)(p - begin);
    return DRY_OK;
}

static enum dry_status
do_mark(struct dryi_pickle_walk *w)
{
    const unsigned char *next = w->in->window + w->in->at + 1;
    bool taken = false;
    if (*next == DRYI_OP_BINGET || *next == DRYI_OP_LONG_BINGET) {
        enum dry_status status = dryi_run_take(w, &taken);
        if (status != DRY_OK || taken)
            return status;
    }
    w->in->at += 1;
    return dryi_stack_push_mark(w);
}

static enum dry_status
do_dict(struct dryi_pickle_walk *w)
{
    bool taken = false;
    enum dry_status status = dryi_straight_take(w, &taken);
    if (status != DRY_OK || taken)
        return status;
    w->in->at += 1;
    return push_new(w, DRYI_VALUE_DICT);
}

static enum dry_status
do_proto(struct dryi_pickle_walk *w, unsigned protocol)
{
    if (w->trace->view.protocol >= 0)
        return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                            "opcode PROTO, expected once");
    if (protocol < PROTOCOL_MIN || protocol > PROTOCOL_MAX)
        return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                            "pickle protocol %u, expected %u to %u", protocol,
                            PROTOCOL_MIN, PROTOCOL_MAX);
    w->trace->view.protocol = (int)protocol;
    return DRY_OK;
}

/*
 * Copy one line of "torch.foo\nBar\n", the argument of GLOBAL, for an error text. *used
 * counts the bytes of the line; `to` is "" if it does not end.
 */
static void
copy_line(char *to, size_t size, const unsigned char *bytes, size_t count, size_t *used)
{
    const unsigned char *end = count ? memchr(bytes, '\n', count) : NULL;
    size_t length = end ? (size_t)(end - bytes) : 0;
    *used = end ? length + 1 : count;
    if (length >= size)
        length = size - 1;
    memcpy(to, bytes, length);
    to[length] = 0;
}

/* Copy a string that STACK_GLOBAL would import; "" if the value is not a string. */
static void
copy_top_string(const struct dryi_pickle_walk *w, size_t from_top, char *to, size_t size)
{
    to[0] = 0;
    if (w->value_count - w->floor < from_top)
        return;
    uint64_t value = w->values[w->value_count - from_top];
    if (dryi_value_is(value, DRYI_VALUE_STRING))
        snprintf(to, size, "%s",
                 (const char *)dryi_intern_get(
                     &w->trace->strings, (uint32_t)dryi_value_payload(value), NULL));
}

static enum dry_status
refuse_global(struct dryi_pickle_walk *w, uint8_t opcode)
{
    struct dryi_input *in = w->in;
    char module[48], name[48];
    size_t used = 0;
    if (opcode == DRYI_OP_STACK_GLOBAL) {
        copy_top_string(w, 2, module, sizeof module);
        copy_top_string(w, 1, name, sizeof name);
    } else {
        enum dry_status status = dryi_input_fill(in, GLOBAL_BYTES_MAX, w->err);
        if (status != DRY_OK)
            return status;
        const unsigned char *bytes = in->window + in->at;
        size_t count = dryi_input_unread(in);
        if (count > GLOBAL_BYTES_MAX)
            count = GLOBAL_BYTES_MAX;
        copy_line(module, sizeof module, bytes, count, &used);
        copy_line(name, sizeof name, bytes + used, count - used, &used);
    }
    return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                        "opcode %s (%s %s) names code; a snapshot holds none",
                        dryi_opcode_name(opcode), module, name);
}

static enum dry_status
refuse(struct dryi_pickle_walk *w, uint8_t opcode)
{
    const char *name = dryi_opcode_name(opcode);
    switch (opcode) {
    case DRYI_OP_GLOBAL:
    case DRYI_OP_INST:
    case DRYI_OP_STACK_GLOBAL:
        return refuse_global(w, opcode);
    case DRYI_OP_REDUCE:
    case DRYI_OP_BUILD:
    case DRYI_OP_OBJ:
    case DRYI_OP_NEWOBJ:
    case DRYI_OP_NEWOBJ_EX:
    case DRYI_OP_EXT1:
    case DRYI_OP_EXT2:
    case DRYI_OP_EXT4:
    case DRYI_OP_PERSID:
    case DRYI_OP_BINPERSID:
        return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                            "opcode %s runs code; a snapshot holds none", name);
    default:
        break;
    }
    if (name)
        return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                            "opcode %s, which no snapshot uses", name);
    return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                        "byte 0x%02x, expected an opcode", opcode);
}

/* Execute opcodes that are rare in snapshots, or harmless though never seen in one. */
static enum dry_status
do_rare(struct dryi_pickle_walk *w, uint8_t opcode, const unsigned char *argument)
{
    switch (opcode) {
    case DRYI_OP_STOP:
        return DRY_END;
    case DRYI_OP_PROTO:
        return do_proto(w, argument[0]);
    case DRYI_OP_FRAME: /* its length is only a hint for reading ahead */
        return DRY_OK;
    case DRYI_OP_NONE:
        return dryi_stack_push(w, dryi_value(DRYI_VALUE_NONE, 0));
    case DRYI_OP_NEWTRUE:
    case DRYI_OP_NEWFALSE:
        return dryi_stack_push(w, dryi_value(DRYI_VALUE_BOOL, opcode == DRYI_OP_NEWTRUE));
    case DRYI_OP_EMPTY_TUPLE:
        return make_tuple(w, w->value_count, 0);
    case DRYI_OP_TUPLE1:
        return do_short_tuple(w, "TUPLE1", 1);
    case DRYI_OP_TUPLE2:
        return do_short_tuple(w, "TUPLE2", 2);
    case DRYI_OP_TUPLE3:
        return do_short_tuple(w, "TUPLE3", 3);
    case DRYI_OP_TUPLE:
    case DRYI_OP_LIST:
    case DRYI_OP_DICT:
        return do_from_mark(w, opcode);
    case DRYI_OP_SETITEM:
        return do_setitem(w);
    case DRYI_OP_APPEND:
        return do_append(w);
    case DRYI_OP_POP:
        return do_pop(w);
    case DRYI_OP_LONG4:
        return dryi_literal_read_long(w, dryi_pickle_u32(argument));
    case DRYI_OP_BINFLOAT:
        return dryi_literal_read_float(w, argument);
    case DRYI_OP_BINUNICODE:
        return dryi_literal_read_string(w, dryi_pickle_u32(argument), DRYI_VALUE_STRING);
    case DRYI_OP_BINUNICODE8:
        return dryi_literal_read_string(w, dryi_pickle_u64(argument), DRYI_VALUE_STRING);
    case DRYI_OP_SHORT_BINBYTES:
        return dryi_literal_read_string(w, argument[0], DRYI_VALUE_BYTES);
    case DRYI_OP_BINBYTES:
        return dryi_literal_read_string(w, dryi_pickle_u32(argument), DRYI_VALUE_BYTES);
    case DRYI_OP_BINBYTES8:
        return dryi_literal_read_string(w, dryi_pickle_u64(argument), DRYI_VALUE_BYTES);
    case DRYI_OP_BYTEARRAY8:
        return dryi_literal_read_string(w, dryi_pickle_u64(argument),
                                        DRYI_VALUE_BYTEARRAY);
    default:
        return refuse(w, opcode);
    }
}

/*
 * Execute the opcodes that every snapshot has. Returns DRY_END after STOP. Each case
 * advances by a constant, so the processor can decode the next opcode before this one is
 * done.
 */
static enum dry_status
do_opcode(struct dryi_pickle_walk *w, uint8_t opcode, const unsigned char *argument)
{
    size_t *at = &w->in->at;
    switch (opcode) {
    case DRYI_OP_LONG_BINGET:
    case DRYI_OP_BINGET:
        return do_gets(w);
    case DRYI_OP_BININT1:
        *at += 2;
        return dryi_stack_push(w, dryi_value(DRYI_VALUE_INT, argument[0]));
    case DRYI_OP_BININT2:
        *at += 3;
        return dryi_stack_push(
            w, dryi_value(DRYI_VALUE_INT, argument[0] | (uint64_t)argument[1] << 8));
    case DRYI_OP_BININT:
        *at += 5;
        return dryi_stack_push_int(w, (int32_t)dryi_pickle_u32(argument));
    case DRYI_OP_LONG1:
        *at += 2;
        return dryi_literal_read_long(w, argument[0]);
    case DRYI_OP_SHORT_BINUNICODE:
        *at += 2;
        return dryi_literal_read_string(w, argument[0], DRYI_VALUE_STRING);
    case DRYI_OP_MEMOIZE:
        *at += 1;
        return do_put(w, w->memo_count);
    case DRYI_OP_BINPUT:
        *at += 2;
        return do_put(w, argument[0]);
    case DRYI_OP_LONG_BINPUT:
        *at += 5;
        return do_put(w, dryi_pickle_u32(argument));
    case DRYI_OP_EMPTY_DICT:
        return do_dict(w);
    case DRYI_OP_EMPTY_LIST:
        *at += 1;
        return push_new(w, DRYI_VALUE_LIST);
    case DRYI_OP_MARK:
        return do_mark(w);
    case DRYI_OP_SETITEMS:
        *at += 1;
        return do_setitems(w);
    case DRYI_OP_APPENDS:
        *at += 1;
        return do_appends(w);
    default:
        *at += 1 + count_argument_bytes(opcode);
        return do_rare(w, opcode, argument);
    }
}

static enum dry_status
fill_opcode(struct dryi_pickle_walk *w)
{
    struct dryi_input *in = w->in;
    enum dry_status status = dryi_input_fill(in, 1 + ARGUMENT_BYTES_MAX, w->err);
    if (status != DRY_OK)
        return status;
    size_t unread = dryi_input_unread(in);
    w->op_offset = dryi_input_offset(in);
    if (unread == 0)
        return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                            "the file ends before opcode STOP");
    uint8_t opcode = in->window[in->at];
    if (unread < 1 + count_argument_bytes(opcode))
        return dryi_literal_fail_truncated(w, dryi_opcode_name(opcode));
    return DRY_OK;
}

static enum dry_status
walk(struct dryi_pickle_walk *w)
{
    struct dryi_input *in = w->in;
    enum dry_status status = DRY_OK;
    while (status == DRY_OK) {
        if (dryi_input_unread(in) < 1 + ARGUMENT_BYTES_MAX) {
            status = fill_opcode(w);
            if (status != DRY_OK)
                break;
        }
        const unsigned char *p = in->window + in->at;
        w->op_offset = dryi_input_offset(in);
        status = do_opcode(w, *p, p + 1);
    }
    return status;
}

static enum dry_status
finish_walk(struct dryi_pickle_walk *w)
{
    if (w->mark_count)
        return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                            "opcode STOP with %zu open marks", w->mark_count);
    if (w->value_count != 1)
        return dryi_fail_at(w->err, DRY_ERR_FORMAT, w->op_offset,
                            "opcode STOP with %zu values, expected 1", w->value_count);
    return dryi_top_take(w, w->values[0]);
}

static void
free_walk(struct dryi_pickle_walk *w)
{
    const struct dry_memory *m = &w->memory;
    for (size_t i = 0; i < w->object_count; i++)
        dryi_memory_free(m, w->objects[i].items, w->objects[i].capacity,
                         sizeof *w->objects[i].items);
    dryi_memory_free(m, w->objects, w->object_capacity, sizeof *w->objects);
    dryi_memory_free(m, w->values, w->value_capacity, sizeof *w->values);
    dryi_memory_free(m, w->marks, w->mark_capacity, sizeof *w->marks);
    dryi_map_finish(&w->escaped);
    dryi_map_finish(&w->texts);
    dryi_map_finish(&w->joined);
    dryi_memory_free(m, w->memo, w->memo_capacity, sizeof *w->memo);
    dryi_memory_free(m, w->far_values, w->far_capacity, sizeof *w->far_values);
    dryi_memory_free(m, w->wides, w->wide_capacity, sizeof *w->wides);
    dryi_memory_free(m, w->histories, w->history_capacity, sizeof *w->histories);
    dryi_run_finish(w);
    dryi_memory_free(m, w->frame_ids, w->frame_id_capacity, sizeof *w->frame_ids);
    dryi_memory_free(m, w->extra, w->extra_capacity, 1);
    dryi_memory_free(m, w->levels, w->level_capacity, sizeof *w->levels);
}

enum dry_status
dryi_pickle_read(struct dryi_input *in, const struct dry_trace_options *options,
                 struct dry_trace_builder *builder, struct dry_error *err)
{
    struct dryi_pickle_walk w = {
        .in = in,
        .builder = builder,
        .trace = builder->trace,
        .memory = builder->trace->memory,
        .err = err,
        .depth_max = options->depth_max,
        .string_bytes_max = options->string_bytes_max,
        .first_free = DRY_NONE,
        .lane_id = DRY_NONE,
        .note_id = DRY_NONE,
        .text_id = DRY_NONE,
    };
    dryi_map_init(&w.escaped, &w.memory);
    dryi_map_init(&w.texts, &w.memory);
    dryi_map_init(&w.joined, &w.memory);
    enum dry_status status = dryi_keys_init(&w);
    if (status == DRY_OK && !dryi_stack_grow(&w)) /* so that the stack is never NULL */
        status = dryi_fail_memory(err, "the stack");
    if (status == DRY_OK)
        status = walk(&w);
    if (status == DRY_END)
        status = finish_walk(&w);
    if (status == DRY_OK)
        status = dryi_builder_check(builder, err);
    free_walk(&w);
    return status;
}
