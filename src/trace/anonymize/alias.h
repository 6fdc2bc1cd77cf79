/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_ALIAS_H
#define DRYI_ALIAS_H

/*
 * Aliases of strings: the first hexadecimal digits of a keyed hash. Digits are added
 * until the alias differs from those of all strings put before.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "base/siphash.h"

#define DRYI_ALIAS_DIGITS_MAX 64u
/* Integers up to 255 are too common to identify anything, so they are not replaced. */
#define DRYI_ALIAS_SMALL_MAX 255u

struct dryi_alias {
    struct dryi_siphash_key key;
    uint32_t digit_count; /* digits of an alias; more only to tell two strings apart */
    struct dryi_intern strings; /* originals; ids as in `digits` */
    struct dryi_intern digits;
};

void dryi_alias_init(struct dryi_alias *alias, const struct dry_memory *memory,
                     const struct dryi_siphash_key *key, uint32_t digit_count);
void dryi_alias_finish(struct dryi_alias *alias);

/*
 * Add a string. Returns the id of its digits in alias->digits, or DRYI_INTERN_NONE if
 * memory ran out. Returns DRYI_ALIAS_FULL if even DRYI_ALIAS_DIGITS_MAX digits equal
 * those of another string.
 */
#define DRYI_ALIAS_FULL (UINT32_MAX - 1)
uint32_t dryi_alias_put(struct dryi_alias *alias, const char *bytes, size_t length);

/* Return the alias of an integer: 65536 to 2^29 - 1, or 2^29 to 2^31 - 1 if `is_wide`. */
uint32_t dryi_alias_int(const struct dryi_siphash_key *key, uint64_t bits, int is_wide);
/* Return the alias of a double, from 0 to 1. Both are the bits of a double. */
uint64_t dryi_alias_float(const struct dryi_siphash_key *key, uint64_t bits);

#endif
