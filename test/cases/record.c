/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The record of a program, as PyTorch would have kept it: events with stacks, times and
 * metadata in a ring of limited length, and the segments at the dump.
 */

#include "cases/program_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trace/model/trace.h"

#define FRAMES_MAX 16

/* --- stacks ------------------------------------------------------------------------------- */

/* One "name@file:line" of `length` bytes. */
static uint32_t
make_frame(struct program *p, const char *text, size_t length)
{
    const char *at = memchr(text, '@', length);
    size_t name_length = at ? (size_t)(at - text) : length;
    const char *file = at ? at + 1 : text + length;
    const char *end = text + length, *colon = end;
    while (colon > file && *colon != ':')
        colon--;
    struct dry_frame frame = {
        .name = dry_trace_add_string(p->builder, text, name_length),
        .file = dry_trace_add_string(p->builder, file, (size_t)(colon - file)),
        .extra = DRY_NONE,
        .line = colon < end ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0,
    };
    return dry_trace_add_frame(p->builder, &frame);
}

static size_t
add_frames(struct program *p, const char *text, uint32_t *frames, size_t count)
{
    while (*text && count < FRAMES_MAX) {
        const char *end = strstr(text, "; ");
        size_t length = end ? (size_t)(end - text) : strlen(text);
        frames[count++] = make_frame(p, text, length);
        text += length + (end ? 2 : 0);
    }
    return count;
}

/* Return the frame as PyTorch has it in forward_frames, with a line of source. */
static uint32_t
make_forward(struct program *p, uint32_t id)
{
    const struct dry_trace *t = p->builder->trace;
    struct dry_frame frame =
        *(const struct dry_frame *)dryi_intern_get(&t->frames, id, NULL);
    char text[512];
    int length =
        snprintf(text, sizeof text, "  File \"%s\", line %u, in %s\n    return f(x)\n",
                 dry_trace_string(t, frame.file, NULL), (unsigned)frame.line,
                 dry_trace_string(t, frame.name, NULL));
    frame.extra = dry_trace_add_string(p->builder, text, (size_t)length);
    frame.flags = DRY_FRAME_FORWARD | DRY_FRAME_TEXT;
    return dry_trace_add_frame(p->builder, &frame);
}

uint32_t
program_make_stack(struct program *p, const char *inner, const char *outer)
{
    uint32_t frames[FRAMES_MAX];
    if (p->label->has_no_events)
        return DRY_NONE;
    size_t count = add_frames(p, inner, frames, 0);
    count = add_frames(p, outer, frames, count);
    return dry_trace_add_stack(p->builder, frames, count);
}

uint32_t
program_make_backward_stack(struct program *p, const char *own, const char *forward)
{
    uint32_t frames[FRAMES_MAX];
    if (p->label->has_no_events)
        return DRY_NONE;
    size_t own_count = add_frames(p, own, frames, 0), count = own_count;
    if (p->label->detects_anomalies) {
        count = add_frames(p, forward, frames, count);
        count = add_frames(p, p->outer_frames, frames, count);
    }
    for (size_t i = own_count; i < count; i++)
        frames[i] = make_forward(p, frames[i]);
    return dry_trace_add_stack(p->builder, frames, count);
}

/* --- events ------------------------------------------------------------------------------- */

static uint32_t
lane_for(struct program *p, uint64_t stream, struct dryi_pool_id pool)
{
    struct dry_lane lane = {
        .stream = stream, .pool_a = pool.a, .pool_b = pool.b, .pool_known = true};
    return dry_trace_add_lane(p->builder, &lane);
}

bool
program_has_fields_of(const struct program *p, unsigned minor)
{
    return p->label->shape_minor == 0 || p->label->shape_minor >= minor;
}

static uint32_t
make_note(struct program *p)
{
    struct dry_note note = {
        .action_name = DRY_NONE,
        .compile_context = program_has_fields_of(p, 8)
                               ? dry_trace_add_string(p->builder, "N/A", 3)
                               : DRY_NONE,
        .user_metadata = program_has_fields_of(p, 10) ? p->user_metadata : DRY_NONE,
        .extra = DRY_NONE,
    };
    return dry_trace_add_note(p->builder, &note);
}

static bool
remember_place(struct program *p, const struct dryi_place_event *e)
{
    if (e->action == DRY_ACTION_ALLOC)
        return dryi_map_put(&p->places, e->addr, (uint32_t)p->tensor_count);
    if (e->action == DRY_ACTION_SEGMENT_ALLOC)
        return dryi_map_put(&p->segments, e->addr, p->stack);
    if (e->action == DRY_ACTION_FREE_COMPLETED)
        dryi_map_take(&p->places, e->addr);
    else if (e->action == DRY_ACTION_SEGMENT_FREE)
        dryi_map_take(&p->segments, e->addr);
    return true;
}

