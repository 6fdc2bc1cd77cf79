/* SPDX-License-Identifier: Apache-2.0 */

/* The idea is in opcode_run.h. Cost: O(1) a piece, plus its bytes. */
#include "trace/anonymize/opcode_run.h"

#include "trace/anonymize/public_text.h"
#include "trace/pickle/pickle.h"

void
dryi_opcode_run_init(struct dryi_opcode_run *run, const char *bytes, size_t count)
{
    *run = (struct dryi_opcode_run){.bytes = bytes, .count = count};
}

static bool
fail(struct dryi_opcode_run *run)
{
    run->is_bad = true;
    return false;
}

/* The header length of an opcode that no run may contain; larger than any run. */
#define UNKNOWN_HEAD SIZE_MAX

/* Return the bytes after an opcode that hold its number, or the length of its text. */
static size_t
count_head(uint8_t opcode)
{
    switch (opcode) {
    case DRYI_OP_EMPTY_DICT:
    case DRYI_OP_EMPTY_LIST:
    case DRYI_OP_EMPTY_TUPLE:
    case DRYI_OP_MARK:
    case DRYI_OP_APPENDS:
    case DRYI_OP_SETITEMS:
    case DRYI_OP_TUPLE:
    case DRYI_OP_TUPLE2:
    case DRYI_OP_NONE:
    case DRYI_OP_NEWTRUE:
    case DRYI_OP_NEWFALSE:
        return 0;
    case DRYI_OP_BININT1:
    case DRYI_OP_LONG1:
    case DRYI_OP_SHORT_BINUNICODE:
    case DRYI_OP_SHORT_BINBYTES:
        return 1;
    case DRYI_OP_BININT2:
        return 2;
    case DRYI_OP_BININT:
    case DRYI_OP_BINUNICODE:
    case DRYI_OP_BINBYTES:
        return 4;
    case DRYI_OP_BINFLOAT:
    case DRYI_OP_BYTEARRAY8:
        return 8;
    default:
        return UNKNOWN_HEAD;
    }
}

static enum dryi_opcode_piece_kind
get_kind(uint8_t opcode)
{
    switch (opcode) {
    case DRYI_OP_BININT:
    case DRYI_OP_BININT1:
    case DRYI_OP_BININT2:
    case DRYI_OP_LONG1:
        return DRYI_PIECE_INT;
    case DRYI_OP_BINFLOAT:
        return DRYI_PIECE_FLOAT;
    case DRYI_OP_SHORT_BINUNICODE:
    case DRYI_OP_BINUNICODE:
        return DRYI_PIECE_STRING;
    case DRYI_OP_SHORT_BINBYTES:
    case DRYI_OP_BINBYTES:
    case DRYI_OP_BYTEARRAY8:
        return DRYI_PIECE_BYTES;
    default:
        return DRYI_PIECE_MARK_UP;
    }
}

static uint64_t
load(const char *bytes, size_t count)
{
    uint64_t number = 0;
    for (size_t i = 0; i < count && i < 8; i++)
        number |= (uint64_t)(unsigned char)bytes[i] << 8 * i;
    return number;
}

/*
 * Decode an integer. BININT and LONG1 are signed; a LONG1 has at most nine bytes, of
 * which the ninth is only the sign.
 */
static void
take_int(struct dryi_opcode_piece *piece)
{
    const char *digits = piece->text;
    size_t count = piece->text_length;
    bool has_sign = piece->opcode == DRYI_OP_LONG1 || piece->opcode == DRYI_OP_BININT;
    piece->bits = load(digits, count);
    bool is_negative = has_sign && count > 0 && (unsigned char)digits[count - 1] & 0x80;
    if (is_negative && count < 8)
        piece->bits |= UINT64_MAX << 8 * count;
    piece->is_wide = is_negative || piece->bits >> 29 != 0;
}

/* Take the argument of the opcode. Returns false if the run ends inside it. */
static bool
take_argument(struct dryi_opcode_run *run, struct dryi_opcode_piece *piece)
{
    size_t left = run->count - run->at - 1, head = count_head(piece->opcode), rest = 0;
    if (head > left)
        return fail(run);
    const char *argument = piece->bytes + 1;
    bool is_counted = piece->kind == DRYI_PIECE_STRING ||
                      piece->kind == DRYI_PIECE_BYTES || piece->opcode == DRYI_OP_LONG1;
    if (is_counted) {
        uint64_t length = load(argument, head);
        if (length > left - head || (piece->opcode == DRYI_OP_LONG1 && length > 9))
            return fail(run);
        rest = (size_t)length;
    }
    piece->text = is_counted ? argument + head : argument;
    piece->text_length = is_counted ? rest : head;
    piece->length = 1 + head + rest;
    if (piece->kind == DRYI_PIECE_INT)
        take_int(piece);
    for (size_t i = 0; piece->kind == DRYI_PIECE_FLOAT && i < 8; i++)
        piece->bits = piece->bits << 8 | (unsigned char)argument[i];
    return true;
}

/* Count a value. On the outermost level, keys are the values at an even height. */
static void
push(struct dryi_opcode_run *run, const struct dryi_opcode_piece *piece)
{
    if (run->depth > 0)
        return;
    if (run->height % 2 == 0)
        run->is_key_known = piece->kind == DRYI_PIECE_STRING &&
                            dryi_public_word(piece->text, piece->text_length);
    run->height++;
}

static bool
step(struct dryi_opcode_run *run, const struct dryi_opcode_piece *piece)
{
    switch (piece->opcode) {
    case DRYI_OP_MARK:
        run->depth++;
        return true;
    case DRYI_OP_APPENDS:
    case DRYI_OP_SETITEMS:
    case DRYI_OP_TUPLE:
        if (run->depth == 0)
            return fail(run);
        run->depth--;
        if (piece->opcode == DRYI_OP_TUPLE)
            push(run, piece);
        return true;
    case DRYI_OP_TUPLE2:
        if (run->depth == 0 && run->height < 2)
            return fail(run);
        run->height -= run->depth == 0;
        return true;
    default:
        push(run, piece);
        return true;
    }
}

bool
dryi_opcode_run_next(struct dryi_opcode_run *run, struct dryi_opcode_piece *piece)
{
    if (run->is_bad)
        return false;
    if (run->at == run->count)
        return run->depth > 0 || run->height % 2 != 0 ? fail(run) : false;
    *piece = (struct dryi_opcode_piece){.bytes = run->bytes + run->at};
    piece->opcode = (uint8_t)*piece->bytes;
    piece->kind = get_kind(piece->opcode);
    if (!take_argument(run, piece) || !step(run, piece))
        return false;
    piece->has_known_key = run->is_key_known && (run->depth > 0 || run->height % 2 == 0);
    run->at += piece->length;
    return true;
}
