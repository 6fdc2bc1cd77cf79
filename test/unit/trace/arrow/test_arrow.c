/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A table that is exported says what the trace says, owns itself, and is given back whole:
 * by its own release, child by child, or after a failure.
 */
#include "support/cmocka.h"

#include <string.h>

#include <drystone/arrow.h>

#include "support/failing_memory.h"

#define EVENTS 11

static uint32_t
add_text(struct dry_trace_builder *b, const char *text)
{
    return dry_trace_add_string(b, text, strlen(text));
}

static void
add_segments(struct dry_trace_builder *b, uint32_t lane, uint32_t stack)
{
    struct dry_trace_block blocks[3] = {
        {512, 512, 500, stack, DRY_NONE, DRY_BLOCK_ACTIVE},
        {1024, 512, 0, DRY_NONE, DRY_NONE, DRY_BLOCK_INACTIVE},
        {4096, 512, 512, DRY_NONE, DRY_NONE, DRY_BLOCK_PENDING_FREE}};
    struct dry_trace_segment segment = {.address = 512,
                                        .total_size = 1024,
                                        .lane = lane,
                                        .stack = DRY_NONE,
                                        .extra = DRY_NONE,
                                        .device = 1,
                                        .is_expandable = true};
    dry_trace_add_segment(b, &segment, blocks, 2);
    segment = (struct dry_trace_segment){.address = 4096,
                                         .total_size = UINT64_MAX,
                                         .lane = lane,
                                         .stack = stack,
                                         .extra = DRY_NONE,
                                         .is_large = true};
    dry_trace_add_segment(b, &segment, blocks + 2, 1);
}

static void
add_events(struct dry_trace_builder *b, const uint32_t lanes[2], uint32_t stack,
           uint32_t note)
{
    dry_trace_begin_device(b, 1);
    for (size_t i = 0; i < EVENTS; i++) {
        if (i == 4)
            dry_trace_begin_device(b, 0);
        dry_trace_add_event(b, &(struct dry_event){.action = DRY_ACTION_OOM,
                                                   .addr = i,
                                                   .size = UINT64_MAX - i,
                                                   .time_us = -(int64_t)i,
                                                   .lane = lanes[i % 2],
                                                   .stack = i % 3 ? DRY_NONE : stack,
                                                   .note = i == 10 ? note : DRY_NONE});
    }
}

/*
 * Build EVENTS events, four of device 1 and the others of device 0: every second one on
 * stream 7 of pool (2, 3), every third with a stack, and the last with a note.
 */
static struct dry_trace *
make_trace(void)
{
    struct dry_trace_builder *b;
    struct dry_trace *trace;
    assert_int_equal(dry_trace_builder_create(NULL, &b, NULL), DRY_OK);
    uint32_t name = add_text(b, "f\xff"), file = add_text(b, "\xed\xb2\x80.py");
    uint32_t frames[2];
    for (uint32_t i = 0; i < 2; i++)
        frames[i] = dry_trace_add_frame(
            b, &(struct dry_frame){name, i ? DRY_NONE : file, DRY_NONE, i, 0});
    uint32_t stack = dry_trace_add_stack(b, frames, 2);
    dry_trace_add_stack(b, frames, 0);
    dry_trace_add_stack(b, frames + 1, 1);
    uint32_t lanes[2] = {dry_trace_add_lane(b, &(struct dry_lane){.pool_known = true}),
                         dry_trace_add_lane(b, &(struct dry_lane){7, 2, 3, true, {0}})};
    uint32_t note =
        dry_trace_add_note(b, &(struct dry_note){DRY_NONE, file, name, DRY_NONE, 0});
    add_events(b, lanes, stack, note);
    add_segments(b, lanes[1], stack);
    dry_trace_add_annotation(
        b, &(struct dry_trace_annotation){5, name, add_text(b, "START"), DRY_NONE, 1});
    assert_int_equal(dry_trace_builder_finish(b, &trace, NULL), DRY_OK);
    return trace;
}

