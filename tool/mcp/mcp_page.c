/* SPDX-License-Identifier: Apache-2.0 */
/* See mcp_page.h. */
#include "mcp/mcp_page.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fnv.h"
#include "base/term.h"

#define NOTE_BYTES 192
#define HASH_DIGITS 16u
#define CHARACTER_BYTES 4u /* longest UTF-8 sequence */

/* Return the bytes that jansson writes for a byte: two for '"', '\' and common control
   characters, six for other control characters. */
static size_t
measure_byte(char c)
{
    if (c == '"' || c == '\\' || c == '\n' || c == '\t' || c == '\r')
        return 2;
    return (unsigned char)c < 0x20 ? 6 : 1;
}

/* Tell whether a byte continues a UTF-8 character. */
static bool
is_inside(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

size_t
mcp_page_measure(const char *text, size_t length, size_t budget)
{
    size_t used = 0, cost = 0, line_end = 0;
    while (used < length && cost + measure_byte(text[used]) <= budget) {
        cost += measure_byte(text[used]);
        if (text[used++] == '\n')
            line_end = used;
    }
    if (used == length)
        return used;
    if (line_end > 0)
        return line_end;
    while (used > 0 && is_inside(text[used]))
        used--;
    if (used > 0)
        return used;
    used = 1;
    while (used < length && used < CHARACTER_BYTES && is_inside(text[used]))
        used++;
    return used;
}

/* Read a cursor: an offset and a hash, "8123-00ff00ff00ff00ff". */
static bool
read_cursor(const char *cursor, size_t *begin, uint64_t *hash)
{
    char *end;
    if (*cursor < '0' || *cursor > '9')
        return false;
    *begin = strtoul(cursor, &end, 10);
    if (*end != '-' || strlen(end + 1) != HASH_DIGITS)
        return false;
    *hash = strtoull(end + 1, &end, 16);
    return *end == '\0';
}

const char *
mcp_page_find(const char *text, size_t length, const char *cursor, size_t budget,
              struct mcp_page *page)
{
    uint64_t hash = fnv_add(FNV_BEGIN, text, length), wanted = hash;
    size_t begin = 0;
    if (cursor && !read_cursor(cursor, &begin, &wanted))
        return "cursor: it is none that an answer has named";
    if (wanted != hash)
        return "cursor: the answer is another one now, since the file or the arguments "
               "have changed; ask again without a cursor";
    if (begin > length)
        return "cursor: it is none that an answer has named";
    *page = (struct mcp_page){.begin = begin};
    page->end = begin + mcp_page_measure(text + begin, length - begin, budget);
    page->is_last = page->end == length;
    if (!page->is_last)
        snprintf(page->cursor, sizeof page->cursor, "%zu-%016" PRIx64, page->end, hash);
    return NULL;
}

/* Make text printable line by line, because line feeds would be replaced too. */
static size_t
make_printable(char *to, size_t capacity, const char *text, size_t length)
{
    size_t used = 0;
    for (size_t at = 0; at < length;) {
        const char *feed = memchr(text + at, '\n', length - at);
        size_t line = feed ? (size_t)(feed - text) - at : length - at;
        used += term_make_printable(to + used, capacity - used, text + at, line);
        at += line;
        if (feed) {
            to[used++] = '\n';
            at++;
        }
    }
    return used;
}

json_t *
mcp_page_make(const char *text, size_t length, const struct mcp_page *page)
{
    size_t bytes = page->end - page->begin, capacity = bytes + NOTE_BYTES;
    char *copy = malloc(capacity);
    if (!copy)
        return NULL;
    size_t used = make_printable(copy, capacity, text + page->begin, bytes);
    if (!page->is_last)
        used += (size_t)snprintf(
            copy + used, capacity - used,
            "[bytes %zu to %zu of %zu; the rest: the same call with cursor %s]\n",
            page->begin, page->end, length, page->cursor);
    json_t *string = json_stringn(copy, used);
    free(copy);
    return string;
}
