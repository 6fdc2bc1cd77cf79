/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Building a trace call by call: equal things get equal numbers, devices get ranges, the
 * first failure sticks, and nothing is leaked whatever fails.
 */
#include "support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include <drystone/trace.h>

#include "support/failing_memory.h"

static struct dry_trace_builder *
begin(const struct dry_memory *memory)
{
    struct dry_trace_builder_options options;
    struct dry_trace_builder *b;
    dry_trace_builder_options_init(&options);
    options.memory = memory;
    assert_int_equal(dry_trace_builder_create(&options, &b, NULL), DRY_OK);
    return b;
}

static struct dry_trace *
finish(struct dry_trace_builder *b)
{
    struct dry_trace *trace;
    struct dry_error err;
    if (dry_trace_builder_finish(b, &trace, &err) != DRY_OK)
        fail_msg("%s", err.text);
    return trace;
}

/* Finish must fail with this status and these words. */
static void
refuse(struct dry_trace_builder *b, enum dry_status status, const char *words)
{
    struct dry_trace *trace = NULL;
    struct dry_error err;
    assert_int_equal(dry_trace_builder_finish(b, &trace, &err), status);
    assert_null(trace);
    if (!strstr(err.text, words))
        fail_msg("\"%s\", expected \"%s\"", err.text, words);
}

static uint32_t
add_text(struct dry_trace_builder *b, const char *text)
{
    return dry_trace_add_string(b, text, strlen(text));
}

static uint32_t
add_lane(struct dry_trace_builder *b, uint64_t stream)
{
    return dry_trace_add_lane(b, &(struct dry_lane){.stream = stream});
}

static void
add_alloc(struct dry_trace_builder *b, uint64_t addr, uint32_t lane)
{
    dry_trace_add_event(b, &(struct dry_event){.action = DRY_ACTION_ALLOC,
                                               .addr = addr,
                                               .size = 512,
                                               .time_us = 1,
                                               .lane = lane,
                                               .stack = DRY_NONE,
                                               .note = DRY_NONE});
}

static void
add_segment(struct dry_trace_builder *b, int32_t device, uint64_t address,
            size_t block_count)
{
    struct dry_trace_segment segment = {
        .address = address,
        .lane = add_lane(b, 0),
        .stack = DRY_NONE,
        .extra = DRY_NONE,
        .device = device,
    };
    struct dry_trace_block blocks[4];
    for (size_t i = 0; i < block_count; i++)
        blocks[i] = (struct dry_trace_block){
            .address = address + i,
            .stack = DRY_NONE,
            .extra = DRY_NONE,
        };
    dry_trace_add_segment(b, &segment, blocks, block_count);
}

static void
an_empty_trace(void **state)
{
    (void)state;
    struct dry_trace *t = finish(begin(NULL));
    const struct dry_trace_view *v = dry_trace_get_view(t);
    assert_int_equal(v->kind, DRY_TRACE_BUILT);
    assert_int_equal(v->protocol, -1);
    assert_int_equal(v->event_count, 0);
    assert_int_equal(v->device_count, 0);
    assert_int_equal(v->top_extra, DRY_NONE);
    dry_trace_destroy(t);
    dry_trace_destroy(NULL);
    dry_trace_builder_destroy(NULL);
    dry_trace_builder_destroy(begin(NULL));
}

static void
equal_things_have_equal_numbers(void **state)
{
    (void)state;
    struct dry_trace_builder *b = begin(NULL);
    uint32_t name = add_text(b, "name");
    assert_int_equal(add_text(b, "name"), name);
    assert_int_not_equal(dry_trace_add_string(b, "name\0", 5), name);
    struct dry_frame frame = {name, DRY_NONE, DRY_NONE, 3, 0};
    uint32_t f = dry_trace_add_frame(b, &frame);
    assert_int_equal(dry_trace_add_frame(b, &frame), f);
    uint32_t ids[3] = {f, f, f};
    uint32_t stack = dry_trace_add_stack(b, ids, 3);
    assert_int_equal(dry_trace_add_stack(b, ids, 3), stack);
    assert_int_not_equal(dry_trace_add_stack(b, ids, 2), stack);
    uint32_t none = dry_trace_add_stack(b, NULL, 0);
    assert_int_equal(dry_trace_add_stack(b, ids, 0), none);
    assert_int_equal(add_lane(b, 5), add_lane(b, 5));
    struct dry_note note = {DRY_NONE, name, DRY_NONE, DRY_NONE, 0};
    uint32_t n = dry_trace_add_note(b, &note);
    assert_int_equal(dry_trace_add_note(b, &note), n);
    struct dry_trace *t = finish(b);
    size_t length, count;
    assert_string_equal(dry_trace_string(t, name, &length), "name");
    assert_int_equal(length, 4);
    assert_int_equal(dry_trace_stack(t, stack, &count)[2], f);
    assert_int_equal(count, 3);
    dry_trace_stack(t, none, &count);
    assert_int_equal(count, 0);
    assert_int_equal(dry_trace_note(t, n)->compile_context, name);
    assert_int_equal(dry_trace_get_view(t)->frames[f].line, 3);
    assert_int_equal(dry_trace_get_view(t)->lanes[0].stream, 5);
    dry_trace_destroy(t);
}

