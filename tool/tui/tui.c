/* SPDX-License-Identifier: Apache-2.0 */
/* See tui.h. Keys change the moment, the range of moments and the panel. */
#include "tui/tui.h"

#include <stdlib.h>
#include <string.h>

#include "view/answers.h"

#define ROWS_BESIDE_PLOT 5 /* head, axis, cursor's line, tabs, foot */

const struct view_device *
tui_device(const struct tui *tui)
{
    return &tui->view->files[tui->file].devices[tui->device];
}

int
tui_plot_width(const struct tui *tui)
{
    return tui->width - TUI_PLOT_LEFT - 1;
}

int
tui_plot_height(const struct tui *tui)
{
    int height = (tui->height - ROWS_BESIDE_PLOT) * 9 / 20;
    return height < 3 ? 3 : height;
}

int
tui_panel_top(const struct tui *tui)
{
    return tui_plot_height(tui) + ROWS_BESIDE_PLOT - 1;
}

/* --- the cursor --------------------------------------------------------------------------- */

static void
forget_moment(struct tui *tui)
{
    dry_owners_destroy(tui->owners);
    dry_state_destroy(tui->state);
    tui->owners = NULL;
    tui->state = NULL;
}

/* Show `count` moments from `from` on, shifted to lie within the timeline. */
static void
show(struct tui *tui, uint64_t from, uint64_t count)
{
    uint32_t moments = tui_device(tui)->moments;
    if (count > moments)
        count = moments;
    if (from + count > moments)
        from = moments - count;
    tui->from = (uint32_t)from;
    tui->to = (uint32_t)(from + count);
}

static void
go_to(struct tui *tui, int64_t moment)
{
    uint32_t last = tui_device(tui)->moments - 1, count = tui->to - tui->from;
    moment = moment < 0 ? 0 : moment > last ? last : moment;
    if ((uint32_t)moment == tui->cursor)
        return;
    tui->cursor = (uint32_t)moment;
    if (tui->panel != TUI_VERDICT)
        tui->scroll = 0;
    forget_moment(tui);
    if (tui->cursor < tui->from)
        show(tui, tui->cursor, count);
    else if (tui->cursor >= tui->to)
        show(tui, tui->cursor - count + 1, count);
}

static void
zoom(struct tui *tui, bool is_in)
{
    uint64_t count = tui->to - tui->from, least = (uint64_t)tui_plot_width(tui);
    uint64_t wanted = is_in ? count / 2 : count * 2;
    if (is_in && wanted < least)
        wanted = least < count ? least : count;
    uint64_t before = (tui->cursor - tui->from) * wanted / count;
    show(tui, tui->cursor > before ? tui->cursor - before : 0, wanted);
}

static int64_t
column_moments(const struct tui *tui)
{
    int64_t moments = (int64_t)(tui->to - tui->from) / tui_plot_width(tui);
    return moments < 1 ? 1 : moments;
}

static void
go_to_place(struct tui *tui, const char *name)
{
    const struct view_device *d = tui_device(tui);
    for (unsigned i = 0; i < d->place_count; i++)
        if (strcmp(d->places[i].name, name) == 0)
            go_to(tui, d->places[i].moment);
}

/* Open a device with the cursor at the failure, or else at the peak. */
static void
open_device(struct tui *tui)
{
    const struct view_device *d = tui_device(tui);
    forget_moment(tui);
    tui->scroll = 0;
    show(tui, 0, d->moments);
    tui->cursor = d->places[0].moment;
}

static void
next_device(struct tui *tui)
{
    const struct view_file *file = &tui->view->files[tui->file];
    tui->device++;
    if (tui->device == file->study.device_count) {
        tui->device = 0;
        tui->file = (tui->file + 1) % tui->view->file_count;
        free(tui->verdict);
        tui->verdict = NULL;
    }
    open_device(tui);
}

const char *
tui_wants_verdict(const struct tui *tui)
{
    bool is_wanted = tui->panel == TUI_VERDICT && !tui->verdict;
    return is_wanted ? tui->view->files[tui->file].path : NULL;
}

void
tui_set_verdict(struct tui *tui, char *text)
{
    free(tui->verdict);
    tui->verdict = text ? text : strdup("There is no verdict: see drystone explain.\n");
    tui->has_failed |= !tui->verdict;
}

/* --- keys --------------------------------------------------------------------------------- */

static void
scroll_by(struct tui *tui, long rows)
{
    if (rows < 0 && (size_t)-rows > tui->scroll)
        tui->scroll = 0;
    else
        tui->scroll += (size_t)rows;
}

