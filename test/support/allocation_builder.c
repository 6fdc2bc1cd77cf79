/* SPDX-License-Identifier: Apache-2.0 */
#include "support/allocation_builder.h"

#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"

#define FRAMES_MAX 16
#define SPACING (UINT64_C(1) << 32) /* between two addresses */

void
allocation_builder_begin(struct allocation_builder *s)
{
    struct dry_trace_builder_options options;
    struct dry_error err;
    *s = (struct allocation_builder){
        .next_address = SPACING, .note = DRY_NONE, .tick_us = 10};
    dry_trace_builder_options_init(&options);
    assert_int_equal(dry_trace_builder_create(&options, &s->b, &err), DRY_OK);
    struct dry_lane lane = {.pool_known = true};
    s->lane = dry_trace_add_lane(s->b, &lane);
    dry_trace_begin_device(s->b, 0);
}

static uint32_t
add_text(struct allocation_builder *s, const char *text)
{
    return dry_trace_add_string(s->b, text, strlen(text));
}

/* "FILE:LINE NAME" */
static uint32_t
add_frame(struct allocation_builder *s, const char *code, size_t length)
{
    const char *colon = memchr(code, ':', length);
    const char *blank = memchr(code, ' ', length);
    assert_true(colon && blank && colon < blank);
    struct dry_frame frame = {
        .name =
            dry_trace_add_string(s->b, blank + 1, length - (size_t)(blank + 1 - code)),
        .file = dry_trace_add_string(s->b, code, (size_t)(colon - code)),
        .extra = DRY_NONE,
        .line = (uint32_t)strtoul(colon + 1, NULL, 10),
    };
    return dry_trace_add_frame(s->b, &frame);
}

static uint32_t
add_stack(struct allocation_builder *s, const char *code)
{
    uint32_t frames[FRAMES_MAX];
    size_t count = 0;
    if (!code)
        return DRY_NONE;
    while (*code) {
        const char *end = strstr(code, " < ");
        size_t length = end ? (size_t)(end - code) : strlen(code);
        assert_true(count < FRAMES_MAX);
        frames[count++] = add_frame(s, code, length);
        code += end ? length + 3 : length;
    }
    return dry_trace_add_stack(s->b, frames, count);
}

static void
add_event(struct allocation_builder *s, enum dry_action action, uint64_t addr,
          uint64_t size, const char *code)
{
    struct dry_event event = {.action = action,
                              .addr = addr,
                              .size = size,
                              .time_us = s->time_us,
                              .lane = s->lane,
                              .stack = add_stack(s, code),
                              .note = s->note};
    s->time_us += s->tick_us;
    s->event_count++;
    assert_int_equal(dry_trace_add_event(s->b, &event), DRY_OK);
}

uint32_t
allocation_builder_alloc(struct allocation_builder *s, const char *code, uint64_t size)
{
    if (s->count == s->capacity) {
        s->capacity = s->capacity ? s->capacity * 2 : 1024;
        s->addresses = realloc(s->addresses, s->capacity * sizeof *s->addresses);
        s->sizes = realloc(s->sizes, s->capacity * sizeof *s->sizes);
        assert_true(s->addresses && s->sizes);
    }
    s->addresses[s->count] = s->next_address;
    s->sizes[s->count] = size;
    s->next_address += SPACING;
    add_event(s, DRY_ACTION_ALLOC, s->addresses[s->count], size, code);
    return s->count++;
}

void
allocation_builder_free_at(struct allocation_builder *s, uint32_t a, const char *code)
{
    add_event(s, DRY_ACTION_FREE_REQUESTED, s->addresses[a], s->sizes[a], code);
    add_event(s, DRY_ACTION_FREE_COMPLETED, s->addresses[a], s->sizes[a], code);
}

void
allocation_builder_free(struct allocation_builder *s, uint32_t a)
{
    allocation_builder_free_at(s, a, NULL);
}

void
allocation_builder_oom(struct allocation_builder *s, uint64_t size)
{
    add_event(s, DRY_ACTION_OOM, 0, size, NULL);
}

void
allocation_builder_annotate(struct allocation_builder *s, const char *name,
                            const char *stage)
{
    struct dry_trace_annotation annotation = {.time_us = s->time_us,
                                              .name = add_text(s, name),
                                              .stage = add_text(s, stage),
                                              .extra = DRY_NONE,
                                              .device = 0};
    assert_int_equal(dry_trace_add_annotation(s->b, &annotation), DRY_OK);
}

static uint32_t
add_note(struct allocation_builder *s, const char *text)
{
    struct dry_note note = {.action_name = DRY_NONE,
                            .compile_context = DRY_NONE,
                            .user_metadata = add_text(s, text),
                            .extra = DRY_NONE};
    return dry_trace_add_note(s->b, &note);
}

void
allocation_builder_set_metadata(struct allocation_builder *s, const char *text)
{
    s->note = text ? add_note(s, text) : DRY_NONE;
}

void
allocation_builder_mark(struct allocation_builder *s, uint32_t a, const char *text)
{
    uint32_t before = s->note;
    s->note = add_note(s, text);
    add_event(s, DRY_ACTION_ANNOTATE, s->addresses[a], s->sizes[a], NULL);
    s->note = before;
}

void
allocation_builder_end(struct allocation_builder *s)
{
    struct dry_error err = {0};
    if (dry_trace_builder_finish(s->b, &s->trace, &err) != DRY_OK ||
        dry_replay_create(s->trace, NULL, &s->replay, &err) != DRY_OK ||
        dry_timeline_create(s->replay, NULL, &s->timeline, &err) != DRY_OK)
        fail_msg("%s", err.text);
    s->b = NULL;
}

void
allocation_builder_finish(struct allocation_builder *s)
{
    dry_timeline_destroy(s->timeline);
    dry_replay_destroy(s->replay);
    dry_trace_destroy(s->trace);
    dry_trace_builder_destroy(s->b);
    free(s->addresses);
    free(s->sizes);
    *s = (struct allocation_builder){0};
}