static void
nothing_is_answered_with_nothing(void **state)
{
    (void)state;
    struct dry_trace *t = finish(begin(NULL));
    size_t count = 7;
    assert_null(dry_trace_string(t, DRY_NONE, &count));
    assert_int_equal(count, 0);
    assert_null(dry_trace_string(t, DRY_NONE, NULL));
    assert_null(dry_trace_stack(t, DRY_NONE, &count));
    assert_int_equal(dry_trace_note(t, DRY_NONE)->action_name, DRY_NONE);
    assert_int_equal(dry_trace_note(t, DRY_NONE)->flags, 0);
    dry_trace_destroy(t);
}

static void
events_keep_their_order_and_device(void **state)
{
    (void)state;
    struct dry_trace_builder *b = begin(NULL);
    uint32_t lane = add_lane(b, 0);
    static const int32_t devices[] = {2, DRY_DEVICE_HOST, 0};
    for (size_t d = 0; d < 3; d++) {
        dry_trace_begin_device(b, devices[d]);
        for (uint64_t i = 0; i < 100 * (d + 1); i++)
            add_alloc(b, d * 1000 + i, lane);
        dry_trace_begin_device(b, devices[d]); /* again the same: nothing */
    }
    struct dry_trace *t = finish(b);
    const struct dry_trace_view *v = dry_trace_get_view(t);
    assert_int_equal(v->event_count, 600);
    assert_int_equal(v->addr[0], 0);
    assert_int_equal(v->addr[100], 1000);
    assert_int_equal(v->addr[599], 2299);
    assert_int_equal(v->device_count, 3);
    assert_int_equal(v->devices[0].device, 0);
    assert_int_equal(v->devices[0].first_event, 300);
    assert_int_equal(v->devices[0].event_count, 300);
    assert_int_equal(v->devices[1].device, 2);
    assert_int_equal(v->devices[1].first_event, 0);
    assert_int_equal(v->devices[2].device, DRY_DEVICE_HOST);
    assert_int_equal(v->devices[2].event_count, 200);
    assert_int_equal(v->has_traces, 1);
    dry_trace_destroy(t);
}

static void
events_without_a_device_are_of_device_0(void **state)
{
    (void)state;
    struct dry_trace_builder *b = begin(NULL);
    add_alloc(b, 1, add_lane(b, 0));
    struct dry_trace *t = finish(b);
    assert_int_equal(dry_trace_get_view(t)->devices[0].device, 0);
    assert_int_equal(dry_trace_get_view(t)->devices[0].event_count, 1);
    dry_trace_destroy(t);
}

/* In any order: grouped by device, in order inside each, blocks still theirs. */
static void
segments_are_grouped_stably(void **state)
{
    (void)state;
    static const int32_t devices[] = {70000, DRY_DEVICE_HOST, 0, 70000, 3, 0, 258, 3};
    static const int32_t sorted[] = {0, 3, 258, 70000, DRY_DEVICE_HOST};
    struct dry_trace_builder *b = begin(NULL);
    dry_trace_begin_device(b, 3);
    dry_trace_begin_device(b, 1);
    for (size_t i = 0; i < 800; i++)
        add_segment(b, devices[i % 8], i * 16, i % 5);
    struct dry_trace *t = finish(b);
    const struct dry_trace_view *v = dry_trace_get_view(t);
    assert_int_equal(v->segment_count, 800);
    assert_int_equal(v->device_count, 6); /* and device 1, without segments */
    for (size_t i = 1; i < v->segment_count; i++) {
        const struct dry_trace_segment *a = &v->segments[i - 1], *c = &v->segments[i];
        assert_true((uint32_t)a->device <= (uint32_t)c->device);
        assert_true(a->device != c->device || a->address < c->address);
    }
    for (size_t i = 0; i < v->segment_count; i++) {
        const struct dry_trace_segment *s = &v->segments[i];
        assert_int_equal(s->block_count, s->address / 16 % 5);
        for (size_t k = 0; k < s->block_count; k++)
            assert_int_equal(v->blocks[s->first_block + k].address, s->address + k);
    }
    size_t at = 0;
    for (size_t i = 0, d = 0; i < v->device_count; i++) {
        assert_int_equal(v->devices[i].first_segment, at);
        at += v->devices[i].segment_count;
        if (v->devices[i].device != 1)
            assert_int_equal(v->devices[i].device, sorted[d++]);
    }
    assert_int_equal(at, 800);
    dry_trace_destroy(t);
}

