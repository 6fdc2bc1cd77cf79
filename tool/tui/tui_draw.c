/* SPDX-License-Identifier: Apache-2.0 */
/* Draw the screen: head, plot, cursor's line, tabs, foot. */
#include "tui/tui.h"

#include <stdlib.h>
#include <string.h>

#include <drystone/trace.h>

#include "base/term.h"

/* --- the plot ----------------------------------------------------------------------------- */

struct plot {
    struct tui *tui;
    struct grid *grid;
    struct dry_curve_column *active, *reserved;
    uint32_t count; /* plot columns; fewer than fit if there are fewer moments */
    int height;
    uint64_t top;
};

/* Convert bytes to eighths of a row, from the plot's bottom. */
static uint64_t
eighths(const struct plot *p, uint64_t bytes)
{
    double part = (double)bytes / (double)p->top;
    return (uint64_t)(part * p->height * 8 + 0.5);
}

static const char *
glyph(const struct plot *p, uint64_t active, uint64_t reserved, int row)
{
    static const char *const blocks[] = {"", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    uint64_t bottom = (uint64_t)row * 8;
    uint64_t filled = active > bottom ? active - bottom : 0;
    if (filled > 0)
        return !p->tui->has_blocks ? (filled >= 4 ? "#" : ".")
                                   : blocks[filled > 8 ? 8 : filled];
    if (reserved > bottom)
        return p->tui->has_blocks ? "░" : ":";
    return " ";
}

static int
find_column(const struct plot *p, uint32_t moment)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (p->active[i].begin <= moment && moment < p->active[i].end)
            return (int)i;
    return -1;
}

static void
draw_columns(const struct plot *p)
{
    int cursor = find_column(p, p->tui->cursor);
    for (uint32_t i = 0; i < p->count; i++) {
        uint64_t active = eighths(p, p->active[i].max);
        uint64_t reserved = eighths(p, p->reserved[i].max);
        for (int row = 0; row < p->height; row++) {
            const char *text = glyph(p, active, reserved, row);
            enum grid_style style = (int)i == cursor ? GRID_REVERSE : GRID_PLAIN;
            grid_put(p->grid, TUI_PLOT_LEFT + (int)i, p->height - row, style, text);
        }
    }
}

static bool
has_oom(const struct plot *p, const struct dry_curve_column *column)
{
    const struct dry_timeline_view *v = tui_device(p->tui)->v;
    const uint8_t *action = dry_trace_get_view(v->trace)->action;
    if (v->oom_count == 0)
        return false;
    for (uint32_t m = column->begin; m < column->end && m < v->event_count; m++)
        if (action[v->first_event + m] == DRY_ACTION_OOM)
            return true;
    return false;
}

static void
draw_axis(const struct plot *p)
{
    int y = p->height + 1;
    char text[TERM_NUMBER_BYTES];
    grid_format(p->grid, 0, 1, GRID_PLAIN, "%10s", term_format_bytes(p->top, text));
    for (int row = 1; row <= p->height; row++)
        grid_put(p->grid, TUI_PLOT_LEFT - 1, row, GRID_DIM, "|");
    grid_format(p->grid, 0, y, GRID_PLAIN, "%9s +", "0");
    int cursor = find_column(p, p->tui->cursor);
    for (uint32_t i = 0; i < p->count; i++) {
        bool is_oom = has_oom(p, &p->active[i]);
        const char *mark = (int)i == cursor ? "^" : is_oom ? "!" : "-";
        grid_put(p->grid, TUI_PLOT_LEFT + (int)i, y, is_oom ? GRID_ALARM : GRID_DIM,
                 mark);
    }
}

static bool
draw_plot(struct tui *tui, struct grid *grid)
{
    const struct view_device *d = tui_device(tui);
    struct plot p = {.tui = tui, .grid = grid, .height = tui_plot_height(tui)};
    uint32_t columns_max = (uint32_t)tui_plot_width(tui), moments = tui->to - tui->from;
    p.count = moments < columns_max ? moments : columns_max;
    uint64_t active = d->v->peaks[DRY_CURVE_ACTIVE].bytes;
    p.top = d->v->peaks[DRY_CURVE_RESERVED].bytes;
    p.top = active > p.top ? active : p.top;
    p.top += !p.top;
    p.active = calloc(p.count, sizeof *p.active);
    p.reserved = calloc(p.count, sizeof *p.reserved);
    struct dry_axis axis = {.from = tui->from, .to = tui->to, .column_count = p.count};
    bool is_fine = p.active && p.reserved &&
                   dry_timeline_curve(d->timeline, DRY_CURVE_ACTIVE, &axis, p.active,
                                      NULL) == DRY_OK &&
                   dry_timeline_curve(d->timeline, DRY_CURVE_RESERVED, &axis, p.reserved,
                                      NULL) == DRY_OK;
    if (is_fine) {
        draw_columns(&p);
        draw_axis(&p);
    }
    free(p.active);
    free(p.reserved);
    return is_fine;
}

