/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A picture of a series: memory over the value that varies, and what the card has. Values are at
 * their distance if all are numbers of one name, and side by side otherwise.
 */
#include <stdlib.h>
#include <string.h>

#include "base/svg.h"
#include "base/term.h"
#include "dryrun/series.h"

#define PLOT_TOP 92.0
#define PLOT_HEIGHT 380.0
#define PLOT_BOTTOM (PLOT_TOP + PLOT_HEIGHT)
#define LEGEND_TOP (PLOT_BOTTOM + 76)
#define HEIGHT (LEGEND_TOP + 2 * SVG_LEGEND_ROW + 8)
#define MARGIN 40.0 /* from the plot's edges to the first and last point */
#define TICK_PIXELS                                                                      \
    11.0 /* width of a letter, with its share of the distance to the next */

/* P. Tol's "muted" scheme, as in the picture of a plan. */
#define FILL_RESERVED "#332288"
#define FILL_ALLOCATED "#88ccee"
#define RED "#b00020"

struct point {
    const struct series_row *row;
    const char *name; /* the value's text: what follows the part that all labels share */
    double value;
};

struct curve {
    struct writer *w;
    struct point *points;
    size_t count;
    double first, span; /* values at the left edge, and from there to the right one */
    double top;         /* bytes at the upper edge */
};

static double
to_x(const struct curve *c, double value)
{
    double part = c->span > 0 ? (value - c->first) / c->span : 0.5;
    return SVG_LEFT + MARGIN + part * (SVG_PLOT - 2 * MARGIN);
}

static double
to_y(const struct curve *c, uint64_t bytes)
{
    return PLOT_BOTTOM - (double)bytes / c->top * PLOT_HEIGHT;
}

/* --- the points --------------------------------------------------------------------------- */

static int
compare_values(const void *a, const void *b)
{
    const struct point *x = a, *y = b;
    return (x->value > y->value) - (x->value < y->value);
}

/* Return the length of "BATCH=", of all labels; 0: they share no such part. */
static size_t
measure_shared(const struct series *s)
{
    const char *first = s->rows[0].label;
    size_t length = strcspn(first, "= ");
    length += first[length] != '\0';
    for (size_t i = 0; i < s->count; i++) {
        const char *label = s->rows[i].label;
        if (strncmp(label, first, length) != 0 || strchr(label + length, '='))
            return 0;
    }
    return length;
}

/* Place the points at their values, or at 0, 1, 2 if one is no number. */
static void
place_points(struct curve *c, const struct series *s)
{
    size_t shared = measure_shared(s);
    bool are_numbers = shared > 0;
    for (size_t i = 0; i < s->count; i++) {
        struct point *p = &c->points[i];
        char *end;
        p->row = &s->rows[i];
        p->name = p->row->label + shared;
        p->value = strtod(p->name, &end);
        are_numbers &= end != p->name && *end == '\0' && p->value - p->value == 0;
    }
    for (size_t i = 0; i < s->count && !are_numbers; i++)
        c->points[i].value = (double)i;
    qsort(c->points, c->count, sizeof *c->points, compare_values);
    c->first = c->points[0].value;
    c->span = c->points[c->count - 1].value - c->first;
}

/* --- drawing ------------------------------------------------------------------------------ */

static void
write_title(const struct curve *c, const struct series *s)
{
    char text[SVG_NAME_BYTES];
    size_t fitting = 0;
    for (size_t i = 0; i < c->count; i++)
        fitting += c->points[i].row->outcome == TRIAL_FITS;
    snprintf(text, sizeof text, "Memory at the peak of %zu dry run%s on %s", c->count,
             c->count == 1 ? "" : "s", s->request->card->title);
    svg_begin(c->w, HEIGHT, text);
    svg_text(c->w, SVG_LEFT, 30, "font-size=\"17\" font-weight=\"bold\"", text);
    snprintf(text, sizeof text, "%zu of %zu fit", fitting, c->count);
    svg_text(c->w, SVG_LEFT, 50, "fill=\"#444\"", text);
}

static void
write_bytes_axis(const struct curve *c)
{
    double step = svg_round_step(c->top / 9, true);
    for (unsigned i = 0; step * i <= c->top; i++) {
        char name[SVG_NAME_BYTES];
        double y = to_y(c, (uint64_t)(step * i));
        const double from[] = {SVG_LEFT, y}, to[] = {SVG_LEFT + SVG_PLOT, y};
        svg_line(c->w, from, to, "stroke=\"#ccc\" stroke-width=\".6\"");
        svg_text(c->w, SVG_LEFT - 8, y + 4, "text-anchor=\"end\"",
                 svg_tick_name(step * i, name));
    }
}

/* Name each value that has the space for its text. */
static void
write_values(const struct curve *c, const struct series *s)
{
    double right = 0;
    for (size_t i = 0; i < c->count; i++) {
        const struct point *p = &c->points[i];
        double x = to_x(c, p->value), half = (double)strlen(p->name) * TICK_PIXELS / 2;
        if (i > 0 && x - half < right)
            continue;
        right = x + half;
        svg_text(c->w, x, PLOT_BOTTOM + 19, "text-anchor=\"middle\"", p->name);
    }
    char text[SVG_NAME_BYTES];
    snprintf(text, sizeof text, "%.*s", (int)strcspn(c->points[0].row->label, "= "),
             c->points[0].row->label);
    svg_text(c->w, SVG_LEFT + SVG_PLOT / 2.0, PLOT_BOTTOM + 42, "text-anchor=\"middle\"",
             measure_shared(s) ? text : s->heading);
}

