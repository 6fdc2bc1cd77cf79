/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The idea is in text.h. A line is read in the window of the input, without a copy. Cost:
 * O(bytes of the line).
 */
#include "trace/text/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/fail.h"

/* Bytes of a wrong word that an error text quotes. */
#define SHOWN_BYTES_MAX 40

void
dryi_text_init(struct dryi_text *t, struct dryi_input *in, struct dry_error *err)
{
    *t = (struct dryi_text){.in = in, .err = err};
}

enum dry_status
dryi_text_fail(struct dryi_text *t, size_t at, const char *format, ...)
{
    char text[sizeof t->err->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return dryi_fail_at(t->err, DRY_ERR_FORMAT, t->offset + at, "line %llu: %s",
                        (unsigned long long)t->number, text);
}

enum dry_status
dryi_text_fail_word(struct dryi_text *t, const struct dryi_word *word, const char *what)
{
    bool is_long = word->length > SHOWN_BYTES_MAX;
    return dryi_text_fail(t, word->at, "expected %s, found '%.*s%s'", what,
                          is_long ? SHOWN_BYTES_MAX : (int)word->length, word->bytes,
                          is_long ? "..." : "");
}

/* Read the whole line into the window. t->length includes a CR. */
static enum dry_status
fill_line(struct dryi_text *t)
{
    struct dryi_input *in = t->in;
    size_t scanned = 0;
    for (;;) {
        const unsigned char *unread = in->window + in->at;
        size_t count = dryi_input_unread(in);
        const unsigned char *end =
            count > scanned ? memchr(unread + scanned, '\n', count - scanned) : NULL;
        t->length = end ? (size_t)(end - unread) : count;
        t->consumed = t->length + (end != NULL);
        if (t->length > DRYI_TEXT_LINE_BYTES_MAX && t->skips_long_lines) {
            in->at += t->length;
            t->offset += t->length;
            scanned = 0;
            continue;
        }
        if (t->length > DRYI_TEXT_LINE_BYTES_MAX)
            return dryi_text_fail(t, 0, "longer than %u bytes, the most a line may have",
                                  DRYI_TEXT_LINE_BYTES_MAX);
        if (end || in->is_at_end)
            return DRY_OK;
        scanned = count;
        enum dry_status status = dryi_input_fill(in, count + 1, t->err);
        if (status != DRY_OK)
            return status;
    }
}

enum dry_status
dryi_text_next_line(struct dryi_text *t)
{
    t->in->at += t->consumed;
    t->consumed = t->length = t->at = 0;
    t->offset = dryi_input_offset(t->in);
    t->number++;
    enum dry_status status = fill_line(t);
    if (status != DRY_OK)
        return status;
    if (t->consumed == 0)
        return DRY_END;
    t->line = (const char *)t->in->window + t->in->at;
    const char *nul = memchr(t->line, 0, t->length);
    if (nul)
        return dryi_text_fail(t, (size_t)(nul - t->line), "a NUL byte, expected text");
    if (t->length && t->line[t->length - 1] == '\r')
        t->length--;
    return DRY_OK;
}

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static void
skip_blanks(struct dryi_text *t)
{
    while (t->at < t->length && is_blank(t->line[t->at]))
        t->at++;
}

enum dry_status
dryi_text_next_filled(struct dryi_text *t, char comment)
{
    for (;;) {
        enum dry_status status = dryi_text_next_line(t);
        if (status != DRY_OK)
            return status;
        skip_blanks(t);
        bool is_filled = t->at < t->length && (comment == 0 || t->line[t->at] != comment);
        t->at = 0;
        if (is_filled)
            return DRY_OK;
    }
}

bool
dryi_text_next_word(struct dryi_text *t, struct dryi_word *word)
{
    skip_blanks(t);
    size_t begin = t->at;
    while (t->at < t->length && !is_blank(t->line[t->at]))
        t->at++;
    *word = (struct dryi_word){t->line + begin, t->at - begin, begin};
    return t->at > begin;
}

/* After the last cell, move the cursor past the end: the line "a," has two cells. */
bool
dryi_text_next_cell(struct dryi_text *t, struct dryi_word *cell)
{
    if (t->at > t->length)
        return false;
    const char *comma =
        t->at < t->length ? memchr(t->line + t->at, ',', t->length - t->at) : NULL;
    size_t end = comma ? (size_t)(comma - t->line) : t->length;
    size_t begin = t->at;
    t->at = end + 1;
    while (begin < end && is_blank(t->line[begin]))
        begin++;
    while (end > begin && is_blank(t->line[end - 1]))
        end--;
    *cell = (struct dryi_word){t->line + begin, end - begin, begin};
    return true;
}

bool
dryi_word_is(const struct dryi_word *word, const char *text)
{
    return strlen(text) == word->length && memcmp(text, word->bytes, word->length) == 0;
}

static unsigned
digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (unsigned)(c - 'a') + 10;
    if (c >= 'A' && c <= 'F')
        return (unsigned)(c - 'A') + 10;
    return 16;
}

enum dry_status
dryi_text_number(struct dryi_text *t, const struct dryi_word *word, const char *what,
                 uint64_t max, uint64_t *value)
{
    bool is_hex = word->length > 2 && word->bytes[0] == '0' &&
                  (word->bytes[1] == 'x' || word->bytes[1] == 'X');
    unsigned base = is_hex ? 16 : 10;
    uint64_t sum = 0;
    bool is_over = false;
    for (size_t i = is_hex ? 2 : 0; i < word->length; i++) {
        unsigned digit = digit_value(word->bytes[i]);
        if (digit >= base)
            return dryi_text_fail_word(t, word, what);
        is_over |= __builtin_mul_overflow(sum, base, &sum) ||
                   __builtin_add_overflow(sum, digit, &sum);
    }
    if (word->length == 0)
        return dryi_text_fail_word(t, word, what);
    if (is_over || sum > max)
        return dryi_text_fail(t, word->at, "%s is beyond the largest possible, %llu",
                              what, (unsigned long long)max);
    *value = sum;
    return DRY_OK;
}

enum dry_status
dryi_text_next_number(struct dryi_text *t, const char *what, uint64_t max,
                      uint64_t *value)
{
    struct dryi_word word;
    if (!dryi_text_next_word(t, &word))
        return dryi_text_fail(t, t->at, "expected %s, found the end of the line", what);
    return dryi_text_number(t, &word, what, max, value);
}
