/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The pickle reader: what it accepts and makes of it, what it refuses and how it says so,
 * and that hostile files cost nothing but their own bytes.
 */
#include "support/cmocka.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/trace.h>

#include "support/bytes.h"
#include "support/failing_memory.h"
#include "support/pickle_text.h"
#include "trace/pickle/pickle.h"

/* Enough of everything that a snapshot holds. */
static const char whole[] =
    "}('segments']q0("
    "  }('device'#1'address'#8192'total_size'#2048'allocated_size'#512'active_size'#512"
    "    'requested_size'#500'stream'#7'segment_type''small''segment_pool_id'#0#3="
    "    'is_expandable'+'frames']'blocks']("
    "      }('address'#8192'size'#512'requested_size'#500'state''active_allocated'"
    "        'frames'](}('name''f''filename''f.py''line'#3u eu"
    "      }('address'#8704'size'#1536'requested_size'#0'state''inactive'u e"
    "    'counter'#9u e"
    "'device_traces'](](e]("
    "  }('action''alloc''addr'#8192'size'#500'stream'#7'time_us'#100'pool_id'#0#3="
    "    'frames']q1(}('name''f''filename''f.py''line'#3u}('name''g''filename''g.py'"
    "    'line'#4'fx'-u eu"
    "  }('action''oom''device_free'#4096'size'#1024'stream'#0'frames'h1u"
    "  }('action''levitate''addr'#1'size'#2'stream'#3'time_us'#101'user_metadata''m'u e e"
    "'allocator_settings'}('PYTORCH_CUDA_ALLOC_CONF''a:b''max_split_size'#-1"
    "  'garbage_collection_threshold'%'expandable_segments'+'other'Nu"
    "'external_annotations'](}('name''n''stage''START''device'#1'time_us'#99u e"
    "'future'}('k'](#1%N+e'd'}u u.";

static enum dry_status
read_bytes(const void *bytes, size_t count, const struct dry_trace_options *options,
           struct dry_trace **trace, struct dry_error *err)
{
    struct bytes_source from;
    struct dry_source source = bytes_source_init(&from, bytes, count);
    *trace = NULL;
    *err = (struct dry_error){0};
    return dry_trace_read(&source, options, trace, err);
}

/* Must be read. */
static struct dry_trace *
read_text(const char *text)
{
    struct pickle_text p;
    struct dry_trace *trace;
    struct dry_error err;
    pickle_text_init(&p, text);
    if (read_bytes(p.bytes, p.count, NULL, &trace, &err) != DRY_OK)
        fail_msg("%s at byte %" PRIu64, err.text, err.offset);
    return trace;
}

/* Must be refused, with these words. */
static void
refuse_text(const char *text, enum dry_status status, const char *words)
{
    struct pickle_text p;
    struct dry_trace *trace;
    struct dry_error err;
    pickle_text_init(&p, text);
    enum dry_status got = read_bytes(p.bytes, p.count, NULL, &trace, &err);
    dry_trace_destroy(trace);
    if (got != status || !strstr(err.text, words))
        fail_msg("%d \"%s\", expected %d \"%s\"", got, err.text, status, words);
    assert_true(err.offset <= p.count);
}

static void
assert_string(const struct dry_trace *trace, uint32_t id, const char *text)
{
    size_t length;
    const char *bytes = dry_trace_string(trace, id, &length);
    assert_non_null(bytes);
    assert_int_equal(length, strlen(text));
    assert_memory_equal(bytes, text, length + 1);
}

static void
a_whole_snapshot(void **state)
{
    (void)state;
    struct dry_trace *t = read_text(whole);
    const struct dry_trace_view *v = dry_trace_get_view(t);
    assert_int_equal(v->kind, DRY_TRACE_SNAPSHOT);
    assert_int_equal(v->protocol, 4);
    assert_int_equal(v->event_count, 3);
    assert_int_equal(v->action[0], DRY_ACTION_ALLOC);
    assert_int_equal(v->addr[0], 8192);
    assert_int_equal(v->size[0], 500);
    assert_int_equal(v->time_us[0], 100);
    assert_int_equal(v->lanes[v->lane[0]].stream, 7);
    assert_int_equal(v->lanes[v->lane[0]].pool_b, 3);
    assert_int_equal(v->lanes[v->lane[0]].pool_known, 1);
    assert_int_equal(v->lanes[v->lane[1]].pool_known, 0);
    assert_int_equal(v->addr[1], 4096); /* of an oom: what was free */
    assert_int_equal(v->stack[0], v->stack[1]);
    size_t count;
    const uint32_t *frames = dry_trace_stack(t, v->stack[0], &count);
    assert_int_equal(count, 2);
    assert_string(t, v->frames[frames[0]].name, "f");
    assert_string(t, v->frames[frames[1]].file, "g.py");
    assert_int_equal(v->frames[frames[1]].line, 4);
    assert_string(t, v->frames[frames[1]].extra,
                  "\x8c\x02"
                  "fx\x89");
    assert_int_equal(v->stack[2], DRY_NONE);
    dry_trace_destroy(t);
}

static void
the_notes_of_events(void **state)
{
    (void)state;
    struct dry_trace *t = read_text(whole);
    const struct dry_trace_view *v = dry_trace_get_view(t);
    assert_int_equal(v->note[0], DRY_NONE);
    assert_int_equal(dry_trace_note(t, v->note[1])->flags, DRY_NOTE_NO_TIME);
    const struct dry_note *note = dry_trace_note(t, v->note[2]);
    assert_int_equal(v->action[2], DRY_ACTION_OTHER);
    assert_string(t, note->action_name, "levitate");
    assert_string(t, note->user_metadata, "m");
    assert_int_equal(note->compile_context, DRY_NONE);
    assert_int_equal(note->flags, 0);
    dry_trace_destroy(t);
}

static void
segments_blocks_and_the_rest(void **state)
{
    (void)state;
    struct dry_trace *t = read_text(whole);
    const struct dry_trace_view *v = dry_trace_get_view(t);
    assert_int_equal(v->segment_count, 1);
    const struct dry_trace_segment *s = &v->segments[0];
    assert_int_equal(s->device, 1);
    assert_int_equal(s->address, 8192);
    assert_int_equal(s->total_size, 2048);
    assert_int_equal(s->is_large, 0);
    assert_int_equal(s->is_expandable, 1);
    assert_int_equal(s->block_count, 2);
    assert_string(t, s->extra,
                  "\x8c\x07"
                  "counterK\x09");
    assert_int_equal(v->blocks[0].state, DRY_BLOCK_ACTIVE);
    assert_int_equal(v->blocks[1].address, 8704);
    assert_int_equal(v->blocks[1].stack, DRY_NONE);
    assert_int_equal(v->device_count, 2);
    assert_int_equal(v->devices[1].device, 1);
    assert_int_equal(v->devices[1].event_count, 3);
    assert_int_equal(v->devices[1].segment_count, 1);
    assert_int_equal(v->annotation_count, 1);
    assert_int_equal(v->annotations[0].time_us, 99);
    assert_string(t, v->settings.conf, "a:b");
    assert_true(v->settings.garbage_collection_threshold == 0.5);
    assert_int_equal(v->settings.expandable_segments, 1);
    assert_string(t, v->settings.extra, "\x8c\x05otherN");
    static const char future[] = "\x8c\x06"
                                 "future}(\x8c\x01k](K\x01G\x3f\xe0\0\0\0\0\0\0N\x88"
                                 "e\x8c\x01"
                                 "d}u";
    size_t length;
    const char *extra = dry_trace_string(t, v->top_extra, &length);
    assert_int_equal(length, sizeof future - 1);
    assert_memory_equal(extra, future, length);
    dry_trace_destroy(t);
}

