/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_BUCKET_PAGE_H
#define TOOL_BUCKET_PAGE_H

/*
 * A store's answer in XML: a page of a bucket's list (ListObjectsV2), or an error.
 *
 * The text is hostile. It is read as it comes and not kept. A document type, an element of
 * more than 8 kB or 16 levels down, more than 10,000 objects, and a number that is none are
 * refused.
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
    char *key; /* no byte of it is escaped */
    uint64_t bytes;
    uint64_t stamp; /* a hash of its ETag and its time: another one after a change */
};

struct bucket_page {
    struct bucket_entry *entries; /* in the store's order */
    size_t count;
    char *token;    /* what the next page is asked by; NULL: this is the last one */
    bool is_error;  /* no list: */
    char code[128]; /* "NoSuchKey", "AccessDenied", ...; "": none */
};

struct bucket_reader;

/* The source of memory, in the form that expat takes. */
struct bucket_memory {
    void *(*take)(size_t bytes);
    void *(*resize)(void *old, size_t bytes);
    void (*give)(void *old);
};

/* Begin a page. `memory` NULL: malloc's. The result is NULL if there is no memory. */
struct bucket_reader *bucket_reader_create(const struct bucket_memory *memory);
/* Read on. FORMAT, LIMIT: the text says why; MEMORY. */
DRY_CHECK_RESULT enum dry_status bucket_reader_feed(struct bucket_reader *reader,
                                                    const void *bytes, size_t count,
                                                    struct dry_error *err);
/* The text ends here. The page is the reader's. */
DRY_CHECK_RESULT enum dry_status bucket_reader_end(struct bucket_reader *reader,
                                                   const struct bucket_page **page,
                                                   struct dry_error *err);
/* NULL is fine. */
void bucket_reader_destroy(struct bucket_reader *reader);

#endif
