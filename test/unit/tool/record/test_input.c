/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "record/input.h"

#define JSON_BYTES_MAX (16u << 20)
#define TEXT "a 1 512 0 5\nf 1 512 0 6\n"

/* A file of these bytes, gone when it is closed. */
struct scratch {
    char path[64];
};

static void
write_scratch(struct scratch *s, const void *bytes, size_t count)
{
    snprintf(s->path, sizeof s->path, "input-XXXXXX");
    int fd = mkstemp(s->path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, count), count);
    close(fd);
}

struct outcome {
    enum dry_status status;
    struct dry_error err;
    struct input_description description;
    size_t event_count;
    enum dry_trace_kind kind;
};

static struct outcome
open_and_read(const void *bytes, size_t count)
{
    struct scratch s;
    struct outcome o = {0};
    struct input *in;
    struct dry_source source;
    struct dry_trace *trace = NULL;
    write_scratch(&s, bytes, count);
    o.status = input_open(s.path, JSON_BYTES_MAX, &in, &source, &o.err);
    unlink(s.path);
    if (o.status != DRY_OK)
        return o;
    o.status = dry_trace_read(&source, NULL, &trace, &o.err);
    input_describe(in, &o.description);
    input_close(in);
    if (trace) {
        o.event_count = dry_trace_get_view(trace)->event_count;
        o.kind = dry_trace_get_view(trace)->kind;
    }
    dry_trace_destroy(trace);
    return o;
}

static size_t
pack_gzip(const void *bytes, size_t count, unsigned char *to, size_t capacity)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY),
                     Z_OK);
    unsigned char *copy = malloc(count + 1);
    assert_non_null(copy);
    memcpy(copy, bytes, count);
    z.next_in = copy;
    z.avail_in = (unsigned)count;
    z.next_out = to;
    z.avail_out = (unsigned)capacity;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    free(copy);
    return capacity - z.avail_out;
}

static size_t
pack_zstd(const void *bytes, size_t count, unsigned char *to, size_t capacity)
{
    size_t packed = ZSTD_compress(to, capacity, bytes, count, 3);
    assert_false(ZSTD_isError(packed));
    return packed;
}

typedef size_t pack_function(const void *bytes, size_t count, unsigned char *to,
                             size_t capacity);

static void
plain_files_pass_through(void **state)
{
    (void)state;
    struct outcome o = open_and_read(TEXT, strlen(TEXT));
    assert_int_equal(o.status, DRY_OK);
    assert_int_equal(o.event_count, 2);
    assert_string_equal(o.description.format, "");
    assert_int_equal(o.description.file_bytes, strlen(TEXT));
    assert_int_equal(o.description.consumed_bytes, strlen(TEXT));
    assert_false(o.description.is_unpacked || o.description.is_converted);
}

static void
check_packed(pack_function *pack, const char *format)
{
    unsigned char packed[4096];
    size_t first = pack(TEXT, 12, packed, sizeof packed);
    size_t count = first + pack(&TEXT[12], 12, packed + first, sizeof packed - first);
    struct outcome o = open_and_read(packed, count);
    assert_int_equal(o.status, DRY_OK);
    assert_int_equal(o.event_count, 2); /* two members or frames, one text */
    assert_string_equal(o.description.format, format);
    assert_true(o.description.is_unpacked);
    assert_int_equal(o.description.consumed_bytes, count);
    for (size_t cut = 4; cut < first; cut++) { /* wherever it is cut off */
        o = open_and_read(packed, cut);
        assert_int_equal(o.status, DRY_ERR_FORMAT);
        assert_int_equal(o.err.offset, cut);
        assert_non_null(strstr(o.err.text, "stream broken at byte "));
        assert_non_null(strstr(o.err.text, "cut off"));
    }
}

static void
gzip_is_unpacked(void **state)
{
    (void)state;
    check_packed(pack_gzip, "gzip");
}

static void
zstd_is_unpacked(void **state)
{
    (void)state;
    check_packed(pack_zstd, "zstd");
}

static void
large_streams_are_unpacked(void **state)
{
    (void)state;
    static pack_function *const packs[] = {pack_gzip, pack_zstd};
    size_t capacity = 4 << 20, count = 0;
    char *text = malloc(capacity);
    unsigned char *packed = malloc(capacity);
    assert_true(text && packed);
    while (count < capacity / 2)
        count += (size_t)sprintf(text + count, "a %zu 512 0 5\n", count * 2654435761u);
    for (size_t i = 0; i < 2; i++) {
        size_t packed_count = packs[i](text, count, packed, capacity);
        assert_int_equal(open_and_read(packed, packed_count).status, DRY_OK);
    }
    free(packed);
    free(text);
}

