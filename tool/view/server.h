/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_SERVER_H
#define TOOL_SERVER_H

/*
 * The page and its answers over HTTP, for users of this machine only.
 *
 * The server listens on 127.0.0.1. Each run has a random token at the beginning of its
 * paths, so other users and other web pages cannot ask. Host, and Origin if present, must
 * name this server, which defeats DNS rebinding. A browser's tab may come to the page from
 * elsewhere; answers are for the page alone. Requests can only read. One thread serves
 * all; commands that replay run in child processes.
 */

#include <stdbool.h>
#include <stdint.h>

#include "view/view.h"

struct server;

/* Listen on `port`; 0: any free port. *server is the result. Returns an exit_code;
   failures are printed. */
int server_start(struct view *view, uint16_t port, struct server **server);
/* Return "http://127.0.0.1:40321/6e1f.../", valid as long as the server. */
const char *server_address(const struct server *server);
/* Serve until *is_over is set, for example by a signal handler. */
void server_run(struct server *server, const volatile int *is_over);
void server_stop(struct server *server);

#endif
