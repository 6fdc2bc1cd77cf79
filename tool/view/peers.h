/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PEERS_H
#define TOOL_PEERS_H

/*
 * How long each connection of the server may still take. libmicrohttpd ends a connection that
 * is silent; one that sends, or takes, a byte now and then holds its place for ever, and there
 * are only so many places.
 */

#include <stdbool.h>
#include <stdint.h>

#define PEERS_MAX 64

struct peer {
    bool is_there;
    int socket;
    int64_t deadline_ms; /* PEER_WAITS: none, for the server has to do something first */
};

struct peers {
    struct peer all[PEERS_MAX];
};

#define PEER_WAITS INT64_MAX

/* Return a place for a connection, with `allowed_ms` from now. NULL: there is none. */
struct peer *peers_add(struct peers *peers, int socket, int64_t allowed_ms);
/* Let a connection take `allowed_ms` from now, or PEER_WAITS. NULL is fine. */
void peer_allow(struct peer *peer, int64_t allowed_ms);
/* Give the place back, before the socket is closed. NULL is fine. */
void peer_remove(struct peer *peer);
/* Shut the connections whose time is over down, so that the library finds their ends. */
void peers_shut_late(struct peers *peers);

#endif
