/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TERM_H
#define TOOL_TERM_H

/* Text for people: colours where they are wanted, widths, sizes, and nothing hostile. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct term {
    FILE *out;
    bool is_terminal; /* else a pipe or a file, where nothing need be cut */
    bool has_color;   /* a terminal, and NO_COLOR is not set */
    bool has_width;   /* a terminal, or COLUMNS is given: tables keep to the width */
    int width;        /* columns; 80 where it is not known */
};

void term_init(struct term *term, FILE *out);

enum term_style {
    TERM_PLAIN,
    TERM_BOLD,
    TERM_DIM,
    TERM_RED,
    TERM_GREEN,
    TERM_YELLOW,
};
/* The sequence that begins a style, or "" without colours; TERM_PLAIN ends it. */
const char *term_style(const struct term *term, enum term_style style);

/*
 * Bytes of a file as text: valid UTF-8 stays, control characters and the rest become '?'.
 * Writes at most `capacity` bytes with the zero, cut between characters; returns the
 * length.
 */
size_t term_make_printable(char *to, size_t capacity, const char *bytes, size_t length);
void term_print_text(FILE *out, const char *bytes, size_t length);

/*
 * Print a report's first line, "run.pickle: device 0, 97 events", the file's name in
 * `style`. If the two are too long together, the rest is a line of its own, in a pipe too.
 * A name that is longer than a line shows its end.
 */
__attribute__((format(printf, 4, 5))) void term_print_subject(const struct term *term,
                                                              const char *file,
                                                              enum term_style style,
                                                              const char *format, ...);

/* Terminal columns of printable text, taking every character for one wide. */
size_t term_columns(const char *text);
/* Return `text` advanced by `columns` terminal columns. */
const char *term_skip_columns(const char *text, size_t columns);

/*
 * Words broken at `width`, later lines beginning at `column`; ends the line. A number and its
 * unit stay together.
 */
void term_print_wrapped(FILE *out, const char *text, int column, int width);
/* The same for a name in code: a word that is longer than the line keeps its end. */
void term_print_name(FILE *out, const char *text, int column, int width);

/* "13.21 GiB", "512 B": binary units, two digits behind the point from KiB on. */
#define TERM_NUMBER_BYTES 32
const char *term_format_bytes(uint64_t bytes, char text[TERM_NUMBER_BYTES]);
/* "1 234 567", in groups of three. */
const char *term_format_count(uint64_t count, char text[TERM_NUMBER_BYTES]);
/* "3 h 2 min", "12.5 s", "340 ms", "12 us". */
const char *term_format_time(uint64_t time_us, char text[TERM_NUMBER_BYTES]);

#endif
