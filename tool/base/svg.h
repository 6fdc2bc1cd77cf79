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

#define SVG_PLOT 1200 /* pixels of the picture's columns */
#define SVG_LEFT 92   /* margins beside them */
#define SVG_RIGHT 28
#define SVG_NAME_BYTES 256 /* for the text of a tick */
#define SVG_WIDTH (SVG_LEFT + SVG_PLOT + SVG_RIGHT)

/* Attributes of a text that lies on something. */
#define SVG_HALO "paint-order=\"stroke\" stroke=\"#fff\" stroke-width=\"3\""

/* --- drawing ------------------------------------------------------------------------------ */

/* The file's beginning; svg_end() ends it. */
void svg_begin(struct writer *w, double height, const char *title);
void svg_end(struct writer *w);

/* A tenth of a pixel is enough: "12", "12.5". */
void svg_number(struct writer *w, double value);
/* A closed rectangle within a path's `d`. */
void svg_box(struct writer *w, double x0, double y0, double x1, double y1);
/* Attributes are our own and not escaped; the text is. */
void svg_text(struct writer *w, double x, double y, const char *attributes,
              const char *text);
void svg_line(struct writer *w, const double from[2], const double to[2],
              const char *attributes);

/* The next larger of 1, 2 or 5 times a power of ten, or of a power of two. */
double svg_round_step(double step, bool is_binary);
/* "4 GiB", "512 MiB", "1.5 GiB": a tick of an axis. */
const char *svg_tick_name(double bytes, char name[SVG_NAME_BYTES]);

/* --- the legend --------------------------------------------------------------------------- */

struct svg_entry {
    const char *fill; /* of its sample */
    const char *text;
};
#define SVG_LEGEND_ROW 18
/* One entry, the `index`-th of a legend in two columns that begins at `y`. */
void svg_legend(struct writer *w, double y, size_t index, const struct svg_entry *entry);

#endif
