/* SPDX-License-Identifier: Apache-2.0 */
/* The idea stands in peers.h. */
#include "view/peers.h"

#include <stddef.h>
#include <sys/socket.h>
#include <time.h>

static int64_t
now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

struct peer *
peers_add(struct peers *peers, int socket, int64_t allowed_ms)
{
    for (size_t i = 0; i < PEERS_MAX; i++) {
        struct peer *p = &peers->all[i];
        if (p->is_there)
            continue;
        *p = (struct peer){.is_there = true, .socket = socket};
        peer_allow(p, allowed_ms);
        return p;
    }
    return NULL;
}

void
peer_allow(struct peer *peer, int64_t allowed_ms)
{
    if (peer)
        peer->deadline_ms = allowed_ms == PEER_WAITS ? PEER_WAITS : now_ms() + allowed_ms;
}

void
peer_remove(struct peer *peer)
{
    if (peer)
        *peer = (struct peer){0};
}

void
peers_shut_late(struct peers *peers)
{
    int64_t now = now_ms();
    for (size_t i = 0; i < PEERS_MAX; i++) {
        struct peer *p = &peers->all[i];
        if (!p->is_there || p->deadline_ms > now)
            continue;
        shutdown(p->socket, SHUT_RDWR);
        p->deadline_ms = PEER_WAITS; /* once is enough */
    }
}