static uint64_t
get_bytes(const struct point *p, bool is_reserved)
{
    return is_reserved ? p->row->reserved : p->row->allocated;
}

/* Draw a line through the runs that fit, and a mark at each: the others would need more. */
static void
write_curve(const struct curve *c, bool is_reserved)
{
    const char *fill = is_reserved ? FILL_RESERVED : FILL_ALLOCATED;
    const struct point *last = NULL;
    char attributes[80];
    snprintf(attributes, sizeof attributes, "stroke=\"%s\" stroke-width=\"2\"", fill);
    for (size_t i = 0; i < c->count; i++) {
        const struct point *p = &c->points[i];
        if (p->row->outcome != TRIAL_FITS)
            continue;
        const double to[] = {to_x(c, p->value), to_y(c, get_bytes(p, is_reserved))};
        if (last) {
            const double from[] = {to_x(c, last->value),
                                   to_y(c, get_bytes(last, is_reserved))};
            svg_line(c->w, from, to, attributes);
        }
        last = p;
        writer_format(c->w, "<path fill=\"%s\" d=\"", fill);
        svg_box(c->w, to[0] - 4, to[1] - 4, to[0] + 4, to[1] + 4);
        writer_put(c->w, "\"/>\n");
    }
}

/* Cross out the runs that do not fit: their memory is what they had when the request failed. */
static void
write_failures(const struct curve *c)
{
    for (size_t i = 0; i < c->count; i++) {
        const struct point *p = &c->points[i];
        double x = to_x(c, p->value), y = to_y(c, p->row->reserved);
        if (p->row->outcome == TRIAL_FITS)
            continue;
        y = p->row->outcome == TRIAL_NOT_KNOWN ? PLOT_BOTTOM : y;
        const double left[] = {x - 8, y - 8}, right[] = {x + 8, y + 8};
        const double low[] = {x - 8, y + 8}, high[] = {x + 8, y - 8};
        svg_line(c->w, left, right, "stroke=\"" RED "\" stroke-width=\"2.5\"");
        svg_line(c->w, low, high, "stroke=\"" RED "\" stroke-width=\"2.5\"");
    }
}

static void
write_card(const struct curve *c, const struct series *s, uint64_t torch_bytes)
{
    char text[SVG_NAME_BYTES], bytes[TERM_NUMBER_BYTES];
    snprintf(text, sizeof text, "%s leaves %s to PyTorch", s->request->card->name,
             term_format_bytes(torch_bytes, bytes));
    if ((double)torch_bytes > c->top) {
        svg_text(c->w, SVG_LEFT + SVG_PLOT, PLOT_TOP - 8,
                 "text-anchor=\"end\" fill=\"" RED "\"", text);
        return;
    }
    double y = to_y(c, torch_bytes);
    const double from[] = {SVG_LEFT, y}, to[] = {SVG_LEFT + SVG_PLOT, y};
    svg_line(c->w, from, to,
             "stroke=\"" RED "\" stroke-width=\"1.5\" stroke-dasharray=\"5 3\"");
    svg_text(c->w, SVG_LEFT + 6, y - 5, SVG_HALO " fill=\"" RED "\" font-weight=\"bold\"",
             text);
}

/* A card far above all runs is told in words: its line would press them to the ground. */
static uint64_t
choose_top(struct curve *c)
{
    uint64_t most = 1, card = UINT64_MAX;
    for (size_t i = 0; i < c->count; i++) {
        const struct series_row *row = c->points[i].row;
        most = row->reserved > most ? row->reserved : most;
        card = row->torch_bytes < card ? row->torch_bytes : card;
    }
    c->top = (double)(card / 2 < most && card > most ? card : most) * 1.07;
    return card;
}

bool
series_write_svg(const struct series *s, struct writer *w)
{
    struct curve c = {.w = w, .count = s->count};
    static const struct svg_entry entries[] = {
        {.fill = FILL_RESERVED, .text = "reserved: taken from the card"},
        {.fill = RED, .text = "a cross: does not fit, at what it had then, or failed"},
        {.fill = FILL_ALLOCATED, .text = "allocated: in blocks"},
    };
    c.points = calloc(s->count + 1, sizeof *c.points);
    if (!c.points || s->count == 0) {
        free(c.points);
        return s->count == 0;
    }
    place_points(&c, s);
    uint64_t card = choose_top(&c);
    write_title(&c, s);
    write_bytes_axis(&c);
    write_curve(&c, false);
    write_curve(&c, true);
    write_failures(&c);
    write_card(&c, s, card);
    write_values(&c, s);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        svg_legend(w, LEGEND_TOP, i, &entries[i]);
    svg_end(w);
    free(c.points);
    return true;
}
