/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TUI_RUN_H
#define TOOL_TUI_RUN_H

/* `drystone view --terminal`: the view in a terminal. */

#include "view/view.h"

/* Show an open view until the user quits. Returns an exit code. */
int tui_run(struct view *view);

#endif
