/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The idea is in alias.h. Two tables hold the strings and their digits under equal ids.
 * Digits are a SipHash (base/siphash.h) under the key of the job. Cost: O(length) a
 * string.
 */
#include "trace/anonymize/alias.h"

#include <string.h>

#include "base/assert.h"

#define DIGITS_PER_HASH 16u

void
dryi_alias_init(struct dryi_alias *alias, const struct dry_memory *memory,
                const struct dryi_siphash_key *key, uint32_t digit_count)
{
    DRYI_ASSERT(digit_count >= 1 && digit_count <= DRYI_ALIAS_DIGITS_MAX);
    *alias = (struct dryi_alias){.key = *key, .digit_count = digit_count};
    dryi_intern_init(&alias->strings, memory);
    dryi_intern_init(&alias->digits, memory);
}

void
dryi_alias_finish(struct dryi_alias *alias)
{
    dryi_intern_finish(&alias->strings);
    dryi_intern_finish(&alias->digits);
}

/* One hash has 16 digits. For more, hash the same bytes again under a changed key. */
static void
write_digits(const struct dryi_alias *alias, const char *bytes, size_t length,
             char digits[DRYI_ALIAS_DIGITS_MAX])
{
    for (unsigned i = 0; i < DRYI_ALIAS_DIGITS_MAX; i += DIGITS_PER_HASH) {
        struct dryi_siphash_key key = alias->key;
        key.high ^= i;
        uint64_t hash = dryi_siphash(&key, bytes, length);
        for (unsigned k = 0; k < DIGITS_PER_HASH; k++)
            digits[i + k] = "0123456789abcdef"[hash >> (60 - 4 * k) & 15];
    }
}

static uint32_t
put_digits(struct dryi_alias *alias, const char *bytes, size_t length)
{
    char digits[DRYI_ALIAS_DIGITS_MAX];
    write_digits(alias, bytes, length, digits);
    for (uint32_t n = alias->digit_count; n <= DRYI_ALIAS_DIGITS_MAX; n++) {
        if (dryi_intern_find(&alias->digits, digits, n) == DRYI_INTERN_NONE)
            return dryi_intern_put(&alias->digits, digits, n);
    }
    return DRYI_ALIAS_FULL;
}

uint32_t
dryi_alias_put(struct dryi_alias *alias, const char *bytes, size_t length)
{
    uint32_t known = dryi_intern_find(&alias->strings, bytes, length);
    if (known != DRYI_INTERN_NONE)
        return known;
    uint32_t id = put_digits(alias, bytes, length);
    if (id >= DRYI_ALIAS_FULL)
        return id;
    /* Digits without a string remain if this fails, but then every caller gives up. */
    return dryi_intern_put(&alias->strings, bytes, length);
}

static uint64_t
hash_number(const struct dryi_siphash_key *key, uint64_t bits)
{
    unsigned char bytes[9] = {'#'};
    memcpy(bytes + 1, &bits, sizeof bits);
    return dryi_siphash(key, bytes, sizeof bytes);
}

uint32_t
dryi_alias_int(const struct dryi_siphash_key *key, uint64_t bits, int is_wide)
{
    uint64_t hash = hash_number(key, bits);
    uint64_t first = is_wide ? UINT64_C(1) << 29 : UINT64_C(1) << 16;
    uint64_t end = is_wide ? UINT64_C(1) << 31 : UINT64_C(1) << 29;
    return (uint32_t)(first + hash % (end - first));
}

uint64_t
dryi_alias_float(const struct dryi_siphash_key *key, uint64_t bits)
{
    double number =
        (double)(hash_number(key, bits) >> 11) / 9007199254740992.0; /* 2^53 */
    memcpy(&bits, &number, sizeof bits);
    return bits;
}
