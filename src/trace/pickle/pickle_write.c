/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Write a trace as a pickle of protocol 4, the way CPython writes PyTorch's snapshots.
 *
 * Repeated data is written once and memoised: keys, strings, frames, whole stacks and
 * pool ids. Memo numbers count up from 0 in the order of MEMOIZE. So each kind needs one
 * flat array: id -> the opcode that fetches it. Writing an event again is then a sequence
 * of short copies.
 *
 * Bytes gather in a buffer that becomes one pickle frame when it is full. Python's reader
 * requires that no opcode crosses frames. So space is reserved before each opcode, and
 * one larger than a buffer is written between two frames, as CPython does. Lists are
 * written in batches of 1,000, because PyTorch's viewer passes a batch as call arguments.
 *
 * After the sink fails, nothing more is sent: no step in between must check. Cost:
 * O(bytes written). Memory: the buffer, and 8 bytes for each string, frame and stack.
 */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "trace/model/trace.h"
#include "trace/pickle/pickle.h"

#define BUFFER_BYTES ((size_t)256 * DRYI_KIB)
#define FRAME_HEADER_BYTES 9u
#define BATCH_COUNT_MAX 1000u
/* The limit of empty lists in device_traces, which needs one for each unused device. */
#define DEVICE_GAP_MAX 65536u

/* The opcode that fetches a memoised value: BINGET or LONG_BINGET. */
struct code {
    uint8_t bytes[5];
    uint8_t length; /* 0 before the value is written */
};

enum key {
    KEY_SEGMENTS,
    KEY_DEVICE_TRACES,
    KEY_SETTINGS,
    KEY_ANNOTATIONS,
    KEY_HOST_SEGMENTS,
    KEY_HOST_TRACES,
    KEY_DEVICE,
    KEY_ADDRESS,
    KEY_TOTAL_SIZE,
    KEY_ALLOCATED_SIZE,
    KEY_ACTIVE_SIZE,
    KEY_REQUESTED_SIZE,
    KEY_STREAM,
    KEY_SEGMENT_TYPE,
    KEY_LARGE,
    KEY_SMALL,
    KEY_SEGMENT_POOL_ID,
    KEY_IS_EXPANDABLE,
    KEY_FRAMES,
    KEY_FORWARD_FRAMES,
    KEY_BLOCKS,
    KEY_SIZE,
    KEY_STATE,
    KEY_INACTIVE,
    KEY_ACTIVE,
    KEY_PENDING_FREE,
    KEY_ACTION,
    KEY_ADDR,
    KEY_DEVICE_FREE,
    KEY_TIME_US,
    KEY_COMPILE_CONTEXT,
    KEY_USER_METADATA,
    KEY_POOL_ID,
    KEY_NAME,
    KEY_FILENAME,
    KEY_LINE,
    KEY_STAGE,
    KEY_CONF,
    KEY_MAX_SPLIT_SIZE,
    KEY_GC_THRESHOLD,
    KEY_EXPANDABLE_SEGMENTS,
    KEY_ROUNDUP,
    KEY_COUNT,
};

