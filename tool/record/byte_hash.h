/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_BYTE_HASH_H
#define TOOL_BYTE_HASH_H

/*
 * XXH64 with seed 0 of bytes that arrive in pieces; equals what `xxhsum -H64` prints. It
 * finds equal files but is not safe against forgery: compare the length as well.
 *
 *     byte_hash_begin(&hash);
 *     byte_hash_add(&hash, bytes, count);     any number of pieces
 *     byte_hash_end(&hash)
 */

#include <stddef.h>
#include <stdint.h>

#define BYTE_HASH_STRIPE 32u

struct byte_hash {
    uint64_t sums[4], length;
    unsigned char rest[BYTE_HASH_STRIPE]; /* bytes of an incomplete stripe */
    size_t rest_count;
};

void byte_hash_begin(struct byte_hash *hash);
void byte_hash_add(struct byte_hash *hash, const void *bytes, size_t count);
/* Return the hash so far. More bytes may be added afterwards. */
uint64_t byte_hash_end(const struct byte_hash *hash);

#endif
