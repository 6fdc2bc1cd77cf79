/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PICKLE_VALUE_H
#define DRYI_PICKLE_VALUE_H

/*
 * A value of a pickle is a 64-bit integer: a kind in the low five bits and a payload
 * above. An integer or a string's id is its payload. A dict or list that is still being
 * filled is the index of an object, until it becomes the record that its keys name. See
 * pickle_walk.h.
 */

#include <stdbool.h>
#include <stdint.h>

enum dryi_value_kind {
    DRYI_VALUE_NONE,
    DRYI_VALUE_BOOL,
    DRYI_VALUE_INT,       /* a signed integer of 59 bits */
    DRYI_VALUE_STRING,    /* string id */
    DRYI_VALUE_BYTES,     /* string id */
    DRYI_VALUE_BYTEARRAY, /* string id */
    DRYI_VALUE_PAIR,      /* a tuple of two 29-bit integers */
    DRYI_VALUE_FRAME,     /* frame id */
    DRYI_VALUE_STACK,     /* stack id of a complete list of frames */
    DRYI_VALUE_EXTRA,     /* string id of opcodes of an unknown value */
    DRYI_VALUE_WIDE_INT,  /* index of a signed 64-bit integer in `wides` */
    DRYI_VALUE_WIDE_UINT, /* index of an integer above INT64_MAX in `wides` */
    DRYI_VALUE_FLOAT,     /* index of a double in `wides` */
    /* Fetching the kinds below from the memo takes more than a copy. */
    DRYI_VALUE_DICT, /* index of an object, as for LIST and TUPLE */
    DRYI_VALUE_LIST,
    DRYI_VALUE_TUPLE,
    DRYI_VALUE_FAR,   /* only in the memo: index into `far_values` */
    DRYI_VALUE_EVENT, /* a row; in the memo without its number (W4) */
    DRYI_VALUE_BLOCK,
    DRYI_VALUE_SEGMENT,
    DRYI_VALUE_ANNOTATION,
    DRYI_VALUE_HISTORY,
    DRYI_VALUE_ROWS, /* a list of rows that has been used */
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

#endif
