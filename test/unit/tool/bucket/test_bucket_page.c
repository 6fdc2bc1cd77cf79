/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "bucket/bucket_page.h"

#define LIST(more, inside)                                                               \
    "<?xml version='1.0'?><ListBucketResult xmlns='x'><IsTruncated>" more                \
    "</IsTruncated>" inside "</ListBucketResult>"
#define ENTRY(key, size, etag)                                                           \
    "<Contents><Key>" key "</Key><Size>" size "</Size><ETag>" etag                       \
    "</ETag><Owner><Key>no</Key></Owner></Contents>"

/* Memory that ends: requests that are still granted, and blocks that were not given back. */
static size_t left = SIZE_MAX, live;

static void *
take(size_t bytes)
{
    void *taken = left > 0 ? malloc(bytes) : NULL;
    left -= left > 0;
    live += taken != NULL;
    return taken;
}

static void *
resize(void *old, size_t bytes)
{
    void *taken = left > 0 ? realloc(old, bytes) : NULL;
    left -= left > 0;
    live += taken && !old;
    return taken;
}

static void
give(void *old)
{
    live -= old != NULL;
    free(old);
}

static const struct bucket_memory memory = {take, resize, give};

/* A text read in pieces. The page is the reader's, which is the caller's to end. */
static enum dry_status
read_in_pieces(const char *text, size_t piece, struct bucket_reader **reader,
               const struct bucket_page **page, struct dry_error *err)
{
    enum dry_status status = DRY_OK;
    size_t length = strlen(text);
    *reader = bucket_reader_create(&memory);
    if (!*reader)
        return DRY_ERR_MEMORY;
    for (size_t at = 0; at < length && status == DRY_OK; at += piece)
        status = bucket_reader_feed(*reader, text + at,
                                    length - at < piece ? length - at : piece, err);
    return status == DRY_OK ? bucket_reader_end(*reader, page, err) : status;
}

static void
pages_are_read_in_pieces(void **state)
{
    (void)state;
    static const char text[] =
        LIST("true", ENTRY("a&amp;b", "12", "&quot;x&quot;")
                         ENTRY("%E4+%2B", "0", "") "<NextContinuationToken>t/&lt;"
                                                   "</NextContinuationToken>"
                                                   "<EncodingType>url</EncodingType>");
    for (size_t piece = 1; piece < sizeof text; piece++) {
        struct bucket_reader *reader;
        const struct bucket_page *page;
        struct dry_error err;
        assert_int_equal(read_in_pieces(text, piece, &reader, &page, &err), DRY_OK);
        assert_int_equal(page->count, 2);
        assert_string_equal(page->entries[0].key, "a&b");
        assert_int_equal(page->entries[0].bytes, 12);
        assert_string_equal(page->entries[1].key, "\xe4 +");
        assert_true(page->entries[0].stamp != page->entries[1].stamp);
        assert_string_equal(page->token, "t/<");
        assert_false(page->is_error);
        bucket_reader_destroy(reader);
    }
    assert_int_equal(live, 0);
}

static void
the_last_page_has_no_token(void **state)
{
    (void)state;
    struct bucket_reader *reader;
    const struct bucket_page *page;
    struct dry_error err;
    const char *text = LIST("false", "<NextContinuationToken>x</NextContinuationToken>");
    assert_int_equal(read_in_pieces(text, 100, &reader, &page, &err), DRY_OK);
    assert_null(page->token);
    assert_int_equal(page->count, 0);
    bucket_reader_destroy(reader);
}

static void
errors_have_their_code(void **state)
{
    (void)state;
    struct bucket_reader *reader;
    const struct bucket_page *page;
    struct dry_error err;
    const char *text = "<Error><Code>NoSuchKey</Code><Message>m</Message></Error>";
    assert_int_equal(read_in_pieces(text, 7, &reader, &page, &err), DRY_OK);
    assert_true(page->is_error);
    assert_string_equal(page->code, "NoSuchKey");
    bucket_reader_destroy(reader);
}

static void
hostile_pages_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "x",
        "<a/>",
        "<ListBucketResult>",
        LIST("true", ""),
        LIST("true", "<NextContinuationToken></NextContinuationToken>"),
        LIST("false", "<Contents><Key>a</Key></Contents>"),
        LIST("false", "<Contents><Size>1</Size></Contents>"),
        LIST("false", ENTRY("", "1", "")),
        LIST("false", ENTRY("a", "", "")),
        LIST("false", ENTRY("a", "1x", "")),
        LIST("false", ENTRY("a", "9223372036854775808", "")),
        LIST("false", "<EncodingType>url</EncodingType>" ENTRY("%0", "1", "")),
        LIST("false", "<EncodingType>url</EncodingType>" ENTRY("%00", "1", "")),
        LIST("false", "<EncodingType>url</EncodingType>" ENTRY("%", "1", "")),
        LIST("false", "<EncodingType>url</EncodingType>" ENTRY("%g1", "1", "")),
        "<!DOCTYPE a><ListBucketResult/>",
        LIST("false", "&lol;"),
        "<ListBucketResult><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a>",
    };
    for (size_t i = 0; i < sizeof bad / sizeof(const char *); i++) {
        struct bucket_reader *reader;
        const struct bucket_page *page;
        struct dry_error err = {0};
        enum dry_status status = read_in_pieces(bad[i], 10, &reader, &page, &err);
        assert_true(status == DRY_ERR_FORMAT || status == DRY_ERR_LIMIT);
        assert_true(err.text[0]);
        bucket_reader_destroy(reader);
    }
    assert_int_equal(live, 0);
}

/* Every request for memory is refused once. */
static void
no_memory_is_no_page(void **state)
{
    (void)state;
    static const char text[] =
        LIST("true",
             ENTRY("a", "1", "x")
                 ENTRY("b", "2", "y") "<NextContinuationToken>t</NextContinuationToken>");
    enum dry_status status = DRY_ERR_MEMORY;
    for (size_t n = 0; status != DRY_OK; n++) {
        struct bucket_reader *reader;
        const struct bucket_page *page;
        struct dry_error err;
        left = n;
        status = read_in_pieces(text, 16, &reader, &page, &err);
        left = SIZE_MAX;
        bucket_reader_destroy(reader);
        assert_int_equal(live, 0);
        assert_true(status == DRY_OK || status == DRY_ERR_MEMORY);
        assert_true(n < 1000);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_read_in_pieces),
        cmocka_unit_test(the_last_page_has_no_token),
        cmocka_unit_test(errors_have_their_code),
        cmocka_unit_test(hostile_pages_are_refused),
        cmocka_unit_test(no_memory_is_no_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
