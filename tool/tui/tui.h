/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TUI_H
#define TOOL_TUI_H

/*
 * The terminal view: its state, its keys, and its picture as a grid. This part works
 * without a terminal; tui_run.c connects the two.
 *
 *     fixture.pickle  device 0, 4 321 events                             [?] keys
 *     13.2 GiB |            ▄▆█▇▅              ▄▆█▇▅
 *              |      ▂▅███████████▆▃    ▂▅███████████▆▃
 *            0 +-------------^------------------------!----
 *     after event 2100  +1.204 s  reserved 13.2 GiB  active 12.9 GiB
 *     [1 owners]  2 map   3 verdict
 *     attention.py:88 forward              12.10 GiB  24 % #####
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/owners.h>
#include <drystone/state.h>

#include "tui/grid.h"
#include "tui/key.h"
#include "view/view.h"

enum tui_panel { TUI_OWNERS, TUI_MAP, TUI_VERDICT, TUI_KEYS };

#define TUI_SEARCH_BYTES 64
#define TUI_WIDTH_MIN 40
#define TUI_HEIGHT_MIN 12

struct tui {
    struct view *view;
    size_t file, device;
    uint32_t from, to; /* range of moments in the plot */
    uint32_t cursor;   /* a moment: from <= cursor < to */
    enum tui_panel panel;
    size_t scroll; /* rows of the panel scrolled off its top */
    int width, height;
    bool has_blocks; /* the terminal can show ▁▂▃▄▅▆▇█ */
    bool is_over, is_searching;
    char search[TUI_SEARCH_BYTES]; /* part of an owner's name; "": no search */
    char *verdict; /* output of `explain` for the file; NULL until tui_set_verdict() */
    struct dry_owners *owners; /* owners at the moment of the cursor */
    struct dry_state *state;
    bool has_failed; /* memory ran out */
};

/* Start with the first file of `view`. */
void tui_init(struct tui *tui, struct view *view);
void tui_finish(struct tui *tui);

/* Return the path of the file whose verdict the panel needs; NULL: none. */
const char *tui_wants_verdict(const struct tui *tui);
/* Set the verdict, a malloc()ed text, and take ownership; NULL: none is available. */
void tui_set_verdict(struct tui *tui, char *text);

const struct view_device *tui_device(const struct tui *tui);
void tui_resize(struct tui *tui, int width, int height);
/* Handle a key. */
void tui_press(struct tui *tui, int key);
/* Handle a click at a column and a row: in the plot, it moves the cursor. */
void tui_click(struct tui *tui, int x, int y);

/* Draw the screen on a grid of the size given to tui_resize(). False: memory ran out. */
bool tui_draw(struct tui *tui, struct grid *grid);

/* Left column, width and height of the plot. */
#define TUI_PLOT_LEFT 11
int tui_plot_width(const struct tui *tui);
int tui_plot_height(const struct tui *tui);
/* Return the first row of the panel. */
int tui_panel_top(const struct tui *tui);

/* Draw the current panel (tui_panels.c). */
void tui_draw_panel(struct tui *tui, struct grid *grid);

#endif
