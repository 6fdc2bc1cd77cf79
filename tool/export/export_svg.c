/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeline as a picture. Live memory is stacked by the line that allocated it, over
 * 1,200 columns, under the curve of reserved memory. Each column shows its highest
 * moment, so the peak is always drawn. A line's area is exact, however small its
 * allocations are. Allocations of some pixels' height get an outline. The size of the
 * file depends on the pixels, not on the events.
 */
#include "export/export.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/svg.h"
#include "base/term.h"
#include "export/export_svg.h"
#include "export/svg_owners.h"

#define PLOT_TOP 92.0
#define PLOT_HEIGHT 480.0
#define PLOT_BOTTOM (PLOT_TOP + PLOT_HEIGHT)
#define LEGEND_TOP (PLOT_BOTTOM + 74)
#define TALL_PIXELS 4 /* least height for an outline */
#define OOMS_MAX 50   /* marks */

struct picture {
    const struct export_job *job;
    struct writer *w;
    const struct dry_timeline *timeline;
    const struct dry_timeline_view *view;
    struct dry_axis axis;
    double column_pixels;
    uint64_t top; /* bytes at the upper edge of the plot */
    struct dry_drawing *drawing;
    struct dry_curve_column *curve; /* the curve that is drawn now */
    uint64_t *sums;                 /* bytes by slot, then by column */
    uint64_t *heights;              /* by column: bytes drawn so far */
    struct svg_owners owners;
    uint64_t slot_bytes[SVG_SLOT_COUNT]; /* bytes of each slot at the peak */
};

static double
x_of(const struct picture *p, double column)
{
    return SVG_LEFT + column * p->column_pixels;
}

static double
y_of(const struct picture *p, double bytes)
{
    return PLOT_BOTTOM - bytes / (double)p->top * PLOT_HEIGHT;
}

/* --- preparing ---------------------------------------------------------------------------- */

static bool
fill_curve(struct picture *p, enum dry_curve curve)
{
    struct dry_error err;
    enum dry_status status =
        dry_timeline_curve(p->timeline, curve, &p->axis, p->curve, &err);
    if (status != DRY_OK)
        writer_fail(p->w, status, "%s", err.text);
    return status == DRY_OK;
}

static bool
choose_axis(struct picture *p)
{
    const struct dry_timeline_view *v = p->view;
    uint32_t moments = v->dump_moment + 1;
    bool has_times = dry_timeline_time(p->timeline, v->dump_moment) >
                     dry_timeline_time(p->timeline, 0);
    p->axis = (struct dry_axis){.to = moments, .column_count = SVG_PLOT};
    p->axis.is_time = p->job->is_by_time && has_times;
    if (!p->axis.is_time && moments < SVG_PLOT)
        p->axis.column_count = moments;
    if (p->job->is_by_time && !has_times)
        export_note(p->job, "there are no times: the axis counts events");
    p->column_pixels = (double)SVG_PLOT / p->axis.column_count;
    uint64_t reserved = v->peaks[DRY_CURVE_RESERVED].bytes;
    uint64_t active = v->peaks[DRY_CURVE_ACTIVE].bytes;
    p->top = reserved > active ? reserved : active;
    p->top += p->top / 12 + 1; /* space for the marks above the curve */
    p->curve = malloc(p->axis.column_count * sizeof *p->curve);
    if (!p->curve)
        writer_fail(p->w, DRY_ERR_MEMORY, "no memory");
    return p->curve != NULL;
}

/* Find the moment of each column, and the allocations tall enough for an outline. */
static bool
draw_stack(struct picture *p)
{
    uint64_t pixel = p->top / (uint64_t)PLOT_HEIGHT + 1;
    uint64_t tall = pixel < UINT64_MAX / TALL_PIXELS ? pixel * TALL_PIXELS : UINT64_MAX;
    struct dry_error err;
    enum dry_status status = dry_drawing_create(
        p->timeline, &p->axis, DRY_STACKING_LONG_LIVED, tall, &p->drawing, &err);
    p->sums = calloc((size_t)SVG_SLOT_COUNT * p->axis.column_count, sizeof *p->sums);
    p->heights = calloc(p->axis.column_count, sizeof *p->heights);
    if (status != DRY_OK)
        writer_fail(p->w, status, "%s", err.text);
    else if (!p->sums || !p->heights)
        writer_fail(p->w, DRY_ERR_MEMORY, "no memory");
    return p->w->status == DRY_OK;
}