static void
unknown_keys_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t where;
    } expected[] = {
        {"counter", DRY_UNKNOWN_SEGMENT_KEY}, {"fx", DRY_UNKNOWN_FRAME_KEY},
        {"levitate", DRY_UNKNOWN_ACTION},     {"other", DRY_UNKNOWN_TOP_KEY},
        {"future", DRY_UNKNOWN_TOP_KEY},
    };
    struct dry_trace *t = read_text(whole);
    const struct dry_trace_view *v = dry_trace_get_view(t);
    assert_int_equal(v->unknown_count, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < v->unknown_count; i++) {
        assert_string(t, v->unknowns[i].name, expected[i].name);
        assert_int_equal(v->unknowns[i].where, expected[i].where);
        assert_int_equal(v->unknowns[i].count, 1);
    }
    dry_trace_destroy(t);
}

/* An opcode as the value of an unknown key, and the form in which it is kept. */
struct accepted {
    const char *name, *bytes;
    size_t count;
    const char *kept;
    size_t kept_count;
};
#define BYTES(text) text, sizeof text - 1

static const struct accepted accepted[] = {
    {"NONE", BYTES("N"), BYTES("N")},
    {"NEWTRUE", BYTES("\x88"), BYTES("\x88")},
    {"NEWFALSE", BYTES("\x89"), BYTES("\x89")},
    {"BININT1", BYTES("K\xff"), BYTES("K\xff")},
    {"BININT2", BYTES("M\xff\xff"), BYTES("M\xff\xff")},
    {"BININT", BYTES("J\xff\xff\xff\xff"), BYTES("J\xff\xff\xff\xff")},
    {"BININT small", BYTES("J\x05\0\0\0"), BYTES("K\x05")},
    {"LONG1 of nothing", BYTES("\x8a\0"), BYTES("K\0")},
    {"LONG1", BYTES("\x8a\x05\0\0\0\0\x01"), BYTES("\x8a\x05\0\0\0\0\x01")},
    {"LONG1 negative", BYTES("\x8a\x05\0\0\0\0\x80"), BYTES("\x8a\x05\0\0\0\0\x80")},
    {"LONG1 INT32_MIN", BYTES("\x8a\x04\0\0\0\x80"), BYTES("J\0\0\0\x80")},
    {"LONG1 2^31", BYTES("\x8a\x05\0\0\0\x80\0"), BYTES("\x8a\x05\0\0\0\x80\0")},
    {"LONG1 INT64_MIN", BYTES("\x8a\x08\0\0\0\0\0\0\0\x80"),
     BYTES("\x8a\x08\0\0\0\0\0\0\0\x80")},
    {"LONG1 2^64-1", BYTES("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0"),
     BYTES("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0")},
    {"LONG1 -1 in 9 bytes", BYTES("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
     BYTES("J\xff\xff\xff\xff")},
    {"LONG4", BYTES("\x8b\x02\0\0\0\0\x01"), BYTES("M\0\x01")},
    {"BINFLOAT", BYTES("G\x3f\xe0\0\0\0\0\0\0"), BYTES("G\x3f\xe0\0\0\0\0\0\0")},
    {"SHORT_BINUNICODE", BYTES("\x8c\x02\xc3\xa9"), BYTES("\x8c\x02\xc3\xa9")},
    {"BINUNICODE", BYTES("X\x01\0\0\0a"),
     BYTES("\x8c\x01"
           "a")},
    {"BINUNICODE8", BYTES("\x8d\x01\0\0\0\0\0\0\0a"),
     BYTES("\x8c\x01"
           "a")},
    {"a lone surrogate", BYTES("X\x03\0\0\0\xed\xb2\x80"), BYTES("\x8c\x03\xed\xb2\x80")},
    {"SHORT_BINBYTES", BYTES("C\x02\xff\0"), BYTES("C\x02\xff\0")},
    {"BINBYTES", BYTES("B\x01\0\0\0\xff"), BYTES("C\x01\xff")},
    {"BINBYTES8", BYTES("\x8e\x01\0\0\0\0\0\0\0\xff"), BYTES("C\x01\xff")},
    {"BYTEARRAY8", BYTES("\x96\x01\0\0\0\0\0\0\0\xff"),
     BYTES("\x96\x01\0\0\0\0\0\0\0\xff")},
    {"EMPTY_TUPLE", BYTES(")"), BYTES(")")},
    {"TUPLE1", BYTES("N\x85"), BYTES("(Nt")},
    {"TUPLE2", BYTES("NN\x86"), BYTES("(NNt")},
    {"TUPLE2 of integers", BYTES("K\1K\2\x86"), BYTES("K\1K\2\x86")},
    {"TUPLE3", BYTES("NNN\x87"), BYTES("(NNNt")},
    {"TUPLE", BYTES("(Nt"), BYTES("(Nt")},
    {"TUPLE of nothing", BYTES("(t"), BYTES(")")},
    {"EMPTY_LIST", BYTES("]"), BYTES("]")},
    {"APPEND", BYTES("]Na"), BYTES("](Ne")},
    {"APPENDS", BYTES("](NNe"), BYTES("](NNe")},
    {"LIST", BYTES("(NNl"), BYTES("](NNe")},
    {"EMPTY_DICT", BYTES("}"), BYTES("}")},
    {"SETITEM", BYTES("}K\1Ns"), BYTES("}(K\1Nu")},
    {"SETITEMS", BYTES("}(K\1NK\2Nu"), BYTES("}(K\1NK\2Nu")},
    {"DICT", BYTES("(K\1Nd"), BYTES("}(K\1Nu")},
    {"POP",
     BYTES("NK\1"
           "0"),
     BYTES("N")},
    {"POP of a MARK", BYTES("N(0"), BYTES("N")},
    {"FRAME", BYTES("\x95\xff\xff\xff\xff\xff\xff\xff\xffN"), BYTES("N")},
    {"MEMOIZE, BINGET", BYTES("](\x8c\1a\x94h\0e"), BYTES("](\x8c\1a\x8c\1ae")},
    {"BINPUT, LONG_BINGET", BYTES("](\x8c\1aq\0j\0\0\0\0e"), BYTES("](\x8c\1a\x8c\1ae")},
    {"LONG_BINPUT", BYTES("](K\7r\0\0\0\0h\0e"), BYTES("](K\7K\7e")},
    {"a memoised float", BYTES("](G\x3f\xe0\0\0\0\0\0\0\x94h\0e"),
     BYTES("](G\x3f\xe0\0\0\0\0\0\0G\x3f\xe0\0\0\0\0\0\0e")},
    {"a shared list", BYTES("](]q\0(Neh\0e"), BYTES("](](Ne](Nee")},
    {"a frame",
     BYTES("](}(\x8c\4name\x8c\1f\x8c\x08"
           "filename\x8c\1f\x8c\4lineK\1ue"),
     BYTES("](}(\x8c\4name\x8c\1f\x8c\x08"
           "filename\x8c\1f\x8c\4lineK\1ue")},
};

static size_t
wrap(unsigned char *to, const void *value, size_t count)
{
    static const char head[] = "\x80\x04}(\x8c\x08segments]\x8c\x01x";
    memcpy(to, head, sizeof head - 1);
    memcpy(to + sizeof head - 1, value, count);
    memcpy(to + sizeof head - 1 + count, "u.", 2);
    return sizeof head - 1 + count + 2;
}
#define WRAP_HEAD 18u

static void
every_opcode_that_builds_data(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        const struct accepted *a = &accepted[i];
        unsigned char bytes[256];
        struct dry_trace *t;
        struct dry_error err;
        size_t count = wrap(bytes, a->bytes, a->count);
        if (read_bytes(bytes, count, NULL, &t, &err) != DRY_OK)
            fail_msg("%s: %s", a->name, err.text);
        size_t length;
        const char *kept = dry_trace_string(t, dry_trace_get_view(t)->top_extra, &length);
        if (length != 3 + a->kept_count || memcmp(kept + 3, a->kept, a->kept_count) != 0)
            fail_msg("%s is kept in another form", a->name);
        dry_trace_destroy(t);
    }
}

