/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORTER_SERVER_H
#define TOOL_EXPORTER_SERVER_H

/*
 * The exporter over HTTP: /metrics, and a page that links to it. Requests can only read.
 *
 * One thread serves all clients. A request's head is limited to 16 KiB and five seconds,
 * and a reply must be read within ten. On a loopback address, Host must be an IP address
 * or localhost, which defeats DNS rebinding.
 */

#include "exporter/exporter.h"
#include "exporter/exporter_socket.h"

struct exporter_server;

/* Serve on a socket, which the server then owns. NULL: the server failed to start. */
struct exporter_server *exporter_server_start(struct exporter *exporter,
                                              struct exporter_socket *socket);
/* Serve until *is_over is set, for example by a signal handler. */
void exporter_server_run(struct exporter_server *server, const volatile int *is_over);
void exporter_server_stop(struct exporter_server *server);

#endif
