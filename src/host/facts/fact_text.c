/* SPDX-License-Identifier: Apache-2.0 */

/* Each parser is one scan from left to right, in place. See fact_text.h for the
   formats. */
#include "host/facts/fact_text.h"

#include <string.h>

#include "base/ascii.h"

bool
dryi_fact_line(const char *text, size_t length, size_t *at, const char **line,
               size_t *line_length)
{
    if (*at >= length)
        return false;
    const char *end = memchr(text + *at, '\n', length - *at);
    *line = text + *at;
    *line_length = end ? (size_t)(end - *line) : length - *at;
    *at += *line_length + (end != NULL);
    return true;
}

/* Parse digits from *at on, at least one. Numbers above 64 bits become UINT64_MAX. */
static bool
take_number(const char *text, size_t length, size_t *at, uint64_t *number)
{
    uint64_t n = 0;
    size_t i = *at;
    for (; i < length && dryi_is_digit(text[i]); i++) {
        unsigned digit = (unsigned)(text[i] - '0');
        n = n > (UINT64_MAX - digit) / 10 ? UINT64_MAX : n * 10 + digit;
    }
    if (i == *at)
        return false;
    *at = i;
    *number = n;
    return true;
}

static void
skip_spaces(const char *text, size_t length, size_t *at)
{
    while (*at < length && (text[*at] == ' ' || text[*at] == '\t'))
        ++*at;
}

static size_t
without_line_end(const char *text, size_t length)
{
    return length && text[length - 1] == '\n' ? length - 1 : length;
}

bool
dryi_fact_number(const char *text, size_t length, uint64_t *number)
{
    length = without_line_end(text, length);
    if (dryi_text_is(text, length, "max")) {
        *number = UINT64_MAX;
        return true;
    }
    size_t at = 0;
    uint64_t n;
    if (!take_number(text, length, &at, &n) || at != length)
        return false;
    *number = n;
    return true;
}

bool
dryi_fact_hexadecimal(const char *text, size_t length, uint64_t *number)
{
    uint64_t n = 0;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        bool is_letter = c >= 'a' && c <= 'f';
        if ((!dryi_is_digit(c) && !is_letter) || n >> 60)
            return false;
        n = n << 4 | (unsigned)(is_letter ? c - 'a' + 10 : c - '0');
    }
    if (length)
        *number = n;
    return length > 0;
}

static void
set_bits(uint64_t *words, uint64_t first, uint64_t last, size_t bit_max)
{
    for (uint64_t i = first; i <= last && i < bit_max; i++)
        words[i / 64] |= UINT64_C(1) << i % 64;
}

/* Ranges must ascend, as the kernel writes them, so that the total cost is bounded by
   bit_max. */
static bool
read_ranges(const char *text, size_t length, uint64_t *words, size_t bit_max)
{
    size_t at = 0;
    uint64_t first, last, next = 0;
    while (at < length) {
        if (!take_number(text, length, &at, &first))
            return false;
        last = first;
        if (at < length && text[at] == '-') {
            at++;
            if (!take_number(text, length, &at, &last))
                return false;
        }
        if (first > last || first < next)
            return false;
        if (words)
            set_bits(words, first, last, bit_max);
        next = last + (last < UINT64_MAX);
        if (at == length)
            return true;
        if (text[at++] != ',' || at == length)
            return false;
    }
    return true;
}

bool
dryi_fact_list(const char *text, size_t length, uint64_t *words, size_t bit_max)
{
    length = without_line_end(text, length);
    if (!read_ranges(text, length, NULL, bit_max))
        return false;
    memset(words, 0, bit_max / 8);
    return read_ranges(text, length, words, bit_max);
}

/* Return the length of "Node 0 " at the beginning of a line, or 0. */
static size_t
node_prefix(const char *line, size_t length)
{
    size_t at = 5;
    uint64_t node;
    if (!dryi_text_begins(line, length, "Node ") ||
        !take_number(line, length, &at, &node))
        return 0;
    skip_spaces(line, length, &at);
    return at;
}

/* Parse the value after a key, up to the end of the line: "  123 kB". */
static bool
read_value(const char *line, size_t length, size_t at, uint64_t *number)
{
    uint64_t n;
    skip_spaces(line, length, &at);
    if (!take_number(line, length, &at, &n))
        return false;
    skip_spaces(line, length, &at);
    bool is_kib = dryi_text_is(line + at, length - at, "kB");
    if (at != length && !is_kib)
        return false;
    *number = is_kib && n > UINT64_MAX / 1024 ? UINT64_MAX : is_kib ? n * 1024 : n;
    return true;
}

bool
dryi_fact_keyed(const char *text, size_t length, const char *key, uint64_t *number)
{
    size_t at = 0, n, key_length = strlen(key);
    const char *line;
    while (dryi_fact_line(text, length, &at, &line, &n)) {
        size_t skip = node_prefix(line, n);
        if (dryi_text_begins(line + skip, n - skip, key) && skip + key_length < n &&
            line[skip + key_length] == ':')
            return read_value(line, n, skip + key_length + 1, number);
    }
    return false;
}

bool
dryi_fact_field(const char *text, size_t length, const char *key, uint64_t *number)
{
    size_t at = 0, n, key_length = strlen(key);
    const char *line;
    while (dryi_fact_line(text, length, &at, &line, &n))
        if (dryi_text_begins(line, n, key) && key_length < n && line[key_length] == ' ')
            return read_value(line, n, key_length + 1, number);
    return false;
}

bool
dryi_fact_is_chosen(const char *text, size_t length, const char *word)
{
    const char *begin = memchr(text, '[', length);
    if (!begin)
        return false;
    begin++;
    const char *end = memchr(begin, ']', length - (size_t)(begin - text));
    return end && dryi_text_is(begin, (size_t)(end - begin), word);
}

bool
dryi_fact_pool_name(const char *name, size_t length, uint64_t *page_bytes)
{
    static const char prefix[] = "hugepages-";
    size_t at = sizeof prefix - 1;
    uint64_t kib;
    if (!dryi_text_begins(name, length, prefix) ||
        !take_number(name, length, &at, &kib) ||
        !dryi_text_is(name + at, length - at, "kB"))
        return false;
    if (kib == 0 || (kib & (kib - 1)) != 0 || kib > UINT64_C(1) << 40)
        return false;
    *page_bytes = kib * 1024;
    return true;
}
