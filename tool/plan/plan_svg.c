/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A picture of a step under a plan. The upper plot shows memory over time: constant
 * bytes, held bytes, and the bytes a stage needs while it runs. The lower plot shows
 * which stage runs when. The file's size depends on the pixels, not on the steps.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/svg.h"
#include "plan/plan_report.h"
#include "plan/plan_timeline.h"

#define PLOT_TOP 92.0
#define PLOT_HEIGHT 380.0
#define PLOT_BOTTOM (PLOT_TOP + PLOT_HEIGHT)
#define STAGES_TOP (PLOT_BOTTOM + 44)
#define STAGES_HEIGHT 200.0
#define STAGES_BOTTOM (STAGES_TOP + STAGES_HEIGHT)
#define LEGEND_TOP (STAGES_BOTTOM + 72)
#define OPTIMIZER_PIXELS 24.0
#define OPTIMIZER_GAP 12.0
#define TIME_PIXELS (SVG_PLOT - OPTIMIZER_PIXELS - OPTIMIZER_GAP)
#define COLUMNS ((size_t)TIME_PIXELS)
#define OPTIMIZER_LEFT (SVG_LEFT + TIME_PIXELS + OPTIMIZER_GAP)

/* P. Tol's "muted" scheme. */
#define FILL_ALWAYS "#d4d4d4"
#define FILL_HELD "#88ccee"
#define FILL_NEEDED "#332288"

static const char *const phase_fills[PLAN_TIMELINE_PHASES] = {
    [DRY_PHASE_FORWARD] = "#117733",
    [DRY_PHASE_RECOMPUTE] = "#cc6677",
    [DRY_PHASE_BACKWARD] = "#ddcc77",
};

struct picture {
    struct writer *w;
    const struct plan_report *report;
    const struct plan_timeline *timeline;
    uint64_t top;    /* bytes at the plot's upper edge */
    uint64_t always; /* bytes held under every plan */
    size_t stage_count;
};

static double
to_x(size_t column)
{
    return SVG_LEFT + (double)column;
}

static double
to_y(const struct picture *p, double bytes)
{
    return PLOT_BOTTOM - bytes / (double)p->top * PLOT_HEIGHT;
}

/* Return a stage's y position, with stage 0 at the top. */
static double
y_of_stage(const struct picture *p, double stage)
{
    return STAGES_TOP + stage / (double)p->stage_count * STAGES_HEIGHT;
}

/* --- frame and axes ----------------------------------------------------------------------- */

static void
write_title(const struct picture *p)
{
    const struct plan_report *r = p->report;
    const struct dry_plan_cost *c = &r->summary.cost;
    char text[SVG_NAME_BYTES + 64], name[SVG_NAME_BYTES];
    char peak[TERM_NUMBER_BYTES], time[TERM_NUMBER_BYTES], extra[TERM_NUMBER_BYTES];
    const char *base = strrchr(r->file, '/');
    base = base ? base + 1 : r->file;
    term_make_printable(name, sizeof name, base, strlen(base));
    snprintf(text, sizeof text, "%s: memory of a training step under a plan", name);
    svg_begin(p->w, LEGEND_TOP + 3 * SVG_LEGEND_ROW + 14, text);
    svg_text(p->w, SVG_LEFT, 30, "font-size=\"17\" font-weight=\"bold\"", text);
    snprintf(text, sizeof text,
             "%s; %zu stage%s; peak %s; %s a step, %s of it recomputing",
             r->judged ? "a plan from a file" : dry_method_name(r->summary.method),
             p->stage_count, p->stage_count == 1 ? "" : "s",
             term_format_bytes(c->peak_bytes, peak), plan_format_time(c->time_ns, time),
             plan_format_time(c->extra_ns, extra));
    svg_text(p->w, SVG_LEFT, 50, "fill=\"#444\"", text);
}

