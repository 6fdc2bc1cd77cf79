/* SPDX-License-Identifier: Apache-2.0 */

/*
 * forward_frames: strings and dicts become the outer frames of a stack, nothing of a string is
 * lost, and the writer writes what was read.
 */
#include "support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include <drystone/trace.h>

#include "support/bytes.h"
#include "support/failing_memory.h"
#include "support/pickle_text.h"
#include "support/same_trace.h"

#define OUTER "'  File \"train.py\", line 82, in step\n    loss = model(x)\n'"
#define INNER "'  File \"/a/model.py\", line 7, in f\n    y = x @ w\n'"
#define FRAME "}('name''g''filename''g.cpp''line'#4u"
#define EVENT(keys) "}('action''alloc''addr'#512'size'#512'stream'#0" keys "u"
#define FILE_OF(segments, events)                                                        \
    "}('segments'](" segments "e'device_traces'](](" events "e e u."
#define SEGMENT                                                                          \
    "}('device'#0'address'#8192'total_size'#512'stream'#0'frames']'forward_frames']"     \
    "(" INNER "e'blocks'](}('address'#8192'size'#512'state''active_allocated''frames']"  \
    "'forward_frames'](" OUTER INNER "eu e u"

static enum dry_status
read_text(const char *text, const struct dry_memory *memory, struct dry_trace **trace,
          struct dry_error *err)
{
    struct pickle_text p;
    pickle_text_init(&p, text);
    struct bytes_source from;
    struct dry_source source = bytes_source_init(&from, p.bytes, p.count);
    struct dry_trace_options options;
    dry_trace_options_init(&options);
    options.memory = memory;
    *trace = NULL;
    return dry_trace_read(&source, &options, trace, err);
}

static struct dry_trace *
read_well(const char *text)
{
    struct dry_trace *trace;
    struct dry_error err;
    if (read_text(text, NULL, &trace, &err) != DRY_OK)
        fail_msg("byte %llu: %s", (unsigned long long)err.offset, err.text);
    return trace;
}

static const char *
text_of(const struct dry_trace *trace, uint32_t string)
{
    const char *text = dry_trace_string(trace, string, NULL);
    return text ? text : "-";
}

/* Compare a stack with lines like "f /a/model.py:7 3", whose last number is the flags. */
static void
assert_stack(const struct dry_trace *t, uint32_t stack, const char *lines)
{
    char got[4096] = "";
    size_t count, used = 0;
    const uint32_t *frames = dry_trace_stack(t, stack, &count);
    for (size_t i = 0; i < count; i++) {
        const struct dry_frame *f = &dry_trace_get_view(t)->frames[frames[i]];
        used += (size_t)snprintf(got + used, sizeof got - used, "%s %s:%u %u\n",
                                 text_of(t, f->name), text_of(t, f->file),
                                 (unsigned)f->line, (unsigned)f->flags);
    }
    assert_string_equal(got, lines);
}

/* Write the trace and read it again: the same trace. */
static void
assert_same_again(const struct dry_trace *trace)
{
    struct bytes_sink to;
    struct dry_sink sink = bytes_sink_init(&to, SIZE_MAX);
    assert_int_equal(dry_trace_write(trace, &sink, NULL), DRY_OK);
    struct dry_trace *again = bytes_read_trace(to.bytes, to.count);
    const char *what = same_trace(trace, again);
    if (what)
        fail_msg("%s is not the same", what);
    dry_trace_destroy(again);
    bytes_sink_finish(&to);
}

static const char whole[] =
    FILE_OF(SEGMENT, EVENT("'frames'](" FRAME "e'forward_frames'](" OUTER INNER "e")
                         EVENT("'forward_frames'](" OUTER INNER "e'frames']")
                             EVENT("'frames']'forward_frames'](" FRAME FRAME "e"));

static void
strings_are_the_outer_frames(void **state)
{
    (void)state;
    struct dry_trace *t = read_well(whole);
    const struct dry_trace_view *v = dry_trace_get_view(t);
    assert_stack(t, v->stack[0], "g g.cpp:4 0\nf /a/model.py:7 3\nstep train.py:82 3\n");
    assert_stack(t, v->stack[1], "f /a/model.py:7 3\nstep train.py:82 3\n");
    assert_stack(t, v->stack[2], "g g.cpp:4 1\ng g.cpp:4 1\n");
    assert_stack(t, v->segments[0].stack, "f /a/model.py:7 3\n");
    assert_int_equal(v->blocks[0].stack, v->stack[1]);
    assert_int_equal(v->unknown_count, 0);
    assert_same_again(t);
    dry_trace_destroy(t);
}

static void
strings_are_written_as_they_were(void **state)
{
    (void)state;
    static const char texts[] =
        "  File \"train.py\", line 82, in step\n    loss = model(x)\n";
    struct dry_trace *t = read_well(whole);
    struct bytes_sink to;
    struct dry_sink sink = bytes_sink_init(&to, SIZE_MAX);
    assert_int_equal(dry_trace_write(t, &sink, NULL), DRY_OK);
    const char *outer = memmem(to.bytes, to.count, texts, sizeof texts - 1);
    const char *inner = memmem(to.bytes, to.count, "    y = x @ w\n", 14);
    assert_true(outer && inner);
    assert_true(inner <
                outer); /* first in the segment, then behind the outer one by its memo */
    bytes_sink_finish(&to);
    dry_trace_destroy(t);
}

