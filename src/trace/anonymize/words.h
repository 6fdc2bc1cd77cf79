/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_WORDS_H
#define DRYI_WORDS_H

/*
 * A search for many words at once.
 *
 * A word is looked up, in a table of equal strings, for every place of a text and every
 * length that words have. Only the first 64 bytes of a word count, so there are at most
 * 61 lengths. A filter of the first four bytes passes over nearly every place. So the
 * cost is linear in the text, whatever words and text are.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"

#define DRYI_WORD_BYTES_MIN 4u
#define DRYI_WORD_BYTES_MAX 64u
#define DRYI_WORDS_FILTER_BITS 16u

struct dryi_words {
    struct dry_memory memory;
    struct dryi_intern table;
    uint8_t *is_public; /* of each word; such a word is not found any more */
    size_t public_capacity, public_count;
    uint64_t lengths; /* bit n - 1: there are words of n bytes */
    uint64_t filter[1u << (DRYI_WORDS_FILTER_BITS - 6)];
};

void dryi_words_init(struct dryi_words *words, const struct dry_memory *memory);
void dryi_words_finish(struct dryi_words *words);

/* Words shorter than four bytes are no words. False: no memory. */
bool dryi_words_put(struct dryi_words *words, const char *bytes, size_t length);
/* The string as a whole, and each run of letters, digits and '_' in it. */
bool dryi_words_put_all(struct dryi_words *words, const char *bytes, size_t length);

/* Every word that occurs in the text is public. After the last put. */
void dryi_words_excuse(struct dryi_words *words, const char *text, size_t length);
/*
 * How many times words of at least `least` bytes that are not public occur in the text;
 * *first, if there are any, is the first one found.
 */
uint64_t dryi_words_count(const struct dryi_words *words, const char *text, size_t length,
                          size_t least, uint32_t *first);

#endif
