/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/trace.h>

#include "support/bytes.h"
#include "support/failing_memory.h"

static enum dry_status
read_bytes(const void *bytes, size_t count, size_t step, const struct dry_memory *memory,
           struct dry_trace **trace, struct dry_error *err)
{
    struct bytes_source from;
    struct dry_source source = bytes_source_init(&from, bytes, count);
    from.step = step;
    struct dry_trace_options options;
    dry_trace_options_init(&options);
    options.memory = memory;
    return dry_trace_read(&source, &options, trace, err);
}

static struct dry_trace *
read_text(const char *text)
{
    struct dry_trace *trace;
    struct dry_error err;
    if (read_bytes(text, strlen(text), 0, NULL, &trace, &err) != DRY_OK)
        fail_msg("%s", err.text);
    return trace;
}

struct expected {
    enum dry_action action;
    uint64_t addr, size;
    int64_t time_us;
    uint64_t stream, pool;
};

static void
check_events(const struct dry_trace *trace, const struct expected *expected, size_t count)
{
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    assert_int_equal(v->event_count, count);
    for (size_t i = 0; i < count; i++) {
        const struct dry_lane *lane = &v->lanes[v->lane[i]];
        assert_int_equal(v->action[i], expected[i].action);
        assert_int_equal(v->addr[i], expected[i].addr);
        assert_int_equal(v->size[i], expected[i].size);
        assert_int_equal(v->time_us[i], expected[i].time_us);
        assert_int_equal(lane->stream, expected[i].stream);
        assert_int_equal(lane->pool_a, 0);
        assert_int_equal(lane->pool_b, expected[i].pool);
        assert_int_equal(lane->pool_known, 1);
        assert_int_equal(v->stack[i], DRY_NONE);
    }
    assert_int_equal(v->device_count, 1);
    assert_int_equal(v->devices[0].device, 0);
    assert_int_equal(v->devices[0].first_event, 0);
    assert_int_equal(v->devices[0].event_count, count);
}

#define CHECK_EVENTS(trace, expected)                                                    \
    check_events(trace, expected, sizeof(expected) / sizeof *(expected))

static void
plain_ops_become_events(void **state)
{
    (void)state;
    struct dry_trace *trace = read_text("# comment\n"
                                        "\n"
                                        "i 1 512 0 0\n"
                                        "a 2 1000 0x10 5\n"
                                        "r 2 32\n"
                                        "f 2 1000 16 8\n"
                                        "s 32 9\n"
                                        "  # indented\n"
                                        "p 7\n"
                                        "a 3 64 0 10\n"
                                        "p 8\n"
                                        "a 4 65 0 11\n"
                                        "q 7\n"
                                        "a 5 66 0 12\n"
                                        "q 8\n"
                                        "a 6 67 0 13\n"
                                        "f 3\n"
                                        "f 1 512\n"
                                        "f 4 0 0\n"
                                        "e 20\n"
                                        "e");
    static const struct expected expected[] = {
        {DRY_ACTION_LIVE, 1, 512, 0, 0, 0},
        {DRY_ACTION_ALLOC, 2, 1000, 5, 16, 0},
        {DRY_ACTION_RECORD_STREAM, 2, 1000, 5, 32, 0},
        {DRY_ACTION_FREE_REQUESTED, 2, 1000, 8, 16, 0},
        {DRY_ACTION_STREAM_END, 0, 0, 9, 32, 0},
        {DRY_ACTION_POOL_BEGIN, 0, 0, 9, 0, 7},
        {DRY_ACTION_ALLOC, 3, 64, 10, 0, 7},
        {DRY_ACTION_POOL_BEGIN, 0, 0, 10, 0, 8},
        {DRY_ACTION_ALLOC, 4, 65, 11, 0, 8},
        {DRY_ACTION_POOL_END, 0, 0, 11, 0, 7},
        {DRY_ACTION_ALLOC, 5, 66, 12, 0, 8},
        {DRY_ACTION_POOL_END, 0, 0, 12, 0, 8},
        {DRY_ACTION_ALLOC, 6, 67, 13, 0, 0},
        {DRY_ACTION_FREE_REQUESTED, 3, 64, 13, 0, 7},
        {DRY_ACTION_FREE_REQUESTED, 1, 512, 13, 0, 0},
        {DRY_ACTION_FREE_REQUESTED, 4, 65, 13, 0, 8},
        {DRY_ACTION_EMPTY_CACHE, 0, 0, 20, 0, 0},
        {DRY_ACTION_EMPTY_CACHE, 0, 0, 20, 0, 0},
    };
    CHECK_EVENTS(trace, expected);
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    assert_int_equal(v->kind, DRY_TRACE_PLAIN);
    assert_int_equal(v->protocol, -1);
    assert_int_equal(v->note[0], DRY_NONE);
    assert_int_equal(v->note[16], DRY_NONE);
    assert_true(dry_trace_note(trace, v->note[17])->flags == DRY_NOTE_NO_TIME);
    dry_trace_destroy(trace);
}

