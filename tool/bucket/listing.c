/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idea is in listing.h; the API is Amazon S3's ListObjectsV2. Keys are requested in
 * escaped form, because XML cannot hold all characters. Parameters of a query are in
 * order of their names, as the signature requires. The next page is requested by the
 * store's token. If libcurl cannot sign that token, it is requested by the last key.
 */
#include "bucket/listing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "bucket/bucket.h"
#include "bucket/bucket_page.h"
#include "bucket/request.h"

#define PAGES_MAX 20000u
#define PAGE_BYTES_MAX (UINT64_C(64) << 20)
#define READ_BYTES 16384u

/* The state of a listing. */
struct walk {
    const struct listing *listing;
    struct bucket bucket;
    struct request *request;
    char *prefix; /* escaped */
    char *token;  /* token of the next page, escaped; NULL: first page */
    char *last;   /* last key of the previous page, escaped */
};

static char *
write_query(const struct walk *w)
{
    char *query = NULL;
    bool goes_on = w->token != NULL;
    bool is_by_key =
        goes_on && strstr(w->token, "%2B") && !request_signs_plus(w->request);
    const char *token = goes_on && !is_by_key ? w->token : NULL;
    int length =
        asprintf(&query, "%s%s%sencoding-type=url&list-type=2%s&prefix=%s%s%s",
                 token ? "continuation-token=" : "", token ? token : "", token ? "&" : "",
                 w->listing->is_first_only ? "&max-keys=1" : "", w->prefix,
                 is_by_key ? "&start-after=" : "", is_by_key ? w->last : "");
    return length < 0 ? NULL : query;
}

static enum dry_status
write_url(const struct walk *w, char **url, struct dry_error *err)
{
    char *query = write_query(w);
    if (query && strstr(query, "%2B") && !request_signs_plus(w->request)) {
        free(query);
        return fail_at(err, DRY_ERR_UNSUPPORTED, DRY_NO_OFFSET,
                       "this system's libcurl, of 8.14 to 8.18, signs a list with a "
                       "\"+\" in a key wrongly");
    }
    *url = query ? bucket_write_url(&w->bucket, NULL, query) : NULL;
    free(query);
    return *url ? DRY_OK : fail_memory(err, "no memory for a list of objects");
}

/* Feed the answer to `reader`. */
static enum dry_status
read_body(struct walk *w, struct bucket_reader *reader, struct dry_error *err)
{
    unsigned char bytes[READ_BYTES];
    size_t got = 1;
    uint64_t all = 0;
    enum dry_status status = DRY_OK;
    while (status == DRY_OK && got > 0) {
        status = request_read(w->request, bytes, sizeof bytes, &got, err);
        all += status == DRY_OK ? got : 0;
        if (all > PAGE_BYTES_MAX)
            return fail_at(err, DRY_ERR_LIMIT, DRY_NO_OFFSET,
                           "the store's answer has a page of over 64 MiB");
        if (status == DRY_OK)
            status = bucket_reader_feed(reader, bytes, got, err);
    }
    return status;
}

/* Send one request. The caller destroys *reader in any case; it may be NULL. */
static enum dry_status
try_page(struct walk *w, const char *url, struct bucket_reader **reader,
         struct dry_error *err)
{
    struct request_options options = {.url = url, .etag = ""};
    *reader = bucket_reader_create(NULL);
    enum dry_status status = *reader
                                 ? request_send(w->request, &options, err)
                                 : fail_memory(err, "no memory for a list of objects");
    return status == DRY_OK ? read_body(w, *reader, err) : status;
}

static enum dry_status
get_page(struct walk *w, struct bucket_reader **reader, struct dry_error *err)
{
    char *url = NULL;
    enum dry_status status = write_url(w, &url, err);
    if (status != DRY_OK)
        return status;
    request_forgive(w->request);
    status = try_page(w, url, reader, err);
    while (status == DRY_ERR_SYSTEM && request_may_retry(w->request)) {
        bucket_reader_destroy(*reader);
        status = try_page(w, url, reader, err);
    }
    free(url);
    return status;
}

/* Keep token and last key for the next page. A repeated token would never end. */
static enum dry_status
take_token(struct walk *w, const struct bucket_page *page, struct dry_error *err)
{
    char *token = page->token ? bucket_escape(page->token) : NULL;
    const char *last = page->count ? page->entries[page->count - 1].key : "";
    free(w->last);
    w->last = bucket_escape(last);
    bool is_repeated = token && w->token && strcmp(token, w->token) == 0;
    free(w->token);
    w->token = token;
    if (is_repeated)
        return fail_at(err, DRY_ERR_FORMAT, DRY_NO_OFFSET,
                       "the store's list goes on where it began");
    return w->last && (token || !page->token)
               ? DRY_OK
               : fail_memory(err, "no memory for a list of objects");
}

/* Visit the objects of a page. *goes_on is set if another page exists and is wanted. */
static enum dry_status
show_page(struct walk *w, struct bucket_reader *reader, bool *goes_on,
          struct dry_error *err)
{
    const struct bucket_page *page;
    const struct listing *l = w->listing;
    enum dry_status status = bucket_reader_end(reader, &page, err);
    if (status != DRY_OK)
        return status;
    if (page->is_error)
        return fail_at(err, DRY_ERR_SYSTEM, DRY_NO_OFFSET, "the store answered %s",
                       page->code);
    bool is_wanted = true;
    for (size_t i = 0; i < page->count && is_wanted; i++) {
        const struct bucket_entry *e = &page->entries[i];
        is_wanted = l->visit(l->self, e->key, e->bytes, e->stamp) && !l->is_first_only;
    }
    status = take_token(w, page, err);
    *goes_on = is_wanted && w->token && !l->is_first_only;
    return status;
}

static enum dry_status
visit_pages(struct walk *w, struct dry_error *err)
{
    enum dry_status status = DRY_OK;
    bool goes_on = true;
    for (unsigned pages = 0; status == DRY_OK && goes_on; pages++) {
        struct bucket_reader *reader = NULL;
        if (pages == PAGES_MAX)
            return fail_at(err, DRY_ERR_LIMIT, DRY_NO_OFFSET,
                           "the store's list has over %u pages; name a longer prefix",
                           PAGES_MAX);
        status = get_page(w, &reader, err);
        if (status == DRY_OK)
            status = show_page(w, reader, &goes_on, err);
        bucket_reader_destroy(reader);
    }
    return status;
}

enum dry_status
listing_visit(const struct listing *listing, struct dry_error *err)
{
    struct walk *w = calloc(1, sizeof *w);
    if (!w)
        return fail_memory(err, "no memory for a list of objects");
    w->listing = listing;
    w->prefix = bucket_escape(listing->prefix);
    enum dry_status status = w->prefix
                                 ? bucket_open(&w->bucket, listing->bucket, getenv, err)
                                 : fail_memory(err, "no memory for a list of objects");
    if (status == DRY_OK)
        status = request_create(&w->bucket, &w->request, err);
    if (status == DRY_OK)
        status = visit_pages(w, err);
    request_destroy(w->request);
    free(w->prefix);
    free(w->token);
    free(w->last);
    free(w);
    return status;
}
