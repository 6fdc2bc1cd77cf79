/* SPDX-License-Identifier: Apache-2.0 */
/* Plots in text: memory over a step, and time against budget. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/command.h"
#include "base/report.h"
#include "base/table.h"
#include "plan/plan_report.h"
#include "plan/plan_timeline.h"

#define PLOT_COLUMNS 64
#define PLOT_ROWS 12
#define LABEL_COLUMNS 12
#define CURVE_ROWS_MAX 24
#define GAP_COLUMNS 2 /* between the last stage and the optimizer's step */

struct canvas {
    char cells[PLOT_ROWS][PLOT_COLUMNS + 1]; /* top row first; zero-terminated rows */
};

static void
canvas_clear(struct canvas *c)
{
    memset(c, 0, sizeof *c);
    for (size_t row = 0; row < PLOT_ROWS; row++)
        memset(c->cells[row], ' ', PLOT_COLUMNS);
}

/* Print a row of the plot without its trailing blanks. */
static void
print_line(const char *label, char edge, const char *cells)
{
    int length = (int)strlen(cells);
    while (length > 0 && cells[length - 1] == ' ')
        length--;
    printf("%*s %c%.*s\n", LABEL_COLUMNS, label, edge, length, cells);
}

static void
print_axis(const char *left, const char *right)
{
    char line[PLOT_COLUMNS + 1];
    memset(line, '-', PLOT_COLUMNS);
    line[PLOT_COLUMNS] = '\0';
    print_line("", '+', line);
    printf("%*s  %s%*s\n", LABEL_COLUMNS, "", left, PLOT_COLUMNS - (int)strlen(left),
           right);
}

/* --- memory over a step ------------------------------------------------------------------- */

/* Return the number of rows that a bar of `bytes` covers, rounded up. */
static size_t
get_row(uint64_t bytes, uint64_t top)
{
    double row = ceil((double)bytes / (double)top * PLOT_ROWS);
    return row > PLOT_ROWS ? PLOT_ROWS : (size_t)row;
}

static void
draw_bar(struct canvas *c, size_t column, const uint64_t heights[2], uint64_t top)
{
    size_t held = get_row(heights[0], top), needed = get_row(heights[1], top);
    for (size_t row = 0; row < needed; row++)
        c->cells[PLOT_ROWS - 1 - row][column] = row < held ? '#' : '+';
}

static void
draw_budget(struct canvas *c, uint64_t budget, uint64_t top)
{
    if (budget > top)
        return;
    size_t row = get_row(budget, top);
    char *cells = c->cells[PLOT_ROWS - (row ? row : 1)];
    for (size_t i = 0; i < PLOT_COLUMNS; i++) {
        if (cells[i] == ' ')
            cells[i] = '-';
    }
}

/* Return the letter of the phase that takes most of a column: F, R or B. */
static char
find_letter(const struct plan_column *column)
{
    static const char letters[] = "FRB";
    unsigned best = 0;
    for (unsigned i = 1; i < PLAN_TIMELINE_PHASES; i++) {
        if (column->share[i] > column->share[best])
            best = i;
    }
    return letters[best];
}

static void
print_timeline(const struct plan_report *r, const struct plan_timeline *t)
{
    struct canvas c;
    char phases[PLOT_COLUMNS + 1] = "", text[TERM_NUMBER_BYTES], time[TERM_NUMBER_BYTES];
    uint64_t top = t->cost.peak_bytes ? t->cost.peak_bytes : 1;
    uint64_t budget = r->summary.budget_bytes;
    if (budget > top && budget - top < top / 4)
        top = budget;
    canvas_clear(&c);
    memset(phases, ' ', PLOT_COLUMNS);
    for (size_t i = 0; i < t->column_count; i++) {
        const struct plan_column *column = &t->columns[i];
        const uint64_t heights[2] = {column->held_bytes, column->needed_bytes};
        draw_bar(&c, i, heights, top);
        phases[i] = find_letter(column);
    }
    const struct dry_chain_frame *frame = dry_chain_get_frame(r->input->chain);
    const uint64_t heights[2] = {frame->persistent_bytes, t->optimizer_bytes};
    draw_bar(&c, PLOT_COLUMNS - 1, heights, top);
    phases[PLOT_COLUMNS - 1] = 'S';
    draw_budget(&c, budget, top);
    for (size_t row = 0; row < PLOT_ROWS; row++)
        print_line(row == 0 ? term_format_bytes(top, text) : "", '|', c.cells[row]);
    print_axis("0", t->is_by_time ? plan_format_time(t->span, time) : "steps");
    print_line("", ' ', phases);
}

