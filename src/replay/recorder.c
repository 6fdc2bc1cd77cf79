/* SPDX-License-Identifier: Apache-2.0 */

/* Each string, frame and stack is copied once; arrays map old ids to new ones. Cost: O(1) per
   event. recorder.h has the idea. */
#include "replay/recorder.h"

#include <string.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/memory.h"
#include "trace/model/trace.h"

/* --- copying names ------------------------------------------------------------------------ */

static uint32_t *
make_table(struct dryi_recorder *r, uint32_t count)
{
    uint32_t *table = dryi_memory_zalloc(&r->memory, (size_t)count + 1, sizeof *table);
    if (table)
        memset(table, 0xff, ((size_t)count + 1) * sizeof *table);
    return table;
}

static uint32_t
copy_string(struct dryi_recorder *r, uint32_t string)
{
    if (string == DRY_NONE)
        return DRY_NONE;
    if (r->strings[string] == DRY_NONE) {
        size_t length;
        const char *bytes = dry_trace_string(r->trace, string, &length);
        r->strings[string] = dry_trace_add_string(r->builder, bytes, length);
    }
    return r->strings[string];
}

static uint32_t
copy_stack(struct dryi_recorder *r, uint32_t stack)
{
    if (stack == DRY_NONE)
        return DRY_NONE;
    if (r->stacks[stack] != DRY_NONE)
        return r->stacks[stack];
    size_t count;
    const uint32_t *frames = dry_trace_stack(r->trace, stack, &count);
    uint32_t *copies = dryi_memory_zalloc(&r->memory, count + 1, sizeof *copies);
    if (!copies) {
        r->failed = true;
        return DRY_NONE;
    }
    for (size_t i = 0; i < count; i++) {
        struct dry_frame frame = r->view->frames[frames[i]];
        frame.name = copy_string(r, frame.name);
        frame.file = copy_string(r, frame.file);
        frame.extra = copy_string(r, frame.extra);
        copies[i] = dry_trace_add_frame(r->builder, &frame);
    }
    r->stacks[stack] = dry_trace_add_stack(r->builder, copies, count);
    dryi_memory_free(&r->memory, copies, count + 1, sizeof *copies);
    return r->stacks[stack];
}

static uint32_t
copy_note(struct dryi_recorder *r, uint32_t note)
{
    if (note == DRY_NONE)
        return DRY_NONE;
    if (r->notes[note] == DRY_NONE) {
        const struct dry_note *old = dry_trace_note(r->trace, note);
        struct dry_note copy = {
            .action_name = DRY_NONE,
            .compile_context = copy_string(r, old->compile_context),
            .user_metadata = copy_string(r, old->user_metadata),
            .extra = DRY_NONE,
        };
        r->notes[note] = dry_trace_add_note(r->builder, &copy);
    }
    return r->notes[note];
}

/* --- events ------------------------------------------------------------------------------- */

static uint32_t
lane_for(struct dryi_recorder *r, uint64_t stream, struct dryi_pool_id pool)
{
    struct dry_lane lane = {
        .stream = stream, .pool_a = pool.a, .pool_b = pool.b, .pool_known = true};
    return dry_trace_add_lane(r->builder, &lane);
}

/* Return the recorded event that caused the current operation; SIZE_MAX if there is none. */
static size_t
source_event(const struct dryi_recorder *r)
{
    const struct dryi_program *p = r->program;
    if (r->execution->op == NO_OP ||
        p->events[r->execution->op] >= p->device->event_count)
        return SIZE_MAX;
    return p->device->first_event + p->events[r->execution->op];
}

static void
remember_place(struct dryi_recorder *r, const struct dryi_place_event *e)
{
    if (e->action == DRY_ACTION_ALLOC)
        r->failed |= !dryi_map_put(&r->requests, e->addr, r->execution->request);
    else if (e->action == DRY_ACTION_FREE_COMPLETED)
        dryi_map_take(&r->requests, e->addr);
}

static void
on_event(void *self, const struct dryi_place_event *e)
{
    struct dryi_recorder *r = self;
    size_t source = source_event(r);
    remember_place(r, e);
    struct dry_event event = {
        .action = e->action,
        .addr = e->addr,
        .size = e->size,
        .lane = lane_for(r, e->stream, e->pool),
        .stack = DRY_NONE,
        .note = DRY_NONE,
    };
    if (source != SIZE_MAX) {
        event.time_us = r->view->time_us[source];
        event.stack = copy_stack(r, r->view->stack[source]);
        event.note = copy_note(r, r->view->note[source]);
    } else if (r->program->device->event_count > 0) {
        event.time_us = r->view->time_us[r->program->device->first_event];
    }
    dry_trace_add_event(r->builder, &event);
}

/* Record an OOM for a size that no device has: the placement refuses it without an event. */
static void
on_refused(void *self)
{
    struct dryi_recorder *r = self;
    const struct dryi_execution *x = r->execution;
    uint64_t size = r->program->sizes[x->request], total_bytes;
    if (size < DEVICE_BYTES_MAX)
        return;
    const struct lane *lane =
        dryi_program_lane(r->program, r->program->lanes[x->request]);
    struct dryi_place_event event = {.action = DRY_ACTION_OOM,
                                     .size = size,
                                     .stream = lane->stream,
                                     .pool = lane->pool};
    struct dry_device device = dry_sim_get_device(x->sim);
    device.ops->get_info(device.self, &event.addr, &total_bytes);
    on_event(r, &event);
}

static void
on_begin(void *self, const struct dryi_execution *execution)
{
    struct dryi_recorder *r = self;
    r->execution = execution;
}

/* --- final segments, settings, scopes ----------------------------------------------------- */