static void
write_bytes_axis(const struct picture *p)
{
    double step = svg_round_step((double)p->top / 9, true);
    for (unsigned i = 0; step * i <= (double)p->top; i++) {
        char name[SVG_NAME_BYTES];
        double y = to_y(p, step * i);
        const double from[] = {SVG_LEFT, y}, to[] = {SVG_LEFT + SVG_PLOT, y};
        svg_line(p->w, from, to, "stroke=\"#ccc\" stroke-width=\".6\"");
        svg_text(p->w, SVG_LEFT - 8, y + 4, "text-anchor=\"end\"",
                 svg_tick_name(step * i, name));
    }
}

static void
write_time_axis(const struct picture *p)
{
    const struct plan_timeline *t = p->timeline;
    double span = (double)t->span, step = svg_round_step(span / 10, false);
    step = step < 1 ? 1 : step;
    for (unsigned i = 0; step * i <= span * 1.0001; i++) {
        char name[TERM_NUMBER_BYTES];
        double x = SVG_LEFT + step * i / span * TIME_PIXELS;
        const double from[] = {x, STAGES_BOTTOM}, to[] = {x, STAGES_BOTTOM + 5};
        svg_line(p->w, from, to, "stroke=\"#1a1a1a\"");
        if (t->is_by_time)
            plan_format_time((uint64_t)(step * i), name);
        else
            term_format_count((uint64_t)(step * i), name);
        svg_text(p->w, x, STAGES_BOTTOM + 19, "text-anchor=\"middle\"",
                 i == 0 ? "0" : name);
    }
    const double bottoms[] = {PLOT_BOTTOM, STAGES_BOTTOM};
    for (size_t i = 0; i < 2; i++) {
        const double from[] = {SVG_LEFT, bottoms[i]};
        const double to[] = {SVG_LEFT + SVG_PLOT, bottoms[i]};
        svg_line(p->w, from, to, "stroke=\"#1a1a1a\"");
    }
    svg_text(p->w, SVG_LEFT + TIME_PIXELS / 2.0, STAGES_BOTTOM + 38,
             "text-anchor=\"middle\"", t->is_by_time ? "time" : "steps of the plan");
    if (t->optimizer_bytes > 0)
        svg_text(p->w, SVG_LEFT + SVG_PLOT, STAGES_BOTTOM + 38, "text-anchor=\"end\"",
                 "optimizer's step");
}

static void
write_stage_axis(const struct picture *p)
{
    double step = svg_round_step((double)p->stage_count / 6, false);
    step = step < 1 ? 1 : step;
    for (unsigned i = 0; step * i < (double)p->stage_count; i++) {
        char name[TERM_NUMBER_BYTES];
        double y = y_of_stage(p, step * i);
        const double from[] = {SVG_LEFT, y}, to[] = {SVG_LEFT + SVG_PLOT, y};
        svg_line(p->w, from, to, "stroke=\"#ccc\" stroke-width=\".6\"");
        term_format_count((uint64_t)(step * i), name);
        svg_text(p->w, SVG_LEFT - 8, y + 4 + STAGES_HEIGHT / 2 / (double)p->stage_count,
                 "text-anchor=\"end\"", name);
    }
    svg_text(p->w, SVG_LEFT, STAGES_TOP - 8, "fill=\"#444\"", "stage that runs");
}

/* --- areas -------------------------------------------------------------------------------- */

enum height { HEIGHT_ALWAYS, HEIGHT_HELD, HEIGHT_NEEDED, HEIGHT_COUNT };

static uint64_t
get_height(const struct picture *p, size_t column, enum height height)
{
    const struct plan_column *c = &p->timeline->columns[column];
    uint64_t bytes = height == HEIGHT_ALWAYS ? p->always
                     : height == HEIGHT_HELD ? c->held_bytes
                                             : c->needed_bytes;
    return bytes > p->always ? bytes : p->always;
}