static void
the_first_failure_sticks(void **state)
{
    (void)state;
    struct dry_trace_builder *b = begin(NULL);
    uint32_t lane = add_lane(b, 0);
    add_alloc(b, 1, lane + 1);
    assert_int_equal(add_text(b, "later"), DRY_NONE);
    assert_int_equal(dry_trace_begin_device(b, 1), DRY_ERR_ARGUMENT);
    refuse(b, DRY_ERR_ARGUMENT, "lane 1 was never added: there are 1");
}

static void
ids_that_were_never_given_are_refused(void **state)
{
    (void)state;
    struct dry_trace_builder *b = begin(NULL);
    dry_trace_add_frame(b, &(struct dry_frame){4, DRY_NONE, DRY_NONE, 1, 0});
    refuse(b, DRY_ERR_ARGUMENT, "string 4 was never added");
    b = begin(NULL);
    dry_trace_add_stack(b, (uint32_t[]){0}, 1);
    refuse(b, DRY_ERR_ARGUMENT, "frame 0 was never added");
    b = begin(NULL);
    dry_trace_add_note(b, &(struct dry_note){DRY_NONE, DRY_NONE, 9, DRY_NONE, 0});
    refuse(b, DRY_ERR_ARGUMENT, "string 9 was never added");
    b = begin(NULL);
    dry_trace_begin_device(b, -2);
    refuse(b, DRY_ERR_ARGUMENT, "device -2");
    b = begin(NULL);
    add_segment(b, -7, 0, 0);
    refuse(b, DRY_ERR_ARGUMENT, "device -7");
    b = begin(NULL);
    dry_trace_add_event(b, &(struct dry_event){.action = (enum dry_action)17});
    refuse(b, DRY_ERR_ARGUMENT, "action 17");
    b = begin(NULL);
    dry_trace_begin_device(b, 0);
    dry_trace_begin_device(b, 1);
    dry_trace_begin_device(b, 0);
    refuse(b, DRY_ERR_ARGUMENT, "device 0 was begun twice");
}

static uint32_t
add_flagged(struct dry_trace_builder *b, uint32_t flags, uint32_t text)
{
    struct dry_frame frame = {DRY_NONE, DRY_NONE, text, 1, flags};
    return dry_trace_add_frame(b, &frame);
}

static void
frames_of_the_forward_pass_are_outermost(void **state)
{
    (void)state;
    const uint32_t text = DRY_FRAME_FORWARD | DRY_FRAME_TEXT;
    struct dry_trace_builder *b = begin(NULL);
    uint32_t ids[3] = {add_flagged(b, 0, DRY_NONE),
                       add_flagged(b, DRY_FRAME_FORWARD, DRY_NONE),
                       add_flagged(b, text, add_text(b, "t"))};
    assert_int_equal(dry_trace_add_stack(b, ids, 2), 0);
    assert_int_equal(dry_trace_add_stack(b, (uint32_t[]){ids[0], ids[2], ids[2]}, 3), 1);
    dry_trace_add_stack(b, ids, 3);
    refuse(b, DRY_ERR_ARGUMENT, "frame 2 follows one of the forward pass");
    b = begin(NULL);
    add_flagged(b, text, DRY_NONE);
    refuse(b, DRY_ERR_ARGUMENT, "a frame with flags 3 without its text");
    b = begin(NULL);
    add_flagged(b, DRY_FRAME_TEXT, add_text(b, "t"));
    refuse(b, DRY_ERR_ARGUMENT, "a frame with flags 2");
}