/* A table, taken out of its stream, which is over. */
struct taken {
    struct ArrowSchema schema;
    struct ArrowArray rows;
};

/* Take a table of the trace that make_trace() builds; the trace is gone by then. */
static struct taken
take(enum dry_arrow_table table)
{
    struct dry_trace *trace = make_trace();
    struct ArrowArrayStream stream;
    struct ArrowArray end;
    struct taken t;
    assert_int_equal(dry_arrow_export(trace, table, NULL, &stream, NULL), DRY_OK);
    dry_trace_destroy(trace);
    assert_int_equal(stream.get_schema(&stream, &t.schema), 0);
    assert_int_equal(stream.get_next(&stream, &t.rows), 0);
    assert_int_equal(stream.get_next(&stream, &end), 0);
    assert_null(end.release);
    stream.release(&stream);
    assert_null(stream.release);
    assert_string_equal(t.schema.format, "+s");
    assert_int_equal(t.schema.n_children, t.rows.n_children);
    for (int64_t i = 0; i < t.rows.n_children; i++)
        assert_int_equal(t.rows.children[i]->length, t.rows.length);
    return t;
}

static void
give_back(struct taken *t)
{
    t->schema.release(&t->schema);
    t->rows.release(&t->rows);
    assert_null(t->schema.release);
    assert_null(t->rows.release);
}

static int64_t
find(const struct taken *t, const char *name, const char *format)
{
    for (int64_t i = 0; i < t->schema.n_children; i++)
        if (strcmp(t->schema.children[i]->name, name) == 0) {
            assert_string_equal(t->schema.children[i]->format, format);
            return i;
        }
    fail_msg("no column %s", name);
    return 0;
}

static const void *
values(const struct taken *t, const char *name, const char *format)
{
    return t->rows.children[find(t, name, format)]->buffers[1];
}

/* The text of a row: what its code stands for must be `text`. */
static void
assert_text(const struct taken *t, const char *name, size_t code, const char *text)
{
    const struct ArrowArray *texts =
        t->rows.children[find(t, name, strcmp(name, "action") ? "I" : "C")]->dictionary;
    const int64_t *offsets = texts->buffers[1];
    const char *bytes = texts->buffers[2];
    assert_int_equal(texts->n_buffers, 3);
    assert_true((int64_t)code < texts->length);
    assert_int_equal(offsets[code + 1] - offsets[code], strlen(text));
    assert_memory_equal(bytes + offsets[code], text, strlen(text));
}

static void
events_have_what_they_share(void **state)
{
    (void)state;
    struct taken t = take(DRY_ARROW_EVENTS);
    const uint8_t *action = values(&t, "action", "C");
    const int32_t *device = values(&t, "device", "i");
    const uint64_t *address = values(&t, "address", "L"), *size = values(&t, "size", "L");
    const int64_t *time = values(&t, "time_us", "l");
    const uint64_t *stream = values(&t, "stream", "L"), *a = values(&t, "pool_a", "L");
    const uint64_t *b = values(&t, "pool_b", "L");
    assert_int_equal(t.rows.length, EVENTS);
    for (size_t i = 0; i < EVENTS; i++) {
        assert_int_equal(device[i], i < 4 ? 1 : 0);
        assert_int_equal(address[i], i);
        assert_true(size[i] == UINT64_MAX - i);
        assert_true(time[i] == -(int64_t)i);
        assert_int_equal(stream[i], i % 2 ? 7 : 0);
        assert_int_equal(a[i], i % 2 ? 2 : 0);
        assert_int_equal(b[i], i % 2 ? 3 : 0);
        assert_text(&t, "action", action[i], "oom");
    }
    const uint32_t *metadata = values(&t, "user_metadata", "I");
    const uint32_t *context = values(&t, "compile_context", "I");
    assert_text(&t, "user_metadata", metadata[10], "f\\udcff");
    assert_text(&t, "compile_context", context[10], "\\udc80.py");
    const struct ArrowArray *column = t.rows.children[find(&t, "user_metadata", "I")];
    assert_int_equal(column->dictionary->length, 1);
    assert_int_equal(metadata[10], 0);
    assert_int_equal(metadata[0], DRY_NONE);
    give_back(&t);
}