/* Return the first column whose moment is at or after this one. */
static uint32_t
find_column(const struct picture *p, uint32_t moment)
{
    uint32_t low = 0, high = p->axis.column_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (p->drawing->columns[middle].moment < moment)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static enum dry_status
add_peak(void *self, uint32_t number)
{
    struct picture *p = self;
    const struct dry_allocation *a = p->view->allocations + number;
    p->slot_bytes[svg_owners_slot(&p->owners, a)] += a->size;
    return DRY_OK;
}

/* Mark in each column what begins and ends there; prefix sums give the live bytes. */
static void
sum_up_slots(struct picture *p)
{
    uint32_t count = p->axis.column_count;
    for (uint32_t i = 0; i < p->view->allocation_count; i++) {
        const struct dry_allocation *a = p->view->allocations + i;
        uint32_t begin = find_column(p, a->begin), end = find_column(p, a->end);
        uint64_t *sums = p->sums + svg_owners_slot(&p->owners, a) * (size_t)count;
        if (begin >= end)
            continue;
        sums[begin] += a->size;
        if (end < count)
            sums[end] -= a->size;
    }
    for (size_t i = 0; i < (size_t)SVG_SLOT_COUNT * count; i++)
        p->sums[i] += i % count > 0 ? p->sums[i - 1] : 0;
}

/* Weight what is alive at the peak so that any of it outranks all areas together. */
static enum dry_status
add_peak_weight(void *self, uint32_t number)
{
    struct picture *p = self;
    const struct dry_allocation *a = p->view->allocations + number;
    double whole =
        (double)p->axis.column_count * (double)p->view->peaks[DRY_CURVE_ACTIVE].bytes;
    svg_owners_add(&p->owners, a, (double)a->size * (1 + whole));
    return DRY_OK;
}

/*
 * Give colours to the lines that hold most at the peak, whose bytes the legend shows.
 * Lines that hold nothing at the peak are ranked by area.
 */
static bool
rank_owners(struct picture *p)
{
    if (!svg_owners_init(&p->owners, p->job)) {
        writer_fail(p->w, DRY_ERR_MEMORY, "no memory");
        return false;
    }
    for (uint32_t i = 0; i < p->view->allocation_count; i++) {
        const struct dry_allocation *a = p->view->allocations + i;
        uint32_t begin = find_column(p, a->begin), end = find_column(p, a->end);
        if (begin < end)
            svg_owners_add(&p->owners, a, (double)(end - begin) * (double)a->size);
    }
    uint32_t peak = p->view->peaks[DRY_CURVE_ACTIVE].moment;
    dry_timeline_visit_alive(p->timeline, peak, add_peak_weight, p);
    svg_owners_rank(&p->owners);
    sum_up_slots(p);
    dry_timeline_visit_alive(p->timeline, peak, add_peak, p);
    return true;
}

/* --- frame and axes ----------------------------------------------------------------------- */

static void
write_title(struct picture *p)
{
    const struct dry_timeline_view *v = p->view;
    char text[EXPORT_NAME_BYTES + 64], name[EXPORT_NAME_BYTES];
    char count[TERM_NUMBER_BYTES], active[TERM_NUMBER_BYTES], reserved[TERM_NUMBER_BYTES];
    size_t length = strlen(p->job->path);
    const char *base = export_base_name(p->job->path, &length);
    term_make_printable(name, sizeof name, base, length);
    snprintf(text, sizeof text,
             "%s, GPU %d: memory in use, by the line that asked for it", name,
             (int)v->device);
    svg_begin(p->w, LEGEND_TOP + 7 * SVG_LEGEND_ROW + 14, text);
    svg_text(p->w, SVG_LEFT, 30, "font-size=\"17\" font-weight=\"bold\"", text);
    snprintf(text, sizeof text, "%s event%s; at the highest %s in use, %s reserved%s%s",
             term_format_count(v->event_count, count), v->event_count == 1 ? "" : "s",
             term_format_bytes(v->peaks[DRY_CURVE_ACTIVE].bytes, active),
             term_format_bytes(v->peaks[DRY_CURVE_RESERVED].bytes, reserved),
             v->oom_count > 0 ? "; out of memory" : "",
             p->job->study->is_simulated ? "; simulated by PyTorch's rules" : "");
    svg_text(p->w, SVG_LEFT, 50, "fill=\"#444\"", text);
}

static void
write_y_axis(struct picture *p)
{
    double step = svg_round_step((double)p->top / 9, true);
    for (unsigned i = 0; step * i <= (double)p->top; i++) {
        char name[EXPORT_NAME_BYTES];
        double bytes = step * i;
        double y = y_of(p, bytes);
        double from[] = {SVG_LEFT, y}, to[] = {SVG_LEFT + SVG_PLOT, y};
        svg_line(p->w, from, to, "stroke=\"#ccc\" stroke-width=\".6\"");
        svg_text(p->w, SVG_LEFT - 8, y + 4, "text-anchor=\"end\"",
                 svg_tick_name(bytes, name));
    }
}

static void
write_x_axis(struct picture *p)
{
    bool is_time = p->axis.is_time;
    double first = (double)p->view->first_event;
    double span = p->view->dump_moment;
    if (is_time)
        span = ((double)dry_timeline_time(p->timeline, p->view->dump_moment) -
                (double)dry_timeline_time(p->timeline, 0)) /
               1e6;
    double step = svg_round_step(span / 11, false);
    if (!is_time && step < 1)
        step = 1;
    for (unsigned i = 0; span > 0 && step * i <= span * 1.0001; i++) {
        char name[EXPORT_NAME_BYTES];
        double at = step * i;
        double x = SVG_LEFT + at / span * SVG_PLOT;
        double from[] = {x, PLOT_BOTTOM}, to[] = {x, PLOT_BOTTOM + 5};
        term_format_count((uint64_t)(first + at), name);
        if (is_time)
            snprintf(name, sizeof name, "%.6g s", at);
        svg_line(p->w, from, to, "stroke=\"#1a1a1a\"");
        svg_text(p->w, x, PLOT_BOTTOM + 19, "text-anchor=\"middle\"", name);
    }
    double from[] = {SVG_LEFT, PLOT_BOTTOM}, to[] = {SVG_LEFT + SVG_PLOT, PLOT_BOTTOM};
    svg_line(p->w, from, to, "stroke=\"#1a1a1a\"");
    svg_text(p->w, SVG_LEFT + SVG_PLOT / 2.0, PLOT_BOTTOM + 38, "text-anchor=\"middle\"",
             is_time ? "time since the first event" : "event of the file");
}

/* --- the stack ---------------------------------------------------------------------------- */

/* Write the area of a slot, as one box for adjacent columns of equal height. */
static void
write_area(struct picture *p, unsigned slot)
{
    uint32_t count = p->axis.column_count;
    const uint64_t *sums = p->sums + slot * (size_t)count;
    writer_format(p->w, "<path fill=\"%s\" d=\"", svg_slot_fill(slot));
    for (uint32_t i = 0; i < count;) {
        uint32_t end = i + 1;
        while (end < count && sums[end] == sums[i] && p->heights[end] == p->heights[i])
            end++;
        if (sums[i] > 0)
            svg_box(p->w, x_of(p, i), y_of(p, (double)p->heights[i] + (double)sums[i]),
                    x_of(p, end), y_of(p, (double)p->heights[i]));
        i = end;
    }
    writer_put(p->w, "\"/>\n");
}

/* Write the outline of one tall allocation, on top of the allocations drawn before. */
static void
write_edge(struct picture *p, const uint64_t *laid, const uint32_t columns[2],
           uint64_t size)
{
    double bottom = (double)laid[columns[0]];
    writer_char(p->w, 'M');
    svg_number(p->w, x_of(p, columns[0]));
    writer_char(p->w, ' ');
    svg_number(p->w, y_of(p, bottom));
    for (uint32_t i = columns[0]; i < columns[1];) {
        bottom = (double)laid[i];
        writer_char(p->w, 'V');
        svg_number(p->w, y_of(p, bottom + (double)size));
        for (uint64_t level = laid[i]; i < columns[1] && laid[i] == level;)
            i++;
        writer_char(p->w, 'H');
        svg_number(p->w, x_of(p, i));
    }
    writer_char(p->w, 'V');
    svg_number(p->w, y_of(p, bottom));
}

/* Outline the tall allocations of a slot, stacked from the bottom of its area. */
static void
write_tall(struct picture *p, unsigned slot, uint64_t *laid)
{
    const struct dry_drawing *d = p->drawing;
    memcpy(laid, p->heights, p->axis.column_count * sizeof *laid);
    writer_put(p->w, "<path fill=\"none\" stroke=\"#fff\" stroke-width=\".5\" d=\"");
    for (size_t i = 0, end; i < d->run_count; i = end) {
        const struct dry_allocation *a = p->view->allocations + d->runs[i].allocation;
        for (end = i + 1; end < d->run_count; end++) {
            if (d->runs[end].allocation != d->runs[i].allocation)
                break;
        }
        const uint32_t columns[] = {d->runs[i].column, d->runs[end - 1].column_end};
        if (svg_owners_slot(&p->owners, a) != slot)
            continue;
        /* A narrower life would show only its two edges. */
        if ((columns[1] - columns[0]) * p->column_pixels >= TALL_PIXELS)
            write_edge(p, laid, columns, a->size);
        for (uint32_t k = columns[0]; k < columns[1]; k++)
            laid[k] += a->size;
    }
    writer_put(p->w, "\"/>\n");
}

/* Write the areas: memory from before the recording at the bottom, then the largest. */
static void
write_stack(struct picture *p)
{
    uint32_t count = p->axis.column_count;
    uint64_t *laid = malloc(count * sizeof *laid);
    if (!laid) {
        writer_fail(p->w, DRY_ERR_MEMORY, "no memory");
        return;
    }
    writer_put(p->w, "<g shape-rendering=\"crispEdges\">\n");
    for (unsigned i = 0; i < SVG_SLOT_COUNT; i++) {
        unsigned slot = i == 0 ? SVG_SLOT_CARRIED : i - 1;
        write_area(p, slot);
        write_tall(p, slot, laid);
        for (uint32_t k = 0; k < count; k++)
            p->heights[k] += p->sums[slot * (size_t)count + k];
    }
    writer_put(p->w, "</g>\n");
    free(laid);
}

/* --- curves and marks --------------------------------------------------------------------- */

static void
move_to(struct picture *p, double *at, double y)
{
    if (fabs(y - *at) < 0.05)
        return;
    writer_char(p->w, 'V');
    svg_number(p->w, y);
    *at = y;
}

/* Draw the highest value of each column, as the areas do. */
static void
write_curve(struct picture *p, enum dry_curve curve, const char *attributes)
{
    if (!fill_curve(p, curve))
        return;
    double at = y_of(p, (double)p->curve[0].max);
    writer_put(p->w, "<path fill=\"none\" ");
    writer_put(p->w, attributes);
    writer_put(p->w, " d=\"M");
    svg_number(p->w, x_of(p, 0));
    writer_char(p->w, ' ');
    svg_number(p->w, at);
    for (uint32_t i = 0; i < p->axis.column_count; i++) {
        const struct dry_curve_column *c = p->curve + i;
        move_to(p, &at, y_of(p, (double)c->max));
        if (i + 1 < p->axis.column_count && c[1].max == c->max)
            continue;
        writer_char(p->w, 'H');
        svg_number(p->w, x_of(p, i + 1));
    }
    writer_put(p->w, "\"/>\n");
}

/* Return the middle of the column of a moment. Requires that p->curve is filled. */
static double
x_of_moment(const struct picture *p, uint32_t moment)
{
    for (uint32_t i = 0; i < p->axis.column_count; i++) {
        if (moment < p->curve[i].end)
            return x_of(p, i + 0.5);
    }
    return x_of(p, p->axis.column_count);
}

/* Write a text next to x, on the side where it stays within the picture. */
static void
write_label(struct picture *p, double x, double y, const char *attributes,
            const char *text)
{
    char all[EXPORT_NAME_BYTES];
    bool is_right = x > SVG_LEFT + SVG_PLOT * 0.8;
    snprintf(all, sizeof all, SVG_HALO " %s text-anchor=\"%s\"", attributes,
             is_right ? "end" : "start");
    svg_text(p->w, is_right ? x - 6 : x + 6, y, all, text);
}

static void
write_peak(struct picture *p)
{
    const struct dry_peak *peak = p->view->peaks + DRY_CURVE_ACTIVE;
    char text[EXPORT_NAME_BYTES], bytes[TERM_NUMBER_BYTES];
    double x = x_of_moment(p, peak->moment), y = y_of(p, (double)peak->bytes);
    writer_put(p->w, "<path fill=\"#1a1a1a\" d=\"M");
    svg_number(p->w, x);
    writer_char(p->w, ' ');
    svg_number(p->w, y - 1);
    writer_put(p->w, "l-5-9h10z\"/>\n");
    snprintf(text, sizeof text, "peak %s", term_format_bytes(peak->bytes, bytes));
    write_label(p, x, PLOT_TOP - 6, "font-weight=\"bold\"", text);
    double from[] = {x, PLOT_TOP - 14}, to[] = {x, y - 8};
    svg_line(p->w, from, to, "stroke=\"#1a1a1a\" stroke-width=\".8\"");
}

static void
write_oom(struct picture *p, uint32_t event, bool has_text)
{
    const struct dry_trace_view *v = dry_trace_get_view(p->view->trace);
    double x = x_of_moment(p, event + 1);
    double from[] = {x, PLOT_TOP - 28}, to[] = {x, PLOT_BOTTOM};
    svg_line(p->w, from, to,
             "stroke=\"#b00020\" stroke-width=\"1.5\" stroke-dasharray=\"5 3\"");
    if (!has_text)
        return;
    char text[EXPORT_NAME_BYTES], bytes[TERM_NUMBER_BYTES];
    snprintf(text, sizeof text, "out of memory%s: asked for %s",
             p->view->oom_count > 1 ? ", first of several" : "",
             term_format_bytes(v->size[p->view->first_event + event], bytes));
    write_label(p, x, PLOT_TOP - 20, "fill=\"#b00020\" font-weight=\"bold\"", text);
}

static void
write_ooms(struct picture *p)
{
    const struct dry_trace_view *v = dry_trace_get_view(p->view->trace);
    uint32_t count = 0;
    for (uint32_t e = 0; e < p->view->event_count && p->view->oom_count > 0; e++) {
        if (v->action[p->view->first_event + e] != DRY_ACTION_OOM)
            continue;
        if (count < OOMS_MAX)
            write_oom(p, e, count == 0);
        count++;
    }
    if (count > OOMS_MAX)
        export_note(p->job, "only the first %d of %u OOMs are marked", OOMS_MAX, count);
}

/* --- the legend --------------------------------------------------------------------------- */

static bool
has_slot(const struct picture *p, unsigned slot)
{
    if (slot < SVG_COLORS)
        return p->owners.owners[slot] != DRY_NONE;
    if (slot == SVG_SLOT_OTHER)
        return p->owners.other_count > 0;
    return p->owners.weights[p->owners.frame_count] > 0;
}

static void
write_legend(struct picture *p)
{
    size_t index = 0;
    svg_text(p->w, SVG_LEFT, LEGEND_TOP - 18, "fill=\"#444\"",
             "bytes at the peak; who holds most then lies lowest");
    for (unsigned i = 0; i < SVG_SLOT_COUNT; i++) {
        unsigned slot = i == 0 ? SVG_SLOT_CARRIED : i - 1;
        char name[EXPORT_NAME_BYTES], bytes[TERM_NUMBER_BYTES];
        if (!has_slot(p, slot))
            continue;
        struct svg_entry entry = {
            .fill = svg_slot_fill(slot),
            .bytes = term_format_bytes(p->slot_bytes[slot], bytes),
            .text = svg_slot_name(&p->owners, slot, name),
        };
        svg_legend(p->w, LEGEND_TOP, index++, &entry);
    }
    const struct svg_entry entries[] = {
        {.stroke = "stroke=\"#000\" stroke-width=\"1.4\"",
         .text = "reserved from the device"},
        {.stroke = "stroke=\"#0044aa\" stroke-width=\"1.4\" stroke-dasharray=\"4 2\"",
         .text = "allocated: in use, less what waits for a stream"},
    };
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        svg_legend(p->w, LEGEND_TOP, index++, entries + i);
}

static void
write_picture(struct picture *p)
{
    write_title(p);
    write_y_axis(p);
    write_stack(p);
    write_curve(p, DRY_CURVE_ALLOCATED,
                "stroke=\"#0044aa\" stroke-width=\"1\" stroke-dasharray=\"4 2\"");
    write_curve(p, DRY_CURVE_RESERVED, "stroke=\"#000\" stroke-width=\"1.4\"");
    write_x_axis(p);
    write_ooms(p);
    write_peak(p);
    write_legend(p);
    svg_end(p->w);
}

static void
write_svg(const struct export_job *job, struct writer *w)
{
    if (job->is_map) {
        export_svg_write_map(job, w);
        return;
    }
    struct picture p = {.job = job,
                        .w = w,
                        .timeline = job->study->devices[job->main].timeline,
                        .view = export_view(job, job->main)};
    if (choose_axis(&p) && draw_stack(&p) && rank_owners(&p))
        write_picture(&p);
    svg_owners_finish(&p.owners);
    dry_drawing_destroy(p.drawing);
    free(p.curve);
    free(p.sums);
    free(p.heights);
}

const struct export_format export_svg = {
    .name = "svg",
    .endings = {".svg"},
    .what = "a picture: the timeline, or with --view map the memory map",
    .is_text = true,
    .is_of_one_device = true,
    .write = write_svg,
};