static const char *const key_texts[KEY_COUNT] = {
    [KEY_SEGMENTS] = "segments",
    [KEY_DEVICE_TRACES] = "device_traces",
    [KEY_SETTINGS] = "allocator_settings",
    [KEY_ANNOTATIONS] = "external_annotations",
    [KEY_HOST_SEGMENTS] = "host_segments",
    [KEY_HOST_TRACES] = "host_traces",
    [KEY_DEVICE] = "device",
    [KEY_ADDRESS] = "address",
    [KEY_TOTAL_SIZE] = "total_size",
    [KEY_ALLOCATED_SIZE] = "allocated_size",
    [KEY_ACTIVE_SIZE] = "active_size",
    [KEY_REQUESTED_SIZE] = "requested_size",
    [KEY_STREAM] = "stream",
    [KEY_SEGMENT_TYPE] = "segment_type",
    [KEY_LARGE] = "large",
    [KEY_SMALL] = "small",
    [KEY_SEGMENT_POOL_ID] = "segment_pool_id",
    [KEY_IS_EXPANDABLE] = "is_expandable",
    [KEY_FRAMES] = "frames",
    [KEY_FORWARD_FRAMES] = "forward_frames",
    [KEY_BLOCKS] = "blocks",
    [KEY_SIZE] = "size",
    [KEY_STATE] = "state",
    [KEY_INACTIVE] = "inactive",
    [KEY_ACTIVE] = "active_allocated",
    [KEY_PENDING_FREE] = "active_pending_free",
    [KEY_ACTION] = "action",
    [KEY_ADDR] = "addr",
    [KEY_DEVICE_FREE] = "device_free",
    [KEY_TIME_US] = "time_us",
    [KEY_COMPILE_CONTEXT] = "compile_context",
    [KEY_USER_METADATA] = "user_metadata",
    [KEY_POOL_ID] = "pool_id",
    [KEY_NAME] = "name",
    [KEY_FILENAME] = "filename",
    [KEY_LINE] = "line",
    [KEY_STAGE] = "stage",
    [KEY_CONF] = "PYTORCH_CUDA_ALLOC_CONF",
    [KEY_MAX_SPLIT_SIZE] = "max_split_size",
    [KEY_GC_THRESHOLD] = "garbage_collection_threshold",
    [KEY_EXPANDABLE_SEGMENTS] = "expandable_segments",
    [KEY_ROUNDUP] = "roundup_power2_divisions",
};

struct writer {
    const struct dry_trace *trace;
    const struct dry_trace_view *view;
    struct dry_memory memory;
    const struct dry_sink *sink;
    struct dry_error *err;
    enum dry_status status; /* the sink's status; nothing is sent after a failure */
    uint8_t *buffer;        /* one frame: header, then opcodes */
    size_t used;            /* bytes in the buffer, header included */
    uint32_t memo_count;
    struct code keys[KEY_COUNT];
    struct code actions[DRY_ACTION_COUNT];
    struct code *strings, *frames, *pools; /* pools: index is the lane */
    struct code *stacks, *forwards;        /* the two lists of each stack */
};

static void
send(struct writer *w, const void *bytes, size_t count)
{
    if (w->status == DRY_OK)
        w->status = w->sink->write(w->sink->self, bytes, count, w->err);
}

/* Send the buffer as one frame, whose length is known only now. */
static void
flush(struct writer *w)
{
    if (w->used == FRAME_HEADER_BYTES)
        return;
    uint64_t length = w->used - FRAME_HEADER_BYTES;
    w->buffer[0] = DRYI_OP_FRAME;
    memcpy(w->buffer + 1, &length, sizeof length);
    send(w, w->buffer, w->used);
    w->used = FRAME_HEADER_BYTES;
}

/* Return space for `count` bytes that stay in one frame, flushing if necessary. */
static uint8_t *
reserve(struct writer *w, size_t count)
{
    DRYI_ASSERT(count <= BUFFER_BYTES - FRAME_HEADER_BYTES);
    if (w->used + count > BUFFER_BYTES)
        flush(w);
    return w->buffer + w->used;
}

static void
put_byte(struct writer *w, uint8_t byte)
{
    *reserve(w, 1) = byte;
    w->used++;
}

static void
put_bytes(struct writer *w, const void *bytes, size_t count)
{
    memcpy(reserve(w, count), bytes, count);
    w->used += count;
}

/* Write an opcode and its argument, between two frames if over half a buffer. */
static void
put_long(struct writer *w, const void *head, size_t head_length, const void *bytes,
         size_t count)
{
    if (count <= BUFFER_BYTES / 2) {
        reserve(w, head_length + count);
        if (head_length)
            put_bytes(w, head, head_length);
        put_bytes(w, bytes, count);
        return;
    }
    flush(w);
    if (head_length)
        send(w, head, head_length);
    send(w, bytes, count);
}

/*
 * Copy all bytes of the code: a fixed length compiles to one store. Bytes past `length`
 * are overwritten by the next write.
 */
static void
put_code(struct writer *w, const struct code *code)
{
    memcpy(reserve(w, sizeof code->bytes), code->bytes, sizeof code->bytes);
    w->used += code->length;
}

