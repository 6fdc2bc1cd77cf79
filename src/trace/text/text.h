/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_TEXT_H
#define DRYI_TEXT_H

/*
 * Lines, words, cells and numbers of a text, each knowing its byte and its line.
 *
 * The three text formats (plain, RMM's log, lifetimes) are read through this: one line at
 * a time is held, never the file. Every complaint names the line, and the offset in the
 * error is the byte of the word it speaks of.
 *
 * Bound: a line holds at most 64 KiB and no NUL byte; what is longer is refused.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/status.h>

#include "trace/model/input.h"

#define DRYI_TEXT_LINE_BYTES_MAX 65536u

struct dryi_text {
    struct dryi_input *in;
    struct dry_error *err;
    const char *line; /* the current one, without its end */
    size_t length;
    size_t at;       /* cursor in it */
    uint64_t offset; /* of its first byte in the input */
    uint64_t number; /* from 1 */
    size_t consumed; /* bytes of the line and its end, still standing in the input */
};

/* A piece of the current line; valid until the next line. */
struct dryi_word {
    const char *bytes;
    size_t length;
    size_t at; /* in the line */
};

void dryi_text_init(struct dryi_text *t, struct dryi_input *in, struct dry_error *err);

/* Advance to the next line: DRY_OK, DRY_END after the last one, or an error. */
enum dry_status dryi_text_next_line(struct dryi_text *t);

/* The same, past empty lines and lines that begin with `comment` (0: there are none). */
enum dry_status dryi_text_next_filled(struct dryi_text *t, char comment);

/* The next word between blanks; false at the end of the line. */
bool dryi_text_next_word(struct dryi_text *t, struct dryi_word *word);

/* The next cell between commas, blanks trimmed; false past the last one. */
bool dryi_text_next_cell(struct dryi_text *t, struct dryi_word *cell);

bool dryi_word_is(const struct dryi_word *word, const char *text);

/* Fail with FORMAT at byte `at` of the current line: "line N: ...". */
__attribute__((format(printf, 3, 4))) enum dry_status dryi_text_fail(struct dryi_text *t,
                                                                     size_t at,
                                                                     const char *format,
                                                                     ...);

/* "line N: expected WHAT, found 'word'". */
enum dry_status dryi_text_fail_word(struct dryi_text *t, const struct dryi_word *word,
                                    const char *what);

/* A number from 0 to `max`: decimal, or hexadecimal after 0x. `what` names it. */
enum dry_status dryi_text_number(struct dryi_text *t, const struct dryi_word *word,
                                 const char *what, uint64_t max, uint64_t *value);

/* The next word, which must be there and be a number. */
enum dry_status dryi_text_next_number(struct dryi_text *t, const char *what, uint64_t max,
                                      uint64_t *value);

#endif
