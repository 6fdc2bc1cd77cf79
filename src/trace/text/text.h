/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_TEXT_H
#define DRYI_TEXT_H

/*
 * Lines, words, cells and numbers of a text, each with its byte offset and line.
 *
 * The text formats (plain, RMM's log, lifetimes, dumps in logs) are read through this. Only one
 * line at a time is in memory, never the file. Every error text names the line, and its
 * offset is the byte of the word in question.
 *
 * Bound: a line with more than 64 KiB or a NUL byte is refused. In a log, long lines lose
 * their beginning instead: programs draw their progress in them.
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
    const char *line; /* current line, without its end */
    size_t length;
    size_t at;       /* cursor in the line */
    uint64_t offset; /* offset of the line in the input */
    uint64_t number; /* line number from 1 */
    size_t consumed; /* bytes of line and line end, still unread in the input */
    bool skips_long_lines;
};

/* A word of the current line, valid until the next line is read. */
struct dryi_word {
    const char *bytes;
    size_t length;
    size_t at; /* offset in the line */
};

void dryi_text_init(struct dryi_text *t, struct dryi_input *in, struct dry_error *err);

/* Read the next line. Returns DRY_OK, DRY_END after the last one, or an error. */
enum dry_status dryi_text_next_line(struct dryi_text *t);

/* Read the next line that is not empty and does not begin with `comment` (0: any). */
enum dry_status dryi_text_next_filled(struct dryi_text *t, char comment);

/* Return the next word between blanks. False at the end of the line. */
bool dryi_text_next_word(struct dryi_text *t, struct dryi_word *word);

/* Return the next cell between commas, trimmed. False after the last one. */
bool dryi_text_next_cell(struct dryi_text *t, struct dryi_word *cell);

bool dryi_word_is(const struct dryi_word *word, const char *text);

/* Fail with FORMAT at byte `at` of the current line: "line N: ...". */
__attribute__((format(printf, 3, 4))) enum dry_status dryi_text_fail(struct dryi_text *t,
                                                                     size_t at,
                                                                     const char *format,
                                                                     ...);

/* Fail with "line N: expected WHAT, found 'word'". */
enum dry_status dryi_text_fail_word(struct dryi_text *t, const struct dryi_word *word,
                                    const char *what);

/* Parse a number up to `max`: decimal, or hexadecimal with 0x. Errors name `what`. */
enum dry_status dryi_text_number(struct dryi_text *t, const struct dryi_word *word,
                                 const char *what, uint64_t max, uint64_t *value);

/* Parse the next word as a number; a missing one is refused. */
enum dry_status dryi_text_next_number(struct dryi_text *t, const char *what, uint64_t max,
                                      uint64_t *value);

#endif
