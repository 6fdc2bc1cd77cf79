/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PEERS_H
#define TOOL_PEERS_H

/*
 * How long each connection of the server may still take. libmicrohttpd ends a connection that
 * is silent; one that sends, or takes, a byte now and then holds its place for ever, and there
 * are only so many places.
 */

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#define PEERS_MAX 64

struct peer {
    bool is_there;
    int socket;
    int64_t deadline_ms; /* PEER_WAITS: none, for the server has to do something first */
};

struct peers {
    int64_t head_ms; /* for a whole head, however its bytes come */
    struct peer all[PEERS_MAX];
};

#define PEER_WAITS INT64_MAX

/*
 * Give each connection a place when it begins, with `head_ms` for its first head, and take the
 * place back at its end. The library calls: MHD_OPTION_NOTIFY_CONNECTION, `self` is the peers.
 */
void peers_note(void *self, struct MHD_Connection *connection, void **context,
                enum MHD_ConnectionNotificationCode code);
/* Let a connection take `allowed_ms` from now, or PEER_WAITS. */
void peers_allow(struct MHD_Connection *connection, int64_t allowed_ms);
/* Shut the connections whose time is over down, so that the library finds their ends. */
void peers_shut_late(struct peers *peers);

#endif
