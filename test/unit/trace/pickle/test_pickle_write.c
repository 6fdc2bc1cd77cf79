/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include <drystone/trace.h>

#include "support/bytes.h"
#include "support/failing_memory.h"
#include "support/same_trace.h"

static uint32_t
add_string(struct dry_trace_builder *b, const char *text)
{
    return dry_trace_add_string(b, text, strlen(text));
}

/* A stack of `depth` frames from a few lines of one file. */
static uint32_t
add_stack(struct dry_trace_builder *b, uint32_t depth)
{
    uint32_t *frames = calloc(depth + 1, sizeof *frames);
    assert_non_null(frames);
    for (uint32_t i = 0; i < depth; i++)
        frames[i] =
            dry_trace_add_frame(b, &(struct dry_frame){.name = add_string(b, "f"),
                                                       .file = add_string(b, "m.py"),
                                                       .extra = DRY_NONE,
                                                       .line = i % 7});
    uint32_t stack = dry_trace_add_stack(b, frames, depth);
    free(frames);
    return stack;
}

static uint32_t
add_note(struct dry_trace_builder *b, const char *metadata, uint32_t flags)
{
    return dry_trace_add_note(b,
                              &(struct dry_note){.action_name = DRY_NONE,
                                                 .compile_context = add_string(b, "N/A"),
                                                 .user_metadata = add_string(b, metadata),
                                                 .extra = DRY_NONE,
                                                 .flags = flags});
}

/* Numbers at the edges of every opcode that may carry one. */
static const uint64_t edges[] = {
    0,          1,          255,        256,        65535,      65536,
    0x7fffffff, 0x80000000, 0xffffffff, 1ull << 39, 1ull << 40, (1ull << 47) - 1,
    1ull << 47, 1ull << 55, 1ull << 56, INT64_MAX,  1ull << 63, UINT64_MAX,
};
#define EDGE_COUNT (sizeof edges / sizeof *edges)

static void
add_events(struct dry_trace_builder *b, size_t count)
{
    const uint32_t lanes[2] = {
        dry_trace_add_lane(b, &(struct dry_lane){.stream = 0}),
        dry_trace_add_lane(b, &(struct dry_lane){.stream = UINT64_MAX,
                                                 .pool_a = 3,
                                                 .pool_b = 70000,
                                                 .pool_known = true}),
    };
    const uint32_t stacks[3] = {DRY_NONE, add_stack(b, 0), add_stack(b, 50)};
    const uint32_t notes[3] = {DRY_NONE, add_note(b, "", 0),
                               add_note(b, "label", DRY_NOTE_NO_TIME)};
    for (size_t i = 0; i < count; i++) {
        struct dry_event event = {
            .action = (enum dry_action)(i % DRY_ACTION_OOM),
            .addr = edges[i % EDGE_COUNT],
            .size = edges[(i + 5) % EDGE_COUNT],
            .time_us = i % 3 == 2 ? 0 : (int64_t)edges[(i + 9) % EDGE_COUNT],
            .lane = lanes[i % 2],
            .stack = stacks[i / 2 % 3],
            .note = notes[i % 3],
        };
        dry_trace_add_event(b, &event);
    }
}

static void
add_segments(struct dry_trace_builder *b, size_t count, int32_t device)
{
    uint32_t lane =
        dry_trace_add_lane(b, &(struct dry_lane){.stream = 7, .pool_known = true});
    struct dry_trace_block blocks[3];
    for (size_t i = 0; i < count; i++) {
        struct dry_trace_segment segment = {
            .address = (i + 1) << 21,
            .total_size = 1 << 21,
            .allocated_size = 512,
            .active_size = 1024,
            .requested_size = 600,
            .lane = lane,
            .stack = add_stack(b, 0),
            .extra = DRY_NONE,
            .device = device,
            .is_large = i % 2,
            .is_expandable = i % 3 == 0,
            .pool_id_known = true,
            .expandable_known = true,
        };
        for (size_t k = 0; k < 3; k++)
            blocks[k] = (struct dry_trace_block){
                .address = segment.address + 512 * k,
                .size = 512,
                .requested_size = k,
                .stack = k ? add_stack(b, (uint32_t)k) : DRY_NONE,
                .extra = DRY_NONE,
                .state = (enum dry_block_state)k,
            };
        dry_trace_add_segment(b, &segment, blocks, 3);
    }
}