static void
the_rest_of_a_line_is_its_label(void **state)
{
    (void)state;
    struct dry_trace *trace = read_text("a 1 2 3 4  two words \t\r\nf 1 2 3 5 bye\r\n");
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    const struct dry_note *note = dry_trace_note(trace, v->note[0]);
    assert_string_equal(dry_trace_string(trace, note->user_metadata, NULL), "two words");
    note = dry_trace_note(trace, v->note[1]);
    assert_string_equal(dry_trace_string(trace, note->user_metadata, NULL), "bye");
    assert_int_equal(note->flags, 0);
    dry_trace_destroy(trace);
}

static void
a_label_may_look_like_a_header(void **state)
{
    (void)state;
    struct dry_trace *trace = read_text("a 1 2 3 4 id,lower,upper,size\n");
    assert_int_equal(dry_trace_get_view(trace)->kind, DRY_TRACE_PLAIN);
    dry_trace_destroy(trace);
}

static void
an_id_may_live_again(void **state)
{
    (void)state;
    struct dry_trace *trace = read_text("a 1 10 0 1\nf 1\na 1 20 0 2\nf 1\n");
    assert_int_equal(dry_trace_get_view(trace)->size[3], 20);
    dry_trace_destroy(trace);
}

static void
a_trace_may_be_only_comments(void **state)
{
    (void)state;
    struct dry_trace *trace = read_text("# nothing happened\n");
    assert_int_equal(dry_trace_get_view(trace)->kind, DRY_TRACE_PLAIN);
    assert_int_equal(dry_trace_get_view(trace)->event_count, 0);
    dry_trace_destroy(trace);
}

static void
a_byte_order_mark_is_skipped(void **state)
{
    (void)state;
    struct dry_trace *trace = read_text("\xef\xbb\xbfid,lower,upper,size\n1,2,3,4\n");
    assert_int_equal(dry_trace_get_view(trace)->event_count, 2);
    dry_trace_destroy(trace);
}

static void
rmm_rows_become_events(void **state)
{
    (void)state;
    struct dry_trace *trace = read_text("Thread,Time,Action,Pointer,Size,Stream\r\n"
                                        "1,00:00:00.000001,allocate,0x7f00,1024,0x0\r\n"
                                        "1,00:00:00.5,allocate,0x8000,1,0x2\r\n"
                                        "2,00:00:00.6,allocate,(nil),0,0x0\r\n"
                                        "2,00:00:01,allocate failure,(nil),4096,0x2\r\n"
                                        "2,01:00:02.0000019,free,0x7f00,1024,0x0\r\n"
                                        "2,01:00:02.000002,free,(nil),0,0x0\r\n");
    static const struct expected expected[] = {
        {DRY_ACTION_ALLOC, 0x7f00, 1024, 1, 0, 0},
        {DRY_ACTION_ALLOC, 0x8000, 1, 500000, 2, 0},
        {DRY_ACTION_OOM, 0, 4096, 1000000, 2, 0},
        {DRY_ACTION_FREE_REQUESTED, 0x7f00, 1024, 3602000001, 0, 0},
    };
    CHECK_EVENTS(trace, expected);
    assert_int_equal(dry_trace_get_view(trace)->kind, DRY_TRACE_RMM);
    dry_trace_destroy(trace);
}

