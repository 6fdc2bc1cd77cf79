/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Search a page byte by byte for the key "base64" and its string, then decode the string to
 * its end. Nothing behind the string is read.
 */
#include "record/html_source.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"

#define WINDOW_BYTES ((size_t)64 << 10)
#define SEARCHED_BYTES_MAX (UINT64_C(64) << 20)

struct html_source {
    struct dry_source page;
    unsigned char window[WINDOW_BYTES];
    size_t at, end;
    uint64_t offset; /* byte of the page after the window */
    uint32_t bits;   /* decoded bits that are no whole byte, the lowest bit_count */
    unsigned bit_count;
    bool is_padded, is_ended;
    bool is_at_fault;
};

static bool
is_blank(int c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool
html_source_is_html(const unsigned char *bytes, size_t count)
{
    static const char *const begins[] = {"<!doctype html", "<html"};
    while (count > 0 && is_blank(*bytes))
        bytes++, count--;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        size_t length = strlen(begins[i]);
        if (count >= length && strncasecmp((const char *)bytes, begins[i], length) == 0)
            return true;
    }
    return false;
}

static enum dry_status
fail_page(struct html_source *h, struct dry_error *err, enum dry_status status,
          const char *what)
{
    uint64_t byte = h->offset - (h->end - h->at);
    h->is_at_fault = true;
    return fail_at(err, status, byte, "HTML page, byte %llu: %s",
                   (unsigned long long)byte, what);
}

/* Set *c to the next byte of the page, -1 at its end. */
static enum dry_status
next_byte(struct html_source *h, int *c, struct dry_error *err)
{
    if (h->at == h->end) {
        h->at = h->end = 0;
        enum dry_status status =
            h->page.read(h->page.self, h->window, sizeof h->window, &h->end, err);
        if (status != DRY_OK)
            return status;
        h->offset += h->end;
    }
    *c = h->at < h->end ? h->window[h->at++] : -1;
    return DRY_OK;
}

/*
 * Read up to the first byte of the string whose key is "base64". A key without a string is
 * passed over: a script may name it, too.
 */
static enum dry_status
find_string(struct html_source *h, struct dry_error *err)
{
    static const char wanted[] = "\"base64\":\"";
    size_t key_length = strlen("\"base64\""), matched = 0;
    while (wanted[matched]) {
        int c;
        enum dry_status status = next_byte(h, &c, err);
        if (status != DRY_OK)
            return status;
        if (c < 0)
            return fail_page(h, err, DRY_ERR_FORMAT,
                             "it ends without a snapshot; expected a page that "
                             "torch.cuda._memory_viz wrote");
        if (h->offset > SEARCHED_BYTES_MAX)
            return fail_page(h, err, DRY_ERR_LIMIT,
                             "no snapshot begins in its first 64 MiB");
        if (c == wanted[matched])
            matched++;
        else if (matched < key_length || !is_blank(c))
            matched = c == '"';
    }
    return DRY_OK;
}

enum dry_status
html_source_create(const struct dry_source *page, struct html_source **html,
                   struct dry_error *err)
{
    struct html_source *h = calloc(1, sizeof *h);
    if (!h)
        return fail_memory(err, "no memory to read a page");
    h->page = *page;
    enum dry_status status = find_string(h, err);
    if (status == DRY_OK)
        *html = h;
    else
        html_source_destroy(h);
    return status;
}

void
html_source_destroy(struct html_source *html)
{
    free(html);
}

bool
html_source_is_at_fault(const struct html_source *html)
{
    return html->is_at_fault;
}

/* --- base64, RFC 4648 --- */

/* Return the six bits of a digit; -1 for any other byte. */
static int
get_bits(int c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Use one byte of the string. */
static enum dry_status
take_byte(struct html_source *h, int c, struct dry_error *err)
{
    int bits = h->is_padded ? -1 : get_bits(c);
    if (bits >= 0) {
        h->bits = h->bits << 6 | (uint32_t)bits;
        h->bit_count += 6;
        return DRY_OK;
    }
    h->is_padded |= c == '=';
    h->is_ended = c == '"';
    if (c == '=' || h->is_ended)
        return DRY_OK;
    h->at -= c >= 0; /* the byte in question is the last one read */
    return fail_page(h, err, DRY_ERR_FORMAT,
                     c < 0 ? "it ends in the snapshot, the file was cut off"
                           : "a byte that is no base64, in the snapshot");
}

enum dry_status
html_source_read(void *self, void *buffer, size_t capacity, size_t *got,
                 struct dry_error *err)
{
    struct html_source *h = self;
    unsigned char *to = buffer;
    size_t count = 0;
    while (count < capacity && !h->is_ended) {
        int c;
        enum dry_status status = next_byte(h, &c, err);
        if (status == DRY_OK)
            status = take_byte(h, c, err);
        if (status != DRY_OK)
            return status;
        if (h->bit_count < 8)
            continue;
        h->bit_count -= 8;
        to[count++] = (unsigned char)(h->bits >> h->bit_count);
    }
    *got = count;
    return DRY_OK;
}