static void
options_of_other_sizes(void **state)
{
    (void)state;
    struct {
        struct dry_trace_builder_options options;
        char later[16];
    } large = {.options = {.struct_size = sizeof large, .kind = DRY_TRACE_RMM}};
    struct dry_trace_builder *b;
    struct dry_error err;
    assert_int_equal(dry_trace_builder_create(&large.options, &b, &err), DRY_OK);
    struct dry_trace *t = finish(b);
    assert_int_equal(dry_trace_get_view(t)->kind, DRY_TRACE_RMM);
    dry_trace_destroy(t);
    large.later[3] = 1;
    assert_int_equal(dry_trace_builder_create(&large.options, &b, &err),
                     DRY_ERR_UNSUPPORTED);
    large.options.struct_size = 0;
    assert_int_equal(dry_trace_builder_create(&large.options, &b, &err),
                     DRY_ERR_ARGUMENT);
}

static void
build_much(struct dry_trace_builder *b)
{
    char text[2] = "a";
    uint32_t frames[26];
    for (size_t i = 0; i < 26; i++, text[0]++) {
        struct dry_frame frame = {add_text(b, text), DRY_NONE, DRY_NONE, 1, 0};
        frames[i] = dry_trace_add_frame(b, &frame);
    }
    struct dry_event event = {.lane = add_lane(b, 1),
                              .stack = dry_trace_add_stack(b, frames, 26)};
    event.note = dry_trace_add_note(
        b, &(struct dry_note){DRY_NONE, add_text(b, "c"), DRY_NONE, DRY_NONE, 0});
    for (size_t i = 0; i < 100; i++)
        dry_trace_add_event(b, &event);
    for (int32_t i = 0; i < 40; i++)
        add_segment(b, 40 - i, 4096, 2);
    for (size_t i = 0; i < 20; i++)
        dry_trace_add_annotation(
            b, &(struct dry_trace_annotation){.name = add_text(b, "n"),
                                              .stage = add_text(b, "START"),
                                              .extra = DRY_NONE});
    dry_trace_set_settings(b, &(struct dry_trace_settings){
                                  .known = true, .conf = DRY_NONE, .extra = DRY_NONE});
}

static void
every_allocation_may_fail(void **state)
{
    (void)state;
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_trace_builder_options options;
        struct dry_trace_builder *b = NULL;
        struct dry_trace *t = NULL;
        dry_trace_builder_options_init(&options);
        options.memory = &memory;
        enum dry_status status = dry_trace_builder_create(&options, &b, NULL);
        if (status == DRY_OK) {
            build_much(b);
            status = dry_trace_builder_finish(b, &t, NULL);
        }
        bool failed = fm.failed;
        if (!failed)
            assert_int_equal(dry_trace_get_view(t)->annotation_count, 20);
        dry_trace_destroy(t);
        failing_memory_finish(&fm);
        assert_int_equal(status, failed ? DRY_ERR_MEMORY : DRY_OK);
        if (!failed)
            break;
    }
}

static void
actions_have_names(void **state)
{
    (void)state;
    assert_string_equal(dry_action_name(DRY_ACTION_ALLOC), "alloc");
    assert_string_equal(dry_action_name(DRY_ACTION_OOM), "oom");
    assert_string_equal(dry_action_name(DRY_ACTION_POOL_END), "pool_end");
    assert_string_equal(dry_action_name((enum dry_action)DRY_ACTION_COUNT),
                        "unknown action");
}

static void
kinds_have_names(void **state)
{
    (void)state;
    assert_string_equal(dry_trace_kind_name(DRY_TRACE_SNAPSHOT), "snapshot");
    assert_string_equal(dry_trace_kind_name(DRY_TRACE_KINETO), "kineto");
    assert_string_equal(dry_trace_kind_text(DRY_TRACE_RMM), "RMM log");
    assert_string_equal(dry_trace_kind_name((enum dry_trace_kind)99), "built");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_trace),
        cmocka_unit_test(equal_things_have_equal_numbers),
        cmocka_unit_test(nothing_is_answered_with_nothing),
        cmocka_unit_test(events_keep_their_order_and_device),
        cmocka_unit_test(events_without_a_device_are_of_device_0),
        cmocka_unit_test(segments_are_grouped_stably),
        cmocka_unit_test(the_first_failure_sticks),
        cmocka_unit_test(ids_that_were_never_given_are_refused),
        cmocka_unit_test(frames_of_the_forward_pass_are_outermost),
        cmocka_unit_test(options_of_other_sizes),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(actions_have_names),
        cmocka_unit_test(kinds_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