static void
rmm_times_know_midnight_and_dates(void **state)
{
    (void)state;
    struct dry_trace *trace =
        read_text("Time,Stream,Size,Pointer,Action\n"
                  "23:59:59.999999,0x0,16,0x1,allocate\n"
                  "23:59:59.999990,0x0,16,0x2,allocate\n" /* another thread, late */
                  "00:00:00.5,0x0,16,0x3,allocate\n"
                  "23:59:59:999991,0x0,16,0x4,allocate\n"
                  "2024-02-29 00:00:01.000002,0x0,16,0x5,allocate\n"
                  "2024-03-01T00:00:00Z,0x0,16,0x5,free\n");
    static const struct expected expected[] = {
        {DRY_ACTION_ALLOC, 1, 16, 86399999999, 0, 0},
        {DRY_ACTION_ALLOC, 2, 16, 86399999990, 0, 0},
        {DRY_ACTION_ALLOC, 3, 16, 86400500000, 0, 0},
        {DRY_ACTION_ALLOC, 4, 16, 172799999991, 0, 0},
        {DRY_ACTION_ALLOC, 5, 16, 1709164801000002, 0, 0},
        {DRY_ACTION_FREE_REQUESTED, 5, 16, 1709251200000000, 0, 0},
    };
    CHECK_EVENTS(trace, expected);
    dry_trace_destroy(trace);
}

static void
lifetimes_are_sorted_frees_first(void **state)
{
    (void)state;
    struct dry_trace *trace = read_text("size,id,offset,upper,lower\n"
                                        "100,1,0,10,5\n"
                                        "200,2,0,300,10\n"
                                        "300,3,0,10,0\n"
                                        "\n"
                                        "400,1,0,300,10\n");
    static const struct expected expected[] = {
        {DRY_ACTION_ALLOC, 3, 300, 0, 0, 0},
        {DRY_ACTION_ALLOC, 1, 100, 5, 0, 0},
        {DRY_ACTION_FREE_REQUESTED, 1, 100, 10, 0, 0},
        {DRY_ACTION_FREE_REQUESTED, 3, 300, 10, 0, 0},
        {DRY_ACTION_ALLOC, 2, 200, 10, 0, 0},
        {DRY_ACTION_ALLOC, 1, 400, 10, 0, 0},
        {DRY_ACTION_FREE_REQUESTED, 2, 200, 300, 0, 0},
        {DRY_ACTION_FREE_REQUESTED, 1, 400, 300, 0, 0},
    };
    CHECK_EVENTS(trace, expected);
    assert_int_equal(dry_trace_get_view(trace)->kind, DRY_TRACE_LIFETIMES);
    dry_trace_destroy(trace);
}

struct refusal {
    const char *text;
    uint64_t offset;
    const char *complaint; /* how it begins */
};

