/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_SERVER_H
#define TOOL_SERVER_H

/*
 * The page and its answers over HTTP, to this machine alone.
 *
 * The server listens on 127.0.0.1. The path begins with a token that is made anew for each
 * run, so other users of the machine and other pages cannot ask. A request must name this
 * server as its Host, and as its Origin if it has one, so a foreign name that was pointed at
 * this address is refused. Nothing can be written. One thread serves all; a command that takes
 * replays runs beside it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "view/view.h"

struct server;

/*
 * Listen on `port`, 0 for any that is free; the result is *server. An exit_code; what failed
 * is on standard error.
 */
int server_start(struct view *view, uint16_t port, struct server **server);
/* "http://127.0.0.1:40321/6e1f…/", which lives as long as the server. */
const char *server_address(const struct server *server);
/* Serve until *is_over; a signal's handler may set it. */
void server_run(struct server *server, const volatile int *is_over);
void server_stop(struct server *server);

#endif
