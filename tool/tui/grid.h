/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_GRID_H
#define TOOL_GRID_H

/* A screen of characters, each one column wide, drawn before anything is shown. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum grid_style {
    GRID_PLAIN,
    GRID_BOLD,
    GRID_DIM,
    GRID_REVERSE,
    GRID_ALARM, /* red, where there are colours; bold, where not */
};

struct grid_cell {
    char text[5]; /* one character of UTF-8, with its zero */
    unsigned char style;
};

struct grid {
    int width, height;
    struct grid_cell *cells; /* by row */
};

/* Make a grid of spaces. False: no memory. grid_finish() is due in any case. */
bool grid_init(struct grid *grid, int width, int height);
void grid_finish(struct grid *grid);

/*
 * Put `text` at a column and a row; what lies outside is not drawn. A control character, one
 * that is not one column wide, and broken UTF-8 become '?'. Returns the column behind.
 */
int grid_put(struct grid *grid, int x, int y, enum grid_style style, const char *text);
/* The same, into `width` columns: a longer text loses its middle to "..". */
int grid_put_cut(struct grid *grid, int x, int y, int width, enum grid_style style,
                 const char *text);
/* The same as printf() does, at most 255 bytes. */
__attribute__((format(printf, 5, 6))) int grid_format(struct grid *grid, int x, int y,
                                                      enum grid_style style,
                                                      const char *format, ...);

#endif