static const struct refusal refusals[] = {
    {"hello\n", 0, "line 1: not a known trace or snapshot"},
    {"# c\nx 1 2 3 4\n", 4, "line 2: not a known trace or snapshot"},
    {"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", 0,
     "a Git LFS pointer: "},
    {"\xef\xbb\xbf", 0, "the file is empty"},
    {"\xef\xbb\xbf{}", 0, "this is JSON"},
    {"\xef\xbb\xbf<!DOCTYPE html>\n<p>404\n", 0, "an HTML page; expected"},
    {"<html><body>\n", 0, "an HTML page; expected"},
    {"\n \r\n<!DOCTYPE html>\n", 0, "an HTML page; expected"},
    {"e\nx 1 2 3 4\n", 2, "line 2: expected an op, one of i a f r s e p q, found 'x'"},
    {"e\n  al 1\n", 4, "line 2: expected an op, one of i a f r s e p q, found 'al'"},
    {"a\n", 1, "line 1: expected an id, found the end"},
    {"a x 2 3 4\n", 2, "line 1: expected an id, found 'x'"},
    {"a -1 2 3 4\n", 2, "line 1: expected an id, found '-1'"},
    {"a 0x 2 3 4\n", 2, "line 1: expected an id, found '0x'"},
    {"a 0xfg 2 3 4\n", 2, "line 1: expected an id, found '0xfg'"},
    {"a 1\n", 3, "line 1: expected a size in bytes, found the end"},
    {"a 1 2.5 3 4\n", 4, "line 1: expected a size in bytes, found '2.5'"},
    {"a 1 2\n", 5, "line 1: expected a stream, found the end"},
    {"a 1 2 3 \n", 8, "line 1: expected a time in microseconds, found the end"},
    {"a 1 2 3 t\n", 8, "line 1: expected a time in microseconds, found 't'"},
    {"a 1 18446744073709551616 3 4\n", 4,
     "line 1: a size in bytes is beyond the largest possible, 18446744073709551615"},
    {"a 1 0x10000000000000000 3 4\n", 4, "line 1: a size in bytes is beyond"},
    {"a 1 2 3 9223372036854775808\n", 8,
     "line 1: a time in microseconds is beyond the largest possible"},
    {"a 1 2 3 4\na 1 2 3 4\n", 12,
     "line 2: expected an id that is not alive already, found '1'"},
    {"f 9\n", 2, "line 1: expected the id of a live allocation, found '9'"},
    {"a 1 2 3 4\r\nf 1\r\nf 1\r\n", 18,
     "line 3: expected the id of a live allocation, found '1'"},
    {"a 1 2 3 4\nf 1 x\n", 14, "line 2: expected a size in bytes, found 'x'"},
    {"a 1 2 3 4\nf 1 2 x\n", 16, "line 2: expected a stream, found 'x'"},
    {"a 1 2 3 4\nf 1 2 3 x\n", 18, "line 2: expected a time in microseconds"},
    {"r 1 2\n", 2, "line 1: expected the id of a live allocation"},
    {"r\n", 1, "line 1: expected an id"},
    {"a 1 2 3 4\nr 1\n", 13, "line 2: expected a stream, found the end"},
    {"s\n", 1, "line 1: expected a stream"},
    {"s 1 2 3\n", 6, "line 1: expected the end of the line, found '3'"},
    {"e x\n", 2, "line 1: expected a time in microseconds, found 'x'"},
    {"p\n", 1, "line 1: expected a pool"},
    {"p 0\n", 2, "line 1: expected a pool from 1"},
    {"p 1\np 1\n", 6, "line 2: expected a pool that has not begun yet"},
    {"q 1\n", 2, "line 1: expected a pool that has begun"},
    {"Action,Pointer\n", 0, "line 1: the header lacks a column Time"},
    {"Time,Action,Pointer,Size,Stream,Size\n", 32, "line 1: a second column Size"},
    {"Time,Action,Pointer,Size,Stream\n1,allocate,0x1,1,0x0\n", 32,
     "line 2: expected a time HH:MM:SS.ffffff, found '1'"},
    {"Time,Action,Pointer,Size,Stream\n24:00:00,free,0x1,1,0x0\n", 32,
     "line 2: expected a time"},
    {"Time,Action,Pointer,Size,Stream\n2024-13-01 00:00:00,free,0x1,1,0x0\n", 32,
     "line 2: expected a time"},
    {"Time,Action,Pointer,Size,Stream\n00:00:00.,free,0x1,1,0x0\n", 32,
     "line 2: expected a time"},
    {"Time,Action,Pointer,Size,Stream\n00:00:00,grow,0x1,1,0x0\n", 41,
     "line 2: expected allocate, free or allocate failure, found 'grow'"},
    {"Time,Action,Pointer,Size,Stream\n00:00:00,free,0x1,1,0x0\n", 46,
     "line 2: expected the address of a live allocation, found '0x1'"},
    {"Time,Action,Pointer,Size,Stream\n00:00:00,allocate,0x1,1,0x0\n"
     "00:00:00,allocate,0x1,1,0x0\n",
     78, "line 3: expected an address that is not alive already, found '0x1'"},
    {"Time,Action,Pointer,Size,Stream\n00:00:00,allocate,0x1,1\n", 55,
     "line 2: expected 5 cells as in the header, found 4"},
    {"Time,Action,Pointer,Size,Stream\n00:00:00,allocate,0x1,1,0x0,\n", 60,
     "line 2: expected 5 cells as in the header, found more"},
    {"hello\nNext region of size 8\nInUse at f8 of size 4 next 1\nInUse at fa of size "
     "4\n",
     66, "line 4: expected a chunk behind the one before, in its region, found 'fa'"},
    {"hello\nNext region of size 8\nFree  at f8 of size 9\n", 37,
     "line 3: expected a chunk behind the one before, in its region"},
    {"hello\nNext region of size 8\nFree  at fffffffffffffffa of size 9\n", 37,
     "line 3: its region ends beyond 64 bits of address"},
    {"hello\nNext region of size 18446744073709551615\nFree  at 1 of size "
     "18446744073709551615\n",
     56, "line 3: its region ends beyond 64 bits of address"},
    {"id,lower,size\n", 0, "line 1: the header lacks a column upper"},
    {"id,lower,upper,size\n1,2,2,4\n", 24,
     "line 2: expected an end after the begin, found '2'"},
    {"id,lower,upper,size\n1,5,2,4\n", 24, "line 2: expected an end after the begin"},
    {"id,lower,upper,size\n1,-5,2,4\n", 22, "line 2: expected a begin, found '-5'"},
    {"id,lower,upper,size\n1,0,9223372036854775808,4\n", 24,
     "line 2: an end is beyond the largest possible"},
    {"id,lower,upper,size\n1,0,2,\n", 26, "line 2: expected a size in bytes, found ''"},
    {"id,lower,upper,size\n1,0,5,4\n2,0,9,1\n1,4,8,4\n", 36,
     "line 4: expected an id that is not alive already, found '1'"},
};

