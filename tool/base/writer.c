/* SPDX-License-Identifier: Apache-2.0 */
/* See writer.h. */
#include "base/writer.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/term.h"

#define BUFFER_BYTES ((size_t)256 << 10)
#define PIECE_BYTES 1024 /* text escaped at a time; bounds the buffer on the stack */

void
writer_init(struct writer *w, const struct dry_sink *sink, struct progress *progress)
{
    *w = (struct writer){.sink = *sink, .progress = progress};
    w->buffer = malloc(BUFFER_BYTES);
    if (!w->buffer)
        writer_fail(w, DRY_ERR_MEMORY, "no memory");
}

void
writer_fail(struct writer *w, enum dry_status status, const char *format, ...)
{
    if (w->status != DRY_OK)
        return;
    char text[sizeof w->err.text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    w->status = fail_at(&w->err, status, DRY_NO_OFFSET, "%s", text);
}

static void
flush(struct writer *w)
{
    if (w->status == DRY_OK && w->used > 0)
        w->status = w->sink.write(w->sink.self, w->buffer, w->used, &w->err);
    w->used = 0;
    if (w->progress)
        progress_update(w->progress, w->written);
}

enum dry_status
writer_finish(struct writer *w, struct dry_error *err)
{
    flush(w);
    free(w->buffer);
    w->buffer = NULL;
    if (w->status != DRY_OK && err)
        *err = w->err;
    return w->status;
}

void
writer_bytes(struct writer *w, const void *bytes, size_t count)
{
    const char *from = bytes;
    while (count > 0 && w->status == DRY_OK) {
        if (w->used == BUFFER_BYTES)
            flush(w);
        size_t n = BUFFER_BYTES - w->used < count ? BUFFER_BYTES - w->used : count;
        memcpy(w->buffer + w->used, from, n);
        w->used += n;
        w->written += n;
        from += n;
        count -= n;
    }
}

void
writer_put(struct writer *w, const char *text)
{
    writer_bytes(w, text, strlen(text));
}

void
writer_char(struct writer *w, char c)
{
    writer_bytes(w, &c, 1);
}

void
writer_unsigned(struct writer *w, uint64_t value)
{
    char digits[20];
    size_t n = 0;
    do {
        digits[sizeof digits - ++n] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    writer_bytes(w, digits + sizeof digits - n, n);
}

void
writer_signed(struct writer *w, int64_t value)
{
    if (value < 0)
        writer_char(w, '-');
    writer_unsigned(w, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void
writer_format(struct writer *w, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    writer_put(w, text);
}

/* --- foreign text ------------------------------------------------------------------------- */

/* Return what replaces a character in the output; NULL: the character stays. */
typedef const char *(*escape_fn)(char c);

static const char *
escape_json(char c)
{
    return c == '"' ? "\\\"" : c == '\\' ? "\\\\" : c == '<' ? "\\u003c" : NULL;
}

static const char *
escape_xml(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

static const char *
escape_csv(char c)
{
    return c == '"' ? "\"\"" : NULL;
}

static void
write_escaped(struct writer *w, const char *text, size_t length, escape_fn escape)
{
    size_t begin = 0;
    for (size_t i = 0; i < length && escape; i++) {
        const char *instead = escape(text[i]);
        if (!instead)
            continue;
        writer_bytes(w, text + begin, i - begin);
        writer_put(w, instead);
        begin = i + 1;
    }
    writer_bytes(w, text + begin, length - begin);
}

/* Return how many bytes of a text to convert next, without splitting a character. */
static size_t
measure_piece(const char *bytes, size_t length)
{
    if (length <= PIECE_BYTES)
        return length;
    for (size_t n = PIECE_BYTES; n > PIECE_BYTES - 4; n--) {
        if (((unsigned char)bytes[n] & 0xc0) != 0x80)
            return n;
    }
    return PIECE_BYTES;
}

/* Replace U+FFFE and U+FFFF, which XML forbids, by '?'. */
static void
replace_noncharacters(char *text, size_t length)
{
    for (size_t i = 0; i + 2 < length; i++) {
        if (memcmp(text + i, "\xef\xbf\xbe", 3) == 0 ||
            memcmp(text + i, "\xef\xbf\xbf", 3) == 0)
            memset(text + i, '?', 3);
    }
}

static void
write_foreign(struct writer *w, const char *bytes, size_t length, escape_fn escape)
{
    char piece[PIECE_BYTES + 8];
    for (size_t i = 0; i < length && w->status == DRY_OK;) {
        size_t n = measure_piece(bytes + i, length - i);
        size_t used = term_make_printable(piece, sizeof piece, bytes + i, n);
        replace_noncharacters(piece, used);
        write_escaped(w, piece, used, escape);
        i += n;
    }
}

void
writer_text(struct writer *w, const char *bytes, size_t length)
{
    write_foreign(w, bytes, bytes ? length : 0, NULL);
}

void
writer_json(struct writer *w, const char *bytes, size_t length)
{
    if (!bytes) {
        writer_put(w, "null");
        return;
    }
    writer_char(w, '"');
    write_foreign(w, bytes, length, escape_json);
    writer_char(w, '"');
}

void
writer_xml(struct writer *w, const char *bytes, size_t length)
{
    write_foreign(w, bytes, bytes ? length : 0, escape_xml);
}

void
writer_csv(struct writer *w, const char *bytes, size_t length)
{
    writer_char(w, '"');
    if (bytes && length > 0 && strchr("=+-@\t\r", bytes[0]))
        writer_char(w, '\'');
    write_foreign(w, bytes, bytes ? length : 0, escape_csv);
    writer_char(w, '"');
}
