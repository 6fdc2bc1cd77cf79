/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_SIPHASH_H
#define DRYI_SIPHASH_H

/*
 * SipHash-2-4 (Aumasson, Bernstein, INDOCRYPT 2012): a keyed hash of 64 bits. Whoever does
 * not know the key learns nothing about the bytes from the hash, and cannot try candidates.
 */

#include <stddef.h>
#include <stdint.h>

struct dryi_siphash_key {
    uint64_t low, high; /* bytes 0..7 and 8..15 of the key, the least significant first */
};

uint64_t dryi_siphash(const struct dryi_siphash_key *key, const void *bytes,
                      size_t length);

/* 16 bytes are the key itself; any other number is hashed to one. */
struct dryi_siphash_key dryi_siphash_key_of(const void *bytes, size_t length);

#endif