/* --- lines -------------------------------------------------------------------------------- */

static void
draw_head(const struct tui *tui, struct grid *grid)
{
    const struct view_file *file = &tui->view->files[tui->file];
    const struct view_device *d = tui_device(tui);
    const char *slash = strrchr(file->path, '/');
    char events[TERM_NUMBER_BYTES], text[96];
    int x = grid_put_cut(grid, 0, 0, tui->width / 2, GRID_BOLD,
                         slash && slash[1] ? slash + 1 : file->path);
    snprintf(text, sizeof text, "  device %d of %zu, %s events%s", (int)d->v->device,
             file->study.device_count, term_format_count(d->v->event_count, events),
             d->v->oom_count ? ", out of memory" : "");
    grid_put(grid, x, 0, GRID_PLAIN, text);
    if (tui->width > 76)
        grid_put(grid, tui->width - 8, 0, GRID_DIM, "[?] keys");
}

/* Name the cursor's moment by its event, numbered as the other commands number it. */
static void
name_moment(const struct tui *tui, char *text, size_t capacity)
{
    const struct dry_timeline_view *v = tui_device(tui)->v;
    const uint8_t *action = dry_trace_get_view(v->trace)->action;
    size_t event = v->first_event + tui->cursor;
    if (tui->cursor < v->event_count && action[event] == DRY_ACTION_OOM)
        snprintf(text, capacity, "out of memory at event %zu", event);
    else if (v->event_count == 0 || tui->cursor > v->event_count)
        snprintf(text, capacity, "at the end of the file");
    else if (tui->cursor == 0)
        snprintf(text, capacity, "before the first event");
    else
        snprintf(text, capacity, "after event %zu", event - 1);
}

static void
draw_cursor(const struct tui *tui, struct grid *grid)
{
    const struct view_device *d = tui_device(tui);
    char at[64], time[TERM_NUMBER_BYTES];
    char reserved[TERM_NUMBER_BYTES], active[TERM_NUMBER_BYTES];
    int64_t since =
        dry_timeline_time(d->timeline, tui->cursor) - dry_timeline_time(d->timeline, 0);
    name_moment(tui, at, sizeof at);
    grid_format(
        grid, 0, tui_plot_height(tui) + 2, GRID_BOLD, "%s  +%s  reserved %s  active %s",
        at, term_format_time(since > 0 ? (uint64_t)since : 0, time),
        term_format_bytes(
            dry_timeline_height(d->timeline, DRY_CURVE_RESERVED, tui->cursor), reserved),
        term_format_bytes(dry_timeline_height(d->timeline, DRY_CURVE_ACTIVE, tui->cursor),
                          active));
}

static void
draw_tabs(const struct tui *tui, struct grid *grid)
{
    static const char *const names[] = {" 1 owners ", " 2 map ", " 3 verdict ",
                                        " ? keys "};
    int x = 0, y = tui_panel_top(tui) - 1;
    for (int i = 0; i <= TUI_KEYS; i++)
        x = grid_put(grid, x, y, i == (int)tui->panel ? GRID_REVERSE : GRID_PLAIN,
                     names[i]) +
            1;
    if (tui->search[0] && !tui->is_searching)
        grid_format(grid, x, y, GRID_DIM, "with \"%s\"", tui->search);
}

static void
draw_foot(const struct tui *tui, struct grid *grid)
{
    int y = tui->height - 1;
    if (tui->is_searching)
        grid_format(grid, 0, y, GRID_BOLD, "owners with: %s_", tui->search);
    else
        grid_put(grid, 0, y, GRID_DIM,
                 "arrows move  +/- zoom  p peak  o oom  e end  / find  d device  q quit");
}

bool
tui_draw(struct tui *tui, struct grid *grid)
{
    draw_head(tui, grid);
    bool is_fine = draw_plot(tui, grid);
    draw_cursor(tui, grid);
    draw_tabs(tui, grid);
    tui_draw_panel(tui, grid);
    draw_foot(tui, grid);
    return is_fine && !tui->has_failed;
}