static const char accepted_opcodes[] = "().0BCGJKMNX]adehjlqrstu}"
                                       "\x80\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x94"
                                       "\x95\x96";

static void
every_other_byte_is_refused_by_name(void **state)
{
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        if (byte && strchr(accepted_opcodes, (int)byte))
            continue;
        unsigned char bytes[64], value = (unsigned char)byte;
        char expected[32];
        struct dry_trace *t;
        struct dry_error err;
        size_t count = wrap(bytes, &value, 1);
        const char *name = dryi_opcode_name(value);
        snprintf(expected, sizeof expected, "opcode %s", name ? name : "");
        if (!name)
            snprintf(expected, sizeof expected, "byte 0x%02x", byte);
        assert_int_equal(read_bytes(bytes, count, NULL, &t, &err), DRY_ERR_FORMAT);
        if (!strstr(err.text, expected) || err.offset != WRAP_HEAD)
            fail_msg("\"%s\" at %" PRIu64 ", expected %s", err.text, err.offset,
                     expected);
    }
}

static void
code_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t count;
        const char *words;
    } rows[] = {
        {BYTES("ctorch.foo\nBar\n"), "opcode GLOBAL (torch.foo Bar) names code"},
        {BYTES("ios\nsystem\n"), "opcode INST (os system) names code"},
        {BYTES("\x8c\2os\x8c\6system\x93"), "opcode STACK_GLOBAL (os system) names code"},
        {BYTES("NNR"), "opcode REDUCE runs code"},
        {BYTES("cno newline"), "opcode GLOBAL ( )"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned char bytes[256];
        struct dry_trace *t;
        struct dry_error err;
        size_t count = wrap(bytes, rows[i].bytes, rows[i].count);
        assert_int_equal(read_bytes(bytes, count, NULL, &t, &err), DRY_ERR_FORMAT);
        if (!strstr(err.text, rows[i].words))
            fail_msg("\"%s\", expected \"%s\"", err.text, rows[i].words);
    }
}

static void
a_file_cut_anywhere_is_refused(void **state)
{
    (void)state;
    struct pickle_text p;
    pickle_text_init(&p, whole);
    for (size_t cut = 0; cut < p.count; cut++) {
        unsigned char *exact = malloc(cut ? cut : 1);
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, SIZE_MAX);
        struct dry_trace_options options;
        dry_trace_options_init(&options);
        options.memory = &memory;
        struct dry_trace *t;
        struct dry_error err;
        assert_non_null(exact);
        memcpy(exact, p.bytes, cut);
        assert_int_equal(read_bytes(exact, cut, &options, &t, &err), DRY_ERR_FORMAT);
        assert_int_equal(err.offset, cut);
        failing_memory_finish(&fm);
        free(exact);
    }
}

static void
every_allocation_may_fail(void **state)
{
    (void)state;
    struct pickle_text p;
    pickle_text_init(&p, whole);
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_trace_options options;
        dry_trace_options_init(&options);
        options.memory = &memory;
        struct dry_trace *t;
        struct dry_error err;
        enum dry_status status = read_bytes(p.bytes, p.count, &options, &t, &err);
        bool failed = fm.failed;
        dry_trace_destroy(t);
        failing_memory_finish(&fm);
        assert_int_equal(status, failed ? DRY_ERR_MEMORY : DRY_OK);
        if (!failed)
            break;
    }
}

static void
memory_has_a_ceiling(void **state)
{
    (void)state;
    struct pickle_text p;
    pickle_text_init(&p, whole);
    for (uint64_t limit = 0; limit < 300000; limit += 499) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, SIZE_MAX);
        struct dry_trace_options options;
        dry_trace_options_init(&options);
        options.memory = &memory;
        options.memory_bytes_max = limit;
        struct dry_trace *t;
        struct dry_error err;
        enum dry_status status = read_bytes(p.bytes, p.count, &options, &t, &err);
        dry_trace_destroy(t);
        failing_memory_finish(&fm);
        assert_true(fm.peak_bytes <= limit + 4096); /* the two structs themselves */
        if (status == DRY_OK)
            return;
        assert_int_equal(status, DRY_ERR_LIMIT);
        assert_non_null(strstr(err.text, "bytes allowed"));
    }
    fail_msg("no limit was enough");
}

/* A status whatever the bytes claim, and no more memory than the window. */
static void
refuse_cheaply(const void *value, size_t value_count, enum dry_status status,
               const char *words)
{
    unsigned char bytes[256];
    struct failing_memory fm;
    struct dry_memory memory = failing_memory_init(&fm, SIZE_MAX);
    struct dry_trace_options options;
    dry_trace_options_init(&options);
    options.memory = &memory;
    struct dry_trace *t;
    struct dry_error err;
    size_t count = wrap(bytes, value, value_count);
    assert_int_equal(read_bytes(bytes, count, &options, &t, &err), status);
    if (!strstr(err.text, words))
        fail_msg("\"%s\", expected \"%s\"", err.text, words);
    assert_true(fm.peak_bytes < 400000);
    failing_memory_finish(&fm);
}

