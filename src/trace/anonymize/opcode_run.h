/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_OPCODE_RUN_H
#define DRYI_OPCODE_RUN_H

/*
 * The runs of opcodes in which unknown keys and their values are kept (pickle_extra.c):
 * key value key value ..., without a memo. They are walked piece by piece, a piece being
 * an opcode with what belongs to it. The walk needs no stack: it must only know whether a
 * piece is a key of the outermost level, or belongs to the value of one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dryi_opcode_piece_kind {
    DRYI_PIECE_MARK_UP, /* containers, None, booleans: nothing in them can tell anything */
    DRYI_PIECE_STRING,
    DRYI_PIECE_BYTES,
    DRYI_PIECE_INT,
    DRYI_PIECE_FLOAT,
};

struct dryi_opcode_piece {
    enum dryi_opcode_piece_kind kind;
    uint8_t opcode;
    const char *bytes; /* the whole piece */
    size_t length;
    const char *text; /* of a STRING or BYTES */
    size_t text_length;
    uint64_t bits;      /* of an INT, two's complement; of a FLOAT, its bits */
    bool is_wide;       /* an INT that is negative or does not fit 29 bits */
    bool has_known_key; /* it belongs to the value of a public key */
};

struct dryi_opcode_run {
    const char *bytes;
    size_t count, at;
    size_t depth;  /* open marks */
    size_t height; /* values on the outermost level */
    bool is_key_known;
    bool is_bad; /* no run of whole pairs; the walk has ended */
};

void dryi_opcode_run_init(struct dryi_opcode_run *run, const char *bytes, size_t count);
/* False at the end, or where run->is_bad says that this is no such run. */
bool dryi_opcode_run_next(struct dryi_opcode_run *run, struct dryi_opcode_piece *piece);

#endif
