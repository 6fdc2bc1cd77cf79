/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Events that are read straight from their bytes, against the walk over opcodes. A random
 * snapshot, much of it plain events and some of it nonsense, is read twice: as it is, and
 * with NONE and POP behind each EMPTY_DICT, so that no event is plain. Both readings must be
 * the same trace, number for number, or the same refusal at the same opcode.
 *
 * DRY_TEST_SEED=N reads one snapshot; DRY_TEST_ROUNDS=N reads so many.
 */
#include "support/cmocka.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/trace.h>

#include "support/bytes.h"
#include "support/failing_memory.h"
#include "support/random.h"
#include "trace/pickle/pickle.h"

#define OP_COUNT_MAX 120000u
#define BYTE_COUNT_MAX (1u << 20)
#define FRAME_COUNT 60u
#define STACK_COUNT 20u

/* --- a snapshot, opcode by opcode --------------------------------------------------------- */

static const char *const words[] = {
    "action",
    "addr",
    "size",
    "stream",
    "time_us",
    "frames",
    "forward_frames",
    "user_metadata",
    "pool_id",
    "device_free",
    "unheard_of",
    "name",
    "filename",
    "line",
    "compile_context",
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "oom",
    "segment_unmap",
    "levitate",
    "N/A",
    "",
    "p\xff\xfe",
};
#define WORD_COUNT (sizeof words / sizeof *words)
enum { FIRST_ACTION = 15, ACTION_COUNT = 7, FIRST_TEXT = 22, TEXT_COUNT = 3 };

struct snapshot {
    struct random random;
    unsigned char bytes[BYTE_COUNT_MAX];
    size_t byte_count;
    size_t begins[OP_COUNT_MAX + 1]; /* of the opcodes */
    size_t op_count;
    uint32_t memo_count, first_frame, first_stack;
    unsigned puts; /* 0: MEMOIZE, 1: BINPUT, 2: LONG_BINPUT, 3: any */
    unsigned odd;  /* one choice in so many is odd */
};

static size_t
below(struct snapshot *s, size_t limit)
{
    return (size_t)random_below(&s->random, limit);
}

static bool
is_odd(struct snapshot *s)
{
    return below(s, s->odd) == 0;
}

static void
put_op(struct snapshot *s, int opcode, const void *argument, size_t count)
{
    assert_true(s->op_count < OP_COUNT_MAX && s->byte_count + 1 + count < BYTE_COUNT_MAX);
    s->begins[s->op_count++] = s->byte_count;
    s->bytes[s->byte_count++] = (unsigned char)opcode;
    if (count)
        memcpy(s->bytes + s->byte_count, argument, count);
    s->byte_count += count;
    s->begins[s->op_count] = s->byte_count;
}

static void
put_plain(struct snapshot *s, int opcode)
{
    put_op(s, opcode, NULL, 0);
}

static void
put_memo(struct snapshot *s)
{
    unsigned way = s->puts < 3 ? s->puts : (unsigned)below(s, 3);
    uint32_t index = s->memo_count++;
    if (is_odd(s))
        index = (uint32_t)below(s, s->memo_count + 1);
    if (way == 1 && index < 256)
        put_op(s, DRYI_OP_BINPUT, &index, 1);
    else if (way == 0)
        put_plain(s, DRYI_OP_MEMOIZE);
    else
        put_op(s, DRYI_OP_LONG_BINPUT, &index, 4);
}

static void
put_get(struct snapshot *s, uint32_t index)
{
    if (index < 256 && below(s, 4))
        put_op(s, DRYI_OP_BINGET, &index, 1);
    else
        put_op(s, DRYI_OP_LONG_BINGET, &index, 4);
}

static void
put_text(struct snapshot *s, const char *text)
{
    unsigned char bytes[64] = {(unsigned char)strlen(text)};
    memcpy(bytes + 1, text, bytes[0]);
    put_op(s, DRYI_OP_SHORT_BINUNICODE, bytes, 1u + bytes[0]);
}

static void
put_number(struct snapshot *s, uint64_t number)
{
    unsigned char bytes[12] = {0};
    if (below(s, 4) == 0)
        number &= 0xff;
    if (number <= 0xff && below(s, 2)) {
        put_op(s, DRYI_OP_BININT1, &number, 1);
    } else if (number <= 0xffff && below(s, 2)) {
        put_op(s, DRYI_OP_BININT2, &number, 2);
    } else if (below(s, 3) == 0) {
        put_op(s, DRYI_OP_BININT, &number, 4);
    } else {
        bytes[0] = (unsigned char)(is_odd(s) ? below(s, 11) : 6 + below(s, 2));
        memcpy(bytes + 1, &number, sizeof number);
        put_op(s, DRYI_OP_LONG1, bytes, 1u + bytes[0]);
    }
}

