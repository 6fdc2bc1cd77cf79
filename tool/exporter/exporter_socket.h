/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORTER_SOCKET_H
#define TOOL_EXPORTER_SOCKET_H

/*
 * The exporter's address: a TCP address, or a Unix socket in the file system.
 *
 * A stale socket file, on which no process listens, is replaced. A live socket or any
 * other file is not.
 */

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define EXPORTER_ADDRESS_BYTES 128 /* Unix socket paths have at most 107 bytes */

union exporter_sockaddr {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

struct exporter_address {
    union exporter_sockaddr to;
    socklen_t length;
    bool is_loopback; /* reachable from this machine only */
};

/* Read "127.0.0.1:9432", "[::1]:9432" or "localhost:9432". False: not an address. */
bool exporter_read_address(const char *text, struct exporter_address *address);

struct exporter_socket {
    int file; /* descriptor; -1: none */
    bool is_loopback, is_unix;
    char text
        [EXPORTER_ADDRESS_BYTES]; /* "127.0.0.1:9432" with the actual port, or the path */
    struct stat made;             /* identifies the created file, if it is a path */
};

/* Listen on an address. Returns an exit_code; failures are printed. */
int exporter_listen(const char *text, struct exporter_socket *made);
/* Listen on a path, with mode 0660. Returns as exporter_listen(). */
int exporter_listen_unix(const char *path, struct exporter_socket *made);
/* Close the socket, unless `file` is -1 because libmicrohttpd owns it, and remove its
   path if the file is still ours. */
void exporter_unlisten(struct exporter_socket *made);

/* Tell whether a request's Host is an IP address or "localhost", or missing (NULL,
   HTTP/1.0). Another name may be an attacker's that resolves to a loopback address. */
bool exporter_is_near_host(const char *host);

#endif