/* Forty MiB of one line: nothing is made of the most of them. */
static void
streams_that_unfold_without_measure_are_refused(void **state)
{
    (void)state;
    static pack_function *const packs[] = {pack_gzip, pack_zstd};
    static const char line[] = "a 1 512 0 5\nf 1 512 0 6\n";
    size_t capacity = 40 << 20, length = sizeof line - 1, count = 0;
    char *text = malloc(capacity);
    unsigned char *packed = malloc(capacity);
    assert_true(text && packed);
    for (; count + length <= capacity; count += length)
        memcpy(text + count, line, length);
    for (size_t i = 0; i < 2; i++) {
        size_t packed_count = packs[i](text, count, packed, capacity);
        struct outcome o = open_and_read(packed, packed_count);
        assert_int_equal(o.status, DRY_ERR_LIMIT);
        assert_non_null(strstr(o.err.text, "over 100 times its size"));
        packed_count = packs[i](text, count / 4, packed, capacity);
        assert_int_equal(open_and_read(packed, packed_count).status, DRY_OK);
    }
    free(packed);
    free(text);
}

static void
damage_is_found(void **state)
{
    (void)state;
    unsigned char packed[4096];
    size_t count = pack_gzip(TEXT, strlen(TEXT), packed, sizeof packed);
    packed[count - 8] ^= 1; /* the checksum */
    struct outcome o = open_and_read(packed, count);
    assert_int_equal(o.status, DRY_ERR_FORMAT);
    assert_non_null(strstr(o.err.text, "gzip stream broken at byte "));
    packed[count - 8] ^= 1;
    memcpy(packed + count, "\0\0\0\0", 4); /* padding is fine, other bytes are not */
    assert_int_equal(open_and_read(packed, count + 4).status, DRY_OK);
    packed[count + 4] = 'x';
    o = open_and_read(packed, count + 5);
    assert_int_equal(o.status, DRY_ERR_FORMAT);
    assert_int_equal(o.err.offset, count + 4);
    count = pack_zstd(TEXT, strlen(TEXT), packed, sizeof packed);
    packed[4] ^= 0x40;
    o = open_and_read(packed, count);
    assert_int_equal(o.status, DRY_ERR_FORMAT);
    assert_non_null(strstr(o.err.text, "zstd stream broken at byte "));
}

#define JSON                                                                             \
    "{\"segments\": [], \"device_traces\": [[{\"action\": \"alloc\", \"addr\": 4096,"    \
    " \"size\": 5, \"stream\": 0, \"time_us\": 1, \"frames\": []}]]}"

static void
json_becomes_a_snapshot(void **state)
{
    (void)state;
    struct outcome o = open_and_read(JSON, strlen(JSON));
    if (o.status != DRY_OK)
        fail_msg("%s", o.err.text);
    assert_int_equal(o.kind, DRY_TRACE_SNAPSHOT);
    assert_int_equal(o.event_count, 1);
    assert_string_equal(o.description.format, "JSON");
    assert_true(o.description.is_converted);
    unsigned char packed[4096];
    size_t count = pack_zstd(JSON, strlen(JSON), packed, sizeof packed);
    o = open_and_read(packed, count);
    assert_int_equal(o.event_count, 1);
    assert_string_equal(o.description.format, "zstd, JSON");
}

struct refusal {
    const char *text;
    enum dry_status status;
    const char *complaint; /* somewhere in the text */
};

static void
are_refused(const struct refusal *refusals, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct outcome o = open_and_read(refusals[i].text, strlen(refusals[i].text));
        assert_int_equal(o.status, refusals[i].status);
        if (!strstr(o.err.text, refusals[i].complaint))
            fail_msg("%s: %s", refusals[i].text, o.err.text);
    }
}

static void
broken_json_is_refused(void **state)
{
    (void)state;
    static const struct refusal refusals[] = {
        {"{\"segments\": [}", DRY_ERR_FORMAT,
         "JSON broken at line 1, column 15, byte 15"},
        {"{\n\"a\": 1,\n", DRY_ERR_FORMAT, "JSON broken at line 3"},
        {"[1] x", DRY_ERR_FORMAT, "JSON broken at line 1"},
        {"[18446744073709551616]", DRY_ERR_FORMAT, "numbers beyond 64 bits"},
        {"[123456789012345678901234567890]", DRY_ERR_FORMAT, "numbers beyond 64 bits"},
        {"{\"a\": 1}", DRY_ERR_FORMAT, "expected a memory snapshot"},
        {"[", DRY_ERR_FORMAT, "JSON broken at line 1"},
    };
    are_refused(refusals, sizeof refusals / sizeof *refusals);
}