static void
claimed_lengths_cost_nothing(void **state)
{
    (void)state;
    refuse_cheaply(BYTES("\x8d\0\0\0\0\x19\0\0\0a"), DRY_ERR_LIMIT,
                   "a string of 10737418");
    refuse_cheaply(BYTES("\x8e\0\0\0\0\x19\0\0\0a"), DRY_ERR_LIMIT,
                   "a string of 10737418");
    refuse_cheaply(BYTES("\x96\xff\xff\xff\xff\xff\xff\xff\xff"), DRY_ERR_LIMIT,
                   "a string of 184467");
    refuse_cheaply(BYTES("X\xff\xff\xff\xff"
                         "a"),
                   DRY_ERR_LIMIT, "a string of 42949");
    refuse_cheaply(BYTES("X\0\0\xff\0a"), DRY_ERR_FORMAT,
                   "the file ends inside a string");
    refuse_cheaply(BYTES("\x8b\xff\xff\xff\x7f"
                         "a"),
                   DRY_ERR_FORMAT, "an integer of 2147");
    refuse_cheaply(BYTES("\x8a\x0a"
                         "aaaaaaaaaa"),
                   DRY_ERR_FORMAT, "an integer of 10");
    refuse_cheaply(BYTES("\x8a\x09"
                         "aaaaaaaaa"),
                   DRY_ERR_FORMAT, "an integer of 9");
    refuse_cheaply(BYTES("Nr\xff\xff\xff\x7f"), DRY_ERR_FORMAT, "memo 2147483647 is put");
    refuse_cheaply(BYTES("j\xff\xff\xff\xff"), DRY_ERR_FORMAT,
                   "memo 4294967295 is fetched");
}

static void
the_stack_is_guarded(void **state)
{
    (void)state;
    refuse_text("}('segments']u", DRY_ERR_FORMAT, "the file ends before opcode STOP");
    refuse_text("u.", DRY_ERR_FORMAT, "opcode SETITEMS without a MARK");
    refuse_text("(u.", DRY_ERR_FORMAT, "opcode SETITEMS finds too few values");
    refuse_text("](Nu.", DRY_ERR_FORMAT, "opcode SETITEMS finds a key without a value");
    refuse_text("](NNu.", DRY_ERR_FORMAT, "keys for a list, expected a dict");
    refuse_text("}(Ne.", DRY_ERR_FORMAT, "append to a dict, expected a list");
    refuse_text("}Na.", DRY_ERR_FORMAT, "append to a dict, expected a list");
    refuse_text("]a.", DRY_ERR_FORMAT, "opcode APPEND finds too few values");
    refuse_text("](a.", DRY_ERR_FORMAT, "opcode APPEND finds too few values");
    refuse_text("}Ns.", DRY_ERR_FORMAT, "opcode SETITEM finds too few values");
    refuse_text("N=.", DRY_ERR_FORMAT, "opcode TUPLE2 finds too few values");
    refuse_text("0.", DRY_ERR_FORMAT, "opcode POP without a MARK");
    refuse_text("(m.", DRY_ERR_FORMAT, "opcode MEMOIZE or BINPUT finds too few values");
    refuse_text(".", DRY_ERR_FORMAT, "opcode STOP with 0 values");
    refuse_text("](.", DRY_ERR_FORMAT, "opcode STOP with 1 open marks");
    refuse_text("]].", DRY_ERR_FORMAT, "opcode STOP with 2 values");
    refuse_text("(Nd.", DRY_ERR_FORMAT, "opcode DICT finds a key without a value");
    refuse_text("Nq1.", DRY_ERR_FORMAT, "memo 1 is put, expected at most 0");
    refuse_text("h0.", DRY_ERR_FORMAT, "memo 0 is fetched, only 0 were put");
    refuse_text("\x80\x04.", DRY_ERR_FORMAT, "opcode PROTO, expected once");
}

static void
cycles_are_refused(void **state)
{
    (void)state;
    refuse_text("]mh0a.", DRY_ERR_FORMAT, "a list contains itself");
    refuse_text("]m(h0e.", DRY_ERR_FORMAT, "a list contains itself");
    refuse_text("}m('a'h0u.", DRY_ERR_FORMAT, "a dict contains itself");
    refuse_text("}m'a'h0s.", DRY_ERR_FORMAT, "a dict contains itself");
    refuse_text("]m]m(h0eh1a0h0h1a.", DRY_ERR_FORMAT, "contains itself");
    refuse_text("]q0]q1h0a0 h0h1a.", DRY_ERR_FORMAT, "a list is filled after something");
    refuse_text("}q0('segments']'a'](h0e'b'Nu.", DRY_ERR_FORMAT,
                "a dict is filled after something");
    refuse_text("](]q0h0(eN0 Ne h0 Na.", DRY_ERR_FORMAT, "");
}

static void
things_are_used_once(void **state)
{
    (void)state;
    static const char event[] = "}('action''snapshot''addr'#0u";
    char text[512];
    snprintf(text, sizeof text, "}('segments']'device_traces'](](%sq0h0eeu.", event);
    refuse_text(text, DRY_ERR_FORMAT, "an event is used a second time");
    snprintf(text, sizeof text, "}('segments']'device_traces'](](%se]q0h0eu.", event);
    dry_trace_destroy(read_text(text)); /* an empty list may be shared */
    snprintf(text, sizeof text, "}('segments']'device_traces'](]q0(%seh0eu.", event);
    refuse_text(text, DRY_ERR_FORMAT, "a list that is used already");
    snprintf(text, sizeof text, "}('segments']'device_traces']'x'](%seu.", event);
    refuse_text(text, DRY_ERR_FORMAT, "under a key that is unknown");
    snprintf(text, sizeof text, "}('segments']'device_traces']'x'%su.", event);
    refuse_text(text, DRY_ERR_FORMAT, "an event in a dict");
    snprintf(text, sizeof text, "%s0}('segments']'device_traces']u.", event);
    refuse_text(text, DRY_ERR_FORMAT, "1 of 1 events stand outside device_traces");
    snprintf(text, sizeof text, "%s%s](}('segments']'x'Nu.", event, event);
    refuse_text(text, DRY_ERR_FORMAT, "open marks");
    snprintf(text, sizeof text, "}('segments'](%seu.", event);
    refuse_text(text, DRY_ERR_FORMAT, "an item of `segments` is an event");
    snprintf(text, sizeof text, "%s.", event);
    refuse_text(text, DRY_ERR_FORMAT, "the file holds an event, expected a memory");
}

/* What was kept as unknown may be used once more, but only as that. */
static void
unknown_values_are_shared(void **state)
{
    (void)state;
#define SHARED(inner, key)                                                               \
    "}('" key "'](" inner "eq0'segments'](}('device'#0'address'#0'total_size'#0"         \
    "'stream'#0'blocks']'x'h0u eu."
    dry_trace_destroy(read_text(SHARED("](Ne", "y")));
    refuse_text(SHARED("](Ne", "device_traces"), DRY_ERR_FORMAT,
                "`device_traces` is something unknown, expected a list of its own");
    refuse_text(SHARED("}(NNu", "external_annotations"), DRY_ERR_FORMAT,
                "`external_annotations` is something unknown");
    refuse_text(SHARED("]", "allocator_settings"), DRY_ERR_FORMAT, "expected a dict");
    refuse_text(SHARED("](Ne", "host_traces"), DRY_ERR_FORMAT, "something unknown");
#undef SHARED
}

