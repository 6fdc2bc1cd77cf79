/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TUI_H
#define TOOL_TUI_H

/*
 * The terminal's view: what is looked at, how keys change it, and its picture as a grid. No
 * terminal is needed here; cmd_tui.c has it.
 *
 *     fixture.pickle  device 0, 4 321 events                             [?] keys
 *     13.2 GiB |            ▄▆█▇▅              ▄▆█▇▅
 *              |      ▂▅███████████▆▃    ▂▅███████████▆▃
 *            0 +-------------^------------------------!----
 *     moment 2 101 of 4 323  +1.204 s   reserved 13.2 GiB  active 12.9 GiB
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
    uint32_t from, to; /* the moments in the plot */
    uint32_t cursor;   /* a moment in from <= cursor < to */
    enum tui_panel panel;
    size_t scroll; /* rows of the panel above its first line */
    int width, height;
    bool has_blocks; /* the terminal shows ▁▂▃▄▅▆▇█ */
    bool is_over, is_searching;
    char search[TUI_SEARCH_BYTES]; /* part of an owner's name; "": none */
    char *verdict; /* what `explain` prints of the file; NULL until tui_set_verdict() */
    struct dry_owners *owners; /* at the cursor */
    struct dry_state *state;
    bool has_failed; /* no memory */
};

/* Look at the first file of `view`. */
void tui_init(struct tui *tui, struct view *view);
void tui_finish(struct tui *tui);

/* Return the path of the file whose verdict the panel lacks; NULL: it lacks none. */
const char *tui_wants_verdict(const struct tui *tui);
/* Give the text, which was malloc()ed; NULL: there is none to be had. */
void tui_set_verdict(struct tui *tui, char *text);

const struct view_device *tui_device(const struct tui *tui);
void tui_resize(struct tui *tui, int width, int height);
/* Do what a key asks for. */
void tui_press(struct tui *tui, int key);
/* A click at a column and a row: in the plot, the cursor goes there. */
void tui_click(struct tui *tui, int x, int y);

/* Draw everything. The grid has the size of tui_resize(). False: no memory. */
bool tui_draw(struct tui *tui, struct grid *grid);

/* The plot's place on the screen. */
#define TUI_PLOT_LEFT 11
int tui_plot_width(const struct tui *tui);
int tui_plot_height(const struct tui *tui);
/* The first row of the panel. */
int tui_panel_top(const struct tui *tui);

/* The panels, tui_panels.c. */
void tui_draw_panel(struct tui *tui, struct grid *grid);

#endif