/* Memoise the value that was written last; `code` becomes its fetch. */
static void
memoize(struct writer *w, struct code *code)
{
    uint32_t index = w->memo_count++;
    put_byte(w, DRYI_OP_MEMOIZE);
    code->bytes[0] = index < 256 ? DRYI_OP_BINGET : DRYI_OP_LONG_BINGET;
    memcpy(code->bytes + 1, &index, sizeof index);
    code->length = index < 256 ? 2 : 5;
}

static void
put_text(struct writer *w, const char *bytes, size_t length)
{
    uint8_t head[5] = {DRYI_OP_SHORT_BINUNICODE, (uint8_t)length};
    if (length > UINT8_MAX) {
        uint32_t length32 = (uint32_t)length;
        head[0] = DRYI_OP_BINUNICODE;
        memcpy(head + 1, &length32, sizeof length32);
    }
    put_long(w, head, length > UINT8_MAX ? 5 : 2, bytes, length);
}

/* Write a constant text, or fetch it if it was written before. */
static void
put_fixed(struct writer *w, struct code *code, const char *text)
{
    if (code->length) {
        put_code(w, code);
        return;
    }
    put_text(w, text, strlen(text));
    memoize(w, code);
}

static void
put_key(struct writer *w, enum key key)
{
    put_fixed(w, &w->keys[key], key_texts[key]);
}

static void
put_string(struct writer *w, uint32_t string)
{
    struct code *code = &w->strings[string];
    if (code->length) {
        put_code(w, code);
        return;
    }
    size_t length;
    const char *bytes = dry_trace_string(w->trace, string, &length);
    put_text(w, bytes, length);
    memoize(w, code);
}

/* Write an integer of at most 64 bits and a sign, in the shortest form. */
static void
put_long1(struct writer *w, uint64_t low, bool is_negative)
{
    uint8_t piece[11] = {DRYI_OP_LONG1, 0};
    memcpy(piece + 2, &low, sizeof low);
    piece[10] = is_negative ? 0xff : 0;
    /* The sign is the top bit of the last byte that is written. */
    uint64_t magnitude = is_negative ? ~low : low;
    unsigned bits = magnitude ? dryi_log2_floor(magnitude) + 2 : 1;
    piece[1] = (uint8_t)((bits + 7) / 8);
    put_bytes(w, piece, 2u + piece[1]);
}

static void
put_int32(struct writer *w, uint32_t bits)
{
    uint8_t piece[5] = {DRYI_OP_BININT};
    memcpy(piece + 1, &bits, sizeof bits);
    put_bytes(w, piece, sizeof piece);
}

static void
put_uint(struct writer *w, uint64_t value)
{
    if (value > INT32_MAX) {
        put_long1(w, value, false);
    } else if (value > UINT16_MAX) {
        put_int32(w, (uint32_t)value);
    } else {
        uint8_t piece[3] = {value > UINT8_MAX ? DRYI_OP_BININT2 : DRYI_OP_BININT1,
                            (uint8_t)value, (uint8_t)(value >> 8)};
        put_bytes(w, piece, value > UINT8_MAX ? 3 : 2);
    }
}

static void
put_int(struct writer *w, int64_t value)
{
    if (value >= 0)
        put_uint(w, (uint64_t)value);
    else if (value >= INT32_MIN)
        put_int32(w, (uint32_t)value);
    else
        put_long1(w, (uint64_t)value, true);
}

static void
put_bool(struct writer *w, bool value)
{
    put_byte(w, value ? DRYI_OP_NEWTRUE : DRYI_OP_NEWFALSE);
}

/* Write a double. Only these are big-endian in a pickle. */
static void
put_double(struct writer *w, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint8_t piece[9] = {DRYI_OP_BINFLOAT};
    for (unsigned i = 0; i < 8; i++)
        piece[1 + i] = (uint8_t)(bits >> (56 - 8 * i));
    put_bytes(w, piece, sizeof piece);
}

static void
begin_dict(struct writer *w)
{
    put_bytes(w, (uint8_t[]){DRYI_OP_EMPTY_DICT, DRYI_OP_MARK}, 2);
}

