/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_ASCII_H
#define DRYI_ASCII_H

/* Tests of characters and of byte strings, independent of the locale. Text from a file has a length
   and no zero at its end; the texts to compare with are literals of the program. */

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool
dryi_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool
dryi_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline char
dryi_to_lower(char c)
{
    static const char small[] = "abcdefghijklmnopqrstuvwxyz";
    if (c < 'A' || c > 'Z')
        return c;
    return small[c - 'A'];
}

static inline bool
dryi_text_is(const char *text, size_t length, const char *word)
{
    return length == strlen(word) && memcmp(text, word, length) == 0;
}

static inline bool
dryi_text_begins(const char *text, size_t length, const char *word)
{
    size_t n = strlen(word);
    return length >= n && memcmp(text, word, n) == 0;
}

static inline bool
dryi_text_ends(const char *text, size_t length, const char *word)
{
    size_t n = strlen(word);
    return length >= n && memcmp(text + length - n, word, n) == 0;
}

#endif
