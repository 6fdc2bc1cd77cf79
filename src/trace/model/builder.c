/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Filling a trace, call by call.
 *
 * The first failure sticks: later calls return it and change nothing. A program may add a
 * million events unchecked and ask once, at finish. A wrong id from the caller is such a
 * failure, not an assertion, because builders are fed with data from files.
 */
#include <string.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "trace/model/kind.h"
#include "trace/model/trace.h"

void
dry_trace_builder_options_init_sized(struct dry_trace_builder_options *options,
                                     size_t struct_size)
{
    const struct dry_trace_builder_options defaults = {
        .kind = DRY_TRACE_BUILT,
    };
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

static void
init_trace(struct dry_trace *trace, const struct dry_memory *parent,
           uint64_t memory_bytes_max)
{
    trace->parent = *parent;
    trace->budget = (struct dryi_budget){
        .parent = *parent,
        .limit_bytes = memory_bytes_max,
    };
    trace->memory = dryi_budget_memory(&trace->budget);
    dryi_intern_init(&trace->strings, &trace->memory);
    dryi_intern_init(&trace->frames, &trace->memory);
    dryi_intern_init(&trace->stacks, &trace->memory);
    dryi_intern_init(&trace->lanes, &trace->memory);
    dryi_intern_init(&trace->notes, &trace->memory);
    dryi_intern_init(&trace->unknowns, &trace->memory);
    trace->view.protocol = -1;
    trace->view.top_extra = DRY_NONE;
    trace->view.settings.conf = DRY_NONE;
    trace->view.settings.extra = DRY_NONE;
    trace->view.settings.max_split_size = -1;
}

enum dry_status
dryi_builder_create(const struct dry_memory *memory, enum dry_trace_kind kind,
                    uint64_t memory_bytes_max, struct dry_trace_builder **builder,
                    struct dry_error *err)
{
    struct dry_memory parent = dryi_memory_or_default(memory);
    struct dry_trace_builder *b = dryi_memory_zalloc(&parent, 1, sizeof *b);
    struct dry_trace *trace = dryi_memory_zalloc(&parent, 1, sizeof *trace);
    if (!b || !trace) {
        dryi_memory_free(&parent, b, 1, sizeof *b);
        dryi_memory_free(&parent, trace, 1, sizeof *trace);
        return dryi_fail_memory(err, "a trace");
    }
    init_trace(trace, &parent, memory_bytes_max);
    b->trace = trace;
    dryi_builder_set_kind(b, kind);
    *builder = b;
    return DRY_OK;
}

enum dry_status
dry_trace_builder_create(const struct dry_trace_builder_options *given,
                         struct dry_trace_builder **builder, struct dry_error *err)
{
    struct dry_trace_builder_options options;
    dry_trace_builder_options_init(&options);
    enum dry_status status = dryi_sized_take(&options, sizeof options, given, err);
    if (status != DRY_OK)
        return status;
    return dryi_builder_create(options.memory, options.kind, UINT64_MAX, builder, err);
}

void
dry_trace_builder_destroy(struct dry_trace_builder *builder)
{
    if (!builder)
        return;
    struct dry_memory parent = builder->trace->parent;
    dry_trace_destroy(builder->trace);
    dryi_memory_free(&parent, builder, 1, sizeof *builder);
}

enum dry_status
dryi_builder_check(const struct dry_trace_builder *builder, struct dry_error *err)
{
    if (builder->error.status != DRY_OK && err)
        *err = builder->error;
    return builder->error.status;
}

enum dry_status
dryi_builder_fail_memory(struct dry_trace_builder *builder, const char *noun)
{
    return dryi_budget_fail(&builder->trace->budget, noun, &builder->error);
}

void
dryi_builder_set_kind(struct dry_trace_builder *builder, enum dry_trace_kind kind)
{
    builder->trace->view.kind = kind;
    builder->trace->view.has_addresses = dryi_kind_get(kind)->has_addresses;
    builder->trace->view.is_of_driver = dryi_kind_get(kind)->is_of_driver;
}

static bool
is_ok(const struct dry_trace_builder *b)
{
    return b->error.status == DRY_OK;
}

static bool
refuse(struct dry_trace_builder *b, const char *what, uint32_t id, uint32_t count)
{
    dryi_fail(&b->error, DRY_ERR_ARGUMENT, "%s %u was never added: there are %u", what,
              id, count);
    return false;
}

/* Return true for an id of the table or DRY_NONE. Refuses all others. */
static bool
check_id(struct dry_trace_builder *b, const struct dryi_intern *table, const char *what,
         uint32_t id)
{
    return id < table->count || id == DRY_NONE || refuse(b, what, id, table->count);
}

static bool
check_lane(struct dry_trace_builder *b, uint32_t lane)
{
    uint32_t count = b->trace->lanes.count;
    return lane < count || refuse(b, "lane", lane, count);
}

static bool
check_string(struct dry_trace_builder *b, uint32_t id)
{
    return check_id(b, &b->trace->strings, "string", id);
}

static bool
check_stack(struct dry_trace_builder *b, uint32_t id)
{
    return check_id(b, &b->trace->stacks, "stack", id);
}

static uint32_t
put(struct dry_trace_builder *b, struct dryi_intern *table, const void *bytes,
    size_t length, const char *noun)
{
    uint32_t id = dryi_intern_put(table, bytes, length);
    if (id == DRYI_INTERN_NONE)
        dryi_builder_fail_memory(b, noun);
    return id;
}

uint32_t
dry_trace_add_string(struct dry_trace_builder *b, const char *bytes, size_t length)
{
    return is_ok(b) ? put(b, &b->trace->strings, bytes, length, "a string") : DRY_NONE;
}

uint32_t
dry_trace_add_frame(struct dry_trace_builder *b, const struct dry_frame *frame)
{
    if (!is_ok(b) || !check_string(b, frame->name) || !check_string(b, frame->file) ||
        !check_string(b, frame->extra))
        return DRY_NONE;
    bool is_text = frame->flags == (DRY_FRAME_FORWARD | DRY_FRAME_TEXT);
    if (frame->flags > DRY_FRAME_FORWARD && (!is_text || frame->extra == DRY_NONE)) {
        dryi_fail(&b->error, DRY_ERR_ARGUMENT, "a frame with flags %u%s", frame->flags,
                  is_text ? " without its text" : "");
        return DRY_NONE;
    }
    return put(b, &b->trace->frames, frame, sizeof *frame, "a frame");
}

/* Check that the frames were added, and that those of the forward pass are the outermost. */
static bool
check_frames(struct dry_trace_builder *b, const uint32_t *frames, size_t count)
{
    const struct dryi_intern *table = &b->trace->frames;
    uint32_t flags = 0;
    for (size_t i = 0; i < count; i++) {
        if (frames[i] >= table->count)
            return refuse(b, "frame", frames[i], table->count);
        const struct dry_frame *frame = dryi_intern_get(table, frames[i], NULL);
        if (flags != 0 && frame->flags != flags) {
            dryi_fail(&b->error, DRY_ERR_ARGUMENT,
                      "frame %u follows one of the forward pass, but has other flags",
                      frames[i]);
            return false;
        }
        flags = frame->flags;
    }
    return true;
}

uint32_t
dry_trace_add_stack(struct dry_trace_builder *b, const uint32_t *frames, size_t count)
{
    if (!is_ok(b) || !check_frames(b, frames, count))
        return DRY_NONE;
    if (count > UINT32_MAX / sizeof *frames)
        count = UINT32_MAX; /* too many, so the table refuses the stack */
    return put(b, &b->trace->stacks, frames, count * sizeof *frames, "a stack");
}

uint32_t
dry_trace_add_lane(struct dry_trace_builder *b, const struct dry_lane *lane)
{
    if (!is_ok(b))
        return DRY_NONE;
    struct dry_lane clean = *lane;
    memset(clean.reserved, 0, sizeof clean.reserved);
    return put(b, &b->trace->lanes, &clean, sizeof clean, "a lane");
}

uint32_t
dry_trace_add_note(struct dry_trace_builder *b, const struct dry_note *note)
{
    if (!is_ok(b) || !check_string(b, note->action_name) ||
        !check_string(b, note->compile_context) ||
        !check_string(b, note->user_metadata) || !check_string(b, note->extra))
        return DRY_NONE;
    return put(b, &b->trace->notes, note, sizeof *note, "a note");
}

static bool
grow_events(struct dry_trace_builder *b)
{
    const struct dry_memory *m = &b->trace->memory;
    struct dryi_events *e = &b->trace->events;
    size_t n = e->count + 1;
    if (!dryi_memory_grow(m, &e->action, &e->action_capacity, n, sizeof *e->action) ||
        !dryi_memory_grow(m, &e->addr, &e->addr_capacity, n, sizeof *e->addr) ||
        !dryi_memory_grow(m, &e->size, &e->size_capacity, n, sizeof *e->size) ||
        !dryi_memory_grow(m, &e->time_us, &e->time_capacity, n, sizeof *e->time_us) ||
        !dryi_memory_grow(m, &e->lane, &e->lane_capacity, n, sizeof *e->lane) ||
        !dryi_memory_grow(m, &e->stack, &e->stack_capacity, n, sizeof *e->stack) ||
        !dryi_memory_grow(m, &e->note, &e->note_capacity, n, sizeof *e->note)) {
        dryi_builder_fail_memory(b, "the events");
        return false;
    }
    e->capacity =
        e->action_capacity; /* capacities are equal: all grow by the same rule */
    DRYI_ASSERT(e->capacity == e->note_capacity && e->capacity == e->addr_capacity);
    return true;
}

bool
dryi_builder_append_event(struct dry_trace_builder *b, const struct dry_event *event)
{
    struct dryi_events *e = &b->trace->events;
    if (e->count == e->capacity && !grow_events(b))
        return false;
    size_t row = e->count++;
    e->action[row] = (uint8_t)event->action;
    e->addr[row] = event->addr;
    e->size[row] = event->size;
    e->time_us[row] = event->time_us;
    e->lane[row] = event->lane;
    e->stack[row] = event->stack;
    e->note[row] = event->note;
    return true;
}

enum dry_status
dryi_builder_add_device(struct dry_trace_builder *b, int32_t device, size_t first_event,
                        size_t event_count)
{
    struct dry_trace *t = b->trace;
    size_t n = t->view.device_count;
    if (!dryi_memory_grow(&t->memory, &t->devices, &t->device_capacity, n + 1,
                          sizeof *t->devices))
        return dryi_builder_fail_memory(b, "the devices");
    t->devices[n] = (struct dry_trace_device){
        .device = device,
        .first_event = first_event,
        .event_count = event_count,
    };
    t->view.device_count++;
    return DRY_OK;
}

enum dry_status
dry_trace_begin_device(struct dry_trace_builder *b, int32_t device)
{
    if (!is_ok(b))
        return b->error.status;
    const struct dry_trace *t = b->trace;
    size_t n = t->view.device_count;
    if (device < DRY_DEVICE_HOST)
        return dryi_fail(&b->error, DRY_ERR_ARGUMENT, "device %d, expected -1 or more",
                         device);
    if (n && t->devices[n - 1].device == device)
        return DRY_OK;
    b->trace->view.has_traces = true;
    return dryi_builder_add_device(b, device, t->events.count, 0);
}

enum dry_status
dry_trace_add_event(struct dry_trace_builder *b, const struct dry_event *event)
{
    if (!is_ok(b))
        return b->error.status;
    struct dry_trace *t = b->trace;
    if ((unsigned)event->action >= DRY_ACTION_COUNT)
        return dryi_fail(&b->error, DRY_ERR_ARGUMENT, "action %u, expected 0 to %u",
                         (unsigned)event->action, DRY_ACTION_COUNT - 1u);
    if (!check_lane(b, event->lane) || !check_stack(b, event->stack) ||
        !check_id(b, &t->notes, "note", event->note))
        return b->error.status;
    if (t->view.device_count == 0 && dry_trace_begin_device(b, 0) != DRY_OK)
        return b->error.status;
    if (!dryi_builder_append_event(b, event))
        return b->error.status;
    t->devices[t->view.device_count - 1].event_count++;
    return DRY_OK;
}

bool
dryi_builder_append_block(struct dry_trace_builder *b,
                          const struct dry_trace_block *block)
{
    struct dry_trace *t = b->trace;
    size_t n = t->view.block_count;
    if (!dryi_memory_grow(&t->memory, &t->blocks, &t->block_capacity, n + 1,
                          sizeof *t->blocks)) {
        dryi_builder_fail_memory(b, "the blocks");
        return false;
    }
    t->blocks[n] = *block;
    t->view.block_count++;
    return true;
}

bool
dryi_builder_append_segment(struct dry_trace_builder *b,
                            const struct dry_trace_segment *segment)
{
    struct dry_trace *t = b->trace;
    size_t n = t->view.segment_count;
    if (!dryi_memory_grow(&t->memory, &t->segments, &t->segment_capacity, n + 1,
                          sizeof *t->segments)) {
        dryi_builder_fail_memory(b, "the segments");
        return false;
    }
    t->segments[n] = *segment;
    t->view.segment_count++;
    return true;
}

static bool
check_block(struct dry_trace_builder *b, const struct dry_trace_block *block)
{
    return check_stack(b, block->stack) && check_string(b, block->extra);
}

int
dryi_trace_compare_segments(const void *a, const void *b)
{
    const struct dry_trace_segment *const *x = a, *const *y = b;
    return ((*x)->address > (*y)->address) - ((*x)->address < (*y)->address);
}

void
dryi_trace_sum_blocks(struct dry_trace_segment *segment,
                      const struct dry_trace_block *blocks, size_t count)
{
    segment->allocated_size = segment->active_size = segment->requested_size = 0;
    for (size_t i = 0; i < count; i++) {
        const struct dry_trace_block *b = &blocks[i];
        segment->allocated_size += b->state == DRY_BLOCK_ACTIVE ? b->size : 0;
        if (b->state == DRY_BLOCK_INACTIVE)
            continue;
        segment->active_size += b->size;
        segment->requested_size += b->requested_size;
    }
}

enum dry_status
dry_trace_add_segment(struct dry_trace_builder *b,
                      const struct dry_trace_segment *segment,
                      const struct dry_trace_block *blocks, size_t block_count)
{
    if (!is_ok(b) || !check_lane(b, segment->lane) || !check_stack(b, segment->stack) ||
        !check_string(b, segment->extra))
        return b->error.status;
    if (segment->device < DRY_DEVICE_HOST)
        return dryi_fail(&b->error, DRY_ERR_ARGUMENT, "device %d, expected -1 or more",
                         segment->device);
    struct dry_trace_segment row = *segment;
    row.first_block = b->trace->view.block_count;
    row.block_count = block_count;
    for (size_t i = 0; i < block_count; i++) {
        if (!check_block(b, &blocks[i]) || !dryi_builder_append_block(b, &blocks[i]))
            return b->error.status;
    }
    dryi_builder_append_segment(b, &row);
    return b->error.status;
}

enum dry_status
dry_trace_add_annotation(struct dry_trace_builder *b,
                         const struct dry_trace_annotation *annotation)
{
    if (!is_ok(b) || !check_string(b, annotation->name) ||
        !check_string(b, annotation->stage) || !check_string(b, annotation->extra))
        return b->error.status;
    struct dry_trace *t = b->trace;
    size_t n = t->view.annotation_count;
    if (!dryi_memory_grow(&t->memory, &t->annotations, &t->annotation_capacity, n + 1,
                          sizeof *t->annotations))
        return dryi_builder_fail_memory(b, "the annotations");
    t->annotations[n] = *annotation;
    t->view.annotation_count++;
    t->view.has_annotations = true;
    return DRY_OK;
}

enum dry_status
dry_trace_set_settings(struct dry_trace_builder *b,
                       const struct dry_trace_settings *settings)
{
    if (!is_ok(b) || !check_string(b, settings->conf) ||
        !check_string(b, settings->extra))
        return b->error.status;
    b->trace->view.settings = *settings;
    b->trace->view.has_settings = settings->known;
    return DRY_OK;
}

void
dryi_builder_add_unknown(struct dry_trace_builder *b, uint32_t name, uint32_t where)
{
    struct dry_trace *t = b->trace;
    const uint32_t key[2] = {name, where};
    uint32_t id = put(b, &t->unknowns, key, sizeof key, "the unknown keys");
    if (id == DRY_NONE)
        return;
    if (id == t->view.unknown_count) {
        if (!dryi_memory_grow(&t->memory, &t->unknown_rows, &t->unknown_capacity, id + 1,
                              sizeof *t->unknown_rows)) {
            dryi_builder_fail_memory(b, "the unknown keys");
            return;
        }
        t->unknown_rows[id] = (struct dry_trace_unknown){.name = name, .where = where};
        t->view.unknown_count++;
    }
    t->unknown_rows[id].count++;
}