static void
no_string_is_lost(void **state)
{
    (void)state;
    static const struct {
        const char *text, *line;
    } cases[] = {
        {"  File \"a.py\", line 3, in <module>", "<module> a.py:3 3\n"},
        {"  File \"a\", line 1, in b\", line 2, in f\n", "f a\", line 1, in b:2 3\n"},
        {"  File \"a.py\", line 4294967295, in f\n", "f a.py:4294967295 3\n"},
        {"  File \"a\tb\x01.py\", line 3, in f\n  \x7f\xc3\xa9\n", "f a\tb\x01.py:3 3\n"},
        {"  File \"a.py\", line 4294967296, in f\n", NULL},
        {"  File \"a.py\", line 99999999999999999999999, in f\n", NULL},
        {"  File \"a.py\", line , in f\n", NULL},
        {"  File \"a.py\", line 3, in \n", NULL},
        {"  File \"a.py\", line 3", NULL},
        {"  File \"\", line 3, in f\n", NULL},
        {"  File \"a.py\n\", line 3, in f\n", NULL},
        {"File \"a.py\", line 3, in f\n", NULL},
        {"  [Previous line repeated 3 more times]\n", NULL},
        {"  File \"", NULL},
        {"\n", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256], line[256];
        snprintf(text, sizeof text, FILE_OF("", EVENT("'frames']'forward_frames'('%s'l")),
                 cases[i].text);
        snprintf(line, sizeof line, "%s -:0 3\n", cases[i].text);
        struct dry_trace *t = read_well(text);
        const struct dry_trace_view *v = dry_trace_get_view(t);
        assert_stack(t, v->stack[0], cases[i].line ? cases[i].line : line);
        const struct dry_frame *frame =
            &v->frames[*dry_trace_stack(t, v->stack[0], &(size_t){0})];
        assert_string_equal(dry_trace_string(t, frame->extra, NULL), cases[i].text);
        assert_same_again(t);
        dry_trace_destroy(t);
    }
}

/* A list is one object of the pickle, and may be under several keys. */
static void
a_list_may_be_shared(void **state)
{
    (void)state;
    struct dry_trace *t =
        read_well(FILE_OF("", EVENT("'frames']q0'forward_frames'](" OUTER INNER
                                    "eq1'zz'h1") EVENT("'frames'h0'forward_frames'h1")
                                  EVENT("'frames'](" FRAME "eq2'forward_frames'h2")));
    const struct dry_trace_view *v = dry_trace_get_view(t);
    assert_stack(t, v->stack[0], "f /a/model.py:7 3\nstep train.py:82 3\n");
    assert_int_equal(v->stack[1], v->stack[0]);
    assert_stack(t, v->stack[2], "g g.cpp:4 0\ng g.cpp:4 1\n");
    size_t length;
    const char *extra =
        dry_trace_string(t, dry_trace_note(t, v->note[0])->extra, &length);
    const char *outer = memmem(extra, length, "loss = model(x)", 15);
    assert_non_null(outer);
    assert_non_null(memmem(outer, length - (size_t)(outer - extra), "y = x @ w", 9));
    assert_same_again(t);
    dry_trace_destroy(t);
}

static void
refuse(const char *text, const char *words)
{
    struct dry_trace *trace;
    struct dry_error err;
    assert_int_equal(read_text(text, NULL, &trace, &err), DRY_ERR_FORMAT);
    if (!strstr(err.text, words))
        fail_msg("\"%s\", expected \"%s\"", err.text, words);
}

static void
mixed_lists_are_refused(void **state)
{
    (void)state;
    refuse(FILE_OF("", EVENT("'forward_frames'](" INNER FRAME "e")),
           "event 0: an item of `forward_frames` is a frame, expected a string");
    refuse(FILE_OF("", EVENT("'forward_frames'](" FRAME INNER "e")),
           "event 0: an item of `forward_frames` is a string, expected a frame");
    refuse(FILE_OF("", EVENT("'frames'](" INNER "e")),
           "event 0: an item of `frames` is a string, expected a frame");
    refuse(FILE_OF("", EVENT("'forward_frames'](" INNER "eq0'frames'h0")),
           "event 0: an item of `frames` is a string, expected a frame");
}

/* An empty list says nothing, and a record without `frames` gets an empty one. */
static void
empty_and_absent_lists(void **state)
{
    (void)state;
    struct dry_trace *t =
        read_well(FILE_OF("", EVENT("'frames'](" FRAME "e'forward_frames']")
                                  EVENT("'forward_frames'](" INNER "e")));
    const struct dry_trace_view *v = dry_trace_get_view(t);
    assert_stack(t, v->stack[0], "g g.cpp:4 0\n");
    assert_stack(t, v->stack[1], "f /a/model.py:7 3\n");
    assert_same_again(t);
    dry_trace_destroy(t);
}

static void
every_request_for_memory_may_fail(void **state)
{
    (void)state;
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_trace *trace;
        enum dry_status status = read_text(whole, &memory, &trace, NULL);
        dry_trace_destroy(trace);
        failing_memory_finish(&fm);
        if (!fm.failed)
            return;
        assert_int_equal(status, DRY_ERR_MEMORY);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_the_outer_frames),
        cmocka_unit_test(strings_are_written_as_they_were),
        cmocka_unit_test(no_string_is_lost),
        cmocka_unit_test(a_list_may_be_shared),
        cmocka_unit_test(mixed_lists_are_refused),
        cmocka_unit_test(empty_and_absent_lists),
        cmocka_unit_test(every_request_for_memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
