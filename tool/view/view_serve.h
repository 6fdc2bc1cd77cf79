/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_VIEW_SERVE_H
#define TOOL_VIEW_SERVE_H

/* `drystone view`: the page with everything in it, for this machine. */

#include "view/view.h"

/*
 * Serve an open view on `port`, 0 for any that is free, until ^C; print the address, and open
 * it in the desktop's browser if there is a display. Returns an exit code.
 */
int view_serve(struct view *view, uint16_t port);

#endif