/* Each level a list of ten times the one before: 10^9 items from a hundred bytes. */
static void
a_bomb_is_limited(void **state)
{
    (void)state;
    char text[1024] = "}('segments']'x'";
    strcat(text, "](NNNNNNNNNNeq0");
    for (int level = 1; level < 9; level++) {
        char line[64];
        snprintf(line, sizeof line, "0](h%dh%dh%dh%dh%dh%dh%dh%dh%dh%deq%d", level - 1,
                 level - 1, level - 1, level - 1, level - 1, level - 1, level - 1,
                 level - 1, level - 1, level - 1, level);
        strcat(text, line);
    }
    strcat(text, "u.");
    refuse_text(text, DRY_ERR_LIMIT, "unknown keys of one dict take more than");
}

static void
nesting_is_limited(void **state)
{
    (void)state;
    char text[1024] = "}('segments']'x'";
    size_t begin = strlen(text);
    memset(text + begin, ']', 64);
    memset(text + begin + 64, 'a', 63);
    strcpy(text + begin + 127, "u.");
    dry_trace_destroy(read_text(text));
    memset(text + begin, ']', 80);
    memset(text + begin + 80, 'a', 79);
    strcpy(text + begin + 159, "u.");
    refuse_text(text, DRY_ERR_LIMIT, "nested deeper than 64");
    memset(text, '(', 200);
    strcpy(text + 200, ".");
    refuse_text(text, DRY_ERR_LIMIT, "80 open marks");
}

/* Four million empty lists, none of them in anything. */
static void
open_containers_are_limited(void **state)
{
    (void)state;
    size_t count = 4u << 20;
    char *bytes = malloc(count);
    struct dry_trace *t;
    struct dry_error err;
    assert_non_null(bytes);
    memset(bytes, ']', count);
    memcpy(bytes, "\x80\x04", 2);
    assert_int_equal(read_bytes(bytes, count, NULL, &t, &err), DRY_ERR_LIMIT);
    assert_non_null(strstr(err.text, "more than 1048576 containers"));
    free(bytes);
}

#define EVENT_FILE(keys) "}('segments']'device_traces'](](}(" keys "u e e u."

static void
wrong_types_are_told(void **state)
{
    (void)state;
    refuse_text(EVENT_FILE("'action''alloc''addr'#1'size''x''stream'#0"), DRY_ERR_FORMAT,
                "event 0: `size` is a string, expected an integer");
    refuse_text(EVENT_FILE("'action''alloc''addr'%'size'#1'stream'#0"), DRY_ERR_FORMAT,
                "event 0: `addr` is a float, expected an integer");
    refuse_text(EVENT_FILE("'action''alloc''addr'#1'size'+'stream'#0"), DRY_ERR_FORMAT,
                "event 0: `size` is a bool, expected an integer");
    refuse_text(EVENT_FILE("'action'#1'addr'#1"), DRY_ERR_FORMAT,
                "event 0: `action` is an integer, expected a string");
    refuse_text(EVENT_FILE("'action''alloc''size'#1"), DRY_ERR_FORMAT,
                "event 0: no `addr`");
    refuse_text(EVENT_FILE("'action''alloc''addr'#1"), DRY_ERR_FORMAT,
                "event 0: no `size`");
    refuse_text(EVENT_FILE("'action''free_completed''addr'#1'size'#2"), DRY_ERR_FORMAT,
                "event 0: no `stream`");
    refuse_text(EVENT_FILE("'action''oom''frames'#1"), DRY_ERR_FORMAT,
                "event 0: `frames` is an integer, expected a list of frames");
    refuse_text(EVENT_FILE("'action''oom''frames'](#1e"), DRY_ERR_FORMAT,
                "event 0: an item of `frames` is an integer, expected a frame");
    refuse_text(EVENT_FILE("'action''oom''pool_id'](#1e"), DRY_ERR_FORMAT,
                "event 0: `pool_id` is a list, expected a tuple of two integers");
    refuse_text(EVENT_FILE("'action''oom''pool_id''x'"), DRY_ERR_FORMAT,
                "event 0: `pool_id` is a string, expected a tuple of two integers");
    refuse_text("}('segments'#1'x'Nu.", DRY_ERR_FORMAT,
                "the snapshot: `segments` is an integer, expected a list");
    refuse_text("}('segments']'device_traces'#1u.", DRY_ERR_FORMAT,
                "the snapshot: `device_traces` is an integer, expected a list");
    refuse_text("}('segments']'device_traces'](#1eu.", DRY_ERR_FORMAT,
                "the snapshot: `device_traces` is an integer, expected a list");
    refuse_text("}('segments']'allocator_settings']u.", DRY_ERR_FORMAT,
                "`allocator_settings` is a list, expected a dict");
    refuse_text("}('segments']'segments']u.", DRY_ERR_FORMAT, "`segments` stands twice");
    refuse_text("}('device_traces']'traces']u.", DRY_ERR_FORMAT, "`traces` stands twice");
    refuse_text("}('a'Nu.", DRY_ERR_FORMAT, "the file holds a dict with other keys");
    refuse_text("#1.", DRY_ERR_FORMAT, "the file holds an integer");
    refuse_text("](#1e.", DRY_ERR_FORMAT, "an item of `segments` is an integer");
}

#define SEGMENT(keys) "}('segments'](}('blocks']'total_size'#1" keys "u eu."

static void
wrong_segments_are_told(void **state)
{
    (void)state;
    refuse_text(SEGMENT("'device'#0'stream'#0"), DRY_ERR_FORMAT,
                "segment 0: no `address`");
    refuse_text(SEGMENT("'address'#0'stream'#0"), DRY_ERR_FORMAT,
                "segment 0: no `device`");
    refuse_text(SEGMENT("'address'#0'device'#0"), DRY_ERR_FORMAT,
                "segment 0: no `stream`");
    refuse_text(SEGMENT("'address'#0'device'#-2"), DRY_ERR_FORMAT, "`device` is -2");
    refuse_text(SEGMENT("'address'#0'stream'#0'device'#-1"), DRY_ERR_FORMAT,
                "`device` is -1 outside host_segments");
    refuse_text(SEGMENT("'is_expandable'#1"), DRY_ERR_FORMAT,
                "segment 0: `is_expandable` is an integer, expected a bool");
    refuse_text("](}('state''wild''size'#1ue.", DRY_ERR_FORMAT,
                "block 0: `state` is \"wild\", expected inactive");
}