int
plan_plot_timeline(const struct plan_report *r)
{
    struct plan_timeline t;
    struct dry_error err;
    enum dry_status status =
        plan_timeline_init(&t, r->input->chain, r->items, r->item_count,
                           PLOT_COLUMNS - 1 - GAP_COLUMNS, &err);
    if (status != DRY_OK)
        return report_error("plan", r->file, &err);
    printf("\n");
    plan_print_item("timeline",
                    "# held, + needed while a stage runs, - the budget; F "
                    "forward, R recompute, B backward, S the optimizer's step");
    print_timeline(r, &t);
    plan_timeline_finish(&t);
    return EXIT_FINE;
}

/* --- what budgets buy --------------------------------------------------------------------- */

static double
get_share(const struct dry_plan_point *point)
{
    const struct dry_plan_cost *c = &point->cost;
    return c->base_ns ? (double)c->extra_ns / (double)c->base_ns : 0;
}

static void
print_points(const struct plan_report *r)
{
    struct canvas c;
    char low[TERM_NUMBER_BYTES], high[TERM_NUMBER_BYTES], label[TERM_NUMBER_BYTES];
    uint64_t first = r->points[0].cost.peak_bytes;
    uint64_t last = r->points[r->point_count - 1].cost.peak_bytes;
    double most = get_share(&r->points[0]);
    canvas_clear(&c);
    for (size_t i = 0; i < r->point_count; i++) {
        double x = last > first ? (double)(r->points[i].cost.peak_bytes - first) /
                                      (double)(last - first)
                                : 0;
        double y = most > 0 ? get_share(&r->points[i]) / most : 0;
        size_t column = (size_t)lround(x * (PLOT_COLUMNS - 1));
        size_t row = (size_t)lround(y * (PLOT_ROWS - 1));
        if (column < PLOT_COLUMNS && row < PLOT_ROWS)
            c.cells[PLOT_ROWS - 1 - row][column] = '*';
    }
    for (size_t row = 0; row < PLOT_ROWS; row++) {
        snprintf(label, sizeof label, "%.1f %%", 100 * most);
        print_line(row == 0               ? label
                   : row == PLOT_ROWS - 1 ? "0 %"
                                          : "",
                   '|', c.cells[row]);
    }
    print_axis(term_format_bytes(first, low), term_format_bytes(last, high));
}

static void
print_point_table(const struct plan_report *r)
{
    struct term term;
    struct table t;
    char text[TERM_NUMBER_BYTES];
    size_t shown = r->point_count < CURVE_ROWS_MAX ? r->point_count : CURVE_ROWS_MAX;
    term_init(&term, stdout);
    table_init(&t, ">peak >held >time >more >recomputed");
    for (size_t i = 0; i < shown; i++) {
        size_t which = shown > 1 ? i * (r->point_count - 1) / (shown - 1) : 0;
        const struct dry_plan_cost *c = &r->points[which].cost;
        table_add(&t, term_format_bytes(c->peak_bytes, text));
        table_add(&t, term_format_bytes(c->held_bytes, text));
        table_add(&t, plan_format_time(c->time_ns, text));
        table_add(&t, plan_format_share(c->extra_ns, c->base_ns, text));
        table_add(&t, term_format_count(c->recomputed_count, text));
    }
    if (!table_print(&t, &term))
        printf("  (no memory for the table)\n");
    if (shown < r->point_count)
        printf("  (%zu of %zu plans: --json has them all)\n", shown, r->point_count);
}

void
plan_plot_curve(const struct plan_report *r)
{
    printf("\n");
    if (r->point_count == 0) {
        plan_print_item("curve", "no plan fits");
        return;
    }
    plan_print_item("curve",
                    "what more memory saves of the time: %zu plan%s, of which "
                    "none is better than another in both",
                    r->point_count, r->point_count == 1 ? "" : "s");
    print_points(r);
    printf("\n");
    print_point_table(r);
}
