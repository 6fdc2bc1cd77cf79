/* SPDX-License-Identifier: Apache-2.0 */

/* Draw the full screen. Tables and reports come from live_text.h: they are printed into
   memory and copied to the grid line by line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live/live_screen.h"
#include "live/live_summary.h"
#include "live/live_text.h"

#define URGENT_SECONDS 60
#define URGENT_SHARE 0.95

/* --- text --------------------------------------------------------------------------------- */

struct lines_of_text {
    char *text;
    char **lines;
    size_t count;
};

static void
drop_lines(struct lines_of_text *lines_of_text)
{
    free(lines_of_text->lines);
    free(lines_of_text->text);
    *lines_of_text = (struct lines_of_text){0};
}

static bool
split(struct lines_of_text *lines_of_text)
{
    size_t count = 0;
    for (const char *c = lines_of_text->text; *c; c++)
        count += *c == '\n';
    lines_of_text->lines = calloc(count + 1, sizeof *lines_of_text->lines);
    if (!lines_of_text->lines)
        return false;
    for (char *line = lines_of_text->text, *end; (end = strchr(line, '\n'));
         line = end + 1) {
        *end = '\0';
        lines_of_text->lines[lines_of_text->count++] = line;
    }
    return true;
}

/* Replace non-ASCII characters by one ASCII character each, so that columns stay aligned
   on terminals without UTF-8. */
static void
make_ascii(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        unsigned char byte = (unsigned char)*from;
        if ((byte & 0xc0) != 0x80)
            *to++ = (char)(byte < 0x80 ? byte : strncmp(from, "…", 3) == 0 ? '~' : '?');
    }
    *to = '\0';
}

enum part { PART_DEVICES, PART_PROCESSES, PART_PROCESS, PART_KEYS };

static const char keys_text[] =
    "  up, down          choose a process; scroll\n"
    "  page up, down     by half a screen; home and end go there\n"
    "  enter             the process whole: its sources, lanes, lines\n"
    "  escape            back to the list\n"
    "  s                 ask the chosen process for a snapshot\n"
    "  ?                 this\n"
    "  q                 quit\n"
    "\n"
    "  reserved = allocated + pending + releasable + stranded\n"
    "  stranded: free, but beside something in use; left: what may still be\n"
    "  reserved. seen: by the driver alone. bad: its page cannot be used.\n";

static bool
print_part(const struct live_screen *s, enum part part, const struct watch_process *p,
           const struct term *term)
{
    const struct watch *watch = s->sampler->watch;
    switch (part) {
    case PART_DEVICES:
        return live_text_devices(watch, term);
    case PART_PROCESSES:
        return live_text_processes(watch, s->sampler->wanted, term);
    case PART_PROCESS:
        return live_text_process(watch, p, term);
    case PART_KEYS:
    default:
        return fputs(keys_text, term->out) != EOF;
    }
}

/* Print a section into memory and split it into lines. False: memory ran out. Call
   drop_lines() in any case. */
static bool
take_lines(const struct live_screen *s, enum part part, const struct watch_process *p,
           struct lines_of_text *lines_of_text)
{
    size_t length;
    *lines_of_text = (struct lines_of_text){0};
    FILE *out = open_memstream(&lines_of_text->text, &length);
    if (!out)
        return false;
    struct term term = {.out = out, .has_width = true, .width = s->width};
    bool is_fine = print_part(s, part, p, &term);
    is_fine = fclose(out) == 0 && is_fine && lines_of_text->text;
    if (is_fine && !s->has_utf8)
        make_ascii(lines_of_text->text);
    return is_fine && split(lines_of_text);
}

/* --- the list ----------------------------------------------------------------------------- */

static bool
is_urgent(const struct watch_process *p)
{
    for (size_t i = 0; p && i < p->source_count; i++) {
        const struct watch_source *s = &p->sources[i];
        if ((s->seconds_left >= 0 && s->seconds_left < URGENT_SECONDS) ||
            live_share(s) >= URGENT_SHARE)
            return true;
    }
    return false;
}

/* Draw the devices, in at most a third of the screen. Returns the row after them. */
static int
draw_devices(const struct live_screen *s, struct grid *grid,
             const struct lines_of_text *lines_of_text)
{
    size_t rows_max = (size_t)s->height / 3;
    size_t shown = lines_of_text->count <= rows_max ? lines_of_text->count : rows_max - 1;
    int y = 1;
    for (size_t i = 0; i < shown; i++, y++)
        (void)grid_put(grid, 0, y,
                       i == 0 && lines_of_text->count > 1 ? GRID_DIM : GRID_PLAIN,
                       lines_of_text->lines[i]);
    if (shown < lines_of_text->count)
        (void)grid_format(grid, 2, y++, GRID_DIM, "and %zu more devices",
                          lines_of_text->count - shown);
    return y + 1;
}

/* Scroll so that the chosen row is visible. */
static void
scroll_to(struct live_screen *s, size_t row, size_t count, size_t rows_max)
{
    if (s->top > row)
        s->top = row;
    if (row >= s->top + rows_max)
        s->top = row - rows_max + 1;
    if (s->top + rows_max > count)
        s->top = count > rows_max ? count - rows_max : 0;
}

