/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Turn a pool into a trace. The pool is copied first, under its lock. Then the caller is
 * asked once per context for its frames, and the builder is filled as a reader fills it.
 */

#include <drystone/pool_trace.h>

#include <string.h>

#include "base/fail.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/sized.h"
#include "pool/copy.h"
#include "trace/from_pool.h"
#include "trace/model/kind.h"
#include "trace/model/trace.h"
#include "trace/pickle/pickle.h"

#define FRAMES_FIRST 64

struct filling {
    struct dry_pool_trace_options options;
    struct dry_memory memory;
    struct dryi_pool_copy copy;
    struct dry_trace_builder *builder;
    struct dryi_map stacks; /* context -> stack */
    struct dry_pool_frame *frames;
    size_t frame_capacity;
    uint32_t *ids; /* frame ids of the stack being added */
    size_t id_capacity;
    struct dry_trace_block *blocks; /* blocks of the segment being added */
    size_t block_capacity;
    uint32_t empty_stack;
};

void
dry_pool_trace_options_init_sized(struct dry_pool_trace_options *options,
                                  size_t struct_size)
{
    const struct dry_pool_trace_options defaults = {0};
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

/* --- stacks ------------------------------------------------------------------------------- */

static uint32_t
add_text(struct filling *f, const char *text)
{
    return dry_trace_add_string(f->builder, text ? text : "", text ? strlen(text) : 0);
}

static bool
make_room(struct filling *f, size_t count)
{
    return dryi_memory_grow(&f->memory, &f->frames, &f->frame_capacity, count,
                            sizeof *f->frames) &&
           dryi_memory_grow(&f->memory, &f->ids, &f->id_capacity, count, sizeof *f->ids);
}

/*
 * Get the frames of a context into f->frames. Returns their count, or SIZE_MAX if memory
 * ran out. The second turn asks again with a larger array if the first one was too short.
 */
static size_t
ask_frames(struct filling *f, uint32_t context)
{
    const struct dry_pool_trace_options *o = &f->options;
    size_t capacity = FRAMES_FIRST, count = 0;
    for (int turn = 0; turn < 2; turn++) {
        if (!make_room(f, capacity))
            return SIZE_MAX;
        count = o->get_frames(o->frames_self, context, f->frames, capacity);
        if (count <= capacity)
            return count;
        capacity = count < DRY_POOL_FRAMES_MAX ? count : DRY_POOL_FRAMES_MAX;
    }
    return count < capacity ? count : capacity;
}

static uint32_t
add_stack(struct filling *f, uint32_t context)
{
    size_t count = ask_frames(f, context);
    if (count == SIZE_MAX)
        return DRY_NONE;
    for (size_t i = 0; i < count; i++) {
        const struct dry_pool_frame *frame = &f->frames[i];
        f->ids[i] = dry_trace_add_frame(f->builder, &(struct dry_frame){
                                                        .name = add_text(f, frame->name),
                                                        .file = add_text(f, frame->file),
                                                        .extra = DRY_NONE,
                                                        .line = frame->line,
                                                    });
    }
    return dry_trace_add_stack(f->builder, f->ids, count);
}

/* Ask once for the frames of a context and keep the stack: the callback may be slow. */
static enum dry_status
learn_stack(struct filling *f, uint32_t context)
{
    if (context == DRY_NONE || !f->options.get_frames ||
        dryi_map_find(&f->stacks, context))
        return DRY_OK;
    uint32_t stack = add_stack(f, context);
    if (stack == DRY_NONE || !dryi_map_put(&f->stacks, context, stack))
        return DRY_ERR_MEMORY;
    return DRY_OK;
}

static enum dry_status
learn_stacks(struct filling *f)
{
    enum dry_status status = DRY_OK;
    for (size_t i = 0; i < f->copy.event_count && status == DRY_OK; i++)
        status = learn_stack(f, f->copy.events[i].context);
    for (size_t i = 0; i < f->copy.part_count && status == DRY_OK; i++)
        status = learn_stack(f, f->copy.parts[i].context);
    for (size_t i = 0; i < f->copy.segment_count && status == DRY_OK; i++)
        status = learn_stack(f, f->copy.segments[i].context);
    return status;
}

static uint32_t
get_stack(const struct filling *f, uint32_t context, uint32_t otherwise)
{
    const uint32_t *stack =
        context == DRY_NONE ? NULL : dryi_map_find(&f->stacks, context);
    return stack ? *stack : otherwise;
}

/* --- events, segments, settings ----------------------------------------------------------- */

static uint32_t
add_lane(struct filling *f, uint64_t stream, struct dry_pool_id pool)
{
    return dry_trace_add_lane(f->builder, &(struct dry_lane){.stream = stream,
                                                             .pool_a = pool.a,
                                                             .pool_b = pool.b,
                                                             .pool_known = true});
}

static void
add_events(struct filling *f)
{
    for (size_t i = 0; i < f->copy.event_count; i++) {
        const struct dry_pool_event *e = &f->copy.events[i];
        dry_trace_add_event(f->builder, &(struct dry_event){
                                            .action = e->action,
                                            .addr = e->address,
                                            .size = e->size,
                                            .time_us = (int64_t)e->time_us,
                                            .lane = add_lane(f, e->stream, e->pool),
                                            .stack = get_stack(f, e->context, DRY_NONE),
                                            .note = DRY_NONE,
                                        });
    }
}

static void
fill_block(const struct filling *f, const struct dry_pool_part *part,
           struct dry_trace_block *block)
{
    *block = (struct dry_trace_block){
        .address = part->address,
        .size = part->size,
        .requested_size = part->requested,
        .stack = get_stack(f, part->context, f->empty_stack),
        .extra = DRY_NONE,
        .state = part->is_active    ? DRY_BLOCK_ACTIVE
                 : part->is_pending ? DRY_BLOCK_PENDING_FREE
                                    : DRY_BLOCK_INACTIVE,
    };
}

static enum dry_status
add_segment(struct filling *f, const struct dry_pool_segment *s,
            const struct dry_pool_part *parts, size_t count)
{
    struct dry_trace_segment segment = {
        .address = s->address,
        .total_size = s->size,
        .lane = add_lane(f, s->stream, s->pool),
        .stack = get_stack(f, s->context, f->empty_stack),
        .extra = DRY_NONE,
        .device = f->copy.device_index,
        .is_large = s->is_large,
        .is_expandable = s->is_expandable,
        .pool_id_known = true,
        .expandable_known = true,
    };
    if (!dryi_memory_grow(&f->memory, &f->blocks, &f->block_capacity, count,
                          sizeof *f->blocks))
        return DRY_ERR_MEMORY;
    for (size_t i = 0; i < count; i++)
        fill_block(f, &parts[i], &f->blocks[i]);
    dryi_trace_sum_blocks(&segment, f->blocks, count);
    return dry_trace_add_segment(f->builder, &segment, f->blocks, count);
}

static enum dry_status
add_segments(struct filling *f)
{
    enum dry_status status = DRY_OK;
    const struct dry_pool_part *parts = f->copy.parts;
    for (size_t i = 0; i < f->copy.segment_count && status == DRY_OK; i++) {
        status = add_segment(f, &f->copy.segments[i], parts, f->copy.part_counts[i]);
        parts += f->copy.part_counts[i];
    }
    return status;
}

#define TEXT_MAX 255 /* bytes that one SHORT_BINUNICODE opcode can hold */

static size_t
put_text(char *to, const char *text, size_t length)
{
    to[0] = (char)DRYI_OP_SHORT_BINUNICODE;
    to[1] = (char)(unsigned char)length;
    memcpy(to + 2, text, length);
    return length + 2;
}

static const char placement_key[] = "drystone_placement", conf_key[] = "drystone_conf";

/*
 * Find the text under one of Drystone's own keys, encoded as add_placement() and the
 * reader do. Returns NULL if there is none.
 */
static const char *
find_text(const struct dry_trace *trace, const char *key, size_t *length)
{
    const struct dry_trace_settings *settings = &dry_trace_get_view(trace)->settings;
    char wanted[TEXT_MAX];
    size_t extra_length = 0, wanted_length = put_text(wanted, key, strlen(key)), unused;
    length = length ? length : &unused;
    const char *extra = NULL, *at = NULL;
    *length = 0;
    if (settings->known && settings->extra != DRY_NONE)
        extra = dry_trace_string(trace, settings->extra, &extra_length);
    if (extra)
        at = memmem(extra, extra_length, wanted, wanted_length);
    if (!at)
        return NULL;
    at += wanted_length;
    size_t left = extra_length - (size_t)(at - extra);
    if (left < 2 || (unsigned char)at[0] != DRYI_OP_SHORT_BINUNICODE ||
        (unsigned char)at[1] > left - 2)
        return NULL;
    *length = (unsigned char)at[1];
    return at + 2;
}

/*
 * Return the text after "drystone_placement:" at the start of the settings string, or
 * NULL. The shim puts it there, before the options, if the placement is not PyTorch's.
 */
static const char *
find_in_conf(const struct dry_trace *trace, size_t *length)
{
    static const size_t key_length = sizeof placement_key - 1;
    const struct dry_trace_settings *settings = &dry_trace_get_view(trace)->settings;
    *length = 0;
    if (!settings->known || settings->conf == DRY_NONE)
        return NULL;
    size_t whole;
    const char *text = dry_trace_string(trace, settings->conf, &whole);
    if (whole <= key_length || memcmp(text, placement_key, key_length) != 0 ||
        text[key_length] != ':')
        return NULL;
    *length = whole - key_length - 1;
    return text + key_length + 1;
}

const char *
dry_trace_placement(const struct dry_trace *trace, size_t *length)
{
    size_t left;
    const char *in_conf = find_in_conf(trace, &left);
    if (!in_conf)
        return find_text(trace, placement_key, length);
    const char *comma = memchr(in_conf, ',', left);
    if (length)
        *length = comma ? (size_t)(comma - in_conf) : left;
    return in_conf;
}

const char *
dry_trace_placement_conf(const struct dry_trace *trace, size_t *length)
{
    size_t left;
    const char *in_conf = find_in_conf(trace, &left);
    if (!in_conf)
        return find_text(trace, conf_key, length);
    const char *comma = memchr(in_conf, ',', left);
    const char *rest = comma ? comma + 1 : in_conf + left;
    if (length)
        *length = left - (size_t)(rest - in_conf);
    return rest;
}

bool
dryi_trace_is_foreign(const struct dry_trace *trace)
{
    const struct dry_trace_settings *settings = &dry_trace_get_view(trace)->settings;
    size_t length;
    if (dryi_kind_get(trace->view.kind)->is_foreign || find_in_conf(trace, &length))
        return true;
    if (!settings->known || settings->extra == DRY_NONE)
        return false;
    const char *extra = dry_trace_string(trace, settings->extra, &length);
    return memmem(extra, length, placement_key, sizeof placement_key - 1) != NULL;
}

/*
 * Add the placement's name and options under keys that PyTorch does not have. They are
 * encoded as unknown keys, which the writer keeps. Readers then do not apply PyTorch's
 * rules to the trace.
 */
static uint32_t
add_placement(struct filling *f)
{
    static const char value[] = "paged";
    char bytes[2 * TEXT_MAX];
    size_t used = put_text(bytes, placement_key, sizeof placement_key - 1);
    used += put_text(bytes + used, value, sizeof value - 1);
    if (f->copy.conf_length <= TEXT_MAX) {
        used += put_text(bytes + used, conf_key, sizeof conf_key - 1);
        used += put_text(bytes + used, f->copy.conf, f->copy.conf_length);
    }
    return dry_trace_add_string(f->builder, bytes, used);
}

static void
add_settings(struct filling *f)
{
    struct dry_trace_settings settings = f->copy.settings;
    if (f->copy.is_torch)
        settings.conf =
            dry_trace_add_string(f->builder, f->copy.conf, f->copy.conf_length);
    else
        settings.extra = add_placement(f);
    dry_trace_set_settings(f->builder, &settings);
}

/*
 * Fill the builder without checking each call: the builder keeps its first failure, and
 * finish() returns it.
 */
static enum dry_status
fill(struct filling *f)
{
    f->empty_stack = dry_trace_add_stack(f->builder, NULL, 0);
    enum dry_status status = learn_stacks(f);
    if (status != DRY_OK)
        return status;
    add_settings(f);
    dry_trace_begin_device(f->builder, f->copy.device_index);
    add_events(f);
    return add_segments(f);
}

static void
finish(struct filling *f)
{
    const struct dry_memory *m = &f->memory;
    dry_trace_builder_destroy(f->builder);
    dryi_map_finish(&f->stacks);
    dryi_memory_free(m, f->frames, f->frame_capacity, sizeof *f->frames);
    dryi_memory_free(m, f->ids, f->id_capacity, sizeof *f->ids);
    dryi_memory_free(m, f->blocks, f->block_capacity, sizeof *f->blocks);
    dryi_pool_copy_finish(&f->copy);
}

static enum dry_status
make_trace(struct filling *f, struct dry_trace **trace, struct dry_error *err)
{
    struct dry_trace_builder_options options;
    dry_trace_builder_options_init(&options);
    options.memory = &f->memory;
    enum dry_status status = dry_trace_builder_create(&options, &f->builder, err);
    if (status != DRY_OK)
        return status;
    if (fill(f) == DRY_ERR_MEMORY)
        return dryi_fail_memory(err, "a trace of a pool");
    struct dry_trace_builder *builder = f->builder;
    f->builder = NULL;
    return dry_trace_builder_finish(builder, trace, err);
}

enum dry_status
dry_trace_from_pool(struct dry_pool *pool, const struct dry_pool_trace_options *given,
                    struct dry_trace **trace, struct dry_error *err)
{
    struct filling f = {0};
    dry_pool_trace_options_init(&f.options);
    enum dry_status status = dryi_sized_take(&f.options, sizeof f.options, given, err);
    if (status != DRY_OK)
        return status;
    f.memory = dryi_memory_or_default(f.options.memory);
    dryi_map_init(&f.stacks, &f.memory);
    status = dryi_pool_copy_init(&f.copy, pool, &f.memory);
    if (status == DRY_ERR_MEMORY)
        dryi_fail_memory(err, "a copy of a pool");
    else if (status != DRY_OK)
        dryi_fail(err, status, "this is the child of a fork: the pool is the parent's");
    else if (f.copy.device_index < 0)
        status = dryi_fail(err, DRY_ERR_ARGUMENT, "the pool's device_index is %d",
                           (int)f.copy.device_index);
    if (status == DRY_OK)
        status = make_trace(&f, trace, err);
    finish(&f);
    return status;
}
