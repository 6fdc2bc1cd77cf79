/* SPDX-License-Identifier: Apache-2.0 */
/* What exports are made of: the writer, protocol buffers, lanes, points of counters. */
#include "support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "base/writer.h"
#include "export/export_time.h"
#include "export/proto.h"

/* --- the writer --------------------------------------------------------------------------- */

struct memory_file {
    char bytes[1 << 20];
    size_t used, capacity; /* what does not fit is refused */
};

static enum dry_status
write_memory(void *self, const void *bytes, size_t count, struct dry_error *err)
{
    struct memory_file *f = self;
    if (count > f->capacity - f->used) {
        *err = (struct dry_error){.status = DRY_ERR_SYSTEM, .offset = DRY_NO_OFFSET};
        return DRY_ERR_SYSTEM;
    }
    memcpy(f->bytes + f->used, bytes, count);
    f->used += count;
    return DRY_OK;
}

static struct memory_file *
make_file(struct writer *w, size_t capacity)
{
    struct memory_file *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->capacity = capacity;
    struct dry_sink sink = {.write = write_memory, .self = f};
    writer_init(w, &sink, NULL);
    return f;
}

typedef void (*put_fn)(struct writer *w, const char *bytes, size_t length);

#define TEXT(literal) literal, sizeof(literal) - 1

static void
expect_text(put_fn put, const char *bytes, size_t length, const char *expected)
{
    struct writer w;
    struct memory_file *f = make_file(&w, sizeof f->bytes);
    put(&w, bytes, length);
    assert_int_equal(w.written, strlen(expected));
    assert_int_equal(writer_finish(&w, NULL), DRY_OK);
    assert_int_equal(f->used, strlen(expected));
    assert_memory_equal(f->bytes, expected, f->used);
    free(f);
}

static void
json_is_quoted(void **state)
{
    (void)state;
    expect_text(writer_json, TEXT("a\"b\\c\n\x7f"), "\"a\\\"b\\\\c??\"");
    expect_text(writer_json, TEXT("</script>"), "\"\\u003c/script>\"");
    expect_text(writer_json, TEXT("\xff\xc3\xa9\xed\xa0\x80"), "\"?\xc3\xa9?\"");
    expect_text(writer_json, NULL, 3, "null");
    expect_text(writer_json, TEXT(""), "\"\"");
}

static void
xml_is_escaped(void **state)
{
    (void)state;
    expect_text(writer_xml, TEXT("<a b='\"'>&"), "&lt;a b=&#39;&quot;&#39;&gt;&amp;");
    expect_text(writer_xml, TEXT("x\x01\xef\xbf\xbey"), "x????y");
}

static void
csv_holds_no_formula(void **state)
{
    (void)state;
    expect_text(writer_csv, TEXT("a,\"b\"\r\n"), "\"a,\"\"b\"\"??\"");
    expect_text(writer_csv, TEXT("=1+1"), "\"'=1+1\"");
    expect_text(writer_csv, TEXT("-1"), "\"'-1\"");
    expect_text(writer_csv, TEXT("@x"), "\"'@x\"");
    expect_text(writer_csv, TEXT("1=1"), "\"1=1\"");
    expect_text(writer_csv, TEXT(""), "\"\"");
}

/* Pieces end between characters, wherever the text is cut. */
static void
long_texts_stay_whole(void **state)
{
    (void)state;
    static char text[6000], expected[6003];
    for (size_t shift = 0; shift < 3; shift++) {
        size_t length = shift;
        memset(text, 'x', sizeof text);
        for (; length + 3 < sizeof text; length += 3)
            memcpy(text + length, "\xe2\x82\xac", 3);
        expected[0] = '"';
        memcpy(expected + 1, text, length);
        memcpy(expected + 1 + length, "\"", 2);
        expect_text(writer_json, text, length, expected);
    }
}

static void
numbers_are_whole(void **state)
{
    (void)state;
    struct writer w;
    struct memory_file *f = make_file(&w, sizeof f->bytes);
    writer_unsigned(&w, 0);
    writer_char(&w, ' ');
    writer_unsigned(&w, UINT64_MAX);
    writer_char(&w, ' ');
    writer_signed(&w, INT64_MIN);
    assert_int_equal(writer_finish(&w, NULL), DRY_OK);
    assert_string_equal(f->bytes, "0 18446744073709551615 -9223372036854775808");
    free(f);
}

static void
failures_stay(void **state)
{
    (void)state;
    struct writer w;
    struct dry_error err;
    struct memory_file *f = make_file(&w, 1000);
    for (size_t i = 0; i < 300000; i++)
        writer_put(&w, "abcd");
    assert_int_equal(w.status, DRY_ERR_SYSTEM);
    writer_fail(&w, DRY_ERR_MEMORY, "later");
    assert_int_equal(writer_finish(&w, &err), DRY_ERR_SYSTEM);
    assert_int_equal(err.status, DRY_ERR_SYSTEM);
    assert_int_equal(f->used, 0);
    free(f);
}

/* --- protocol buffers --------------------------------------------------------------------- */

static uint64_t
read_varint(const struct proto *p, size_t *at)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        assert_true(*at < p->used);
        unsigned char byte = p->bytes[(*at)++];
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
}