static void
a_bare_list_of_segments(void **state)
{
    (void)state;
    struct dry_trace *t = read_text(
        "](}('device'#0'address'#512'total_size'#9'stream'#0'segment_type''large'"
        "'segment_pool_id'](#1#0e'blocks']u e.");
    const struct dry_trace_view *v = dry_trace_get_view(t);
    assert_int_equal(v->is_bare_list, 1);
    assert_int_equal(v->has_traces, 0);
    assert_int_equal(v->segment_count, 1);
    assert_int_equal(v->segments[0].is_large, 1);
    assert_int_equal(v->segments[0].expandable_known, 0);
    assert_int_equal(v->lanes[v->segments[0].lane].pool_a, 1);
    dry_trace_destroy(t);
    t = read_text("].");
    assert_int_equal(dry_trace_get_view(t)->is_bare_list, 1);
    dry_trace_destroy(t);
}

static void
the_shape_of_2023(void **state)
{
    (void)state;
    struct dry_trace *t = read_text(
        "}('segments'](}('device'#0'address'#512'total_size'#9'stream'#0"
        "'segment_type''large''blocks'](}('size'#100'state''active_awaiting_free'"
        "'history'](}('addr'#512'real_size'#77'frames'](}('name''f''filename''f.py'"
        "'line'#1ueu}('addr'#512'real_size'#78u eu}('size'#20'state''inactive'u eu e"
        "'traces']u.");
    const struct dry_trace_view *v = dry_trace_get_view(t);
    assert_int_equal(v->has_traces, 1);
    assert_int_equal(v->block_count, 2);
    assert_int_equal(v->blocks[0].address, 512);
    assert_int_equal(v->blocks[0].state, DRY_BLOCK_PENDING_FREE);
    assert_int_equal(v->blocks[0].requested_size, 77);
    assert_int_not_equal(v->blocks[0].stack, DRY_NONE);
    assert_int_equal(v->blocks[1].address, 612);
    assert_int_equal(v->segments[0].pool_id_known, 0);
    assert_int_equal(v->segments[0].allocated_size, 0);
    assert_int_equal(v->segments[0].active_size, 100);
    assert_int_equal(v->segments[0].requested_size, 77);
    assert_int_equal(v->lanes[v->segments[0].lane].pool_known, 0);
    dry_trace_destroy(t);
}

static void
pinned_memory_is_the_last_device(void **state)
{
    (void)state;
    struct dry_trace *t = read_text(
        "}('host_segments'](}('device'#-1'address'#512'total_size'#9'stream'#0'blocks']u "
        "e"
        "'segments'](}('device'#3'address'#512'total_size'#9'stream'#0'blocks']u e"
        "'host_traces'](}('action''alloc''addr'#512'size'#9'stream'#0u e"
        "'device_traces'](](}('action''snapshot'u e eu.");
    const struct dry_trace_view *v = dry_trace_get_view(t);
    assert_int_equal(v->has_host, 1);
    assert_int_equal(v->device_count, 3);
    assert_int_equal(v->devices[0].device, 0);
    assert_int_equal(v->devices[0].first_event, 1);
    assert_int_equal(v->devices[0].event_count, 1);
    assert_int_equal(v->devices[1].device, 3);
    assert_int_equal(v->devices[1].segment_count, 1);
    assert_int_equal(v->devices[2].device, DRY_DEVICE_HOST);
    assert_int_equal(v->devices[2].first_event, 0);
    assert_int_equal(v->devices[2].first_segment, 1);
    assert_int_equal(v->segments[1].device, DRY_DEVICE_HOST);
    dry_trace_destroy(t);
}

/* Dicts filled key by key say what they are when something takes them. */
static void
dicts_filled_one_by_one(void **state)
{
    (void)state;
    struct dry_trace *t = read_text(
        "}'segments']s 'device_traces'](]}'action''alloc's'addr'#1s'size'#2s'stream'#3s"
        "'frames']}'filename''f's'line'#4sas a es.");
    const struct dry_trace_view *v = dry_trace_get_view(t);
    assert_int_equal(v->event_count, 1);
    assert_int_equal(v->size[0], 2);
    size_t count;
    const uint32_t *frames = dry_trace_stack(t, v->stack[0], &count);
    assert_int_equal(count, 1);
    assert_int_equal(v->frames[frames[0]].line, 4);
    assert_int_equal(v->frames[frames[0]].name, DRY_NONE);
    dry_trace_destroy(t);
}

/* Values that a field cannot hold are kept as they are, and win when written last. */
static void
odd_values_are_kept(void **state)
{
    (void)state;
    struct dry_trace *t =
        read_text(EVENT_FILE("'action''alloc''addr'#1'size'#2'stream'#3'time_us'#4"
                             "'device_free'#5'compile_context'N#6N"));
    const struct dry_trace_view *v = dry_trace_get_view(t);
    assert_string(t, dry_trace_note(t, v->note[0])->extra,
                  "\x8c\x0f"
                  "compile_contextNK\x06N\x8c\x0b"
                  "device_freeK\x05");
    assert_int_equal(v->unknown_count, 0);
    dry_trace_destroy(t);
}

static void
the_largest_numbers(void **state)
{
    (void)state;
    static const char file[] =
        "\x80\x02}(X\x08\0\0\0segments]X\x0d\0\0\0device_traces](](}(X\x06\0\0\0action"
        "X\x05\0\0\0allocX\x04\0\0\0addr\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0"
        "X\x04\0\0\0size\x8a\x09\0\0\0\0\0\0\0\x80\0X\x06\0\0\0stream\x8a\x08\xff\xff\xff"
        "\xff\xff\xff\xff\x7fX\x07\0\0\0time_us\x8a\x08\0\0\0\0\0\0\0\x80ueeu.";
    struct dry_trace *t;
    struct dry_error err;
    assert_int_equal(read_bytes(BYTES(file), NULL, &t, &err), DRY_OK);
    const struct dry_trace_view *v = dry_trace_get_view(t);
    assert_int_equal(v->protocol, 2);
    assert_int_equal(v->byte_count, sizeof file - 1);
    assert_true(v->addr[0] == UINT64_MAX && v->size[0] == UINT64_C(1) << 63);
    assert_true(v->lanes[v->lane[0]].stream == INT64_MAX && v->time_us[0] == INT64_MIN);
    dry_trace_destroy(t);
}

static void
protocols(void **state)
{
    (void)state;
    for (unsigned char protocol = 0; protocol < 8; protocol++) {
        unsigned char bytes[] = {0x80, protocol, ']', '.'};
        struct dry_trace *t;
        struct dry_error err;
        enum dry_status status = read_bytes(bytes, sizeof bytes, NULL, &t, &err);
        bool good = protocol >= 2 && protocol <= 5;
        assert_int_equal(status, good ? DRY_OK : DRY_ERR_FORMAT);
        if (!good)
            assert_non_null(strstr(err.text, "expected 2 to 5"));
        dry_trace_destroy(t);
    }
}

