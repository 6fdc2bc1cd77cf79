/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_BUCKET_PAGE_H
#define TOOL_BUCKET_PAGE_H

/*
 * Parse a store's answer in XML: a page of a bucket's list (ListObjectsV2), or an error.
 *
 * The text is hostile. It is parsed as it arrives and not stored. The parser refuses a
 * document type, an element over 8 kB or 16 levels deep, more than 10,000 objects, and
 * invalid numbers.
 *
 * Threads    One for a page.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/status.h>

#define BUCKET_PAGE_ENTRIES_MAX 10000u

/* An object in a list. */
struct bucket_entry {
    char *key; /* unescaped */
    uint64_t bytes;
    uint64_t stamp; /* hash of ETag and time; changes with the object */
};

struct bucket_page {
    struct bucket_entry *entries; /* in the store's order */
    size_t count;
    char *token;    /* requests the next page; NULL after the last */
    bool is_error;  /* an error answer, not a list */
    char code[128]; /* error code such as "NoSuchKey"; "" if none */
};

struct bucket_reader;

/* Allocation functions, with the signatures that expat requires. */
struct bucket_memory {
    void *(*take)(size_t bytes);
    void *(*resize)(void *old, size_t bytes);
    void (*give)(void *old);
};

/* Begin a page. With `memory` NULL, malloc() is used. Returns NULL if memory ran out. */
struct bucket_reader *bucket_reader_create(const struct bucket_memory *memory);
/* Parse more bytes. Returns FORMAT or LIMIT, with the reason in the text, or MEMORY. */
DRY_CHECK_RESULT enum dry_status bucket_reader_feed(struct bucket_reader *reader,
                                                    const void *bytes, size_t count,
                                                    struct dry_error *err);
/* End the text. The reader owns the page. */
DRY_CHECK_RESULT enum dry_status bucket_reader_end(struct bucket_reader *reader,
                                                   const struct bucket_page **page,
                                                   struct dry_error *err);
/* Free a reader, which may be NULL. */
void bucket_reader_destroy(struct bucket_reader *reader);

#endif
