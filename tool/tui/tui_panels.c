/* SPDX-License-Identifier: Apache-2.0 */
/* Draw the panels below the plot: owners, map, verdict, keys. */
#include "tui/tui.h"

#include <stdlib.h>
#include <string.h>

#include "base/term.h"

#define LINE_BYTES 512

static int
row_count(const struct tui *tui)
{
    return tui->height - 1 - tui_panel_top(tui);
}

/* Bound the scroll position, so that the last row stays at the bottom. */
static void
bound_scroll(struct tui *tui, size_t rows)
{
    size_t rows_max = (size_t)row_count(tui);
    size_t most = rows > rows_max ? rows - rows_max : 0;
    if (tui->scroll > most)
        tui->scroll = most;
}

/* --- owners ------------------------------------------------------------------------------- */

static const struct dry_owner *
find_owners(struct tui *tui, size_t *count)
{
    struct dry_owners_options options;
    dry_owners_options_init(&options);
    options.moment = tui->cursor;
    *count = 0;
    if (!tui->owners && dry_owners_create(tui_device(tui)->timeline, &options,
                                          &tui->owners, NULL) != DRY_OK) {
        tui->has_failed = true;
        return NULL;
    }
    return dry_owners_get(tui->owners, count);
}

/* Draw bytes, count and share, a bar where there is room, and the name after them: at any
   width the eye has a short way from a number to its name. */
static void
draw_owner(const struct tui *tui, struct grid *grid, int y, const struct dry_owner *o)
{
    char name[LINE_BYTES], bytes[TERM_NUMBER_BYTES];
    uint64_t total = dry_owners_total(tui->owners);
    unsigned percent =
        (unsigned)((double)o->bytes * 100 / (double)(total + !total) + 0.5);
    int bar = tui->width >= 72 ? 12 : 0;
    bool is_found = tui->search[0] && strstr(o->name, tui->search);
    int x = grid_format(grid, 0, y, GRID_PLAIN, "%11s %6u x %3u%% ",
                        term_format_bytes(o->bytes, bytes),
                        o->count > 999999 ? 999999 : o->count, percent);
    for (int i = 0; i < bar - 1 && (unsigned)i * 9 < percent; i++)
        grid_put(grid, x + i, y, GRID_PLAIN, tui->has_blocks ? "▇" : "#");
    x += bar;
    snprintf(name, sizeof name, "%s%s%s", o->name, o->what_length ? "  " : "", o->what);
    grid_put_cut(grid, x, y, tui->width - x, is_found ? GRID_REVERSE : GRID_PLAIN, name);
}

static void
draw_owners(struct tui *tui, struct grid *grid)
{
    size_t count, shown = 0, row = 0;
    const struct dry_owner *owners = find_owners(tui, &count);
    for (size_t i = 0; i < count; i++)
        shown += !tui->search[0] || strstr(owners[i].name, tui->search) != NULL;
    bound_scroll(tui, shown);
    int y = tui_panel_top(tui);
    for (size_t i = 0; i < count && y < tui->height - 1; i++) {
        if (tui->search[0] && !strstr(owners[i].name, tui->search))
            continue;
        if (row++ >= tui->scroll)
            draw_owner(tui, grid, y++, &owners[i]);
    }
    if (shown == 0)
        grid_put(grid, 0, y, GRID_DIM,
                 tui->search[0] ? "no owner has that in its name here"
                                : "nothing is allocated here");
}

/* --- the map ------------------------------------------------------------------------------ */

static int
by_size(const void *a, const void *b)
{
    const struct dry_state_segment *x = *(const struct dry_state_segment *const *)a;
    const struct dry_state_segment *y = *(const struct dry_state_segment *const *)b;
    if (x->size != y->size)
        return x->size < y->size ? 1 : -1;
    return (x->address > y->address) - (x->address < y->address);
}

