/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The idea is in utf8.h. Valid sequences are those of table 3-7 of the Unicode standard,
 * plus lone surrogates. Cost: O(length).
 */
#include "trace/model/utf8.h"

#include <string.h>

/* Return how many bytes 80..bf follow this leading byte; -1 if it is not one. */
static int
count_tail(unsigned char first)
{
    if (first < 0x80)
        return 0;
    if (first < 0xc2 || first > 0xf4)
        return -1;
    return first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
}

/* Return the bytes of the character at the front, 0 if it is invalid. */
static size_t
measure(const unsigned char *p, size_t length)
{
    int tail = count_tail(p[0]);
    if (tail < 0 || (size_t)tail >= length)
        return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90) ||
        (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    for (int k = 1; k <= tail; k++) {
        if ((p[k] & 0xc0) != 0x80)
            return 0;
    }
    return (size_t)tail + 1;
}

bool
dryi_utf8_is_valid(const unsigned char *bytes, size_t length)
{
    size_t step;
    for (size_t i = 0; i < length; i += step) {
        step = measure(bytes + i, length - i);
        if (step == 0)
            return false;
    }
    return true;
}

size_t
dryi_utf8_escape(char *to, const unsigned char *bytes, size_t length)
{
    size_t used = 0;
    for (size_t i = 0; i < length;) {
        size_t step = measure(bytes + i, length - i);
        if (step > 0) {
            memcpy(to + used, bytes + i, step);
            used += step;
            i += step;
            continue;
        }
        unsigned code = 0xdc00u + bytes[i++];
        to[used++] = (char)(0xe0u | code >> 12);
        to[used++] = (char)(0x80u | (code >> 6 & 0x3fu));
        to[used++] = (char)(0x80u | (code & 0x3fu));
    }
    return used;
}

/* Write a code unit as an escape such as "\udc80". Returns the length. */
static size_t
write_escape(char *to, unsigned unit)
{
    static const char digits[] = "0123456789abcdef";
    char text[6] = {'\\', 'u'};
    for (unsigned k = 0; k < 4; k++)
        text[2 + k] = digits[unit >> (12 - 4 * k) & 15];
    if (to)
        memcpy(to, text, sizeof text);
    return sizeof text;
}

size_t
dryi_utf8_make_strict(char *to, const unsigned char *bytes, size_t length)
{
    size_t used = 0, step;
    for (size_t i = 0; i < length; i += step) {
        const unsigned char *p = bytes + i;
        char *out = to ? to + used : NULL;
        step = measure(p, length - i);
        if (step == 0) {
            step = 1;
            used += write_escape(out, 0xdc00u + *p);
        } else if (step == 3 && p[0] == 0xed && p[1] >= 0xa0) {
            used += write_escape(out, 0xd000u | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu));
        } else {
            if (out)
                memcpy(out, p, step);
            used += step;
        }
    }
    return used;
}