static void
numbers_read_back(void **state)
{
    (void)state;
    static const uint64_t values[] = {0,     1,     127,       128,
                                      16383, 16384, INT64_MAX, UINT64_MAX};
    struct proto p = {0};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        proto_number(&p, 87, values[i]);
    size_t at = 0;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        assert_int_equal(read_varint(&p, &at), 87u << 3);
        assert_int_equal(read_varint(&p, &at), values[i]);
    }
    assert_int_equal(at, p.used);
    proto_finish(&p);
}

/* Known from protobuf's own documentation: field 2, "testing". */
static void
bytes_are_as_documented(void **state)
{
    (void)state;
    struct proto p = {0};
    proto_text(&p, 2, "testing");
    assert_int_equal(p.used, 9);
    assert_memory_equal(p.bytes, "\x12\x07testing", 9);
    proto_finish(&p);
}

static void
messages_have_their_length(void **state)
{
    (void)state;
    char *text = calloc(1, 200001);
    assert_non_null(text);
    memset(text, 'x', 200000);
    struct proto p = {0};
    size_t outer = proto_begin(&p, 1);
    size_t inner = proto_begin(&p, 3);
    proto_text(&p, 4, text);
    proto_end(&p, inner);
    proto_number(&p, 5, 6);
    proto_end(&p, outer);
    size_t at = 0;
    assert_int_equal(read_varint(&p, &at), 1 << 3 | 2);
    assert_int_equal(read_varint(&p, &at), p.used - outer);
    assert_int_equal(read_varint(&p, &at), 3 << 3 | 2);
    assert_int_equal(read_varint(&p, &at), 200000 + 4);
    assert_false(p.failed);
    proto_finish(&p);
    free(text);
}

/* --- lanes -------------------------------------------------------------------------------- */

#define SPANS 4000

/* Each span of a lane ends before, or lies in, every earlier one that it meets. */
static void
expect_nested(const struct export_span *spans, const uint32_t *placed, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (placed[k] == placed[i] && placed[i] != DRY_NONE)
            assert_true(spans[k].end <= spans[i].begin || spans[i].end <= spans[k].end);
    }
}

static void
lanes_nest(void **state)
{
    (void)state;
    static struct export_span spans[SPANS];
    static uint32_t placed[SPANS];
    uint64_t random = 7;
    struct export_lanes *lanes = calloc(1, sizeof *lanes);
    assert_non_null(lanes);
    size_t left_out = 0;
    for (size_t i = 0; i < SPANS; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        int64_t begin = (int64_t)(i / 3), length = (int64_t)(random >> 33) % 2000 + 1;
        spans[i] =
            (struct export_span){(uint32_t)(random >> 60) % 3, begin, begin + length};
        placed[i] = export_lanes_place(lanes, spans + i, 40);
        assert_true(placed[i] == DRY_NONE || placed[i] < 40);
        assert_true(placed[i] == DRY_NONE || lanes->classes[placed[i]] == spans[i].class);
        expect_nested(spans, placed, i);
        left_out += placed[i] == DRY_NONE;
    }
    assert_true(left_out > 0 && left_out < SPANS);
    free(lanes);
}

/* --- points ------------------------------------------------------------------------------- */

static void
small_counters_keep_every_change(void **state)
{
    (void)state;
    static const uint64_t heights[] = {5, 5, 7, 7, 3, 3, 3, 9};
    static const uint32_t expected[] = {0, 2, 4, 7};
    struct export_points points;
    export_points_init(&points, heights, 8, false);
    uint32_t moment;
    for (size_t i = 0; i < 4; i++) {
        assert_true(export_points_next(&points, &moment));
        assert_int_equal(moment, expected[i]);
    }
    assert_false(export_points_next(&points, &moment));
}

/* Of a large counter every piece's highest and lowest height remain, in order. */
static void
large_counters_keep_extremes(void **state)
{
    (void)state;
    uint32_t count = 3 * EXPORT_POINTS + 17, moment, last = 0;
    uint64_t *heights = malloc(count * sizeof *heights), random = 1;
    assert_non_null(heights);
    for (uint32_t i = 0; i < count; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        heights[i] = random >> 40;
    }
    heights[count / 2] = UINT64_MAX;
    heights[count / 3] = 0;
    struct export_points points;
    export_points_init(&points, heights, count, false);
    bool has_highest = false, has_lowest = false, has_last = false;
    size_t found = 0;
    while (export_points_next(&points, &moment)) {
        assert_true(found == 0 || moment >= last);
        has_highest |= moment == count / 2;
        has_lowest |= heights[moment] == 0;
        has_last = heights[moment] == heights[count - 1];
        last = moment;
        found++;
    }
    assert_true(has_highest && has_lowest && has_last);
    assert_true(found <= (size_t)3 * EXPORT_PIECES);
    export_points_init(&points, heights, count, true);
    for (found = 0; export_points_next(&points, &moment);)
        found++;
    assert_true(found > count - count / 1000);
    free(heights);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_is_quoted),
        cmocka_unit_test(xml_is_escaped),
        cmocka_unit_test(csv_holds_no_formula),
        cmocka_unit_test(long_texts_stay_whole),
        cmocka_unit_test(numbers_are_whole),
        cmocka_unit_test(failures_stay),
        cmocka_unit_test(numbers_read_back),
        cmocka_unit_test(bytes_are_as_documented),
        cmocka_unit_test(messages_have_their_length),
        cmocka_unit_test(lanes_nest),
        cmocka_unit_test(small_counters_keep_every_change),
        cmocka_unit_test(large_counters_keep_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
