/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any text as a store's answer, in pieces that its first byte chooses. A page is the same
 * whatever the pieces, and none has a key that is empty or a token on its last page.
 */
#include "support/fuzz.h"

#include <string.h>

#include "bucket/bucket_page.h"

static enum dry_status
read_page(struct bucket_reader *reader, const uint8_t *data, size_t size, size_t piece,
          const struct bucket_page **page)
{
    struct dry_error err;
    enum dry_status status = DRY_OK;
    for (size_t at = 0; at < size && status == DRY_OK; at += piece)
        status = bucket_reader_feed(reader, data + at,
                                    size - at < piece ? size - at : piece, &err);
    return status == DRY_OK ? bucket_reader_end(reader, page, &err) : status;
}

static void
compare(const struct bucket_page *a, const struct bucket_page *b)
{
    fuzz_require(a->count == b->count && a->count <= BUCKET_PAGE_ENTRIES_MAX);
    fuzz_require(a->is_error == b->is_error && strcmp(a->code, b->code) == 0);
    fuzz_require(!a->token == !b->token);
    for (size_t i = 0; i < a->count; i++) {
        fuzz_require(*a->entries[i].key && a->entries[i].bytes <= INT64_MAX);
        fuzz_require(strcmp(a->entries[i].key, b->entries[i].key) == 0);
        fuzz_require(a->entries[i].stamp == b->entries[i].stamp);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct bucket_page *whole = NULL, *pieces = NULL;
    if (size == 0)
        return 0;
    struct bucket_reader *one = bucket_reader_create(NULL);
    struct bucket_reader *other = bucket_reader_create(NULL);
    if (!one || !other)
        abort();
    enum dry_status status = read_page(one, data + 1, size - 1, size, &whole);
    enum dry_status again =
        read_page(other, data + 1, size - 1, 1 + data[0] % 64u, &pieces);
    fuzz_require((status == DRY_OK) == (again == DRY_OK));
    if (status == DRY_OK)
        compare(whole, pieces);
    bucket_reader_destroy(one);
    bucket_reader_destroy(other);
    return 0;
}
