/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PEERS_H
#define TOOL_PEERS_H

/*
 * Deadlines for the server's connections. libmicrohttpd closes silent connections, but a
 * client that moves one byte now and then could keep a connection forever, and there are
 * only PEERS_MAX.
 */

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#define PEERS_MAX 64

struct peer {
    bool is_there;
    int socket;
    int64_t deadline_ms; /* PEER_WAITS: no deadline while the server computes */
};

struct peers {
    int64_t head_ms; /* limit for receiving a complete head */
    struct peer all[PEERS_MAX];
};

#define PEER_WAITS INT64_MAX

/* Register a connection when it begins, with `head_ms` for its first head, and remove it
   at its end. Callback for MHD_OPTION_NOTIFY_CONNECTION; `self` is the struct peers. */
void peers_note(void *self, struct MHD_Connection *connection, void **context,
                enum MHD_ConnectionNotificationCode code);
/* Set a connection's deadline to `allowed_ms` from now; PEER_WAITS: no deadline. */
void peers_allow(struct MHD_Connection *connection, int64_t allowed_ms);
/* Shut down connections past their deadlines; libmicrohttpd then closes them. */
void peers_shut_late(struct peers *peers);

#endif