/* Unknown keys and their values were kept as opcodes and are copied. */
static void
end_dict(struct writer *w, uint32_t extra)
{
    if (extra != DRY_NONE) {
        size_t length;
        const char *opcodes = dry_trace_string(w->trace, extra, &length);
        put_long(w, NULL, 0, opcodes, length);
    }
    put_byte(w, DRYI_OP_SETITEMS);
}

/* Begin a new batch before list element `i`, if one is full. */
static void
put_batch(struct writer *w, size_t i)
{
    if (i % BATCH_COUNT_MAX != 0)
        return;
    if (i)
        put_byte(w, DRYI_OP_APPENDS);
    put_byte(w, DRYI_OP_MARK);
}

static void
end_list(struct writer *w, size_t count)
{
    if (count)
        put_byte(w, DRYI_OP_APPENDS);
}

static void
put_frame(struct writer *w, uint32_t id)
{
    struct code *code = &w->frames[id];
    if (code->length) {
        put_code(w, code);
        return;
    }
    const struct dry_frame *frame = &w->view->frames[id];
    if (frame->flags & DRY_FRAME_TEXT) {
        put_string(w, frame->extra);
        return;
    }
    put_byte(w, DRYI_OP_EMPTY_DICT);
    memoize(w, code);
    put_byte(w, DRYI_OP_MARK);
    if (frame->name != DRY_NONE) {
        put_key(w, KEY_NAME);
        put_string(w, frame->name);
    }
    if (frame->file != DRY_NONE) {
        put_key(w, KEY_FILENAME);
        put_string(w, frame->file);
    }
    put_key(w, KEY_LINE);
    put_uint(w, frame->line);
    end_dict(w, frame->extra);
}

/* Write a list of frames, outermost first if they were strings. */
static void
put_frames(struct writer *w, struct code *code, const uint32_t *frames, size_t count)
{
    if (code->length) {
        put_code(w, code);
        return;
    }
    bool is_reversed = count && w->view->frames[frames[0]].flags & DRY_FRAME_TEXT;
    put_byte(w, DRYI_OP_EMPTY_LIST);
    memoize(w, code);
    for (size_t i = 0; i < count; i++) {
        put_batch(w, i);
        put_frame(w, frames[is_reversed ? count - 1 - i : i]);
    }
    end_list(w, count);
}

static void
put_stack(struct writer *w, uint32_t stack)
{
    size_t count, own = 0;
    const uint32_t *frames = dry_trace_stack(w->trace, stack, &count);
    if (stack == DRY_NONE)
        return;
    while (own < count && !(w->view->frames[frames[own]].flags & DRY_FRAME_FORWARD))
        own++;
    put_key(w, KEY_FRAMES);
    put_frames(w, &w->stacks[stack], frames, own);
    if (own == count)
        return;
    put_key(w, KEY_FORWARD_FRAMES);
    put_frames(w, &w->forwards[stack], frames + own, count - own);
}

static void
put_pool(struct writer *w, uint32_t lane)
{
    struct code *code = &w->pools[lane];
    if (code->length) {
        put_code(w, code);
        return;
    }
    put_uint(w, w->view->lanes[lane].pool_a);
    put_uint(w, w->view->lanes[lane].pool_b);
    put_byte(w, DRYI_OP_TUPLE2);
    memoize(w, code);
}

static void
put_uint_item(struct writer *w, enum key key, uint64_t value)
{
    put_key(w, key);
    put_uint(w, value);
}

static void
put_string_item(struct writer *w, enum key key, uint32_t string)
{
    if (string == DRY_NONE)
        return;
    put_key(w, key);
    put_string(w, string);
}

static void
put_action(struct writer *w, enum dry_action action, const struct dry_note *note)
{
    put_key(w, KEY_ACTION);
    if (action == DRY_ACTION_OTHER && note->action_name != DRY_NONE)
        put_string(w, note->action_name);
    else
        put_fixed(w, &w->actions[action], dry_action_name(action));
}