static void
what_is_wrong_is_said_with_line_and_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *r = &refusals[i];
        struct dry_trace *trace = NULL;
        struct dry_error err;
        enum dry_status status =
            read_bytes(r->text, strlen(r->text), i % 3, NULL, &trace, &err);
        if (status != DRY_ERR_FORMAT || err.offset != r->offset ||
            strncmp(err.text, r->complaint, strlen(r->complaint)) != 0)
            fail_msg("%s: status %d, byte %llu, \"%s\"", r->text, status,
                     (unsigned long long)err.offset, err.text);
        assert_null(trace);
    }
}

static void
nul_bytes_are_refused(void **state)
{
    (void)state;
    static const char text[] = "e\na 1 2 \0 4\n";
    struct dry_trace *trace = NULL;
    struct dry_error err;
    assert_int_equal(read_bytes(text, sizeof text - 1, 0, NULL, &trace, &err),
                     DRY_ERR_FORMAT);
    assert_string_equal(err.text, "line 2: a NUL byte, expected text");
    assert_int_equal(err.offset, 8);
}

/* A label that makes the line exactly `length` bytes long. */
static enum dry_status
read_long_line(size_t length, struct dry_error *err)
{
    char *text = malloc(length + 3);
    assert_non_null(text);
    memset(text, 'x', length + 2);
    memcpy(text, "e\na 1 2 3 4 ", 12);
    text[length + 2] = '\n';
    struct dry_trace *trace = NULL;
    enum dry_status status = read_bytes(text, length + 3, 0, NULL, &trace, err);
    dry_trace_destroy(trace);
    free(text);
    return status;
}

static void
lines_end_at_64_kib(void **state)
{
    (void)state;
    struct dry_error err;
    assert_int_equal(read_long_line(65536, &err), DRY_OK);
    assert_int_equal(read_long_line(65537, &err), DRY_ERR_FORMAT);
    assert_int_equal(err.offset, 2);
    assert_string_equal(err.text,
                        "line 2: longer than 65536 bytes, the most a line may have");
    assert_int_equal(read_long_line(1000000, &err), DRY_ERR_FORMAT);
}