static void
press_in_search(struct tui *tui, int key)
{
    size_t length = strlen(tui->search);
    if (key == TUI_KEY_ENTER || key == TUI_KEY_ESCAPE)
        tui->is_searching = false;
    if (key == TUI_KEY_ESCAPE)
        tui->search[0] = '\0';
    if (key == TUI_KEY_BACKSPACE && length > 0)
        tui->search[length - 1] = '\0';
    if (key >= ' ' && key < 0x7f && length + 1 < sizeof tui->search) {
        tui->search[length] = (char)key;
        tui->search[length + 1] = '\0';
    }
    tui->scroll = 0;
}

static void
choose_panel(struct tui *tui, enum tui_panel panel)
{
    tui->panel = panel;
    tui->scroll = 0;
}

static bool
press_move(struct tui *tui, int key)
{
    int64_t column = column_moments(tui), page = tui->height - tui_panel_top(tui) - 1;
    switch (key) {
    case TUI_KEY_LEFT:
        go_to(tui, tui->cursor - column);
        return true;
    case TUI_KEY_RIGHT:
        go_to(tui, tui->cursor + column);
        return true;
    case '[':
        go_to(tui, (int64_t)tui->cursor - 1);
        return true;
    case ']':
        go_to(tui, (int64_t)tui->cursor + 1);
        return true;
    case TUI_KEY_HOME:
        go_to(tui, 0);
        return true;
    case TUI_KEY_END:
        go_to(tui, UINT32_MAX);
        return true;
    case TUI_KEY_UP:
        scroll_by(tui, -1);
        return true;
    case TUI_KEY_DOWN:
        scroll_by(tui, 1);
        return true;
    case TUI_KEY_PAGE_UP:
        scroll_by(tui, -page);
        return true;
    case TUI_KEY_PAGE_DOWN:
        scroll_by(tui, page);
        return true;
    default:
        return false;
    }
}

static bool
press_view(struct tui *tui, int key)
{
    switch (key) {
    case '+':
    case '=':
        zoom(tui, true);
        return true;
    case '-':
        zoom(tui, false);
        return true;
    case 'f':
        show(tui, 0, tui_device(tui)->moments);
        return true;
    case 'p':
        go_to_place(tui, "peak");
        return true;
    case 'o':
        go_to_place(tui, "oom");
        return true;
    case 'e':
        go_to_place(tui, "end");
        return true;
    case 'd':
        next_device(tui);
        return true;
    case 'q':
        tui->is_over = true;
        return true;
    default:
        return false;
    }
}

static void
press_panel(struct tui *tui, int key)
{
    switch (key) {
    case '1':
        choose_panel(tui, TUI_OWNERS);
        break;
    case '2':
        choose_panel(tui, TUI_MAP);
        break;
    case '3':
        choose_panel(tui, TUI_VERDICT);
        break;
    case '?':
        choose_panel(tui, TUI_KEYS);
        break;
    case '\t':
        choose_panel(tui, (enum tui_panel)((tui->panel + 1) % TUI_KEYS));
        break;
    case '/':
        tui->is_searching = true;
        choose_panel(tui, TUI_OWNERS);
        break;
    case TUI_KEY_ESCAPE:
        tui->search[0] = '\0';
        choose_panel(tui, TUI_OWNERS);
        break;
    default:
        break;
    }
}

void
tui_press(struct tui *tui, int key)
{
    if (tui->is_searching)
        press_in_search(tui, key);
    else if (!press_move(tui, key) && !press_view(tui, key))
        press_panel(tui, key);
}

void
tui_click(struct tui *tui, int x, int y)
{
    int column = x - TUI_PLOT_LEFT, width = tui_plot_width(tui);
    bool is_in_plot = y >= 1 && y <= tui_plot_height(tui) + 1;
    if (is_in_plot && column >= 0 && column < width)
        go_to(tui, (int64_t)tui->from + (int64_t)((uint64_t)(tui->to - tui->from) *
                                                  (uint64_t)column / (uint64_t)width));
}

void
tui_resize(struct tui *tui, int width, int height)
{
    tui->width = width < TUI_WIDTH_MIN ? TUI_WIDTH_MIN : width;
    tui->height = height < TUI_HEIGHT_MIN ? TUI_HEIGHT_MIN : height;
}

void
tui_init(struct tui *tui, struct view *view)
{
    *tui = (struct tui){.view = view, .width = 80, .height = 24};
    tui->device = view->files[0].study.main;
    open_device(tui);
}

void
tui_finish(struct tui *tui)
{
    forget_moment(tui);
    free(tui->verdict);
    *tui = (struct tui){0};
}