static void
put_event(struct writer *w, size_t i)
{
    const struct dry_trace_view *v = w->view;
    const struct dry_note *note = dry_trace_note(w->trace, v->note[i]);
    enum dry_action action = v->action[i];
    uint32_t lane = v->lane[i];
    begin_dict(w);
    put_action(w, action, note);
    if (!(note->flags & DRY_NOTE_NO_ADDR))
        put_uint_item(w, action == DRY_ACTION_OOM ? KEY_DEVICE_FREE : KEY_ADDR,
                      v->addr[i]);
    put_uint_item(w, KEY_SIZE, v->size[i]);
    put_uint_item(w, KEY_STREAM, v->lanes[lane].stream);
    if (!(note->flags & DRY_NOTE_NO_TIME)) {
        put_key(w, KEY_TIME_US);
        put_int(w, v->time_us[i]);
    }
    put_string_item(w, KEY_COMPILE_CONTEXT, note->compile_context);
    put_string_item(w, KEY_USER_METADATA, note->user_metadata);
    if (v->lanes[lane].pool_known) {
        put_key(w, KEY_POOL_ID);
        put_pool(w, lane);
    }
    put_stack(w, v->stack[i]);
    end_dict(w, note->extra);
}

static void
put_events(struct writer *w, const struct dry_trace_device *device)
{
    size_t count = device ? device->event_count : 0;
    put_byte(w, DRYI_OP_EMPTY_LIST);
    for (size_t i = 0; i < count && w->status == DRY_OK; i++) {
        put_batch(w, i);
        put_event(w, device->first_event + i);
    }
    end_list(w, count);
}

static void
put_block(struct writer *w, const struct dry_trace_block *block)
{
    static const enum key states[] = {
        [DRY_BLOCK_INACTIVE] = KEY_INACTIVE,
        [DRY_BLOCK_ACTIVE] = KEY_ACTIVE,
        [DRY_BLOCK_PENDING_FREE] = KEY_PENDING_FREE,
    };
    begin_dict(w);
    put_uint_item(w, KEY_ADDRESS, block->address);
    put_uint_item(w, KEY_SIZE, block->size);
    put_uint_item(w, KEY_REQUESTED_SIZE, block->requested_size);
    put_key(w, KEY_STATE);
    DRYI_ASSERT((unsigned)block->state <= DRY_BLOCK_PENDING_FREE);
    put_key(w, states[block->state]);
    put_stack(w, block->stack);
    end_dict(w, block->extra);
}

static void
put_blocks(struct writer *w, const struct dry_trace_segment *segment)
{
    put_key(w, KEY_BLOCKS);
    put_byte(w, DRYI_OP_EMPTY_LIST);
    for (size_t i = 0; i < segment->block_count && w->status == DRY_OK; i++) {
        put_batch(w, i);
        put_block(w, &w->view->blocks[segment->first_block + i]);
    }
    end_list(w, segment->block_count);
}

static void
put_segment(struct writer *w, const struct dry_trace_segment *segment)
{
    begin_dict(w);
    put_key(w, KEY_DEVICE);
    put_int(w, segment->device);
    put_uint_item(w, KEY_ADDRESS, segment->address);
    put_uint_item(w, KEY_TOTAL_SIZE, segment->total_size);
    put_uint_item(w, KEY_ALLOCATED_SIZE, segment->allocated_size);
    put_uint_item(w, KEY_ACTIVE_SIZE, segment->active_size);
    put_uint_item(w, KEY_REQUESTED_SIZE, segment->requested_size);
    put_uint_item(w, KEY_STREAM, w->view->lanes[segment->lane].stream);
    put_key(w, KEY_SEGMENT_TYPE);
    put_key(w, segment->is_large ? KEY_LARGE : KEY_SMALL);
    if (segment->pool_id_known) {
        put_key(w, KEY_SEGMENT_POOL_ID);
        put_pool(w, segment->lane);
    }
    if (segment->expandable_known) {
        put_key(w, KEY_IS_EXPANDABLE);
        put_bool(w, segment->is_expandable);
    }
    put_stack(w, segment->stack);
    put_blocks(w, segment);
    end_dict(w, segment->extra);
}

