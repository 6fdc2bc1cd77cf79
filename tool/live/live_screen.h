/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_LIVE_SCREEN_H
#define TOOL_LIVE_SCREEN_H

/*
 * The full screen: devices and processes, or one process in detail. This part works
 * without a terminal; live_terminal.c connects the two.
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
#include "live/live_sampler.h"
#include "tui/grid.h"
#include "tui/key.h"

#define LIVE_WIDTH_MIN 40
#define LIVE_HEIGHT_MIN 10

enum live_panel { LIVE_LIST, LIVE_PROCESS, LIVE_KEYS };

struct live_screen {
    struct live_sampler *sampler;
    struct brink *brink;
    int width, height;
    bool has_utf8; /* false: draw ASCII only */
    enum live_panel panel;
    char file_name[64];             /* the chosen process's page; "": it has none */
    uint64_t process, guest;        /* the chosen process's IDs */
    size_t row;                     /* row of the chosen process in the last list */
    size_t top, scroll;             /* first visible row of the list, line of a panel */
    size_t line_count;              /* lines of the panel, as last drawn */
    char message[BRINK_TEXT_BYTES]; /* the last event */
    bool is_over, has_failed;       /* the user quit; memory ran out */
};

void live_screen_resize(struct live_screen *screen, int width, int height);
/* Handle a key. */
void live_screen_press(struct live_screen *screen, int key);
/* Show an event below the list; `self` is the screen. */
brink_tell live_screen_tell;
/* Draw the screen. Requires a grid of the size given to live_screen_resize(). False:
   memory ran out. */
bool live_screen_draw(struct live_screen *screen, struct grid *grid);

/* Return the chosen process. If it is gone, return the process in its row; NULL: the list
   is empty. */
struct watch_process *live_screen_chosen(struct live_screen *screen, size_t *row);

#endif