static void
deep_json_is_refused(void **state)
{
    (void)state;
    char text[5000];
    static const size_t depths[] = {101, 2000, 2500};
    for (size_t i = 0; i < 3; i++) {
        memset(text, '[', depths[i]);
        memset(text + depths[i], ']', depths[i]);
        struct outcome o = open_and_read(text, 2 * depths[i]);
        assert_true(o.status == DRY_ERR_LIMIT || o.status == DRY_ERR_FORMAT);
    }
}

/* A text of three bytes an element must not become a tree of any size. */
static void
wide_json_is_refused(void **state)
{
    (void)state;
    enum { BYTES = 3 << 20 };
    char *text = malloc(BYTES);
    assert_non_null(text);
    for (size_t i = 0; i < BYTES; i += 3)
        memcpy(text + i, "[],", 3);
    memcpy(text, "[  ", 3);
    struct outcome o = open_and_read(text, BYTES);
    assert_int_equal(o.status, DRY_ERR_LIMIT);
    assert_non_null(strstr(o.err.text, "needs more memory"));
    free(text);
}

/* A page as torch.cuda._memory_viz writes it, about the bytes of JSON in base64. */
#define PAGE_BEGIN                                                                       \
    "\n<!DOCTYPE html>\n<script>\nconst \"base64\", x = [{\"name\": \"a\", "
#define PAGE_END "\"}]\nadd(x)\n</script>\n"
#define PAGE(digits) PAGE_BEGIN "\"base64\" : \"" digits PAGE_END

/* Encode `count` bytes of three; returns the page's length. */
static size_t
make_page(const char *bytes, size_t count, char *page)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t length = (size_t)sprintf(page, "%s\"base64\": \"", PAGE_BEGIN);
    for (size_t i = 0; i < count; i += 3) {
        unsigned word = 0;
        for (size_t k = 0; k < 3; k++)
            word = word << 8 | (i + k < count ? (unsigned char)bytes[i + k] : 0u);
        for (unsigned k = 0; k < 4; k++)
            page[length++] = digits[word >> (18 - 6 * k) & 63];
    }
    return length + (size_t)sprintf(page + length, "%s", PAGE_END);
}

static void
pages_give_their_snapshot(void **state)
{
    (void)state;
    static const char pickle[] = "\x80\x04}(\x8c\x08segments]\x8c\x0d"
                                 "device_traces]u.";
    char page[1024];
    unsigned char packed[1024];
    size_t count = make_page(pickle, sizeof pickle, page);
    struct outcome o = open_and_read(page, count);
    assert_int_equal(o.status, DRY_OK);
    assert_int_equal(o.kind, DRY_TRACE_SNAPSHOT);
    assert_string_equal(o.description.format, "HTML");
    assert_true(o.description.is_unpacked && !o.description.is_converted);
    count = pack_gzip(page, count, packed, sizeof packed);
    assert_string_equal(open_and_read(packed, count).description.format, "gzip, HTML");
    count = make_page(JSON, strlen(JSON) / 3 * 3, page); /* one brace is missing */
    o = open_and_read(page, count);
    assert_int_equal(o.status, DRY_ERR_FORMAT);
    assert_non_null(strstr(o.err.text, "JSON broken at line 1"));
    count = make_page(JSON "  ", strlen(JSON "  ") / 3 * 3, page);
    o = open_and_read(page, count);
    assert_int_equal(o.event_count, 1);
    assert_string_equal(o.description.format, "HTML, JSON");
}

static void
broken_pages_are_refused(void **state)
{
    (void)state;
    static const struct refusal refusals[] = {
        {PAGE_BEGIN "\"base64\": 5" PAGE_END, DRY_ERR_FORMAT,
         "byte 93: it ends without a snapshot"},
        {"<html>\"base64\"", DRY_ERR_FORMAT, "byte 14: it ends without a snapshot"},
        {PAGE("gA&"), DRY_ERR_FORMAT, "HTML page, byte 75: a byte that is no base64"},
        {PAGE("gA==RR"), DRY_ERR_FORMAT, "a byte that is no base64"},
        {PAGE("gA\\"), DRY_ERR_FORMAT, "a byte that is no base64"},
        {PAGE(""), DRY_ERR_FORMAT, "the file is empty"},
        {PAGE("="), DRY_ERR_FORMAT, "the file is empty"},
        {PAGE("gARj"), DRY_ERR_FORMAT, "GLOBAL"},
        {PAGE_BEGIN "\"base64\":\"gARj", DRY_ERR_FORMAT,
         "byte 75: it ends in the snapshot"},
    };
    are_refused(refusals, sizeof refusals / sizeof *refusals);
}

