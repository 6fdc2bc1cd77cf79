/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TERMINAL_H
#define TOOL_TERMINAL_H

/*
 * The terminal, by ncurses: grids are shown, keys come in by their meaning.
 *
 *     struct terminal *terminal = terminal_open();
 *     terminal_get_size(terminal, &width, &height);
 *     terminal_show(terminal, &grid);
 *     key = terminal_get_key(terminal, 1000, &x, &y);
 *     terminal_close(terminal);
 *
 * The locale's characters are those of LC_CTYPE, which the caller sets. Colours are used where there
 * are some, unless NO_COLOR is set.
 *
 * Threads    The process has one terminal, and one thread that uses it.
 */

#include <stdbool.h>

#include "tui/grid.h"
#include "tui/key.h"

#define TERMINAL_WAIT_EVER (-1)

struct terminal; /* opaque */

/* Tell whether input and output are a terminal that ncurses knows and whose cursor moves. */
bool terminal_is_able(void);
/* NULL: the terminal is not known. */
struct terminal *terminal_open(void);
/* The screen is as it was before. NULL is fine. */
void terminal_close(struct terminal *terminal);

void terminal_get_size(const struct terminal *terminal, int *width, int *height);
/* Show what fits of a grid. */
void terminal_show(struct terminal *terminal, const struct grid *grid);
/*
 * Wait for a key at most `wait_ms`, or TERMINAL_WAIT_EVER. Returns an enum tui_key or a
 * character; *x and *y become the place of a click.
 */
int terminal_get_key(struct terminal *terminal, int wait_ms, int *x, int *y);

#endif