/* Draw a segment as cells: full, partly full, waiting for a stream, free. */
static void
draw_blocks(const struct tui *tui, struct grid *grid, int x, int y, int width,
            const struct dry_state_segment *g)
{
    for (int i = 0; i < width; i++) {
        uint64_t from = (uint64_t)((double)g->size * i / width);
        uint64_t to = (uint64_t)((double)g->size * (i + 1) / width);
        uint64_t used = 0, pending = 0;
        for (size_t k = 0; k < g->block_count; k++) {
            const struct dry_state_block *b = &tui->state->blocks[g->first_block + k];
            uint64_t begin = b->address - g->address, end = begin + b->size;
            uint64_t low = begin > from ? begin : from, high = end < to ? end : to;
            uint64_t part = high > low ? high - low : 0;
            used += b->state == DRY_BLOCK_INACTIVE ? 0 : part;
            pending += b->state == DRY_BLOCK_PENDING_FREE ? part : 0;
        }
        const char *text = used == 0 ? "." : used * 2 < to - from ? "-" : "#";
        grid_put(grid, x + i, y, GRID_PLAIN, pending * 2 > used && used ? "~" : text);
    }
}

static void
draw_segment(const struct tui *tui, struct grid *grid, int y,
             const struct dry_state_segment *g)
{
    char size[TERM_NUMBER_BYTES], hole[TERM_NUMBER_BYTES];
    int width = tui->width - 46;
    grid_format(grid, 0, y, GRID_PLAIN, "%11s", term_format_bytes(g->size, size));
    grid_put(grid, 12, y, GRID_DIM, "[");
    draw_blocks(tui, grid, 13, y, width, g);
    grid_put(grid, 13 + width, y, GRID_DIM, "]");
    grid_format(grid, 15 + width, y, GRID_PLAIN, "hole %11s  %s%s",
                term_format_bytes(g->largest_free, hole), g->is_large ? "large" : "small",
                g->is_private ? " private" : "");
}

static void
draw_map(struct tui *tui, struct grid *grid)
{
    int y = tui_panel_top(tui);
    if (!tui->state && dry_state_create(tui_device(tui)->timeline, tui->cursor,
                                        &tui->state, NULL) != DRY_OK) {
        tui->has_failed = true;
        return;
    }
    size_t count = tui->state->segment_count;
    const struct dry_state_segment **order = calloc(count + 1, sizeof *order);
    if (!order) {
        tui->has_failed = true;
        return;
    }
    for (size_t i = 0; i < count; i++)
        order[i] = &tui->state->segments[i];
    qsort(order, count, sizeof *order, by_size);
    bound_scroll(tui, count);
    for (size_t i = tui->scroll; i < count && y < tui->height - 1; i++)
        draw_segment(tui, grid, y++, order[i]);
    if (count == 0)
        grid_put(grid, 0, y, GRID_DIM, "nothing is reserved here");
    free(order);
}

/* --- texts -------------------------------------------------------------------------------- */

static void
draw_text(struct tui *tui, struct grid *grid, const char *text)
{
    size_t rows = 0, row = 0;
    int y = tui_panel_top(tui);
    for (const char *at = text; *at; at++)
        rows += *at == '\n';
    bound_scroll(tui, rows);
    while (*text && y < tui->height - 1) {
        size_t length = strcspn(text, "\n");
        char line[LINE_BYTES];
        snprintf(line, sizeof line, "%.*s",
                 (int)(length < LINE_BYTES ? length : LINE_BYTES - 1), text);
        if (row++ >= tui->scroll)
            grid_put(grid, 0, y++, GRID_PLAIN, line);
        text += length + (text[length] == '\n');
    }
}

static const char keys_text[] =
    "left right    one column            [ ]       one event\n"
    "home end      first and last moment + -       zoom at the cursor\n"
    "p o e         peak, OOM, end        f         the whole recording\n"
    "1 2 3 tab     panels                up down   scroll, page up and down too\n"
    "/             owners by name        esc       all owners again\n"
    "d             next device or file   q         quit; the mouse sets the cursor\n"
    "\n"
    "plot: # or blocks are active bytes, : or shade is reserved beyond them,\n"
    "      ! is an OOM.\n"
    "map:  # used, - less than half used, ~ waits for a stream, . free\n";

void
tui_draw_panel(struct tui *tui, struct grid *grid)
{
    switch (tui->panel) {
    case TUI_OWNERS:
        draw_owners(tui, grid);
        break;
    case TUI_MAP:
        draw_map(tui, grid);
        break;
    case TUI_VERDICT:
        draw_text(tui, grid, tui->verdict ? tui->verdict : "explaining ...\n");
        break;
    case TUI_KEYS:
        draw_text(tui, grid, keys_text);
        break;
    }
}