/* A value that its key does not want, or not like this. */
static void
put_odd_value(struct snapshot *s)
{
    switch (below(s, 7)) {
    case 0:
        put_plain(s, DRYI_OP_NONE);
        break;
    case 1:
        put_op(s, DRYI_OP_BINFLOAT, "\x40\x09\x21\xfb\x54\x44\x2d\x18", 8);
        break;
    case 2:
        put_get(s, (uint32_t)below(s, s->memo_count + 2));
        break;
    case 3:
        put_text(s, words[below(s, WORD_COUNT)]);
        break;
    case 4:
        put_number(s, random_next(&s->random));
        break;
    case 5:
        put_plain(s, DRYI_OP_EMPTY_LIST);
        break;
    default:
        put_number(s, below(s, 9));
        put_number(s, below(s, 9));
        put_plain(s, 0x86); /* TUPLE2 */
    }
}

static void
put_word(struct snapshot *s, size_t word)
{
    if (below(s, 3)) {
        put_get(s, (uint32_t)word);
        return;
    }
    put_text(s, words[word]);
    if (below(s, 4))
        put_memo(s);
}

/* A new list: empty, of frames, or of strings where those may be. */
static void
put_list(struct snapshot *s, bool may_be_text)
{
    put_plain(s, DRYI_OP_EMPTY_LIST);
    if (below(s, 8))
        put_memo(s);
    if (below(s, 6) == 0)
        return;
    put_plain(s, DRYI_OP_MARK);
    /* Few beginnings, so that many lists are equal. */
    size_t first = below(s, 4), count = below(s, 6) ? 8 + below(s, 3) * 10 : below(s, 3);
    bool is_text = may_be_text && below(s, 2);
    for (size_t i = 0; i < count; i++) {
        if (is_text)
            put_word(s, FIRST_TEXT + (first + i) % TEXT_COUNT);
        else
            put_get(s, s->first_frame + (uint32_t)((first * 7 + i) % FRAME_COUNT));
    }
    if (is_odd(s))
        put_odd_value(s);
    put_plain(s, DRYI_OP_APPENDS);
}

static void
put_value(struct snapshot *s, size_t key)
{
    if (is_odd(s)) {
        put_odd_value(s);
        return;
    }
    switch (key) {
    case 0:
        put_word(s, FIRST_ACTION + below(s, below(s, 20) ? 4 : ACTION_COUNT));
        break;
    case 5:
    case 6:
        if (below(s, 2))
            put_get(s, s->first_stack + (uint32_t)below(s, STACK_COUNT));
        else
            put_list(s, key == 6);
        break;
    case 7:
    case 14:
        put_word(s, FIRST_TEXT + below(s, TEXT_COUNT));
        break;
    default:
        put_number(s, random_next(&s->random) >> 17);
    }
}

static void
put_event(struct snapshot *s)
{
    static const unsigned char usual[] = {0, 1, 2, 3, 4, 14, 7, 5, 6};
    put_plain(s, DRYI_OP_EMPTY_DICT);
    if (below(s, 8))
        put_memo(s);
    put_plain(s, DRYI_OP_MARK);
    size_t from = below(s, 20) ? 0 : below(s, sizeof usual);
    for (size_t i = 0; i < sizeof usual; i++) {
        size_t key = usual[(i + from) % sizeof usual];
        if (key > 3 && (below(s, 6) == 0 || (key == 6 && below(s, 8))))
            continue;
        if (is_odd(s))
            key = below(s, 15);
        do {
            put_get(s, (uint32_t)key);
            put_value(s, key);
        } while (below(s, 100) == 0);
    }
    put_plain(s, DRYI_OP_SETITEMS);
}

/* Fill the memo with words, frames and lists of frames; each is popped again. */
static void
put_known(struct snapshot *s)
{
    for (size_t i = 0; i < WORD_COUNT; i++) {
        put_text(s, words[i]);
        s->memo_count++;
        put_plain(s, DRYI_OP_MEMOIZE);
        put_plain(s, DRYI_OP_POP);
    }
    s->first_frame = s->memo_count;
    for (size_t i = 0; i < FRAME_COUNT + STACK_COUNT; i++) {
        bool is_frame = i < FRAME_COUNT;
        put_plain(s, is_frame ? DRYI_OP_EMPTY_DICT : DRYI_OP_EMPTY_LIST);
        s->memo_count++;
        put_plain(s, DRYI_OP_MEMOIZE);
        put_plain(s, DRYI_OP_MARK);
        for (uint32_t k = 0; k < (is_frame ? 3u : 9u); k++) {
            put_get(s, is_frame ? 11 + k
                                : s->first_frame + (uint32_t)((i + k) % FRAME_COUNT));
            if (is_frame && k < 2)
                put_get(s, FIRST_ACTION + k);
            else if (is_frame)
                put_op(s, DRYI_OP_BININT1, &i, 1);
        }
        put_plain(s, is_frame ? DRYI_OP_SETITEMS : DRYI_OP_APPENDS);
        put_plain(s, DRYI_OP_POP);
    }
    s->first_stack = s->first_frame + FRAME_COUNT;
}

