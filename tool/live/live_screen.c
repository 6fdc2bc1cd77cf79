/* SPDX-License-Identifier: Apache-2.0 */
/* See live_screen.h. live_draw.c draws the screen. */
#include "live/live_screen.h"

#include <string.h>

#include "live/live_summary.h"

void
live_screen_resize(struct live_screen *screen, int width, int height)
{
    screen->width = width > LIVE_WIDTH_MIN ? width : LIVE_WIDTH_MIN;
    screen->height = height > LIVE_HEIGHT_MIN ? height : LIVE_HEIGHT_MIN;
}

void
live_screen_tell(void *self, const struct brink_event *event)
{
    struct live_screen *screen = self;
    brink_text_write(event, true, screen->message);
}

/* --- the chosen one ----------------------------------------------------------------------- */

static bool
is_shown(const struct live_screen *screen, size_t i)
{
    return live_is_wanted(screen->sampler->watch->processes[i], screen->sampler->wanted);
}

static struct watch_process *
process_at(const struct live_screen *screen, size_t row)
{
    const struct watch *watch = screen->sampler->watch;
    for (size_t i = 0; i < watch->process_count; i++)
        if (is_shown(screen, i) && row-- == 0)
            return watch->processes[i];
    return NULL;
}

static size_t
count_rows(const struct live_screen *screen)
{
    size_t count = 0;
    for (size_t i = 0; i < screen->sampler->watch->process_count; i++)
        count += is_shown(screen, i);
    return count;
}

static bool
is_chosen(const struct live_screen *screen, const struct watch_process *p)
{
    if (screen->file_name[0])
        return p->guest == screen->guest && strcmp(p->file_name, screen->file_name) == 0;
    return !p->file_name[0] && p->process == screen->process;
}

static void
choose(struct live_screen *screen, const struct watch_process *p, size_t row)
{
    if (!p)
        return;
    memcpy(screen->file_name, p->file_name, sizeof screen->file_name);
    screen->process = p->process;
    screen->guest = p->guest;
    screen->row = row;
}

/* Find the chosen process. Each sample sorts the list again, so the choice is stored as a
   process, not as a row. */
struct watch_process *
live_screen_chosen(struct live_screen *screen, size_t *row)
{
    const struct watch *watch = screen->sampler->watch;
    struct watch_process *in_place = NULL; /* the process in the chosen row, or in the
                                              last row */
    size_t count = 0;
    *row = 0;
    for (size_t i = 0; i < watch->process_count; i++) {
        struct watch_process *p = watch->processes[i];
        if (!is_shown(screen, i))
            continue;
        bool is_same = is_chosen(screen, p);
        if (is_same || count <= screen->row) {
            in_place = p;
            *row = count;
        }
        if (is_same)
            break;
        count++;
    }
    choose(screen, in_place, *row);
    return in_place;
}

/* --- keys --------------------------------------------------------------------------------- */

static void
move_choice(struct live_screen *screen, int key)
{
    size_t row, count = count_rows(screen), page = (size_t)screen->height / 2;
    if (!live_screen_chosen(screen, &row))
        return;
    if (key == TUI_KEY_UP)
        row -= row > 0;
    else if (key == TUI_KEY_DOWN)
        row++;
    else if (key == TUI_KEY_PAGE_UP)
        row -= row > page ? page : row;
    else if (key == TUI_KEY_PAGE_DOWN)
        row += page;
    else
        row = key == TUI_KEY_HOME ? 0 : count;
    row = row < count ? row : count - 1;
    choose(screen, process_at(screen, row), row);
}

static void
move_lines(struct live_screen *screen, int key)
{
    size_t page = (size_t)screen->height / 2, at = screen->scroll;
    if (key == TUI_KEY_UP)
        at -= at > 0;
    else if (key == TUI_KEY_DOWN)
        at++;
    else if (key == TUI_KEY_PAGE_UP)
        at -= at > page ? page : at;
    else if (key == TUI_KEY_PAGE_DOWN)
        at += page;
    else
        at = key == TUI_KEY_HOME ? 0 : screen->line_count;
    screen->scroll = at; /* drawing clamps it to the lines */
}

static void
ask_for_snapshot(struct live_screen *screen)
{
    size_t row;
    struct watch_process *p = live_screen_chosen(screen, &row);
    if (p && !brink_ask(screen->brink, p, live_screen_tell, screen))
        screen->has_failed = true;
}

static void
show_panel(struct live_screen *screen, enum live_panel panel)
{
    screen->panel = panel;
    screen->scroll = 0;
}

void
live_screen_press(struct live_screen *screen, int key)
{
    switch (key) {
    case TUI_KEY_UP:
    case TUI_KEY_DOWN:
    case TUI_KEY_PAGE_UP:
    case TUI_KEY_PAGE_DOWN:
    case TUI_KEY_HOME:
    case TUI_KEY_END:
        if (screen->panel == LIVE_LIST)
            move_choice(screen, key);
        else
            move_lines(screen, key);
        break;
    case TUI_KEY_ENTER:
    case TUI_KEY_RIGHT:
        show_panel(screen, screen->panel == LIVE_LIST ? LIVE_PROCESS : screen->panel);
        break;
    case TUI_KEY_ESCAPE:
    case TUI_KEY_LEFT:
    case TUI_KEY_BACKSPACE:
        show_panel(screen, LIVE_LIST);
        break;
    case '?':
        show_panel(screen, screen->panel == LIVE_KEYS ? LIVE_LIST : LIVE_KEYS);
        break;
    case 's':
        ask_for_snapshot(screen);
        break;
    case 'q':
        screen->is_over = true;
        break;
    default:
        break;
    }
}