static void
draw_rows(struct live_screen *s, struct grid *grid, int y,
          const struct lines_of_text *lines_of_text)
{
    size_t row, i = 0, count = lines_of_text->count - 1;
    size_t rows_max = (size_t)(s->height - 3 - y);
    const struct watch *watch = s->sampler->watch;
    const struct watch_process *chosen = live_screen_chosen(s, &row);
    (void)grid_put(grid, 0, y++, GRID_DIM, lines_of_text->lines[0]);
    if (!chosen)
        (void)grid_put(grid, 2, y, GRID_PLAIN, "none that is wanted");
    scroll_to(s, row, count, rows_max);
    for (size_t n = 0; n < watch->process_count && i < count; n++) {
        const struct watch_process *p = watch->processes[n];
        if (!live_is_wanted(p, s->sampler->wanted))
            continue;
        enum grid_style style = is_urgent(p) ? GRID_ALARM : GRID_PLAIN;
        if (p == chosen)
            style = GRID_REVERSE;
        if (i >= s->top && i < s->top + rows_max) {
            (void)grid_put(grid, 0, y, style, lines_of_text->lines[i + 1]);
            (void)grid_put(grid, 0, y++, style, p == chosen ? ">" : " ");
        }
        i++;
    }
}

static bool
draw_list(struct live_screen *s, struct grid *grid)
{
    struct lines_of_text devices, processes = {0};
    bool is_fine = take_lines(s, PART_DEVICES, NULL, &devices) &&
                   take_lines(s, PART_PROCESSES, NULL, &processes);
    if (is_fine)
        draw_rows(s, grid, draw_devices(s, grid, &devices), &processes);
    drop_lines(&devices);
    drop_lines(&processes);
    return is_fine;
}

/* --- a page of lines ---------------------------------------------------------------------- */

static bool
draw_lines(struct live_screen *s, struct grid *grid, enum part part,
           const struct watch_process *p)
{
    struct lines_of_text lines_of_text;
    bool is_fine = take_lines(s, part, p, &lines_of_text);
    size_t rows_max = (size_t)(s->height - 4);
    if (is_fine) {
        size_t most = lines_of_text.count > rows_max ? lines_of_text.count - rows_max : 0;
        s->line_count = lines_of_text.count;
        s->scroll = s->scroll < most ? s->scroll : most;
        for (size_t i = 0; i < rows_max && s->scroll + i < lines_of_text.count; i++)
            (void)grid_put(grid, 0, 2 + (int)i, GRID_PLAIN,
                           lines_of_text.lines[s->scroll + i]);
        if (most)
            (void)grid_format(grid, s->width - 24, s->height - 1, GRID_DIM,
                              "%8zu to %zu of %zu", s->scroll + 1, s->scroll + rows_max,
                              lines_of_text.count);
    }
    drop_lines(&lines_of_text);
    return is_fine;
}

/* --- all of it ---------------------------------------------------------------------------- */

static void
draw_head(const struct live_screen *s, struct grid *grid)
{
    const struct watch *watch = s->sampler->watch;
    int x = grid_put(grid, 0, 0, GRID_BOLD, "drystone live");
    x = grid_format(grid, x, 0, GRID_PLAIN, "   %zu device%s, %zu process%s",
                    watch->device_count, watch->device_count == 1 ? "" : "s",
                    watch->process_count, watch->process_count == 1 ? "" : "es");
    if (s->sampler->wanted) {
        char wanted[LIVE_TEXT_BYTES];
        live_cut(wanted, s->sampler->wanted, 20);
        if (!s->has_utf8)
            make_ascii(wanted);
        (void)grid_format(grid, x, 0, GRID_PLAIN, ", %s wanted", wanted);
    }
    if (s->width > 76)
        (void)grid_put(grid, s->width - 8, 0, GRID_DIM, "[?] keys");
}

static void
draw_foot(struct live_screen *s, struct grid *grid)
{
    static const char *const feet[] = {"up/down choose  enter shows  s snapshot  q quit",
                                       "up/down scroll  escape back  s snapshot  q quit",
                                       "escape back  q quit"};
    if (!s->has_utf8)
        make_ascii(s->message);
    (void)grid_put_cut(grid, 0, s->height - 2, s->width, GRID_BOLD, s->message);
    (void)grid_put(grid, 0, s->height - 1, GRID_DIM, feet[s->panel]);
}

bool
live_screen_draw(struct live_screen *screen, struct grid *grid)
{
    size_t row;
    const struct watch_process *p = live_screen_chosen(screen, &row);
    if (!p && screen->panel == LIVE_PROCESS)
        screen->panel = LIVE_LIST;
    draw_head(screen, grid);
    draw_foot(screen, grid);
    if (screen->panel == LIVE_LIST)
        return draw_list(screen, grid);
    return draw_lines(screen, grid, screen->panel == LIVE_KEYS ? PART_KEYS : PART_PROCESS,
                      p);
}
