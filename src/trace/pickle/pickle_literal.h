/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PICKLE_LITERAL_H
#define DRYI_PICKLE_LITERAL_H

/*
 * The literals that follow an opcode in the file, read and pushed. A file that ends inside
 * one is refused with FORMAT.
 */

#include "trace/pickle/pickle_walk.h"

/* "the file ends inside WHAT at byte 12". */
enum dry_status dryi_literal_fail_truncated(struct dryi_walk *w, const char *what);

/* Push the next `length` bytes as a string, or as bytes; LIMIT beyond string_bytes_max. */
enum dry_status dryi_literal_read_string(struct dryi_walk *w, uint64_t length,
                                         enum dryi_value_kind kind);

/* Push the next `length` bytes as an integer in two's complement; FORMAT beyond 64 bits. */
enum dry_status dryi_literal_read_long(struct dryi_walk *w, uint64_t length);

/* Push the eight bytes of `argument`, the most significant first, as a double. */
enum dry_status dryi_literal_read_float(struct dryi_walk *w,
                                        const unsigned char *argument);

#endif
