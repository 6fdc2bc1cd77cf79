/* SPDX-License-Identifier: Apache-2.0 */
#include "support/record_builder.h"

#include <string.h>

#include "support/cmocka.h"

void
record_builder_begin(struct record_builder *s)
{
    *s = (struct record_builder){.time_us = 1000, .stack = DRY_NONE};
    struct dry_trace_builder_options options;
    dry_trace_builder_options_init(&options);
    options.kind = DRY_TRACE_SNAPSHOT;
    assert_int_equal(dry_trace_builder_create(&options, &s->builder, NULL), DRY_OK);
}

void
record_builder_device(struct record_builder *s, int32_t device)
{
    s->device = device;
    assert_int_equal(dry_trace_begin_device(s->builder, device), DRY_OK);
}

uint32_t
record_builder_stack(struct record_builder *s, const char *name)
{
    struct dry_frame frame = {.name =
                                  dry_trace_add_string(s->builder, name, strlen(name)),
                              .file = DRY_NONE,
                              .extra = DRY_NONE};
    uint32_t number = dry_trace_add_frame(s->builder, &frame);
    s->stack = dry_trace_add_stack(s->builder, &number, 1);
    return s->stack;
}

static uint32_t
add_lane(struct record_builder *s, uint64_t stream, uint64_t pool)
{
    struct dry_lane lane = {
        .stream = stream, .pool_b = pool, .pool_known = !s->hides_pools};
    return dry_trace_add_lane(s->builder, &lane);
}

void
record_builder_event(struct record_builder *s, enum dry_action action, uint64_t addr,
                     uint64_t size)
{
    struct dry_event event = {.action = action,
                              .addr = addr,
                              .size = size,
                              .time_us = s->time_us,
                              .lane = add_lane(s, s->stream, s->pool),
                              .stack = s->stack,
                              .note = DRY_NONE};
    assert_int_equal(dry_trace_add_event(s->builder, &event), DRY_OK);
    s->time_us += s->time_us <= INT64_MAX - 10 ? 10 : 0;
}

void
record_builder_at(struct record_builder *s, int64_t time_us, enum dry_action action,
                  uint64_t addr, uint64_t size)
{
    s->time_us = time_us;
    record_builder_event(s, action, addr, size);
}

static void
flush_segment(struct record_builder *s)
{
    if (!s->has_segment)
        return;
    struct dry_trace_segment segment = {
        .address = s->segment.address,
        .total_size = s->segment.size,
        .lane = add_lane(s, s->segment.stream, s->segment.pool),
        .stack = DRY_NONE,
        .extra = DRY_NONE,
        .device = s->segment_device,
        .is_large = s->segment.is_large,
        .is_expandable = s->segment.is_expandable,
        .pool_id_known = true,
        .expandable_known = true,
    };
    assert_int_equal(
        dry_trace_add_segment(s->builder, &segment, s->blocks, s->block_count), DRY_OK);
    s->has_segment = 0;
    s->block_count = 0;
}

void
record_builder_segment(struct record_builder *s,
                       const struct record_builder_segment *segment)
{
    flush_segment(s);
    s->segment = *segment;
    s->block_address = segment->address;
    s->has_segment = 1;
    s->segment_device = s->device;
}

void
record_builder_block_at(struct record_builder *s, uint64_t address, uint64_t size,
                        uint64_t requested, enum dry_block_state state)
{
    assert_true(s->has_segment && s->block_count < RECORD_BUILDER_BLOCKS_MAX);
    s->blocks[s->block_count++] = (struct dry_trace_block){
        .address = address,
        .size = size,
        .requested_size = requested,
        .stack = state == DRY_BLOCK_INACTIVE ? DRY_NONE : s->stack,
        .extra = DRY_NONE,
        .state = state,
    };
    s->block_address = address + size;
}

void
record_builder_block(struct record_builder *s, uint64_t size, uint64_t requested,
                     enum dry_block_state state)
{
    record_builder_block_at(s, s->block_address, size, requested, state);
}

void
record_builder_trace(struct record_builder *s)
{
    flush_segment(s);
    struct dry_trace_builder *builder = s->builder;
    s->builder = NULL;
    assert_int_equal(dry_trace_builder_finish(builder, &s->trace, NULL), DRY_OK);
}

const struct dry_timeline_view *
record_builder_timeline(struct record_builder *s)
{
    struct dry_error err;
    struct dry_replay_options options;
    record_builder_trace(s);
    dry_replay_options_init(&options);
    options.device = s->device;
    if (dry_replay_create(s->trace, &options, &s->replay, &err) != DRY_OK)
        fail_msg("%s", err.text);
    if (dry_timeline_create(s->replay, NULL, &s->timeline, &err) != DRY_OK)
        fail_msg("%s", err.text);
    return dry_timeline_get_view(s->timeline);
}

void
record_builder_end(struct record_builder *s)
{
    dry_timeline_destroy(s->timeline);
    dry_replay_destroy(s->replay);
    dry_trace_destroy(s->trace);
    dry_trace_builder_destroy(s->builder);
}
