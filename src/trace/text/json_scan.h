/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_JSON_SCAN_H
#define DRYI_JSON_SCAN_H

/*
 * Read JSON of any size token by token, in the window of an input.
 *
 * The scanner knows brackets, their nesting and which string is a key. It does not check
 * commas. Only the beginning of a string or a literal is kept: who needs more than
 * DRYI_JSON_WORD_BYTES of one reads another format.
 *
 * Errors  FORMAT with the byte, for what is no JSON or ends too early; LIMIT for nesting
 *         beyond DRYI_JSON_DEPTH_MAX.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/model/input.h"

#define DRYI_JSON_DEPTH_MAX 64u
#define DRYI_JSON_WORD_BYTES 48u

enum dryi_json_token {
    DRYI_JSON_BEGIN, /* { or [; the depth counts it */
    DRYI_JSON_END,   /* } or ]; the depth does not count it any more */
    DRYI_JSON_KEY,   /* a string before a colon */
    DRYI_JSON_STRING,
    DRYI_JSON_LITERAL, /* a number, true, false, null */
};

struct dryi_json_scan {
    struct dryi_input *in;
    struct dry_error *err;
    unsigned depth;   /* open brackets */
    uint64_t objects; /* bit d: the bracket of depth d + 1 is { */
    char
        word[DRYI_JSON_WORD_BYTES + 1]; /* the last string or literal, cut, with a zero */
    size_t length;                      /* of the whole word */
    uint64_t offset;                    /* of the last token */
};

/* Read the next token. Returns DRY_END after the end of the first value. */
enum dry_status dryi_json_next(struct dryi_json_scan *s, enum dryi_json_token *token);

/* Fail at the last token: "byte N: ...". */
enum dry_status dryi_json_fail(struct dryi_json_scan *s, const char *what);

#endif