static void
nulls_are_marked_and_counted(void **state)
{
    (void)state;
    struct taken t = take(DRY_ARROW_EVENTS);
    const struct ArrowArray *stack = t.rows.children[find(&t, "stack", "I")];
    const uint8_t *bits = stack->buffers[0];
    assert_int_equal(stack->null_count, EVENTS - 4);
    assert_int_equal(bits[0], 0x49); /* events 0, 3, 6 */
    assert_int_equal(bits[1], 0x02); /* event 9 */
    assert_true(t.schema.children[find(&t, "stack", "I")]->flags & ARROW_FLAG_NULLABLE);
    assert_null(t.rows.children[find(&t, "size", "L")]->buffers[0]);
    give_back(&t);
}

static void
segments_and_blocks_find_each_other(void **state)
{
    (void)state;
    struct taken t = take(DRY_ARROW_SEGMENTS);
    const int32_t *device = values(&t, "device", "i"); /* grouped by device: 0 first */
    const uint64_t *size = values(&t, "total_size", "L"),
                   *pool = values(&t, "pool_a", "L");
    const uint8_t *large = values(&t, "is_large", "b");
    const uint8_t *expandable = values(&t, "is_expandable", "b");
    assert_int_equal(t.rows.length, 2);
    assert_int_equal(device[0], 0);
    assert_int_equal(device[1], 1);
    assert_true(size[0] == UINT64_MAX);
    assert_int_equal(pool[1], 2);
    assert_int_equal(large[0], 1);
    assert_int_equal(expandable[0], 2);
    give_back(&t);
    t = take(DRY_ARROW_BLOCKS);
    const uint32_t *segment = values(&t, "segment", "I"),
                   *code = values(&t, "state", "I");
    const uint64_t *address = values(&t, "address", "L");
    device = values(&t, "device", "i");
    assert_int_equal(t.rows.length, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(segment[i], address[i] == 4096 ? 0 : 1);
        assert_int_equal(device[i], address[i] == 4096 ? 0 : 1);
        assert_text(&t, "state", code[i],
                    address[i] == 4096   ? "active_pending_free"
                    : address[i] == 1024 ? "inactive"
                                         : "active_allocated");
    }
    give_back(&t);
}

static void
stacks_are_lists_of_frames(void **state)
{
    (void)state;
    struct taken t = take(DRY_ARROW_STACKS);
    const int64_t *offsets = values(&t, "frames", "+L");
    const struct ArrowArray *items = t.rows.children[0]->children[0];
    const uint32_t *frames = items->buffers[1];
    static const int64_t expected[] = {0, 2, 2, 3};
    assert_int_equal(t.rows.length, 3);
    assert_memory_equal(offsets, expected, sizeof expected);
    assert_int_equal(items->length, 3);
    assert_int_equal(frames[1], frames[2]);
    give_back(&t);
    t = take(DRY_ARROW_FRAMES);
    const uint32_t *name = values(&t, "name", "I"), *line = values(&t, "line", "I");
    assert_int_equal(t.rows.length, 2);
    assert_int_equal(t.rows.children[find(&t, "file", "I")]->null_count, 1);
    assert_text(&t, "name", name[0], "f\\udcff");
    assert_int_equal(line[1], 1);
    give_back(&t);
}

static void
devices_and_annotations(void **state)
{
    (void)state;
    struct taken t = take(DRY_ARROW_DEVICES);
    assert_int_equal(t.rows.length, 2);
    give_back(&t);
    t = take(DRY_ARROW_ANNOTATIONS);
    const int64_t *time = values(&t, "time_us", "l");
    const uint32_t *stage = values(&t, "stage", "I");
    assert_int_equal(t.rows.length, 1);
    assert_int_equal(time[0], 5);
    assert_text(&t, "stage", stage[0], "START");
    give_back(&t);
}