/* Spoil one opcode: it is gone, doubled, or another one's twin. */
static void
spoil(struct snapshot *s)
{
    size_t at = below(s, s->op_count), other = below(s, s->op_count);
    struct snapshot *copy = malloc(sizeof *copy);
    assert_non_null(copy);
    *copy = *s;
    s->op_count = s->byte_count = 0;
    unsigned way = (unsigned)below(s, 3);
    for (size_t i = 0; i < copy->op_count; i++) {
        size_t from = i == at && way == 2 ? other : i;
        size_t times = i != at || way == 2 ? 1 : way * 2;
        for (; times; times--)
            put_op(s, copy->bytes[copy->begins[from]],
                   copy->bytes + copy->begins[from] + 1,
                   copy->begins[from + 1] - copy->begins[from] - 1);
    }
    free(copy);
}

static struct snapshot *
make_snapshot(uint64_t seed)
{
    static const unsigned odds[] = {100, 1000, 10000, UINT32_MAX};
    struct snapshot *s = calloc(1, sizeof *s);
    assert_non_null(s);
    random_init(&s->random, seed);
    s->puts = (unsigned)below(s, 4);
    s->odd = odds[below(s, 4)];
    put_op(s, DRYI_OP_PROTO, "\x04", 1);
    put_known(s);
    put_plain(s, DRYI_OP_EMPTY_DICT);
    put_plain(s, DRYI_OP_MARK);
    put_text(s, "segments");
    put_plain(s, DRYI_OP_EMPTY_LIST);
    put_text(s, "device_traces");
    put_plain(s, DRYI_OP_EMPTY_LIST);
    put_plain(s, DRYI_OP_MARK);
    for (size_t device = 1 + below(s, 2); device; device--) {
        put_plain(s, DRYI_OP_EMPTY_LIST);
        for (size_t batch = below(s, 5); batch; batch--) {
            put_plain(s, DRYI_OP_MARK);
            for (size_t event = 1 + below(s, 100); event; event--)
                put_event(s);
            put_plain(s, DRYI_OP_APPENDS);
        }
    }
    put_plain(s, DRYI_OP_APPENDS);
    put_plain(s, DRYI_OP_SETITEMS);
    put_plain(s, DRYI_OP_STOP);
    if (below(s, 4) == 0)
        spoil(s);
    return s;
}

/* --- two readings ------------------------------------------------------------------------- */

struct reading {
    enum dry_status status;
    struct dry_trace *trace;
    struct dry_error err;
};

static void
read_pickle(struct reading *r, const void *bytes, size_t count, size_t step,
            const struct dry_memory *memory)
{
    struct bytes_source from;
    struct dry_source source = bytes_source_init(&from, bytes, count);
    struct dry_trace_options options;
    dry_trace_options_init(&options);
    options.memory = memory;
    from.step = step;
    *r = (struct reading){0};
    r->status = dry_trace_read(&source, &options, &r->trace, &r->err);
}

/* The snapshot with NONE and POP behind each EMPTY_DICT. */
static unsigned char *
pad(const struct snapshot *s, size_t *count)
{
    unsigned char *padded = malloc(3 * s->byte_count);
    assert_non_null(padded);
    size_t at = 0;
    for (size_t i = 0; i < s->op_count; i++) {
        size_t length = s->begins[i + 1] - s->begins[i];
        memcpy(padded + at, s->bytes + s->begins[i], length);
        at += length;
        if (s->bytes[s->begins[i]] != DRYI_OP_EMPTY_DICT)
            continue;
        padded[at++] = DRYI_OP_NONE;
        padded[at++] = DRYI_OP_POP;
    }
    *count = at;
    return padded;
}

/* How far behind an opcode of the snapshot the same one stands when padded. */
static size_t
padding_before(const struct snapshot *s, uint64_t offset)
{
    size_t bytes = 0;
    for (size_t i = 0; i < s->op_count && s->begins[i] < offset; i++)
        bytes += s->bytes[s->begins[i]] == DRYI_OP_EMPTY_DICT ? 2 : 0;
    return bytes;
}