static void
pools_nest_64_deep(void **state)
{
    (void)state;
    char text[1024];
    size_t at = 0;
    for (int i = 1; i <= 65; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "p %d\n", i);
    struct dry_trace *trace = NULL;
    struct dry_error err;
    assert_int_equal(read_bytes(text, at, 0, NULL, &trace, &err), DRY_ERR_FORMAT);
    assert_string_equal(err.text, "line 65: more than 64 pools begun at once");
}

/* Ids that come and go in an order of their own exercise the table of the living. */
static void
many_lives_are_followed(void **state)
{
    (void)state;
    size_t capacity = 1 << 20, at = 0;
    char *text = malloc(capacity);
    assert_non_null(text);
    for (unsigned i = 0; i < 10000; i++)
        at += (size_t)snprintf(text + at, capacity - at, "a %u %u 0 %u\n", i * 64, i, i);
    for (unsigned i = 0; i < 10000; i++)
        at += (size_t)snprintf(text + at, capacity - at, "f %u\n", i * 7919 % 10000 * 64);
    struct dry_trace *trace = read_text(text);
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    assert_int_equal(v->event_count, 20000);
    for (size_t i = 10000; i < 20000; i++)
        assert_int_equal(v->size[i], v->addr[i] / 64);
    dry_trace_destroy(trace);
    free(text);
}

/* --- dumps of the BFC allocator --- */

#define NEW_DUMP                                                                         \
    "epoch 1\n"                                                                          \
    "10:00:00.1: I bfc_allocator.cc:1062] Bin for 1B was 256B, Chunk State: \n"          \
    "10:00:00.1: I bfc_allocator.cc:1075] Next region of size 4096\n"                    \
    "10:00:00.1: I bfc_allocator.cc:1095] InUse at 7f0000000000 of size 256 next 1\n"    \
    "10:00:00.2: W other.cc:1] a line of another thread\n"                               \
    "10:00:00.1: I bfc_allocator.cc:1095] Free  at 7f0000000100 of size 3840 next "      \
    "18446744073709551615\n"                                                             \
    "10:00:00.1: I bfc_allocator.cc:1075] Next region of size 512\r\n"                   \
    "10:00:00.1: I bfc_allocator.cc:1095] InUse at 8000000000 of size 512 next 7\r\n"    \
    "10:00:00.1: I bfc_allocator.cc:1100]      Summary of in-use Chunks by size: \n"     \
    "Free at last\n"
#define OLD_DUMP                                                                         \
    "I bfc.cc:1] Bin for 1B was 256B, Chunk State: \n"                                   \
    "I bfc.cc:1] Next region of size 1024\n"                                             \
    "I bfc.cc:1] Chunk at 0x10000 of size 256\n"                                         \
    "I bfc.cc:1] Free at 0x10100 next 2 of size 512\n"

static void
check_map(const char *text, uint32_t dump_count, size_t segment_count,
          const struct dry_trace_block *blocks, size_t block_count)
{
    struct dry_trace *trace = read_text(text);
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    assert_int_equal(v->kind, DRY_TRACE_BFC);
    assert_true(v->has_addresses);
    assert_int_equal(v->dump_count, dump_count);
    assert_int_equal(v->event_count, 0);
    assert_int_equal(v->device_count, 1);
    assert_int_equal(v->segment_count, segment_count);
    assert_int_equal(v->block_count, block_count);
    for (size_t i = 0; i < block_count; i++) {
        assert_int_equal(v->blocks[i].address, blocks[i].address);
        assert_int_equal(v->blocks[i].size, blocks[i].size);
        assert_int_equal(v->blocks[i].state, blocks[i].state);
    }
    dry_trace_destroy(trace);
}

static const struct dry_trace_block
    new_blocks[] = {{.address = 0x7f0000000000, .size = 256, .state = DRY_BLOCK_ACTIVE},
                    {.address = 0x7f0000000100,
                     .size = 3840,
                     .state = DRY_BLOCK_INACTIVE},
                    {.address = 0x8000000000, .size = 512, .state = DRY_BLOCK_ACTIVE}},
    old_blocks[] = {{.address = 0x10000, .size = 256, .state = DRY_BLOCK_ACTIVE},
                    {.address = 0x10100, .size = 512, .state = DRY_BLOCK_INACTIVE}};

