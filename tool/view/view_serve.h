/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_VIEW_SERVE_H
#define TOOL_VIEW_SERVE_H

/* `drystone view`: serve the complete page to this machine. */

#include "view/view.h"

/* Serve an open view until ^C on `port`; 0: any free port. Prints the address, and opens
   a browser if there is a display. Returns an exit code. */
int view_serve(struct view *view, uint16_t port);

#endif
