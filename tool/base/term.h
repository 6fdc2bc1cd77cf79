/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TERM_H
#define TOOL_TERM_H

/* Terminal output for people: colours, widths, sizes, and text from files made safe. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct term {
    FILE *out;
    bool is_terminal; /* false: a pipe or a file, whose lines may have any length */
    bool has_color;   /* a terminal, and NO_COLOR is not set */
    bool has_width;   /* a terminal, or COLUMNS is set: tables keep to `width` */
    int width;        /* columns; 80 if unknown */
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
/* Return the escape sequence that begins a style, or "" without colours. TERM_PLAIN ends
   a style. */
const char *term_style(const struct term *term, enum term_style style);

/*
 * Copy bytes of a file as printable text: valid UTF-8 stays; controls, characters that
 * nobody sees and invalid bytes become '?'. Writes at most `capacity` bytes including the zero, cut
 * between characters. Returns the length.
 */
size_t term_make_printable(char *to, size_t capacity, const char *bytes, size_t length);
void term_print_text(FILE *out, const char *bytes, size_t length);

/*
 * Print a report's first line, "run.pickle: device 0, 97 events", with the file's name in
 * `style`. If both together are wider than the line, the rest goes to the next line, in a
 * pipe too. A file name wider than a line is cut at its beginning.
 */
__attribute__((format(printf, 4, 5))) void term_print_subject(const struct term *term,
                                                              const char *file,
                                                              enum term_style style,
                                                              const char *format, ...);

/* Return the terminal columns of printable text; every character counts as one column. */
size_t term_columns(const char *text);
/* Return `text` advanced by `columns` terminal columns. */
const char *term_skip_columns(const char *text, size_t columns);

/* Print words broken at `width`, with later lines indented to `column`, and end the line.
   A number and its unit are not separated. */
void term_print_wrapped(FILE *out, const char *text, int column, int width);
/* Print like term_print_wrapped(), for identifiers and paths: a word longer than the line
   is cut at its beginning. */
void term_print_name(FILE *out, const char *text, int column, int width);

/* Format a size in binary units, from KiB on with two decimals: "512 B", "13.21 GiB". */
#define TERM_NUMBER_BYTES 32
const char *term_format_bytes(uint64_t bytes, char text[TERM_NUMBER_BYTES]);
/* Format a count in groups of three digits: "1 234 567". */
const char *term_format_count(uint64_t count, char text[TERM_NUMBER_BYTES]);
/* Format a duration: "3 h 2 min", "12.5 s", "340 ms", "12 us". */
const char *term_format_time(uint64_t time_us, char text[TERM_NUMBER_BYTES]);

#endif