/* Return true for a host segment that goes into host_segments, a list of its own. */
static bool
is_on_host(const struct writer *w, const struct dry_trace_segment *segment)
{
    return w->view->has_host && segment->device == DRY_DEVICE_HOST;
}

static void
put_segments(struct writer *w, bool of_host)
{
    const struct dry_trace_view *v = w->view;
    size_t count = 0;
    put_byte(w, DRYI_OP_EMPTY_LIST);
    for (size_t i = 0; i < v->segment_count && w->status == DRY_OK; i++) {
        if (is_on_host(w, &v->segments[i]) != of_host)
            continue;
        put_batch(w, count++);
        put_segment(w, &v->segments[i]);
    }
    end_list(w, count);
}

/*
 * Count the entries of device_traces: up to the last device with events. A device that
 * has only segments gets an entry if it is next in sequence. So a file that is read and
 * written again has no more devices than before.
 */
static size_t
count_places(const struct dry_trace_view *v)
{
    size_t count = 0;
    for (size_t i = 0; i < v->device_count; i++) {
        const struct dry_trace_device *device = &v->devices[i];
        bool is_next = device->device >= 0 && (size_t)device->device == count;
        if (is_next || (device->device >= 0 && device->event_count))
            count = (size_t)device->device + 1;
    }
    return count;
}

/* Write device_traces by device, with an empty list for each device without events. */
static void
put_traces(struct writer *w)
{
    const struct dry_trace_view *v = w->view;
    size_t count = count_places(v), device = 0;
    put_byte(w, DRYI_OP_EMPTY_LIST);
    for (size_t i = 0; i < count && w->status == DRY_OK; i++) {
        put_batch(w, i);
        bool is_here = v->devices[device].device == (int32_t)i;
        put_events(w, is_here ? &v->devices[device] : NULL);
        device += is_here;
    }
    end_list(w, count);
}

static void
put_host(struct writer *w)
{
    const struct dry_trace_view *v = w->view;
    const struct dry_trace_device *last =
        v->device_count ? &v->devices[v->device_count - 1] : NULL;
    put_key(w, KEY_HOST_SEGMENTS);
    put_segments(w, true);
    if (last && last->device == DRY_DEVICE_HOST) {
        put_key(w, KEY_HOST_TRACES);
        put_events(w, last);
    }
}

/* Write the divisions of PyTorch's sixteen size ranges, "1" to "32768" MiB. */
static void
put_roundup(struct writer *w, const struct dry_trace_settings *settings)
{
    put_key(w, KEY_ROUNDUP);
    begin_dict(w);
    for (unsigned i = 0; i < 16; i++) {
        char mib[8];
        int length = snprintf(mib, sizeof mib, "%u", 1u << i);
        put_text(w, mib, (size_t)length);
        put_uint(w, settings->roundup_power2_divisions[i]);
    }
    end_dict(w, DRY_NONE);
}

static void
put_settings(struct writer *w)
{
    const struct dry_trace_settings *settings = &w->view->settings;
    put_key(w, KEY_SETTINGS);
    begin_dict(w);
    put_string_item(w, KEY_CONF, settings->conf);
    put_key(w, KEY_MAX_SPLIT_SIZE);
    put_int(w, settings->max_split_size);
    put_key(w, KEY_GC_THRESHOLD);
    put_double(w, settings->garbage_collection_threshold);
    put_key(w, KEY_EXPANDABLE_SEGMENTS);
    put_bool(w, settings->expandable_segments);
    if (settings->roundup_known)
        put_roundup(w, settings);
    end_dict(w, settings->extra);
}

static void
put_annotations(struct writer *w)
{
    const struct dry_trace_view *v = w->view;
    put_key(w, KEY_ANNOTATIONS);
    put_byte(w, DRYI_OP_EMPTY_LIST);
    for (size_t i = 0; i < v->annotation_count && w->status == DRY_OK; i++) {
        const struct dry_trace_annotation *annotation = &v->annotations[i];
        put_batch(w, i);
        begin_dict(w);
        put_string_item(w, KEY_NAME, annotation->name);
        put_string_item(w, KEY_STAGE, annotation->stage);
        put_key(w, KEY_DEVICE);
        put_int(w, annotation->device);
        put_key(w, KEY_TIME_US);
        put_int(w, annotation->time_us);
        end_dict(w, annotation->extra);
    }
    end_list(w, v->annotation_count);
}