static void
a_child_outlives_its_parent(void **state)
{
    (void)state;
    struct taken t = take(DRY_ARROW_EVENTS);
    int64_t i = find(&t, "action", "C");
    struct ArrowArray moved = *t.rows.children[i];
    struct ArrowSchema moved_schema = *t.schema.children[i];
    t.rows.children[i]->release = NULL;
    t.schema.children[i]->release = NULL;
    give_back(&t);
    assert_int_equal(((const uint8_t *)moved.buffers[1])[0], DRY_ACTION_OOM);
    assert_int_equal(moved.dictionary->length, DRY_ACTION_COUNT);
    assert_string_equal(moved_schema.dictionary->format, "U");
    moved.release(&moved);
    moved_schema.release(&moved_schema);
}

static void
an_empty_trace_has_empty_tables(void **state)
{
    (void)state;
    for (int table = 0; table < DRY_ARROW_TABLE_COUNT; table++) {
        struct dry_trace_builder *b;
        struct dry_trace *trace;
        struct ArrowArrayStream stream;
        struct ArrowArray rows;
        assert_int_equal(dry_trace_builder_create(NULL, &b, NULL), DRY_OK);
        assert_int_equal(dry_trace_builder_finish(b, &trace, NULL), DRY_OK);
        assert_int_equal(
            dry_arrow_export(trace, (enum dry_arrow_table)table, NULL, &stream, NULL),
            DRY_OK);
        assert_int_equal(stream.get_next(&stream, &rows), 0);
        assert_int_equal(rows.length, 0);
        assert_true(rows.n_children > 0);
        rows.release(&rows);
        stream.release(&stream);
        dry_trace_destroy(trace);
    }
}

static void
tables_have_names_and_others_are_refused(void **state)
{
    (void)state;
    struct dry_trace *trace = make_trace();
    struct ArrowArrayStream stream;
    struct dry_error err;
    assert_int_equal(dry_arrow_export(trace, (enum dry_arrow_table)DRY_ARROW_TABLE_COUNT,
                                      NULL, &stream, &err),
                     DRY_ERR_ARGUMENT);
    assert_string_equal(err.text, "table 7, expected 0 to 6");
    assert_string_equal(dry_arrow_table_name(DRY_ARROW_EVENTS), "events");
    assert_string_equal(dry_arrow_table_name(DRY_ARROW_FRAMES), "frames");
    assert_string_equal(dry_arrow_table_name((enum dry_arrow_table) - 1),
                        "unknown table");
    dry_trace_destroy(trace);
}

/* Refuse the n-th request of an export and of its schema, for all n. */
static void
every_allocation_may_fail(void **state)
{
    (void)state;
    struct dry_trace *trace = make_trace();
    for (int table = 0; table < DRY_ARROW_TABLE_COUNT; table++)
        for (size_t n = 0;; n++) {
            struct failing_memory fm;
            struct dry_memory memory = failing_memory_init(&fm, n);
            struct ArrowArrayStream stream;
            struct ArrowSchema schema;
            struct dry_error err;
            enum dry_status status = dry_arrow_export(trace, (enum dry_arrow_table)table,
                                                      &memory, &stream, &err);
            if (status == DRY_OK) {
                if (stream.get_schema(&stream, &schema) == 0)
                    schema.release(&schema);
                else
                    assert_string_equal(stream.get_last_error(&stream),
                                        "no memory for a schema");
                stream.release(&stream);
            } else {
                assert_int_equal(status, DRY_ERR_MEMORY);
                assert_string_equal(err.text, "no memory for a table");
            }
            failing_memory_finish(&fm);
            if (!fm.failed)
                break;
        }
    dry_trace_destroy(trace);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_have_what_they_share),
        cmocka_unit_test(nulls_are_marked_and_counted),
        cmocka_unit_test(segments_and_blocks_find_each_other),
        cmocka_unit_test(stacks_are_lists_of_frames),
        cmocka_unit_test(devices_and_annotations),
        cmocka_unit_test(a_child_outlives_its_parent),
        cmocka_unit_test(an_empty_trace_has_empty_tables),
        cmocka_unit_test(tables_have_names_and_others_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
