/* SPDX-License-Identifier: Apache-2.0 */
#include "support/program.h"

#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"

#define SPACING (UINT64_C(1) << 32)

void
program_begin(struct program *p, const struct dry_trace_settings *settings)
{
    struct dry_error err;
    *p = (struct program){.next = SPACING, .time_us = 1};
    if (dry_trace_builder_create(NULL, &p->builder, &err) != DRY_OK)
        fail_msg("%s", err.text);
    program_lane(p, 0, 0);
    if (settings)
        dry_trace_set_settings(p->builder, settings);
    program_begin_device(p);
}

void
program_begin_device(struct program *p)
{
    dry_trace_begin_device(p->builder, p->device_count++);
}

void
program_lane(struct program *p, uint64_t stream, uint64_t pool)
{
    struct dry_lane lane = {.stream = stream, .pool_b = pool, .pool_known = true};
    p->lane = dry_trace_add_lane(p->builder, &lane);
}

static uint32_t
add_frame(struct program *p, const char *file, size_t file_length, uint32_t line,
          const char *name, size_t name_length, uint32_t flags)
{
    struct dry_frame frame = {
        .name = dry_trace_add_string(p->builder, name, name_length),
        .file = dry_trace_add_string(p->builder, file, file_length),
        .extra = DRY_NONE,
        .line = line,
        .flags = flags,
    };
    return dry_trace_add_frame(p->builder, &frame);
}

uint32_t
program_stack_of(struct program *p, const char *file, uint32_t line, const char *name,
                 size_t name_length)
{
    uint32_t frame = add_frame(p, file, strlen(file), line, name, name_length, 0);
    return dry_trace_add_stack(p->builder, &frame, 1);
}

uint32_t
program_stack(struct program *p, const char *frames)
{
    uint32_t ids[64];
    size_t count = 0;
    while (*frames) {
        size_t length = strcspn(frames, "\n");
        const char *line = memchr(frames, ';', length);
        assert_non_null(line);
        const char *name = strchr(line + 1, ';') + 1;
        bool is_forward = *frames == '>';
        ids[count++] = add_frame(
            p, frames + is_forward, (size_t)(line - frames) - is_forward,
            (uint32_t)strtoul(line + 1, NULL, 10), name, length - (size_t)(name - frames),
            is_forward ? DRY_FRAME_FORWARD : 0);
        frames += length + (frames[length] == '\n');
    }
    return dry_trace_add_stack(p->builder, ids, count);
}

static void
add_event(struct program *p, enum dry_action action, uint64_t address, uint64_t size,
          uint32_t stack)
{
    struct dry_event event = {.action = action,
                              .addr = address,
                              .size = size,
                              .time_us = p->time_us++,
                              .lane = p->lane,
                              .stack = stack,
                              .note = DRY_NONE};
    dry_trace_add_event(p->builder, &event);
}

static uint64_t
take_address(struct program *p, uint64_t size)
{
    uint64_t address = p->next;
    p->next += SPACING;
    assert_true(address / SPACING < PROGRAM_BLOCKS_MAX);
    p->sizes[address / SPACING] = size;
    return address;
}

uint64_t
program_alloc(struct program *p, uint64_t size, uint32_t stack)
{
    uint64_t address = take_address(p, size);
    add_event(p, DRY_ACTION_ALLOC, address, size, stack);
    return address;
}

void
program_free(struct program *p, uint64_t address, uint32_t stack)
{
    uint64_t size = p->sizes[address / SPACING];
    add_event(p, DRY_ACTION_FREE_REQUESTED, address, size, stack);
    add_event(p, DRY_ACTION_FREE_COMPLETED, address, size, stack);
}

void
program_free_older(struct program *p, uint64_t size, uint32_t stack)
{
    program_free(p, take_address(p, size), stack);
}

void
program_older(struct program *p, uint64_t size, uint32_t stack)
{
    uint64_t address = take_address(p, size);
    struct dry_trace_block block = {.address = address,
                                    .size = size,
                                    .requested_size = size,
                                    .stack = stack,
                                    .extra = DRY_NONE,
                                    .state = DRY_BLOCK_ACTIVE};
    struct dry_trace_segment segment = {.address = address,
                                        .total_size = size,
                                        .allocated_size = size,
                                        .active_size = size,
                                        .requested_size = size,
                                        .lane = p->lane,
                                        .stack = DRY_NONE,
                                        .extra = DRY_NONE,
                                        .device = p->device_count - 1,
                                        .is_large = true,
                                        .pool_id_known = true,
                                        .expandable_known = true};
    dry_trace_add_segment(p->builder, &segment, &block, 1);
}

void
program_finish(struct program *p)
{
    struct dry_error err;
    if (dry_trace_builder_finish(p->builder, &p->trace, &err) != DRY_OK)
        fail_msg("%s", err.text);
    p->builder = NULL;
    for (int32_t i = 0; i < p->device_count; i++) {
        struct dry_replay_options options;
        dry_replay_options_init(&options);
        options.device = i;
        if (dry_replay_create(p->trace, &options, &p->replays[i], &err) != DRY_OK ||
            dry_timeline_create(p->replays[i], NULL, &p->timelines[i], &err) != DRY_OK)
            fail_msg("%s", err.text);
    }
}

void
program_end(struct program *p)
{
    for (int32_t i = 0; i < p->device_count; i++) {
        dry_timeline_destroy(p->timelines[i]);
        dry_replay_destroy(p->replays[i]);
    }
    dry_trace_destroy(p->trace);
    dry_trace_builder_destroy(p->builder);
}
