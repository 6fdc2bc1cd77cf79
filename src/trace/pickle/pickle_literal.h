/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PICKLE_LITERAL_H
#define DRYI_PICKLE_LITERAL_H

/* Read and push the literal after an opcode. FORMAT if the file ends inside it. */

#include "trace/pickle/pickle.h"
#include "trace/pickle/pickle_walk.h"

/*
 * Decode the number at `p`: BININT, BININT1, BININT2 or LONG1 of at most 7 bytes. *length
 * is its bytes, 0 for any other opcode. Requires 10 readable bytes at `p`.
 */
static inline uint64_t
dryi_literal_integer(const unsigned char *p, size_t *length)
{
    static const unsigned char bytes[] = {4, 1, 0, 2}; /* 0: no BININT + 2 */
    unsigned which = (unsigned)*p - DRYI_OP_BININT, head = 1, count;
    bool is_signed = true;
    if (*p == DRYI_OP_LONG1) {
        head = 2;
        count = p[1] <= 7 ? p[1] : 0;
    } else {
        count = which < sizeof bytes ? bytes[which] : 0;
        is_signed = which == 0;
    }
    *length = count ? head + count : 0;
    if (count == 0)
        return 0;
    unsigned unused = 64 - 8 * count;
    uint64_t bits = dryi_pickle_u64(p + head) << unused;
    bits = is_signed ? (uint64_t)((int64_t)bits >> unused) : bits >> unused;
    return dryi_value(DRYI_VALUE_INT, bits);
}

/* Fail with "the file ends inside WHAT at byte 12". */
enum dry_status dryi_literal_fail_truncated(struct dryi_pickle_walk *w, const char *what);

/* Intern a string or bytes. *id becomes the payload of a value of this kind. */
enum dry_status dryi_literal_intern(struct dryi_pickle_walk *w,
                                    const unsigned char *bytes, size_t length,
                                    enum dryi_value_kind kind, uint32_t *id);

/* Push the next `length` bytes as a string or as bytes; LIMIT beyond string_bytes_max. */
enum dry_status dryi_literal_read_string(struct dryi_pickle_walk *w, uint64_t length,
                                         enum dryi_value_kind kind);

/* Push the next `length` bytes as a two's complement integer; FORMAT beyond 64 bits. */
enum dry_status dryi_literal_read_long(struct dryi_pickle_walk *w, uint64_t length);

/* Push the eight bytes of `argument`, most significant first, as a double. */
enum dry_status dryi_literal_read_float(struct dryi_pickle_walk *w,
                                        const unsigned char *argument);

#endif