static void
put_top(struct writer *w)
{
    const struct dry_trace_view *v = w->view;
    begin_dict(w);
    put_key(w, KEY_SEGMENTS);
    put_segments(w, false);
    if (v->has_traces || v->kind != DRY_TRACE_SNAPSHOT) {
        put_key(w, KEY_DEVICE_TRACES);
        put_traces(w);
    }
    if (v->has_settings)
        put_settings(w);
    if (v->has_annotations)
        put_annotations(w);
    if (v->has_host)
        put_host(w);
    end_dict(w, v->top_extra);
}

static bool
init(struct writer *w, const struct dry_trace *trace)
{
    const struct dry_memory *m = &w->memory;
    const struct dry_trace_view *v = w->view;
    w->buffer = m->resize(m->self, NULL, 0, BUFFER_BYTES);
    w->strings = dryi_memory_zalloc(m, (size_t)v->string_count + 1, sizeof *w->strings);
    w->frames = dryi_memory_zalloc(m, (size_t)v->frame_count + 1, sizeof *w->frames);
    w->stacks = dryi_memory_zalloc(m, (size_t)v->stack_count + 1, sizeof *w->stacks);
    w->forwards = dryi_memory_zalloc(m, (size_t)v->stack_count + 1, sizeof *w->forwards);
    w->pools = dryi_memory_zalloc(m, (size_t)v->lane_count + 1, sizeof *w->pools);
    w->trace = trace;
    w->used = FRAME_HEADER_BYTES;
    return w->buffer && w->strings && w->frames && w->stacks && w->forwards && w->pools;
}

static void
finish(struct writer *w)
{
    const struct dry_memory *m = &w->memory;
    const struct dry_trace_view *v = w->view;
    dryi_memory_free(m, w->buffer, BUFFER_BYTES, 1);
    dryi_memory_free(m, w->strings, (size_t)v->string_count + 1, sizeof *w->strings);
    dryi_memory_free(m, w->frames, (size_t)v->frame_count + 1, sizeof *w->frames);
    dryi_memory_free(m, w->stacks, (size_t)v->stack_count + 1, sizeof *w->stacks);
    dryi_memory_free(m, w->forwards, (size_t)v->stack_count + 1, sizeof *w->forwards);
    dryi_memory_free(m, w->pools, (size_t)v->lane_count + 1, sizeof *w->pools);
}

static enum dry_status
check_writable(const struct dry_trace_view *v, struct dry_error *err)
{
    if (!v->has_addresses)
        return dryi_fail(err, DRY_ERR_UNSUPPORTED,
                         "a snapshot has addresses and this trace has none: replay it "
                         "first");
    if (v->is_of_driver)
        return dryi_fail(
            err, DRY_ERR_UNSUPPORTED,
            "a snapshot tells of PyTorch's allocator and this trace of CUDA's "
            "driver");
    size_t places = count_places(v);
    if (places > v->device_count + DEVICE_GAP_MAX)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "device %zu, but there are %zu devices: device_traces would be "
                         "nearly all empty lists",
                         places - 1, v->device_count);
    return DRY_OK;
}

enum dry_status
dry_trace_write(const struct dry_trace *trace, const struct dry_sink *sink,
                struct dry_error *err)
{
    /* Use the creator's memory: threads share the trace, and its budget has no lock. */
    struct writer w = {
        .view = &trace->view, .memory = trace->parent, .sink = sink, .err = err};
    enum dry_status status = check_writable(w.view, err);
    if (status != DRY_OK)
        return status;
    if (init(&w, trace)) {
        send(&w, (uint8_t[]){DRYI_OP_PROTO, 4}, 2);
        if (w.view->is_bare_list)
            put_segments(&w, false);
        else
            put_top(&w);
        put_byte(&w, DRYI_OP_STOP);
        flush(&w);
    } else {
        w.status = dryi_fail_memory(err, "writing a trace");
    }
    finish(&w);
    return w.status;
}