static enum dry_status
build(const struct dry_memory *memory, size_t scale, struct dry_trace **trace)
{
    struct dry_trace_builder_options options;
    dry_trace_builder_options_init(&options);
    options.memory = memory;
    struct dry_trace_builder *b;
    enum dry_status status = dry_trace_builder_create(&options, &b, NULL);
    if (status != DRY_OK)
        return status;
    dry_trace_begin_device(b, 0);
    add_events(b, scale);
    dry_trace_begin_device(b, 1);
    dry_trace_begin_device(b, 2);
    add_events(b, 1);
    add_segments(b, scale / 10, 0);
    dry_trace_add_annotation(
        b, &(struct dry_trace_annotation){.time_us = -5,
                                          .name = add_string(b, "step"),
                                          .stage = add_string(b, "START"),
                                          .extra = DRY_NONE,
                                          .device = 0});
    struct dry_trace_settings settings = {.known = true,
                                          .conf = add_string(b, "backend:native"),
                                          .max_split_size = -1,
                                          .garbage_collection_threshold = 0.8,
                                          .expandable_segments = true,
                                          .roundup_known = true,
                                          .extra = DRY_NONE};
    for (unsigned i = 0; i < 16; i++)
        settings.roundup_power2_divisions[i] = i;
    dry_trace_set_settings(b, &settings);
    return dry_trace_builder_finish(b, trace, NULL);
}

static struct dry_trace *
read_back(const struct bytes_sink *to)
{
    struct bytes_source from;
    struct dry_source source = bytes_source_init(&from, to->bytes, to->count);
    struct dry_trace *trace;
    struct dry_error err;
    if (dry_trace_read(&source, NULL, &trace, &err) != DRY_OK)
        fail_msg("byte %llu: %s", (unsigned long long)err.offset, err.text);
    return trace;
}

static void
check_round_trip(const struct dry_trace *trace)
{
    struct bytes_sink to;
    struct dry_sink sink = bytes_sink_init(&to, SIZE_MAX);
    struct dry_error err;
    if (dry_trace_write(trace, &sink, &err) != DRY_OK)
        fail_msg("%s", err.text);
    struct dry_trace *again = read_back(&to);
    const char *what = same_trace(trace, again);
    if (what)
        fail_msg("%s is not the same", what);
    assert_int_equal(dry_trace_get_view(again)->protocol, 4);
    assert_int_equal(dry_trace_get_view(again)->byte_count, to.count);
    dry_trace_destroy(again);
    bytes_sink_finish(&to);
}

static void
what_is_built_reads_back_equal(void **state)
{
    (void)state;
    static const size_t scales[] = {0, 1, 18, 999, 1000, 1001, 40000};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        struct dry_trace *trace;
        assert_int_equal(build(NULL, scales[i], &trace), DRY_OK);
        check_round_trip(trace);
        dry_trace_destroy(trace);
    }
}

/* Longer than the buffer, and longer than any frame. */
static void
long_strings_go_between_frames(void **state)
{
    (void)state;
    static const size_t lengths[] = {255, 256, 65536, 131072, 131073, 262144, 3000000};
    char *text = malloc(3000000);
    assert_non_null(text);
    memset(text, 'x', 3000000);
    struct dry_trace_builder *b;
    struct dry_trace *trace;
    assert_int_equal(dry_trace_builder_create(NULL, &b, NULL), DRY_OK);
    uint32_t lane = dry_trace_add_lane(b, &(struct dry_lane){.stream = 0});
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct dry_note note = {.action_name = DRY_NONE,
                                .compile_context = DRY_NONE,
                                .user_metadata =
                                    dry_trace_add_string(b, text, lengths[i]),
                                .extra = DRY_NONE};
        struct dry_event event = {
            .lane = lane, .stack = DRY_NONE, .note = dry_trace_add_note(b, &note)};
        dry_trace_add_event(b, &event);
        dry_trace_add_event(b, &event);
    }
    assert_int_equal(dry_trace_builder_finish(b, &trace, NULL), DRY_OK);
    check_round_trip(trace);
    dry_trace_destroy(trace);
    free(text);
}