struct segment_writer {
    struct dryi_recorder *r;
    struct dry_trace_block *blocks;
    size_t capacity;
};

static struct dry_trace_block
describe_block(struct dryi_recorder *r, const struct dryi_block_info *info)
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
    const uint32_t *request = dryi_map_find(&r->requests, info->addr);
    if (block.state == DRY_BLOCK_INACTIVE || !request)
        return block;
    uint32_t event = r->program->alloc_events[*request];
    if (event != NO_EVENT)
        block.stack =
            copy_stack(r, r->view->stack[r->program->device->first_event + event]);
    return block;
}

static enum dry_status
on_segment(void *self, const struct dryi_segment_info *info,
           const struct dryi_block_info *blocks, size_t count)
{
    struct segment_writer *w = self;
    struct dryi_recorder *r = w->r;
    if (!dryi_memory_grow(&r->memory, &w->blocks, &w->capacity, count, sizeof *w->blocks))
        return DRY_ERR_MEMORY;
    int32_t device = r->program->device->device;
    struct dry_trace_segment segment = {
        .address = info->addr,
        .total_size = info->size,
        .lane = lane_for(r, info->stream, info->pool),
        .stack = DRY_NONE,
        .extra = DRY_NONE,
        .device = device,
        .is_large = info->is_large,
        .is_expandable = info->is_expandable,
        .pool_id_known = true,
        .expandable_known = true,
    };
    for (size_t i = 0; i < count; i++)
        w->blocks[i] = describe_block(r, &blocks[i]);
    dryi_trace_sum_blocks(&segment, w->blocks, count);
    return dry_trace_add_segment(r->builder, &segment, w->blocks, count);
}

static enum dry_status
write_segments(struct dryi_recorder *r)
{
    struct segment_writer w = {.r = r};
    const struct dryi_place *place = &r->execution->place;
    enum dry_status status = place->ops->walk(place->self, on_segment, &w);
    dryi_memory_free(&r->memory, w.blocks, w.capacity, sizeof *w.blocks);
    return status;
}

static enum dry_status
after_op(void *self, size_t op)
{
    const struct dryi_recorder *r = self;
    (void)op;
    return r->failed ? DRY_ERR_MEMORY : DRY_OK;
}

static enum dry_status
on_end(void *self)
{
    struct dryi_recorder *r = self;
    enum dry_status status = write_segments(r);
    return r->failed ? DRY_ERR_MEMORY : status;
}

static void
write_annotations(struct dryi_recorder *r)
{
    for (size_t i = 0; i < r->view->annotation_count; i++) {
        struct dry_trace_annotation a = r->view->annotations[i];
        if (a.device != r->program->device->device)
            continue;
        a.name = copy_string(r, a.name);
        a.stage = copy_string(r, a.stage);
        a.extra = DRY_NONE;
        dry_trace_add_annotation(r->builder, &a);
    }
}

static void
write_settings(struct dryi_recorder *r, const struct dryi_torch_conf *conf,
               const char *conf_text)
{
    struct dry_trace_settings settings = dryi_torch_conf_settings(conf);
    settings.conf = dry_trace_add_string(r->builder, conf_text, strlen(conf_text));
    dry_trace_set_settings(r->builder, &settings);
}

static void
drop(struct dryi_recorder *r)
{
    const struct dry_trace_view *v = r->view;
    const struct dry_memory *m = &r->memory;
    dry_trace_builder_destroy(r->builder);
    dryi_map_finish(&r->requests);
    dryi_memory_free(m, r->strings, (size_t)v->string_count + 1, sizeof *r->strings);
    dryi_memory_free(m, r->stacks, (size_t)v->stack_count + 1, sizeof *r->stacks);
    dryi_memory_free(m, r->notes, (size_t)v->note_count + 1, sizeof *r->notes);
}

enum dry_status
dryi_recorder_init(struct dryi_recorder *r, const struct dry_trace *trace,
                   const struct dryi_program *program, const struct dryi_torch_conf *conf,
                   const char *conf_text, struct dry_error *err)
{
    *r = (struct dryi_recorder){.memory = program->memory,
                                .trace = trace,
                                .view = dry_trace_get_view(trace),
                                .program = program};
    dryi_map_init(&r->requests, &r->memory);
    r->strings = make_table(r, r->view->string_count);
    r->stacks = make_table(r, r->view->stack_count);
    r->notes = make_table(r, r->view->note_count);
    struct dry_trace_builder_options options;
    dry_trace_builder_options_init(&options);
    options.memory = &r->memory;
    options.kind = DRY_TRACE_SNAPSHOT;
    enum dry_status status = DRY_ERR_MEMORY;
    if (r->strings && r->stacks && r->notes)
        status = dry_trace_builder_create(&options, &r->builder, err);
    if (status != DRY_OK) {
        drop(r);
        return dryi_fail_memory(err, "a recorder");
    }
    write_settings(r, conf, conf_text);
    write_annotations(r);
    dry_trace_begin_device(r->builder, program->device->device);
    return DRY_OK;
}

struct dryi_listener
dryi_recorder_listener(struct dryi_recorder *r)
{
    return (struct dryi_listener){.begin = on_begin,
                                  .event = on_event,
                                  .after = after_op,
                                  .refused = on_refused,
                                  .end = on_end,
                                  .self = r};
}

enum dry_status
dryi_recorder_finish(struct dryi_recorder *r, enum dry_status status,
                     struct dry_trace **recorded, struct dry_error *err)
{
    if (status == DRY_OK) {
        struct dry_trace_builder *builder = r->builder;
        r->builder = NULL;
        status = dry_trace_builder_finish(builder, recorded, err);
    }
    drop(r);
    return status;
}
