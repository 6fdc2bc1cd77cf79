/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PICKLE_VALUE_H
#define DRYI_PICKLE_VALUE_H

/*
 * A value of a pickle is one 64-bit word: a kind in the low five bits and a payload
 * above. Small things are their payload (an integer, a string's id). A dict or list that
 * is still being filled is the index of an object, until it becomes what its keys say:
 * the head of pickle_walk.h tells how.
 */

#include <stdbool.h>
#include <stdint.h>

enum dryi_value_kind {
    DRYI_VALUE_NONE,
    DRYI_VALUE_BOOL,
    DRYI_VALUE_INT,       /* 59 bits, signed, in the payload */
    DRYI_VALUE_STRING,    /* id */
    DRYI_VALUE_BYTES,     /* id of a string */
    DRYI_VALUE_BYTEARRAY, /* id of a string */
    DRYI_VALUE_PAIR,      /* a tuple of two integers of 29 bits */
    DRYI_VALUE_FRAME,     /* id */
    DRYI_VALUE_STACK,     /* id: a list of frames, complete */
    DRYI_VALUE_EXTRA,     /* id of a string: something unknown, rendered as opcodes */
    DRYI_VALUE_WIDE_INT,  /* index of 64 bits in `wides`, signed */
    DRYI_VALUE_WIDE_UINT, /* the same, above INT64_MAX */
    DRYI_VALUE_FLOAT,     /* the same, a double */
    /* A fetch from the memo is special for these and all that follow. */
    DRYI_VALUE_DICT, /* index of an object, as the next two */
    DRYI_VALUE_LIST,
    DRYI_VALUE_TUPLE,
    DRYI_VALUE_FAR,   /* only in the memo: the word is in `far_words` */
    DRYI_VALUE_EVENT, /* rows; in the memo without their number (W4) */
    DRYI_VALUE_BLOCK,
    DRYI_VALUE_SEGMENT,
    DRYI_VALUE_ANNOTATION,
    DRYI_VALUE_HISTORY,
    DRYI_VALUE_ROWS, /* a list of rows that was used */
};
#define DRYI_VALUE_KIND_BITS 5
#define DRYI_VALUE_KIND_MASK UINT64_C(31)
#define DRYI_PAIR_BITS 29

static inline uint64_t
dryi_value(enum dryi_value_kind kind, uint64_t payload)
{
    return payload << DRYI_VALUE_KIND_BITS | (uint64_t)kind;
}

static inline enum dryi_value_kind
dryi_value_kind(uint64_t value)
{
    return (enum dryi_value_kind)(value & DRYI_VALUE_KIND_MASK);
}

static inline uint64_t
dryi_value_payload(uint64_t value)
{
    return value >> DRYI_VALUE_KIND_BITS;
}

static inline bool
dryi_value_is(uint64_t value, enum dryi_value_kind kind)
{
    return dryi_value_kind(value) == kind;
}

/* "a string", "an event" ... for error texts. */
const char *dryi_value_noun(uint64_t value);

#endif
