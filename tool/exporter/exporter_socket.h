/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORTER_SOCKET_H
#define TOOL_EXPORTER_SOCKET_H

/*
 * The exporter's place: an address that was named, or a socket in a folder.
 *
 * A socket that an exporter left behind, which nobody listens on, is taken over; one that
 * answers, and anything else of that name, is not.
 */

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define EXPORTER_ADDRESS_BYTES 128 /* a socket's path has 107 at most */

union exporter_sockaddr {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

struct exporter_address {
    union exporter_sockaddr to;
    socklen_t length;
    bool is_loopback; /* only this machine's programs can come */
};

/* Read "127.0.0.1:9432", "[::1]:9432" or "localhost:9432". False: it is none. */
bool exporter_read_address(const char *text, struct exporter_address *address);

struct exporter_socket {
    int file; /* -1: none */
    bool is_loopback, is_unix;
    char text
        [EXPORTER_ADDRESS_BYTES]; /* "127.0.0.1:9432" with the true port, or the path */
    struct stat made;             /* of a path: what was made there */
};

/* Listen. Both return an exit_code; what failed is on standard error. */
int exporter_listen(const char *text, struct exporter_socket *made);
/* The socket gets mode 0660. */
int exporter_listen_unix(const char *path, struct exporter_socket *made);
/* Close it, unless `file` is -1 and so another's, and remove a path that is still this one's. */
void exporter_unlisten(struct exporter_socket *made);

/*
 * Tell whether a request's Host is a number, or "localhost". A name that a web page has had
 * pointed at a loopback address is neither. NULL, of HTTP/1.0, is fine.
 */
bool exporter_is_near_host(const char *host);

#endif
