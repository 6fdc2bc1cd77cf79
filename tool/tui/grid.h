/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_GRID_H
#define TOOL_GRID_H

/* A screen of characters one column wide, drawn in memory before it is shown. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum grid_style {
    GRID_PLAIN,
    GRID_BOLD,
    GRID_DIM,
    GRID_REVERSE,
    GRID_ALARM, /* red, or bold without colours */
};

struct grid_cell {
    char text[5]; /* one UTF-8 character and a zero */
    unsigned char style;
};

struct grid {
    int width, height;
    struct grid_cell *cells; /* row by row */
};

/* Make a grid of blanks. False: memory ran out. Call grid_finish() in any case. */
bool grid_init(struct grid *grid, int width, int height);
void grid_finish(struct grid *grid);

/*
 * Put `text` at a column and a row; parts outside of the grid are cut off. Control
 * characters, characters that are not one column wide, and broken UTF-8 become '?'.
 * Returns the column after the text.
 */
int grid_put(struct grid *grid, int x, int y, enum grid_style style, const char *text);
/* Put text into `width` columns; ".." replaces the middle of a longer text. */
int grid_put_cut(struct grid *grid, int x, int y, int width, enum grid_style style,
                 const char *text);
/* Put formatted text of at most 255 bytes. */
__attribute__((format(printf, 5, 6))) int grid_format(struct grid *grid, int x, int y,
                                                      enum grid_style style,
                                                      const char *format, ...);

#endif