static void
other_files_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t count;
        const char *words;
    } rows[] = {
        {BYTES(""), "empty"},
        {BYTES("\x1f\x8b\x08\0\0\0\0\0"), "gzip"},
        {BYTES("\x28\xb5\x2f\xfd\0\0\0\0"), "zstd"},
        {BYTES("\xfd"
               "7zXZ\0"),
         "xz"},
        {BYTES("{\"segments\": []}"), "JSON"},
        {BYTES("(dp0\nVsegments\np1\n(lp2\ns."), "protocol 0 or 1, expected 2 to 5"},
        {BYTES("(lp0\n."), "protocol 0 or 1"},
        {BYTES("}q\0(X\1\0\0\0aq\1]q\2u."), "protocol 0 or 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dry_trace *t;
        struct dry_error err;
        assert_int_equal(read_bytes(rows[i].bytes, rows[i].count, NULL, &t, &err),
                         DRY_ERR_FORMAT);
        if (!strstr(err.text, rows[i].words))
            fail_msg("\"%s\", expected \"%s\"", err.text, rows[i].words);
    }
}

static bool
cancel(void *self, uint64_t byte_count)
{
    *(uint64_t *)self = byte_count;
    return true;
}

static void
reading_can_be_cancelled(void **state)
{
    (void)state;
    size_t count = 40u << 20;
    char *bytes = malloc(count);
    assert_non_null(bytes);
    for (size_t i = 0; i < count; i += 2)
        memcpy(bytes + i, "N0", 2);
    memcpy(bytes, "\x80\x04", 2);
    uint64_t seen = 0;
    struct dry_trace_options options;
    dry_trace_options_init(&options);
    options.progress = cancel;
    options.progress_self = &seen;
    struct dry_trace *t;
    struct dry_error err;
    assert_int_equal(read_bytes(bytes, count, &options, &t, &err), DRY_ERR_CANCELLED);
    assert_in_range(seen, 16u << 20, 17u << 20);
    free(bytes);
}

/* Longer than the window, which grows for it as its bytes arrive. */
static void
a_long_string(void **state)
{
    (void)state;
    static const char head[] = "\x80\x04}(\x8c\x08segments]\x8c\x0d"
                               "device_traces](](}("
                               "\x8c\x06"
                               "action\x8c\x08snapshot\x8c\x0duser_metadataX";
    uint32_t length = 700001;
    size_t count = sizeof head - 1 + 4 + length + 4;
    char *bytes = malloc(count);
    assert_non_null(bytes);
    memcpy(bytes, head, sizeof head - 1);
    memcpy(bytes + sizeof head - 1, &length, 4);
    memset(bytes + sizeof head + 3, 'x', length);
    memcpy(bytes + count - 4, "ueeu", 4);
    bytes = realloc(bytes, count + 1);
    assert_non_null(bytes);
    bytes[count] = '.';
    struct dry_trace_options options;
    dry_trace_options_init(&options);
    for (uint32_t limit = length - 1; limit <= length; limit++) {
        struct dry_trace *t;
        struct dry_error err;
        options.string_bytes_max = limit;
        enum dry_status status = read_bytes(bytes, count + 1, &options, &t, &err);
        assert_int_equal(status, limit < length ? DRY_ERR_LIMIT : DRY_OK);
        if (status == DRY_OK) {
            const struct dry_trace_view *v = dry_trace_get_view(t);
            size_t got;
            dry_trace_string(t, dry_trace_note(t, v->note[0])->user_metadata, &got);
            assert_int_equal(got, length);
        }
        dry_trace_destroy(t);
    }
    free(bytes);
}

struct failing_source {
    struct bytes_source from;
    struct dry_source good;
    size_t left;
};

static enum dry_status
read_or_fail(void *self, void *buffer, size_t capacity, size_t *got,
             struct dry_error *err)
{
    struct failing_source *f = self;
    if (f->left-- == 0) {
        *err = (struct dry_error){.status = DRY_ERR_SYSTEM, .text = "unplugged"};
        return DRY_ERR_SYSTEM;
    }
    return f->good.read(f->good.self, buffer, capacity, got, err);
}

static void
every_read_may_fail(void **state)
{
    (void)state;
    struct pickle_text p;
    pickle_text_init(&p, whole);
    for (size_t n = 0;; n++) {
        struct failing_source f = {.left = n};
        f.good = bytes_source_init(&f.from, p.bytes, p.count);
        f.from.step = 9;
        struct dry_source source = {read_or_fail, &f};
        struct dry_trace *t = NULL;
        struct dry_error err;
        enum dry_status status = dry_trace_read(&source, NULL, &t, &err);
        dry_trace_destroy(t);
        if (status == DRY_OK)
            break;
        assert_int_equal(status, DRY_ERR_SYSTEM);
        assert_string_equal(err.text, "unplugged");
    }
}

/* What CPython's unpickler counts in each. */
static const struct {
    const char *name;
    size_t event_count, segment_count, block_count, annotation_count;
} recordings[] = {
    {"compile-context", 50, 14, 14, 0},
    {"decomfl", 23105, 61, 468, 8},
    {"late-start", 6486, 96, 550, 2},
    {"old-format-full-card", 1, 176, 463, 0},
    {"python-stacks-only", 5163, 216, 455, 0},
    {"segments-only-fragmented", 0, 499, 2974, 0},
    {"synthetic-inconsistent", 1040, 5, 17, 6},
    {"tiny-cs336", 97, 9, 20, 0},
    {"transformer-medium-128-infer", 3840, 98, 230, 0},
    {"transformer-medium-512-train", 22332, 400, 1041, 2},
};

static void
real_recordings(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof recordings / sizeof *recordings; i++) {
        char name[64];
        size_t count;
        snprintf(name, sizeof name, "pytorch/%s.pickle", recordings[i].name);
        unsigned char *bytes = bytes_of_trace(name, &count);
        if (!bytes)
            skip_because("%s is not in $DRY_TEST_TRACES", name);
        struct dry_trace *t;
        struct dry_error err;
        if (read_bytes(bytes, count, NULL, &t, &err) != DRY_OK)
            fail_msg("%s: %s", name, err.text);
        const struct dry_trace_view *v = dry_trace_get_view(t);
        assert_int_equal(v->event_count, recordings[i].event_count);
        assert_int_equal(v->segment_count, recordings[i].segment_count);
        assert_int_equal(v->block_count, recordings[i].block_count);
        assert_int_equal(v->annotation_count, recordings[i].annotation_count);
        assert_int_equal(v->byte_count, count);
        assert_int_equal(v->unknown_count, 0);
        dry_trace_destroy(t);
        free(bytes);
    }
}

/* Frames 0 and 1 of the memo, then events whose stacks are `frames`, each behind the other. */
static struct dry_trace *
read_stacks(const char *const *frames, size_t count)
{
    char text[8192] = "}('x'](}('filename''a''line'#1'name''f'uq0 }('filename''b''line'#2"
                      "'name''g'uq1 e'segments']'device_traces'](](";
    for (size_t i = 0; i < count; i++) {
        strcat(text, "}('action''alloc''addr'#512'size'#512'stream'#0'frames'");
        strcat(text, frames[i]);
        strcat(text, "'time_us'#7u ");
    }
    strcat(text, "e e u.");
    return read_text(text);
}