static void
check_device(const char *text, int32_t device)
{
    struct dry_trace *trace = read_text(text);
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    assert_int_equal(v->device_count, 1);
    assert_int_equal(v->devices[0].device, device);
    dry_trace_destroy(trace);
}

static void
a_dump_names_its_device(void **state)
{
    (void)state;
    check_device("I bfc.cc:1] BFCAllocator dump for GPU_3_bfc\n" NEW_DUMP, 3);
    check_device("BFCAllocator dump for GPU_3_bfc\n" NEW_DUMP
                 "BFCAllocator dump for GPU_1_bfc\n" OLD_DUMP
                 "BFCAllocator dump for GPU_2_bfc\n"
                 "I bfc.cc:1] Next region of size 1024\n",
                 1);
    check_device("BFCAllocator dump for GPU_64_bfc\n" NEW_DUMP, 0);
    check_device("BFCAllocator dump for GPU__bfc\n" NEW_DUMP, 0);
    check_device("BFCAllocator dump for GPU_99999999999999999999_bfc\n" NEW_DUMP, 0);
    check_device("BFCAllocator dump for\n" NEW_DUMP, 0);
    check_device("BFCAllocator dump for gpu_host_bfc\n" NEW_DUMP, 0);
}

static void
the_last_dump_of_a_log_becomes_segments(void **state)
{
    (void)state;
    check_map(NEW_DUMP, 1, 2, new_blocks, 3);
    check_map(OLD_DUMP, 1, 1, old_blocks, 2);
    check_map(OLD_DUMP NEW_DUMP, 2, 2, new_blocks, 3);
    check_map(NEW_DUMP OLD_DUMP, 2, 1, old_blocks, 2);
    check_map(OLD_DUMP "Next region of size 9\nNext region of size\nInUse at 20000 of "
                       "\nInUse at 30000000000000000 of size 1\nFree at 0 of size 1\n"
                       "Free at 8 of size 0\nFree at 0x of size 2\n",
              1, 1, old_blocks, 2);
    struct dry_trace *trace = read_text(NEW_DUMP);
    const struct dry_trace_segment *s = dry_trace_get_view(trace)->segments;
    assert_int_equal(s[0].address, 0x7f0000000000);
    assert_int_equal(s[0].total_size, 4096);
    assert_int_equal(s[0].active_size, 256);
    assert_int_equal(s[0].allocated_size, 256);
    assert_int_equal(s[1].block_count, 1);
    assert_int_equal(s[1].device, 0);
    dry_trace_destroy(trace);
}

/* Programs draw their progress in lines that have no end for a long time. */
static void
long_lines_of_a_log_are_passed_over(void **state)
{
    (void)state;
    size_t length = 200000;
    char *text = malloc(length + 1 + sizeof NEW_DUMP);
    assert_non_null(text);
    memset(text, '.', length);
    text[7] = '\n';
    strcpy(text + length, "\n" NEW_DUMP);
    check_map(text, 1, 2, new_blocks, 3);
    struct dry_trace *trace = NULL;
    struct dry_error err;
    assert_int_equal(read_bytes(text, length, 0, NULL, &trace, &err), DRY_ERR_FORMAT);
    assert_int_equal(err.offset, 0);
    text[100000] = '\0'; /* no text: the rest is not read */
    assert_int_equal(read_bytes(text, length, 0, NULL, &trace, &err), DRY_ERR_FORMAT);
    assert_non_null(strstr(err.text, "line 1: not a known trace"));
    free(text);
}

struct count {
    const char *name;
    enum dry_trace_kind kind;
    size_t live, alloc, free;
};

