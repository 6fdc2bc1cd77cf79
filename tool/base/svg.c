/* SPDX-License-Identifier: Apache-2.0 */
/* See svg.h. */
#include "base/svg.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- drawing ------------------------------------------------------------------------------ */

void
svg_begin(struct writer *w, double height, const char *title)
{
    writer_format(w,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
                  "height=\"%.0f\" viewBox=\"0 0 %d %.0f\" role=\"img\" ",
                  SVG_WIDTH, height, SVG_WIDTH, height);
    writer_put(w,
               "font-family=\"sans-serif\" font-size=\"12\" fill=\"#1a1a1a\">\n<title>");
    writer_xml(w, title, strlen(title));
    writer_put(w, "</title>\n");
    writer_format(w, "<rect width=\"%d\" height=\"%.0f\" fill=\"#fff\"/>\n", SVG_WIDTH,
                  height);
}

void
svg_end(struct writer *w)
{
    writer_put(w, "</svg>\n");
}

void
svg_number(struct writer *w, double value)
{
    long tenths = lround(value * 10);
    if (tenths % 10 == 0)
        writer_format(w, "%ld", tenths / 10);
    else
        writer_format(w, "%s%ld.%ld", tenths < 0 ? "-" : "", labs(tenths) / 10,
                      labs(tenths) % 10);
}

void
svg_box(struct writer *w, double x0, double y0, double x1, double y1)
{
    writer_char(w, 'M');
    svg_number(w, x0);
    writer_char(w, ' ');
    svg_number(w, y0);
    writer_char(w, 'H');
    svg_number(w, x1);
    writer_char(w, 'V');
    svg_number(w, y1);
    writer_char(w, 'H');
    svg_number(w, x0);
    writer_char(w, 'z');
}

void
svg_text(struct writer *w, double x, double y, const char *attributes, const char *text)
{
    writer_put(w, "<text x=\"");
    svg_number(w, x);
    writer_put(w, "\" y=\"");
    svg_number(w, y);
    writer_put(w, "\" ");
    writer_put(w, attributes);
    writer_char(w, '>');
    writer_xml(w, text, strlen(text));
    writer_put(w, "</text>\n");
}

void
svg_line(struct writer *w, const double from[2], const double to[2],
         const char *attributes)
{
    writer_put(w, "<path d=\"M");
    svg_number(w, from[0]);
    writer_char(w, ' ');
    svg_number(w, from[1]);
    writer_char(w, 'L');
    svg_number(w, to[0]);
    writer_char(w, ' ');
    svg_number(w, to[1]);
    writer_put(w, "\" ");
    writer_put(w, attributes);
    writer_put(w, "/>\n");
}

double
svg_round_step(double step, bool is_binary)
{
    if (is_binary)
        return exp2(ceil(log2(step)));
    double power = pow(10, floor(log10(step)));
    double part = step / power;
    return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

const char *
svg_tick_name(double bytes, char name[SVG_NAME_BYTES])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t unit = 0;
    for (; bytes >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
        bytes /= 1024;
    snprintf(name, SVG_NAME_BYTES, "%g %s", bytes, units[unit]);
    return name;
}

/* --- the legend --------------------------------------------------------------------------- */

void
svg_legend(struct writer *w, double y, size_t index, const struct svg_entry *entry)
{
    size_t row = index / 2, column = index % 2;
    double x = SVG_LEFT + (double)column * (SVG_PLOT / 2.0);
    y += (double)row * SVG_LEGEND_ROW;
    writer_format(w,
                  "<rect x=\"%.0f\" y=\"%.0f\" width=\"22\" height=\"11\" "
                  "fill=\"%s\" stroke=\"#444\" stroke-width=\".5\"/>\n",
                  x, y - 10, entry->fill);
    svg_text(w, x + 30, y, "", entry->text);
}
