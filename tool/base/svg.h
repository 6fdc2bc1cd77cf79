/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_SVG_H
#define TOOL_SVG_H

/*
 * The parts of pictures: rectangles in paths, lines, text, a legend. Dark on white, no
 * scripts, nothing from outside; what colours say is also said by position or text.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/writer.h"

#define SVG_PLOT 1200 /* width of the plot area in pixels */
#define SVG_LEFT 92   /* margins left and right of the plot in pixels */
#define SVG_RIGHT 28
#define SVG_NAME_BYTES 256 /* room for the text of a tick */
#define SVG_WIDTH (SVG_LEFT + SVG_PLOT + SVG_RIGHT)

/* Attributes of a text over other shapes: a white outline keeps it readable. */
#define SVG_HALO "paint-order=\"stroke\" stroke=\"#fff\" stroke-width=\"3\""

/* --- drawing ------------------------------------------------------------------------------ */

/* The file's beginning; svg_end() ends it. */
void svg_begin(struct writer *w, double height, const char *title);
void svg_end(struct writer *w);

/* Write a number with at most one decimal: a tenth of a pixel suffices. */
void svg_number(struct writer *w, double value);
/* Add a closed rectangle to a path's `d` attribute. */
void svg_box(struct writer *w, double x0, double y0, double x1, double y1);
/* Write a text element. `attributes` are written verbatim, `text` is escaped. */
void svg_text(struct writer *w, double x, double y, const char *attributes,
              const char *text);
void svg_line(struct writer *w, const double from[2], const double to[2],
              const char *attributes);

/* Round up to 1, 2 or 5 times a power of ten, or to a power of two. */
double svg_round_step(double step, bool is_binary);
/* Write an axis tick's label: "4 GiB", "512 MiB", "1.5 GiB". */
const char *svg_tick_name(double bytes, char name[SVG_NAME_BYTES]);

/* --- the legend --------------------------------------------------------------------------- */

struct svg_entry {
    const char *fill; /* fill of its sample */
    const char *text;
};
#define SVG_LEGEND_ROW 18
/* Draw entry `index` of a two-column legend whose top is at `y`. */
void svg_legend(struct writer *w, double y, size_t index, const struct svg_entry *entry);

#endif