#define SAME(a, b, count)                                                                \
    do {                                                                                 \
        if (count)                                                                       \
            assert_memory_equal((a), (b), (count) * sizeof *(a));                        \
    } while (0)

static void
compare_columns(const struct dry_trace_view *a, const struct dry_trace_view *b)
{
    size_t n = a->event_count;
    assert_int_equal(n, b->event_count);
    SAME(a->action, b->action, n);
    SAME(a->addr, b->addr, n);
    SAME(a->size, b->size, n);
    SAME(a->time_us, b->time_us, n);
    SAME(a->lane, b->lane, n);
    SAME(a->stack, b->stack, n);
    SAME(a->note, b->note, n);
    assert_int_equal(a->device_count, b->device_count);
    SAME(a->devices, b->devices, a->device_count);
    assert_int_equal(a->unknown_count, b->unknown_count);
    SAME(a->unknowns, b->unknowns, a->unknown_count);
}

static void
compare_tables(const struct dry_trace *a, const struct dry_trace *b)
{
    const struct dry_trace_view *va = dry_trace_get_view(a), *vb = dry_trace_get_view(b);
    assert_int_equal(va->lane_count, vb->lane_count);
    assert_int_equal(va->frame_count, vb->frame_count);
    assert_int_equal(va->stack_count, vb->stack_count);
    assert_int_equal(va->string_count, vb->string_count);
    assert_int_equal(va->note_count, vb->note_count);
    SAME(va->lanes, vb->lanes, va->lane_count);
    SAME(va->frames, vb->frames, va->frame_count);
    for (uint32_t i = 0; i < va->note_count; i++)
        SAME(dry_trace_note(a, i), dry_trace_note(b, i), 1);
    for (uint32_t i = 0; i < va->stack_count; i++) {
        size_t ca, cb;
        const uint32_t *fa = dry_trace_stack(a, i, &ca), *fb = dry_trace_stack(b, i, &cb);
        assert_int_equal(ca, cb);
        SAME(fa, fb, ca);
    }
    for (uint32_t i = 0; i < va->string_count; i++) {
        size_t ca, cb;
        const char *sa = dry_trace_string(a, i, &ca), *sb = dry_trace_string(b, i, &cb);
        assert_int_equal(ca, cb);
        SAME(sa, sb, ca);
    }
}

/* Read a snapshot both ways; true if it was accepted. */
static bool
read_both(uint64_t seed)
{
    struct snapshot *s = make_snapshot(seed);
    size_t padded_count, step = below(s, 3) ? 0 : 1 + below(s, 20000);
    unsigned char *padded = pad(s, &padded_count);
    struct reading straight, walked;
    read_pickle(&straight, s->bytes, s->byte_count, step, NULL);
    read_pickle(&walked, padded, padded_count, 0, NULL);
    bool is_read = straight.status == DRY_OK;
    assert_int_equal(straight.status, walked.status);
    if (is_read) {
        compare_columns(dry_trace_get_view(straight.trace),
                        dry_trace_get_view(walked.trace));
        compare_tables(straight.trace, walked.trace);
    } else {
        assert_string_equal(straight.err.text, walked.err.text);
        assert_int_equal(straight.err.offset + padding_before(s, straight.err.offset),
                         walked.err.offset);
    }
    dry_trace_destroy(straight.trace);
    dry_trace_destroy(walked.trace);
    free(padded);
    free(s);
    return is_read;
}

static void
straight_events_are_those_of_the_walk(void **state)
{
    (void)state;
    const char *seed = getenv("DRY_TEST_SEED"), *rounds = getenv("DRY_TEST_ROUNDS");
    if (seed) {
        read_both(strtoull(seed, NULL, 10));
        return;
    }
    size_t count = rounds ? strtoull(rounds, NULL, 10) : 400, accepted = 0;
    for (size_t i = 0; i < count; i++)
        accepted += read_both(i);
    print_message("%zu of %zu snapshots were accepted\n", accepted, count);
    assert_true(accepted > count / 4 && accepted < count);
}

static void
every_allocation_may_fail(void **state)
{
    (void)state;
    struct snapshot *s = make_snapshot(3);
    struct reading r;
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        read_pickle(&r, s->bytes, s->byte_count, 0, &memory);
        bool failed = fm.failed;
        dry_trace_destroy(r.trace);
        failing_memory_finish(&fm);
        if (!failed)
            break;
        assert_int_equal(r.status, DRY_ERR_MEMORY);
    }
    free(s);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(straight_events_are_those_of_the_walk),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
