/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XXH64, after Yann Collet's "xxHash fast digest algorithm" (doc/xxhash_spec.md of
 * xxHash). Four independent sums over stripes of 32 bytes let the processor overlap their
 * multiplications. A byte-wise hash waits for each multiplication and would take longer
 * than reading the snapshot.
 */
#include "record/byte_hash.h"

#include <string.h>

#define PRIME_1 UINT64_C(0x9e3779b185ebca87)
#define PRIME_2 UINT64_C(0xc2b2ae3d27d4eb4f)
#define PRIME_3 UINT64_C(0x165667b19e3779f9)
#define PRIME_4 UINT64_C(0x85ebca77c2b2ae63)
#define PRIME_5 UINT64_C(0x27d4eb2f165667c5)

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "as the hash reads words");

static uint64_t
rotate(uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

static uint64_t
read_word(const unsigned char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

static uint64_t
add_word(uint64_t sum, uint64_t word)
{
    return rotate(sum + word * PRIME_2, 31) * PRIME_1;
}

static void
add_stripes(uint64_t sums[4], const unsigned char *bytes, size_t count)
{
    uint64_t a = sums[0], b = sums[1], c = sums[2], d = sums[3];
    for (const unsigned char *end = bytes + count; bytes < end;
         bytes += BYTE_HASH_STRIPE) {
        a = add_word(a, read_word(bytes));
        b = add_word(b, read_word(bytes + 8));
        c = add_word(c, read_word(bytes + 16));
        d = add_word(d, read_word(bytes + 24));
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}

static uint64_t
join_sums(const uint64_t sums[4])
{
    uint64_t hash = rotate(sums[0], 1) + rotate(sums[1], 7) + rotate(sums[2], 12) +
                    rotate(sums[3], 18);
    for (unsigned i = 0; i < 4; i++)
        hash = (hash ^ add_word(0, sums[i])) * PRIME_1 + PRIME_4;
    return hash;
}

/* Add the bytes after the last complete stripe, and mix. */
static uint64_t
add_rest(uint64_t hash, const unsigned char *bytes, size_t count)
{
    const unsigned char *end = bytes + count;
    for (; end - bytes >= 8; bytes += 8)
        hash = rotate(hash ^ add_word(0, read_word(bytes)), 27) * PRIME_1 + PRIME_4;
    if (end - bytes >= 4) {
        uint32_t half;
        memcpy(&half, bytes, sizeof half);
        hash = rotate(hash ^ half * PRIME_1, 23) * PRIME_2 + PRIME_3;
        bytes += 4;
    }
    for (; bytes < end; bytes++)
        hash = rotate(hash ^ *bytes * PRIME_5, 11) * PRIME_1;
    hash = (hash ^ hash >> 33) * PRIME_2;
    hash = (hash ^ hash >> 29) * PRIME_3;
    return hash ^ hash >> 32;
}

void
byte_hash_begin(struct byte_hash *hash)
{
    *hash = (struct byte_hash){.sums = {PRIME_1 + PRIME_2, PRIME_2, 0, 0 - PRIME_1}};
}

/* Fill up the incomplete stripe. Returns the number of bytes taken. */
static size_t
fill_rest(struct byte_hash *hash, const unsigned char *bytes, size_t count)
{
    size_t free_bytes = BYTE_HASH_STRIPE - hash->rest_count;
    size_t taken = count < free_bytes ? count : free_bytes;
    memcpy(hash->rest + hash->rest_count, bytes, taken);
    hash->rest_count += taken;
    if (hash->rest_count == BYTE_HASH_STRIPE) {
        add_stripes(hash->sums, hash->rest, BYTE_HASH_STRIPE);
        hash->rest_count = 0;
    }
    return taken;
}

void
byte_hash_add(struct byte_hash *hash, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    hash->length += count;
    if (count == 0)
        return;
    size_t taken = hash->rest_count > 0 ? fill_rest(hash, at, count) : 0;
    size_t whole = (count - taken) / BYTE_HASH_STRIPE * BYTE_HASH_STRIPE;
    add_stripes(hash->sums, at + taken, whole);
    if (taken + whole < count)
        (void)fill_rest(hash, at + taken + whole, count - taken - whole);
}

uint64_t
byte_hash_end(const struct byte_hash *hash)
{
    uint64_t sum = hash->length < BYTE_HASH_STRIPE ? PRIME_5 : join_sums(hash->sums);
    return add_rest(sum + hash->length, hash->rest, hash->rest_count);
}