/* Fill the area between a curve and the next lower one. Neighbouring columns of equal
   heights become one box. */
static void
write_area(const struct picture *p, enum height height, const char *fill)
{
    size_t count = p->timeline->column_count;
    writer_format(p->w, "<path fill=\"%s\" d=\"", fill);
    for (size_t i = 0, end; i < count; i = end) {
        uint64_t above = get_height(p, i, height), below = 0;
        if (height != HEIGHT_ALWAYS)
            below = get_height(p, i, (enum height)(height - 1));
        for (end = i + 1; end < count; end++) {
            uint64_t next = height != HEIGHT_ALWAYS
                                ? get_height(p, end, (enum height)(height - 1))
                                : 0;
            if (get_height(p, end, height) != above || next != below)
                break;
        }
        if (above > below)
            svg_box(p->w, to_x(i), to_y(p, (double)above), to_x(end),
                    to_y(p, (double)below));
    }
    writer_put(p->w, "\"/>\n");
}

static void
write_optimizer(const struct picture *p)
{
    const double right = OPTIMIZER_LEFT + OPTIMIZER_PIXELS;
    uint64_t needed = p->timeline->optimizer_bytes;
    uint64_t always = dry_chain_get_frame(p->report->input->chain)->persistent_bytes;
    writer_put(p->w, "<path fill=\"" FILL_ALWAYS "\" d=\"");
    svg_box(p->w, OPTIMIZER_LEFT, to_y(p, (double)always), right, PLOT_BOTTOM);
    writer_put(p->w, "\"/>\n<path fill=\"" FILL_NEEDED "\" d=\"");
    svg_box(p->w, OPTIMIZER_LEFT, to_y(p, (double)needed), right,
            to_y(p, (double)always));
    writer_put(p->w, "\"/>\n");
}

static void
write_stages(const struct picture *p, unsigned phase)
{
    const struct plan_timeline *t = p->timeline;
    writer_format(p->w, "<path fill=\"%s\" d=\"", phase_fills[phase]);
    for (size_t i = 0, end; i < t->column_count; i = end) {
        uint32_t low = t->columns[i].low[phase], high = t->columns[i].high[phase];
        for (end = i + 1; end < t->column_count; end++) {
            if (t->columns[end].low[phase] != low || t->columns[end].high[phase] != high)
                break;
        }
        if (low > high)
            continue;
        double y0 = y_of_stage(p, low), y1 = y_of_stage(p, (double)high + 1);
        svg_box(p->w, to_x(i), y0, to_x(end), y1 - y0 < 2 ? y0 + 2 : y1);
    }
    writer_put(p->w, "\"/>\n");
}

/* --- marks -------------------------------------------------------------------------------- */

static void
write_budget(const struct picture *p)
{
    uint64_t budget = p->report->summary.budget_bytes;
    char text[SVG_NAME_BYTES], bytes[TERM_NUMBER_BYTES];
    if (budget > p->top)
        return;
    double y = to_y(p, (double)budget);
    const double from[] = {SVG_LEFT, y}, to[] = {SVG_LEFT + SVG_PLOT, y};
    svg_line(p->w, from, to,
             "stroke=\"#b00020\" stroke-width=\"1.5\" stroke-dasharray=\"5 3\"");
    snprintf(text, sizeof text, "budget %s", term_format_bytes(budget, bytes));
    svg_text(p->w, SVG_LEFT + 6, y - 5, SVG_HALO " fill=\"#b00020\" font-weight=\"bold\"",
             text);
}

