/* SPDX-License-Identifier: Apache-2.0 */

/* SipHash-2-4: two rounds for each eight bytes, four rounds at the end, on a state of four 64-bit
   integers. siphash.h names the paper. */

#include "base/siphash.h"

#define KEY_BYTES 16u

struct state {
    uint64_t a, b, c, d;
};

static uint64_t
rotate(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}

/* Read up to eight bytes as little-endian, which the paper prescribes. */
static uint64_t
load(const unsigned char *bytes, size_t count)
{
    uint64_t word = 0;
    for (size_t i = 0; i < count; i++)
        word |= (uint64_t)bytes[i] << 8 * i;
    return word;
}

static void
mix(struct state *s, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        s->a += s->b;
        s->c += s->d;
        s->b = rotate(s->b, 13) ^ s->a;
        s->d = rotate(s->d, 16) ^ s->c;
        s->a = rotate(s->a, 32) + s->d;
        s->c += s->b;
        s->d = rotate(s->d, 21) ^ s->a;
        s->b = rotate(s->b, 17) ^ s->c;
        s->c = rotate(s->c, 32);
    }
}

static void
absorb(struct state *s, uint64_t word)
{
    s->d ^= word;
    mix(s, 2);
    s->a ^= word;
}

uint64_t
dryi_siphash(const struct dryi_siphash_key *key, const void *bytes, size_t length)
{
    const unsigned char *p = bytes;
    size_t left = length;
    struct state s = {
        key->low ^ UINT64_C(0x736f6d6570736575),
        key->high ^ UINT64_C(0x646f72616e646f6d),
        key->low ^ UINT64_C(0x6c7967656e657261),
        key->high ^ UINT64_C(0x7465646279746573),
    };
    for (; left >= 8; left -= 8, p += 8)
        absorb(&s, load(p, 8));
    absorb(&s, load(p, left) | (uint64_t)length << 56);
    s.c ^= 0xff;
    mix(&s, 4);
    return s.a ^ s.b ^ s.c ^ s.d;
}

struct dryi_siphash_key
dryi_siphash_key_make(const void *bytes, size_t length)
{
    const unsigned char *p = bytes;
    if (length == KEY_BYTES)
        return (struct dryi_siphash_key){load(p, 8), load(p + 8, 8)};
    static const struct dryi_siphash_key first = {1, 0}, second = {2, 0};
    return (struct dryi_siphash_key){dryi_siphash(&first, bytes, length),
                                     dryi_siphash(&second, bytes, length)};
}