/* A page of any size takes no memory, and is given up where no snapshot begins. */
static void
large_pages_are_given_up(void **state)
{
    (void)state;
    enum { BYTES = 65 << 20 };
    char *page = malloc(BYTES);
    assert_non_null(page);
    memset(page, 'x', BYTES);
    memcpy(page, "<html>", 6);
    struct outcome o = open_and_read(page, BYTES);
    assert_int_equal(o.status, DRY_ERR_LIMIT);
    assert_non_null(strstr(o.err.text, "no snapshot begins in its first 64 MiB"));
    free(page);
}

static void
absent_files_and_folders_are_system_errors(void **state)
{
    (void)state;
    struct input *in = NULL;
    struct dry_source source;
    struct dry_error err;
    assert_int_equal(input_open("no/such/file", 0, &in, &source, &err), DRY_ERR_SYSTEM);
    assert_int_equal(err.os_errno, ENOENT);
    assert_int_equal(input_open(".", 0, &in, &source, &err), DRY_ERR_SYSTEM);
    assert_int_equal(err.os_errno, EISDIR);
    assert_non_null(strstr(err.text, "drystone fleet"));
    assert_null(in);
}

static struct input_content
read_content(const void *bytes, size_t count)
{
    struct scratch s;
    struct input *in;
    struct dry_source source;
    struct dry_error err;
    struct dry_trace *trace = NULL;
    struct input_content content = {0};
    write_scratch(&s, bytes, count);
    assert_int_equal(input_open_hashed(s.path, JSON_BYTES_MAX, &in, &source, &err),
                     DRY_OK);
    unlink(s.path);
    assert_int_equal(dry_trace_read(&source, NULL, &trace, &err), DRY_OK);
    assert_int_equal(input_read_content(in, &content, &err), DRY_OK);
    input_close(in);
    dry_trace_destroy(trace);
    return content;
}

/* The values are those of the definition; a pickle ends before its file does. */
static void
all_bytes_of_a_file_are_hashed(void **state)
{
    (void)state;
    struct input_content content = read_content("a 1 512 0 5\n", 12);
    assert_int_equal(content.bytes, 12);
    assert_true(content.hash == UINT64_C(0xc2dc7aedcbdf8c99));
    enum { BYTES = 1 << 20 };
    char *pickle = calloc(1, BYTES);
    assert_non_null(pickle);
    memcpy(pickle,
           "\x80\x04}(\x8c\x08segments]\x8c\x0d"
           "device_traces]u.",
           33);
    struct input_content one = read_content(pickle, BYTES);
    pickle[BYTES - 1] = 1;
    struct input_content other = read_content(pickle, BYTES);
    assert_int_equal(one.bytes, BYTES);
    assert_int_equal(other.bytes, BYTES);
    assert_true(one.hash != other.hash);
    free(pickle);
}

static void
short_files_are_opened(void **state)
{
    (void)state;
    assert_int_equal(open_and_read("", 0).status, DRY_ERR_FORMAT);
    assert_int_equal(open_and_read("e", 1).status, DRY_OK);
    assert_int_equal(open_and_read("\x1f\x8b", 2).status, DRY_ERR_FORMAT);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_files_pass_through),
        cmocka_unit_test(gzip_is_unpacked),
        cmocka_unit_test(zstd_is_unpacked),
        cmocka_unit_test(large_streams_are_unpacked),
        cmocka_unit_test(streams_that_unfold_without_measure_are_refused),
        cmocka_unit_test(damage_is_found),
        cmocka_unit_test(json_becomes_a_snapshot),
        cmocka_unit_test(broken_json_is_refused),
        cmocka_unit_test(deep_json_is_refused),
        cmocka_unit_test(wide_json_is_refused),
        cmocka_unit_test(pages_give_their_snapshot),
        cmocka_unit_test(broken_pages_are_refused),
        cmocka_unit_test(large_pages_are_given_up),
        cmocka_unit_test(absent_files_and_folders_are_system_errors),
        cmocka_unit_test(all_bytes_of_a_file_are_hashed),
        cmocka_unit_test(short_files_are_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