static void
write_peak(const struct picture *p)
{
    const struct plan_timeline *t = p->timeline;
    char text[SVG_NAME_BYTES], bytes[TERM_NUMBER_BYTES], all[SVG_NAME_BYTES];
    char where[PLAN_WHERE_BYTES];
    bool is_in_step = t->peak_column == t->column_count;
    double x =
        is_in_step ? OPTIMIZER_LEFT + OPTIMIZER_PIXELS / 2 : to_x(t->peak_column) + 0.5;
    double y = to_y(p, (double)t->cost.peak_bytes);
    writer_put(p->w, "<path fill=\"#1a1a1a\" d=\"M");
    svg_number(p->w, x);
    writer_char(p->w, ' ');
    svg_number(p->w, y - 1);
    writer_put(p->w, "l-5-9h10z\"/>\n");
    plan_format_where(p->report->input->chain, t->cost.peak_phase, t->cost.peak_stage,
                      where);
    snprintf(text, sizeof text, "peak %s, %s",
             term_format_bytes(t->cost.peak_bytes, bytes), where);
    bool is_right = x > SVG_LEFT + SVG_PLOT / 2.0;
    snprintf(all, sizeof all, SVG_HALO " font-weight=\"bold\" text-anchor=\"%s\"",
             is_right ? "end" : "start");
    svg_text(p->w, is_right ? x - 6 : x + 6, PLOT_TOP - 12, all, text);
    const double from[] = {x, PLOT_TOP - 20}, to[] = {x, y - 8};
    svg_line(p->w, from, to, "stroke=\"#1a1a1a\" stroke-width=\".8\"");
}

static void
write_legend(const struct picture *p)
{
    const struct svg_entry entries[] = {
        {.fill = FILL_ALWAYS, .text = "always there: weights, states, the input"},
        {.fill = phase_fills[DRY_PHASE_FORWARD], .text = "forward"},
        {.fill = FILL_HELD, .text = "held: what is saved, outputs, gradients"},
        {.fill = phase_fills[DRY_PHASE_RECOMPUTE], .text = "recompute"},
        {.fill = FILL_NEEDED, .text = "needed while a stage runs"},
        {.fill = phase_fills[DRY_PHASE_BACKWARD], .text = "backward"},
    };
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        svg_legend(p->w, LEGEND_TOP, i, &entries[i]);
}

/* --- the picture -------------------------------------------------------------------------- */

static void
choose_top(struct picture *p)
{
    uint64_t peak = p->timeline->cost.peak_bytes,
             budget = p->report->summary.budget_bytes;
    p->top = peak;
    if (budget > peak && budget - peak < peak / 2)
        p->top = budget;
    p->top += p->top / 16 + 1; /* space for labels above the peak */
}

static void
write_picture(const struct picture *p)
{
    write_title(p);
    write_bytes_axis(p);
    write_stage_axis(p);
    writer_put(p->w, "<g shape-rendering=\"crispEdges\">\n");
    write_area(p, HEIGHT_ALWAYS, FILL_ALWAYS);
    write_area(p, HEIGHT_HELD, FILL_HELD);
    write_area(p, HEIGHT_NEEDED, FILL_NEEDED);
    write_optimizer(p);
    for (unsigned phase = 0; phase < PLAN_TIMELINE_PHASES; phase++)
        write_stages(p, phase);
    writer_put(p->w, "</g>\n");
    write_time_axis(p);
    write_budget(p);
    write_peak(p);
    write_legend(p);
    svg_end(p->w);
}

void
plan_svg_write(const struct plan_report *r, struct writer *w)
{
    struct plan_timeline t;
    struct dry_error err;
    const struct dry_chain_frame *frame = dry_chain_get_frame(r->input->chain);
    enum dry_status status =
        plan_timeline_init(&t, r->input->chain, r->items, r->item_count, COLUMNS, &err);
    if (status != DRY_OK) {
        writer_fail(w, status, "%s", err.text);
        return;
    }
    struct picture p = {.w = w,
                        .report = r,
                        .timeline = &t,
                        .always = frame->persistent_bytes + frame->input_bytes,
                        .stage_count = dry_chain_get_count(r->input->chain)};
    choose_top(&p);
    write_picture(&p);
    plan_timeline_finish(&t);
}
