/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TERMINAL_H
#define TOOL_TERMINAL_H

/*
 * The terminal, through ncurses: shows grids and reads keys.
 *
 *     struct terminal *terminal = terminal_open();
 *     terminal_get_size(terminal, &width, &height);
 *     terminal_show(terminal, &grid);
 *     key = terminal_get_key(terminal, 1000, &x, &y);
 *     terminal_close(terminal);
 *
 * The caller sets LC_CTYPE for the locale's characters. Colours are used if available,
 * unless NO_COLOR is set.
 *
 * Threads    One terminal per process, used by one thread.
 */

#include <stdbool.h>

#include "tui/grid.h"
#include "tui/key.h"

#define TERMINAL_WAIT_EVER (-1)

struct terminal;

/* Tell whether standard input and output are a terminal that ncurses supports and whose
   cursor can be moved. */
bool terminal_is_able(void);
/* Open the terminal. NULL: ncurses does not know the terminal. */
struct terminal *terminal_open(void);
/* Restore the screen. NULL is allowed. */
void terminal_close(struct terminal *terminal);

void terminal_get_size(const struct terminal *terminal, int *width, int *height);
/* Show a grid, cut to the screen. */
void terminal_show(struct terminal *terminal, const struct grid *grid);
/* Wait for a key at most `wait_ms`, or TERMINAL_WAIT_EVER. Returns an enum tui_key or a
   character; *x and *y are set for a click. */
int terminal_get_key(struct terminal *terminal, int wait_ms, int *x, int *y);

#endif
