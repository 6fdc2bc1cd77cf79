/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORTER_SERVER_H
#define TOOL_EXPORTER_SERVER_H

/*
 * The exporter over HTTP: /metrics, and a page that says so. Nothing can be written.
 *
 * One thread serves all. A head of a request has 16 KiB and five seconds, however slowly its
 * bytes come; a reply has to be taken within ten. On a loopback address a request must name this
 * machine by number or as localhost, so that no web page can ask through a name of its own.
 */

#include "exporter/exporter.h"
#include "exporter/exporter_socket.h"

struct exporter_server;

/* Serve on a socket, which is the server's from here on. NULL: it cannot be. */
struct exporter_server *exporter_server_start(struct exporter *exporter,
                                              struct exporter_socket *socket);
/* Serve until *is_over; a signal's handler may set it. */
void exporter_server_run(struct exporter_server *server, const volatile int *is_over);
void exporter_server_stop(struct exporter_server *server);

#endif
