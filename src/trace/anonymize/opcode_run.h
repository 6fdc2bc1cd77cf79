/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_OPCODE_RUN_H
#define DRYI_OPCODE_RUN_H

/*
 * Walk a run of opcodes, the form in which unknown keys and their values are kept
 * (pickle_extra.c): key value key value ..., without a memo.
 *
 * A piece is an opcode with its argument. The walk needs no stack. It only tracks whether
 * a piece is a key of the outermost level or belongs to the value of one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dryi_opcode_piece_kind {
    DRYI_PIECE_MARK_UP, /* containers, None, booleans: they carry no text or number */
    DRYI_PIECE_STRING,
    DRYI_PIECE_BYTES,
    DRYI_PIECE_INT,
    DRYI_PIECE_FLOAT,
};

struct dryi_opcode_piece {
    enum dryi_opcode_piece_kind kind;
    uint8_t opcode;
    const char *bytes; /* opcode and argument */
    size_t length;
    const char *text; /* text of a STRING or BYTES */
    size_t text_length;
    uint64_t bits;      /* INT: two's complement; FLOAT: bits of the double */
    bool is_wide;       /* INT that is negative or needs more than 29 bits */
    bool has_known_key; /* part of the value of a public key */
};

struct dryi_opcode_run {
    const char *bytes;
    size_t count, at;
    size_t depth;  /* MARK opcodes that are open */
    size_t height; /* values pushed on the outermost level: even before a key */
    bool is_key_known;
    bool is_bad; /* not a run of complete pairs; the walk has ended */
};

void dryi_opcode_run_init(struct dryi_opcode_run *run, const char *bytes, size_t count);
/* Read the next piece. Returns false at the end; run->is_bad tells a broken run. */
bool dryi_opcode_run_next(struct dryi_opcode_run *run, struct dryi_opcode_piece *piece);

#endif