void
program_record(void *self, const struct dryi_place_event *e)
{
    struct program *p = self;
    if (!remember_place(p, e) ||
        !dryi_memory_grow(&p->memory, &p->events, &p->event_capacity, p->event_count + 1,
                          sizeof *p->events)) {
        program_fail(p, DRY_ERR_MEMORY);
        return;
    }
    if (e->action == DRY_ACTION_OOM && p->oom_index == SIZE_MAX)
        p->oom_index = p->event_count;
    p->events[p->event_count++] = (struct dry_event){
        .action = e->action,
        .addr = e->addr,
        .size = e->size,
        .time_us = p->time_us++,
        .lane = lane_for(p, e->stream, e->pool),
        .stack = p->stack,
        .note = make_note(p),
    };
}

/* --- the dump ----------------------------------------------------------------------------- */

struct segment_writer {
    struct program *p;
    struct dry_trace_block *blocks;
    size_t capacity;
};

static struct dry_trace_block
describe_block(const struct program *p, const struct dryi_block_info *info)
{
    struct dry_trace_block block = {
        .address = info->addr,
        .size = info->size,
        .requested_size = info->requested,
        .stack = DRY_NONE,
        .extra = DRY_NONE,
        .state = info->allocated ? DRY_BLOCK_ACTIVE
                 : info->pending ? DRY_BLOCK_PENDING_FREE
                                 : DRY_BLOCK_INACTIVE,
    };
    const uint32_t *tensor = dryi_map_find(&p->places, info->addr);
    if (block.state != DRY_BLOCK_INACTIVE && tensor)
        block.stack = p->tensors[*tensor].stack;
    return block;
}

static enum dry_status
write_segment(void *self, const struct dryi_segment_info *info,
              const struct dryi_block_info *blocks, size_t count)
{
    struct segment_writer *w = self;
    struct program *p = w->p;
    if (!dryi_memory_grow(&p->memory, &w->blocks, &w->capacity, count, sizeof *w->blocks))
        return DRY_ERR_MEMORY;
    const uint32_t *stack = dryi_map_find(&p->segments, info->addr);
    struct dry_trace_segment segment = {
        .address = info->addr,
        .total_size = info->size,
        .lane = lane_for(p, info->stream, info->pool),
        .stack = stack ? *stack : DRY_NONE,
        .extra = DRY_NONE,
        .device = p->device,
        .is_large = info->is_large,
        .is_expandable = info->is_expandable,
        .pool_id_known = true,
        .expandable_known = true,
    };
    for (size_t i = 0; i < count; i++)
        w->blocks[i] = describe_block(p, &blocks[i]);
    dryi_trace_sum_blocks(&segment, w->blocks, count);
    return dry_trace_add_segment(p->builder, &segment, w->blocks, count);
}

/* What a ring of limited length still holds. */
static size_t
first_recorded(const struct program *p)
{
    if (p->label->has_no_events)
        return p->event_count;
    size_t entries = p->label->ring_entries;
    return entries && p->event_count > entries ? p->event_count - entries : 0;
}

void
program_close_device(struct program *p)
{
    size_t first = first_recorded(p);
    for (size_t i = first; i < p->event_count; i++)
        dry_trace_add_event(p->builder, &p->events[i]);
    if (p->oom_index != SIZE_MAX && p->truth.device == p->device && p->oom_index >= first)
        p->truth.oom_event = p->events_recorded + p->oom_index - first;
    p->events_recorded += p->event_count - first;
    struct segment_writer w = {.p = p};
    enum dry_status status = dryi_torch_walk(p->place, write_segment, &w);
    if (status != DRY_OK)
        program_fail(p, status);
    dryi_memory_free(&p->memory, w.blocks, w.capacity, sizeof *w.blocks);
}

static void
write_settings(struct program *p)
{
    const char *text = p->label->conf ? p->label->conf : "";
    struct dry_trace_settings settings = dryi_torch_conf_settings(&p->conf);
    settings.conf = dry_trace_add_string(p->builder, text, strlen(text));
    dry_trace_set_settings(p->builder, &settings);
}

enum dry_status
program_open_record(struct program *p, struct dry_error *err)
{
    struct dry_trace_builder_options options;
    dry_trace_builder_options_init(&options);
    options.kind = DRY_TRACE_SNAPSHOT;
    enum dry_status status = dry_trace_builder_create(&options, &p->builder, err);
    if (status != DRY_OK)
        return status;
    program_tag(p, "");
    write_settings(p);
    return DRY_OK;
}