static void
real_files_have_their_counts(void **state)
{
    (void)state;
    static const struct count counts[] = {
        {"plain/decomfl.trace", DRY_TRACE_PLAIN, 0, 7946, 7549},
        {"plain/late-start.trace", DRY_TRACE_PLAIN, 447, 2162, 2162},
        {"plain/python-stacks-only.trace", DRY_TRACE_PLAIN, 229, 1721, 1721},
        {"plain/transformer-medium-512-train.trace", DRY_TRACE_PLAIN, 664, 7591, 7370},
        {"formats/rmm-log.csv", DRY_TRACE_RMM, 0, 1, 1},
        {"lifetimes/minimalloc-A.csv", DRY_TRACE_LIFETIMES, 0, 154, 154},
        {"lifetimes/pangu-2.6b.csv", DRY_TRACE_LIFETIMES, 0, 18692, 18692},
        {"lifetimes/resnet50.csv", DRY_TRACE_LIFETIMES, 0, 1042, 1042},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        size_t count;
        unsigned char *bytes = bytes_of_trace(counts[i].name, &count);
        if (!bytes)
            skip_because("%s is not in $DRY_TEST_TRACES", counts[i].name);
        struct dry_trace *trace;
        struct dry_error err;
        enum dry_status status = read_bytes(bytes, count, 0, NULL, &trace, &err);
        if (status != DRY_OK)
            fail_msg("%s: %s", counts[i].name, err.text);
        const struct dry_trace_view *v = dry_trace_get_view(trace);
        size_t met[DRY_ACTION_COUNT] = {0};
        for (size_t e = 0; e < v->event_count; e++)
            met[v->action[e]]++;
        assert_int_equal(v->kind, counts[i].kind);
        assert_int_equal(v->byte_count, count);
        assert_int_equal(met[DRY_ACTION_LIVE], counts[i].live);
        assert_int_equal(met[DRY_ACTION_ALLOC], counts[i].alloc);
        assert_int_equal(met[DRY_ACTION_FREE_REQUESTED], counts[i].free);
        dry_trace_destroy(trace);
        free(bytes);
    }
}

static void
torture(const char *text)
{
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_trace *trace = NULL;
        enum dry_status status = read_bytes(text, strlen(text), 0, &memory, &trace, NULL);
        dry_trace_destroy(trace);
        failing_memory_finish(&fm);
        if (!fm.failed) {
            assert_int_equal(status, DRY_OK);
            break;
        }
        if (status != DRY_OK) /* giving back what is too much may fail unseen */
            assert_int_equal(status, DRY_ERR_MEMORY);
    }
}

static void
every_request_for_memory_may_fail(void **state)
{
    (void)state;
    torture("a 1 2 3 4 label\np 3\na 2 5 6 7\nf 1\nr 2 9\n");
    torture("Time,Action,Pointer,Size,Stream\n00:00:00,allocate,0x1,1,0x0\n"
            "00:00:00,free,0x1,1,0x0\n");
    torture("id,lower,upper,size\n1,0,5,4\n2,0,9,1\n");
    torture(OLD_DUMP NEW_DUMP);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_ops_become_events),
        cmocka_unit_test(the_rest_of_a_line_is_its_label),
        cmocka_unit_test(a_label_may_look_like_a_header),
        cmocka_unit_test(an_id_may_live_again),
        cmocka_unit_test(a_trace_may_be_only_comments),
        cmocka_unit_test(a_byte_order_mark_is_skipped),
        cmocka_unit_test(rmm_rows_become_events),
        cmocka_unit_test(rmm_times_know_midnight_and_dates),
        cmocka_unit_test(lifetimes_are_sorted_frees_first),
        cmocka_unit_test(what_is_wrong_is_said_with_line_and_byte),
        cmocka_unit_test(nul_bytes_are_refused),
        cmocka_unit_test(lines_end_at_64_kib),
        cmocka_unit_test(pools_nest_64_deep),
        cmocka_unit_test(many_lives_are_followed),
        cmocka_unit_test(a_dump_names_its_device),
        cmocka_unit_test(the_last_dump_of_a_log_becomes_segments),
        cmocka_unit_test(long_lines_of_a_log_are_passed_over),
        cmocka_unit_test(real_files_have_their_counts),
        cmocka_unit_test(every_request_for_memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
