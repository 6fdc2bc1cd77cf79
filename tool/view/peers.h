/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PEERS_H
#define TOOL_PEERS_H

/*
 * Limits of a server's connections. libmicrohttpd closes silent connections, but a client
 * that moves one byte now and then could keep a connection forever, and there are only
 * PEERS_MAX: so heads and replies have deadlines.
 */

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#define PEERS_MAX 64
#define PEER_HEAD_MS (5 * 1000) /* for receiving a complete head, against slow clients */

/* Options of MHD_start_daemon() for these limits. A head has 16 KiB at most. */
#define PEERS_OPTIONS(peers)                                                             \
    MHD_OPTION_CONNECTION_LIMIT, (unsigned)PEERS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, 5u, \
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(16 << 10),                          \
        MHD_OPTION_NOTIFY_CONNECTION, peers_note, (peers)

struct peer {
    bool is_there;
    int socket;
    int64_t deadline_ms; /* PEER_WAITS: no deadline while the server computes */
};

struct peers {
    struct peer all[PEERS_MAX];
};

#define PEER_WAITS INT64_MAX

/* Register a connection when it begins, with PEER_HEAD_MS for its first head, and remove
   it at its end. Callback for MHD_OPTION_NOTIFY_CONNECTION; `self` is the struct peers. */
void peers_note(void *self, struct MHD_Connection *connection, void **context,
                enum MHD_ConnectionNotificationCode code);
/* Set a connection's deadline to `allowed_ms` from now; PEER_WAITS: no deadline. */
void peers_allow(struct MHD_Connection *connection, int64_t allowed_ms);
/* Shut down connections past their deadlines; libmicrohttpd then closes them. */
void peers_shut_late(struct peers *peers);

#endif
