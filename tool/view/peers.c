/* SPDX-License-Identifier: Apache-2.0 */
/* See peers.h. */
#include "view/peers.h"

#include <stddef.h>
#include <sys/socket.h>

#include "base/now.h"

static void
allow(struct peer *peer, int64_t allowed_ms)
{
    peer->deadline_ms = allowed_ms == PEER_WAITS
                            ? PEER_WAITS
                            : (int64_t)(now_ns(CLOCK_MONOTONIC) / 1000000) + allowed_ms;
}

static struct peer *
add(struct peers *peers, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    for (size_t i = 0; info && i < PEERS_MAX; i++) {
        struct peer *p = &peers->all[i];
        if (p->is_there)
            continue;
        *p = (struct peer){.is_there = true, .socket = info->connect_fd};
        allow(p, PEER_HEAD_MS);
        return p;
    }
    return NULL;
}

void
peers_note(void *self, struct MHD_Connection *connection, void **context,
           enum MHD_ConnectionNotificationCode code)
{
    struct peer *peer = *context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        *context = add(self, connection);
    else if (peer)
        *peer = (struct peer){0};
}

void
peers_allow(struct MHD_Connection *connection, int64_t allowed_ms)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    if (info && info->socket_context)
        allow(info->socket_context, allowed_ms);
}

void
peers_shut_late(struct peers *peers)
{
    int64_t now = (int64_t)(now_ns(CLOCK_MONOTONIC) / 1000000);
    for (size_t i = 0; i < PEERS_MAX; i++) {
        struct peer *p = &peers->all[i];
        if (!p->is_there || p->deadline_ms > now)
            continue;
        shutdown(p->socket, SHUT_RDWR);
        p->deadline_ms = PEER_WAITS; /* do not shut the connection down again */
    }
}
