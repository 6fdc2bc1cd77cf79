/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_SIPHASH_H
#define DRYI_SIPHASH_H

/* SipHash-2-4 (Aumasson, Bernstein, INDOCRYPT 2012): a keyed 64-bit hash. Without the key, the hash
   reveals nothing about the bytes, and candidates cannot be tried. */

#include <stddef.h>
#include <stdint.h>

struct dryi_siphash_key {
    uint64_t low, high; /* bytes 0..7 and 8..15 of the key, little-endian */
};

uint64_t dryi_siphash(const struct dryi_siphash_key *key, const void *bytes,
                      size_t length);

/* Make a key: 16 bytes are used as they are; input of any other length is hashed to a key. */
struct dryi_siphash_key dryi_siphash_key_make(const void *bytes, size_t length);

#endif
