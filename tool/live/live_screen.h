/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_LIVE_SCREEN_H
#define TOOL_LIVE_SCREEN_H

/*
 * The full screen: devices and processes, or one process whole. No terminal is needed here;
 * live_terminal.c has it.
 *
 *     drystone live   2 devices, 3 processes                             [?] keys
 *       device  name                        used     total  share
 *            0  NVIDIA H100 80GB HBM3   67.1 GiB  79.6 GiB   84 %  [########--]
 *
 *          PID  rank  name      dev  reserved  allocated  stranded      left  state
 *     >   4711     3  train.py    0  60.0 GiB   50.0 GiB  4.00 GiB  12.6 GiB  live
 *
 *     up/down choose  enter shows  s snapshot  q quit
 */

#include <stdbool.h>
#include <stddef.h>

#include "live/brink.h"
#include "live/brink_text.h"
#include "live/live_look.h"
#include "tui/grid.h"
#include "tui/key.h"

#define LIVE_WIDTH_MIN 40
#define LIVE_HEIGHT_MIN 10

enum live_panel { LIVE_LIST, LIVE_PROCESS, LIVE_KEYS };

struct live_screen {
    struct live_look *look;
    struct brink *brink;
    int width, height;
    bool has_utf8; /* else everything is ASCII */
    enum live_panel panel;
    char page[64];           /* the chosen process's; "" for one without */
    uint64_t process, guest; /* the same one's numbers */
    size_t row;              /* where it was in the list */
    size_t top, scroll;      /* the first row of the list, the first line of a panel */
    size_t line_count;       /* of the panel, as drawn last */
    char message[BRINK_TEXT_BYTES]; /* what happened last */
    bool is_over, has_failed;       /* failed: no memory */
};

void live_screen_resize(struct live_screen *screen, int width, int height);
/* Do what a key asks for. */
void live_screen_press(struct live_screen *screen, int key);
/* Show an event below the list. `self` is the screen. */
brink_tell live_screen_tell;
/* Draw everything; the grid has the size of live_screen_resize(). False: no memory. */
bool live_screen_draw(struct live_screen *screen, struct grid *grid);

/* The wanted process that is chosen, else the one in its place; NULL: there is none. */
struct watch_process *live_screen_chosen(struct live_screen *screen, size_t *row);

#endif