/* "0101": the lines of an event's stack, less one. */
static void
assert_lines(const struct dry_trace *t, size_t event, const char *lines)
{
    const struct dry_trace_view *v = dry_trace_get_view(t);
    size_t count;
    const uint32_t *frames = dry_trace_stack(t, v->stack[event], &count);
    assert_int_equal(count, strlen(lines));
    for (size_t i = 0; i < count; i++)
        assert_int_equal(v->frames[frames[i]].line, lines[i] - '0' + 1);
}

/* pickle_run.h: equal bytes are one stack, whatever is around them. */
static void
stacks_are_known_by_their_bytes(void **state)
{
    (void)state;
    static const char a[] = "](h0h1h0h1h0h1h0h1e", b[] = "](h0h1h0h1h0h1h0h0e";
    static const char *const frames[] = {a,
                                         b,
                                         a,
                                         b,
                                         "](h0h1h0h1h0h1h0h1h1e",
                                         "](h0e",
                                         "]",
                                         "](h0h1h0h1h0h1h0h1e",
                                         "](h0h1e",
                                         b,
                                         "](h0h1h0h1h0h1h0h1e(h1h0e", /* in two pieces */
                                         "](h0h1h0h1h0h1h0h1eh1a",    /* and one more */
                                         "](h0h1h0h1h0h1h0h1eq2",
                                         "h2",
                                         a};
    static const char *const lines[] = {
        "01010101",   "01010100",  "01010101", "01010100", "010101011",
        "0",          "",          "01010101", "01",       "01010100",
        "0101010110", "010101011", "01010101", "01010101", "01010101"};
    struct dry_trace *t = read_stacks(frames, sizeof frames / sizeof *frames);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_lines(t, i, lines[i]);
    const struct dry_trace_view *v = dry_trace_get_view(t);
    assert_int_equal(v->stack[0], v->stack[14]);
    assert_int_equal(v->stack[12], v->stack[0]);
    dry_trace_destroy(t);
}

/* R1: the same bytes are another stack once a number stands for another frame. */
static void
a_number_that_is_put_again_is_another_frame(void **state)
{
    (void)state;
    static const char a[] = "](h0h1h0h1h0h1h0h1e";
    static const char again[] = "](h0h1h0h1h0h1h0h1e'later'}('filename''c''line'#4"
                                "'name''h'uq0";
    static const char *const frames[] = {a, a, again, a, a};
    struct dry_trace *t = read_stacks(frames, 5);
    assert_lines(t, 0, "01010101");
    assert_lines(t, 2, "01010101");
    assert_lines(t, 3, "31313131");
    assert_lines(t, 4, "31313131");
    dry_trace_destroy(t);
}

/* Runs that lie across windows of the file, and more of them than are kept. */
static void
many_stacks_are_all_told_apart(void **state)
{
    (void)state;
    enum { EVENTS = 40000, FRAMES = 120 };
    struct pickle_text head, tail, event;
    pickle_text_init(&head,
                     "}('x'](}('filename''a''line'#1'name''f'uq0 }('filename''b''line'#2"
                     "'name''g'uq1 e'segments']'device_traces'](](");
    pickle_text_init(&event, "}('action''alloc''addr'#512'size'#512'stream'#0'frames'](");
    pickle_text_init(&tail, "eu");
    size_t each = event.count + FRAMES * 2 + tail.count, used = head.count;
    unsigned char *bytes = malloc(EVENTS * each + head.count + 4);
    assert_non_null(bytes);
    memcpy(bytes, head.bytes, used);
    for (uint32_t i = 0; i < EVENTS; i++) {
        memcpy(bytes + used, event.bytes + 2, event.count - 2); /* without its PROTO */
        used += event.count - 2;
        for (uint32_t f = 0; f < FRAMES; f++) {
            bytes[used++] = 'h';
            bytes[used++] = (unsigned char)((i / 3 >> (FRAMES - 1 - f) % 20) & 1);
        }
        memcpy(bytes + used, tail.bytes + 2, tail.count - 2);
        used += tail.count - 2;
    }
    memcpy(bytes + used, "eeu.", 4);
    struct dry_trace *t;
    struct dry_error err;
    assert_int_equal(read_bytes(bytes, used + 4, NULL, &t, &err), DRY_OK);
    const struct dry_trace_view *v = dry_trace_get_view(t);
    assert_int_equal(v->event_count, EVENTS);
    for (uint32_t i = 0; i < EVENTS; i++) {
        size_t count;
        const uint32_t *frames = dry_trace_stack(t, v->stack[i], &count);
        assert_int_equal(count, FRAMES);
        for (uint32_t f = 0; f < FRAMES; f++)
            assert_int_equal(v->frames[frames[f]].line,
                             1 + ((i / 3 >> (FRAMES - 1 - f) % 20) & 1));
    }
    dry_trace_destroy(t);
    free(bytes);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_snapshot),
        cmocka_unit_test(the_notes_of_events),
        cmocka_unit_test(segments_blocks_and_the_rest),
        cmocka_unit_test(unknown_keys_are_counted),
        cmocka_unit_test(every_opcode_that_builds_data),
        cmocka_unit_test(every_other_byte_is_refused_by_name),
        cmocka_unit_test(code_is_named),
        cmocka_unit_test(a_file_cut_anywhere_is_refused),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(memory_has_a_ceiling),
        cmocka_unit_test(stacks_are_known_by_their_bytes),
        cmocka_unit_test(a_number_that_is_put_again_is_another_frame),
        cmocka_unit_test(many_stacks_are_all_told_apart),
        cmocka_unit_test(claimed_lengths_cost_nothing),
        cmocka_unit_test(the_stack_is_guarded),
        cmocka_unit_test(cycles_are_refused),
        cmocka_unit_test(things_are_used_once),
        cmocka_unit_test(unknown_values_are_shared),
        cmocka_unit_test(a_bomb_is_limited),
        cmocka_unit_test(nesting_is_limited),
        cmocka_unit_test(open_containers_are_limited),
        cmocka_unit_test(wrong_types_are_told),
        cmocka_unit_test(wrong_segments_are_told),
        cmocka_unit_test(a_bare_list_of_segments),
        cmocka_unit_test(the_shape_of_2023),
        cmocka_unit_test(pinned_memory_is_the_last_device),
        cmocka_unit_test(dicts_filled_one_by_one),
        cmocka_unit_test(odd_values_are_kept),
        cmocka_unit_test(the_largest_numbers),
        cmocka_unit_test(protocols),
        cmocka_unit_test(other_files_are_named),
        cmocka_unit_test(reading_can_be_cancelled),
        cmocka_unit_test(a_long_string),
        cmocka_unit_test(every_read_may_fail),
        cmocka_unit_test(real_recordings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