static void
only_traces_with_addresses_are_written(void **state)
{
    (void)state;
    struct bytes_source from;
    struct dry_source source = bytes_source_init(&from, "a 1 2 3 4\n", 10);
    struct dry_trace *trace;
    assert_int_equal(dry_trace_read(&source, NULL, &trace, NULL), DRY_OK);
    struct bytes_sink to;
    struct dry_sink sink = bytes_sink_init(&to, SIZE_MAX);
    struct dry_error err;
    assert_int_equal(dry_trace_write(trace, &sink, &err), DRY_ERR_UNSUPPORTED);
    assert_int_equal(to.calls, 0);
    dry_trace_destroy(trace);
    bytes_sink_finish(&to);
}

static void
far_devices_are_refused(void **state)
{
    (void)state;
    struct dry_trace_builder *b;
    struct dry_trace *trace;
    assert_int_equal(dry_trace_builder_create(NULL, &b, NULL), DRY_OK);
    dry_trace_begin_device(b, INT32_MAX);
    add_events(b, 1);
    assert_int_equal(dry_trace_builder_finish(b, &trace, NULL), DRY_OK);
    struct bytes_sink to;
    struct dry_sink sink = bytes_sink_init(&to, SIZE_MAX);
    struct dry_error err;
    assert_int_equal(dry_trace_write(trace, &sink, &err), DRY_ERR_ARGUMENT);
    dry_trace_destroy(trace);
}

static void
every_write_may_fail(void **state)
{
    (void)state;
    struct dry_trace *trace;
    assert_int_equal(build(NULL, 20000, &trace), DRY_OK);
    for (size_t n = 0;; n++) {
        struct bytes_sink to;
        struct dry_sink sink = bytes_sink_init(&to, n);
        struct dry_error err = {0};
        enum dry_status status = dry_trace_write(trace, &sink, &err);
        bool failed = to.failed;
        bytes_sink_finish(&to);
        if (!failed) {
            assert_int_equal(status, DRY_OK);
            assert_true(n > 3);
            break;
        }
        assert_int_equal(status, DRY_ERR_SYSTEM);
        assert_string_equal(err.text, "no room left");
    }
    dry_trace_destroy(trace);
}

static void
every_request_for_memory_may_fail(void **state)
{
    (void)state;
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_trace *trace = NULL;
        struct bytes_sink to;
        struct dry_sink sink = bytes_sink_init(&to, SIZE_MAX);
        enum dry_status status = build(&memory, 30, &trace);
        if (status == DRY_OK)
            status = dry_trace_write(trace, &sink, NULL);
        dry_trace_destroy(trace);
        bytes_sink_finish(&to);
        failing_memory_finish(&fm);
        if (!fm.failed) {
            assert_int_equal(status, DRY_OK);
            break;
        }
        if (status != DRY_OK)
            assert_int_equal(status, DRY_ERR_MEMORY);
    }
}

static void
real_snapshots_read_back_equal(void **state)
{
    (void)state;
    static const char *const names[] = {
        "pytorch/decomfl.pickle",
        "pytorch/compile-context.pickle",
        "pytorch/late-start.pickle",
        "pytorch/old-format-full-card.pickle",
        "pytorch/tiny-cs336.pickle",
        "pytorch/segments-only-fragmented.pickle",
        "pytorch/python-stacks-only.pickle",
        "pytorch/synthetic-inconsistent.pickle",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct bytes_sink file = {0};
        file.bytes = bytes_of_trace(names[i], &file.count);
        if (!file.bytes)
            skip_because("%s is not in $DRY_TEST_TRACES", names[i]);
        struct dry_trace *trace = read_back(&file);
        check_round_trip(trace);
        dry_trace_destroy(trace);
        free(file.bytes);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_built_reads_back_equal),
        cmocka_unit_test(long_strings_go_between_frames),
        cmocka_unit_test(only_traces_with_addresses_are_written),
        cmocka_unit_test(far_devices_are_refused),
        cmocka_unit_test(every_write_may_fail),
        cmocka_unit_test(every_request_for_memory_may_fail),
        cmocka_unit_test(real_snapshots_read_back_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
