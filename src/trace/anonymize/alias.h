/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_ALIAS_H
#define DRYI_ALIAS_H

/*
 * Digits that stand for a string: the first few of its keyed hash, or as many more as it
 * takes to differ from those of every other string met before.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "base/siphash.h"

#define DRYI_ALIAS_DIGITS_MAX 64u
/* Numbers up to this one say nothing and stay. */
#define DRYI_ALIAS_SMALL_MAX 255u

struct dryi_alias {
    struct dryi_siphash_key key;
    uint32_t digit_count;       /* at least */
    struct dryi_intern strings; /* and under the same id */
    struct dryi_intern digits;
};

void dryi_alias_init(struct dryi_alias *alias, const struct dry_memory *memory,
                     const struct dryi_siphash_key *key, uint32_t digit_count);
void dryi_alias_finish(struct dryi_alias *alias);

/*
 * The id of a string's digits in alias->digits; DRYI_INTERN_NONE without memory, and
 * DRYI_ALIAS_FULL when even DRYI_ALIAS_DIGITS_MAX of them are another's.
 */
#define DRYI_ALIAS_FULL (UINT32_MAX - 1)
uint32_t dryi_alias_put(struct dryi_alias *alias, const char *bytes, size_t length);

/* An integer instead of another: 65536 to 2^29 - 1, or from there to 2^31 - 1 if wide. */
uint32_t dryi_alias_int(const struct dryi_siphash_key *key, uint64_t bits, int is_wide);
/* A double from 0 to 1 instead of another, both as their bits. */
uint64_t dryi_alias_float(const struct dryi_siphash_key *key, uint64_t bits);

#endif
