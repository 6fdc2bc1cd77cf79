/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_WORD_SET_H
#define DRYI_WORD_SET_H

/*
 * Search a text for many words at once.
 *
 * At each offset of the text, a hash table is asked for a word of each length that any
 * word has. Only the first 64 bytes of a word are compared, so at most 61 lengths exist.
 * A filter on the first four bytes skips nearly all offsets. The cost is therefore linear
 * in the text, even for hostile input.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"

#define DRYI_WORD_BYTES_MIN 4u
#define DRYI_WORD_BYTES_MAX 64u
#define DRYI_WORD_SET_FILTER_BITS 16u

struct dryi_word_set {
    struct dry_memory memory;
    struct dryi_intern table;
    uint8_t *is_public; /* per word; true excludes it from results */
    size_t public_capacity, public_count;
    uint64_t lengths; /* bit n - 1: some word has n bytes */
    uint64_t filter[1u << (DRYI_WORD_SET_FILTER_BITS - 6)];
};

void dryi_word_set_init(struct dryi_word_set *words, const struct dry_memory *memory);
void dryi_word_set_finish(struct dryi_word_set *words);

/* Add a word; one shorter than four bytes is ignored. Returns false if memory ran out. */
bool dryi_word_set_put(struct dryi_word_set *words, const char *bytes, size_t length);
/* Add the string and each run of letters, digits and '_' in it. False: no memory. */
bool dryi_word_set_put_all(struct dryi_word_set *words, const char *bytes, size_t length);

/* Make every word that occurs in the text public. Call it after the last put. */
void dryi_word_set_excuse(struct dryi_word_set *words, const char *text, size_t length);
/*
 * Count occurrences of non-public words of at least `least` bytes. *first is the first
 * one found; it is not written if there are none.
 */
uint64_t dryi_word_set_count(const struct dryi_word_set *words, const char *text,
                             size_t length, size_t least, uint32_t *first);

#endif
