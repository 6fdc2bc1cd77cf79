/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's operations, alone and in groups. nccl.h explains the design.
 *
 * A thread lists the broadcasts, sends and receives of its group, and settles them at the group's
 * end. Only then is it known what this rank sends to itself, which replaces missing messages of
 * others. An all-gather may come as a broadcast from each rank, an all-to-all as sends and
 * receives. A settlement compares each receiver with each giver, O(operations x operations) at
 * worst.
 *
 * Other ranks' slots are filled up to 64 KiB in all. Larger data is weights or gradients, whose
 * values programs do not inspect. Sizes and flags, which programs compare, are smaller.
 */
#include <stdlib.h>

#include "memory.h"
#include "nccl.h"
#include "stream.h"

#define REPEATED_BYTES_MAX NCCL_MAIL_BYTES_MAX
#define GRAIN UINT64_C(512) /* blocks of PyTorch's allocator begin at multiples */

/* --- groups --------------------------------------------------------------------------------- */

enum transfer_kind { SEND, RECEIVE, BROADCAST };

/* An operation between two ranks. `peer` of a broadcast is its root. */
struct transfer {
    enum transfer_kind kind;
    int peer;
    struct nccl_member *member;
    uint64_t address, bytes;
    void *stream;
};

static __thread struct {
    int depth;
    size_t count, capacity;
    struct transfer *transfers;
} group;

static void
copy(uint64_t to, uint64_t from, uint64_t bytes, void *stream)
{
    if (to != from && !standin_stream(stream)->capture)
        standin_copy(to, from, bytes);
}

/* Return whether the data comes from another rank. */
static bool
is_receiver(const struct transfer *t)
{
    bool is_own = t->peer == t->member->rank;
    return t->kind == RECEIVE || (t->kind == BROADCAST && !is_own);
}

/* Find a matching transfer of this rank to itself; NULL: none. */
static const struct transfer *
find_giver(const struct transfer *receiver)
{
    enum transfer_kind kind = receiver->kind == RECEIVE ? SEND : BROADCAST;
    for (size_t i = 0; i < group.count; i++) {
        const struct transfer *t = &group.transfers[i];
        if (t->kind == kind && t->member == receiver->member &&
            t->peer == t->member->rank && t->bytes == receiver->bytes)
            return t;
    }
    return NULL;
}

/* Send to the one rank, or as the root of a broadcast to all. */
static void
give(const struct transfer *t)
{
    const struct nccl_member *member = t->member;
    if (t->kind == SEND)
        nccl_box_send(member->box, t->peer, t->address, t->bytes);
    for (int rank = 0; t->kind == BROADCAST && rank < member->size; rank++)
        nccl_box_send(member->box, rank, t->address, t->bytes);
}

static void
receive(const struct transfer *t)
{
    if (nccl_box_receive(t->member->box, t->peer, t->address, t->bytes))
        return;
    const struct transfer *giver = t->bytes <= REPEATED_BYTES_MAX ? find_giver(t) : NULL;
    if (giver) {
        copy(t->address, giver->address, t->bytes, t->stream);
    } else {
        standin_lock();
        standin_forget(t->address, t->bytes);
        standin_unlock();
    }
}

/* All ranks send before they receive, so two that exchange data do not wait for each other. */
static void
settle(void)
{
    for (size_t pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < group.count; i++) {
            const struct transfer *t = &group.transfers[i];
            bool is_captured = standin_stream(t->stream)->capture;
            if (is_captured || is_receiver(t) != (pass == 1))
                continue;
            if (pass == 0)
                give(t);
            else
                receive(t);
        }
    }
    group.count = 0;
}

static int
add(struct transfer transfer)
{
    int result = nccl_work(transfer.member, transfer.stream);
    if (result != NCCL_OK)
        return result;
    if (group.count == group.capacity) {
        size_t capacity = group.capacity ? group.capacity * 2 : 16;
        struct transfer *more = realloc(group.transfers, capacity * sizeof *more);
        if (!more)
            return NCCL_SYSTEM_ERROR;
        group.transfers = more;
        group.capacity = capacity;
    }
    group.transfers[group.count++] = transfer;
    if (group.depth == 0)
        settle();
    return NCCL_OK;
}

EXPORT int
ncclGroupStart(void)
{
    group.depth++;
    return NCCL_OK;
}

EXPORT int
ncclGroupEnd(void)
{
    if (group.depth > 0 && --group.depth == 0)
        settle();
    return NCCL_OK;
}

struct simulation {
    size_t size;
    unsigned magic, version;
    float time_us;
};

EXPORT int
ncclGroupSimulateEnd(struct simulation *simulation)
{
    if (simulation)
        simulation->time_us = 0;
    return ncclGroupEnd();
}

/* --- between two ranks ---------------------------------------------------------------------- */

EXPORT int
ncclSend(const void *from, size_t count, int type, int peer, struct nccl_member *member,
         void *stream)
{
    return add((struct transfer){SEND, peer, member, (uintptr_t)from,
                                 nccl_bytes(count, type), stream});
}

EXPORT int
ncclRecv(void *to, size_t count, int type, int peer, struct nccl_member *member,
         void *stream)
{
    return add((struct transfer){RECEIVE, peer, member, (uintptr_t)to,
                                 nccl_bytes(count, type), stream});
}

EXPORT int
ncclBroadcast(const void *from, void *to, size_t count, int type, int root,
              struct nccl_member *member, void *stream)
{
    uint64_t bytes = nccl_bytes(count, type);
    if (root == member->rank)
        copy((uintptr_t)to, (uintptr_t)from, bytes, stream);
    return add((struct transfer){BROADCAST, root, member, (uintptr_t)to, bytes, stream});
}

EXPORT int
ncclBcast(void *buffer, size_t count, int type, int root, struct nccl_member *member,
          void *stream)
{
    return ncclBroadcast(buffer, buffer, count, type, root, member, stream);
}

EXPORT int
ncclPutSignal(const void *from, size_t count, int type, int peer, void *window,
              size_t offset, int signal, int context, unsigned flags,
              struct nccl_member *member, void *stream)
{
    (void)from, (void)count, (void)type, (void)peer, (void)window, (void)offset;
    (void)signal, (void)context, (void)flags;
    return nccl_work(member, stream);
}

EXPORT int
ncclSignal(int peer, int signal, int context, unsigned flags, struct nccl_member *member,
           void *stream)
{
    (void)peer, (void)signal, (void)context, (void)flags;
    return nccl_work(member, stream);
}

EXPORT int
ncclWaitSignal(int count, const void *signals, struct nccl_member *member, void *stream)
{
    (void)count, (void)signals;
    return nccl_work(member, stream);
}

/* --- between all ranks ---------------------------------------------------------------------- */

/*
 * Return whether another rank's slot may be filled. A split member's size may be too
 * large, so it only fills up to the end of the grain in which the buffer begins.
 */
static bool
is_fillable(const struct nccl_member *member, uint64_t to, int rank, uint64_t bytes)
{
    uint64_t end = to + ((uint64_t)rank + 1) * bytes, grain = (to & ~(GRAIN - 1)) + GRAIN;
    if (bytes * (uint64_t)member->size > REPEATED_BYTES_MAX)
        return false;
    return !member->is_split || end <= grain;
}

/* Return whether messages carry a collective's data: it is small, and not captured. */
static bool
is_exchanged(const struct nccl_member *member, uint64_t bytes, void *stream)
{
    return member->box && bytes * (uint64_t)member->size <= REPEATED_BYTES_MAX &&
           !standin_stream(stream)->capture;
}

/*
 * Fill the slots of `to`, `bytes` each, with what each rank sends to this one. This rank sends its
 * slots at `from`, which are `step` bytes apart; a `step` of 0 sends the same to all.
 */
static int
fill(struct nccl_member *member, uint64_t to, uint64_t from, uint64_t bytes,
     uint64_t step, void *stream)
{
    uint64_t own = from + (uint64_t)member->rank * step;
    bool is_carried = is_exchanged(member, bytes, stream);
    int result = nccl_work(member, stream);
    for (int rank = 0; is_carried && rank < member->size; rank++)
        nccl_box_send(member->box, rank, from + (uint64_t)rank * step, bytes);
    for (int rank = 0; rank < member->size; rank++) {
        uint64_t slot = to + (uint64_t)rank * bytes;
        if (is_carried && nccl_box_receive(member->box, rank, slot, bytes))
            continue;
        if (rank == member->rank || is_fillable(member, to, rank, bytes))
            copy(slot, own, bytes, stream);
    }
    return result;
}

EXPORT int
ncclAllGather(const void *from, void *to, size_t count, int type,
              struct nccl_member *member, void *stream)
{
    uint64_t bytes = nccl_bytes(count, type);
    return fill(member, (uintptr_t)to, (uintptr_t)from, bytes, 0, stream);
}

EXPORT int
ncclAlltoAll(const void *from, void *to, size_t count, int type,
             struct nccl_member *member, void *stream)
{
    uint64_t bytes = nccl_bytes(count, type);
    return fill(member, (uintptr_t)to, (uintptr_t)from, bytes, bytes, stream);
}

EXPORT int
ncclGather(const void *from, void *to, size_t count, int type, int root,
           struct nccl_member *member, void *stream)
{
    uint64_t bytes = nccl_bytes(count, type);
    if (root != member->rank)
        return ncclSend(from, count, type, root, member, stream);
    bool is_heard = !standin_stream(stream)->capture;
    for (int rank = 0; rank < member->size; rank++) {
        uint64_t slot = (uintptr_t)to + (uint64_t)rank * bytes;
        bool is_given = is_heard && nccl_box_receive(member->box, rank, slot, bytes);
        if (!is_given &&
            (rank == root || is_fillable(member, (uintptr_t)to, rank, bytes)))
            copy(slot, (uintptr_t)from, bytes, stream);
    }
    return nccl_work(member, stream);
}

EXPORT int
ncclScatter(const void *from, void *to, size_t count, int type, int root,
            struct nccl_member *member, void *stream)
{
    uint64_t bytes = nccl_bytes(count, type);
    if (root != member->rank)
        return ncclRecv(to, count, type, root, member, stream);
    for (int rank = 0; rank < member->size; rank++) {
        uint64_t slot = (uintptr_t)from + (uint64_t)rank * bytes;
        if (rank == root)
            copy((uintptr_t)to, slot, bytes, stream);
        else if (!standin_stream(stream)->capture)
            nccl_box_send(member->box, rank, slot, bytes);
    }
    return nccl_work(member, stream);
}

/*
 * Reduce by taking this rank's data: right for the average and the extremes of equal
 * data.
 */
EXPORT int
ncclAllReduce(const void *from, void *to, size_t count, int type, int operation,
              struct nccl_member *member, void *stream)
{
    (void)operation;
    int result = nccl_work(member, stream);
    copy((uintptr_t)to, (uintptr_t)from, nccl_bytes(count, type), stream);
    return result;
}

EXPORT int
ncclReduce(const void *from, void *to, size_t count, int type, int operation, int root,
           struct nccl_member *member, void *stream)
{
    if (root == member->rank)
        return ncclAllReduce(from, to, count, type, operation, member, stream);
    return nccl_work(member, stream);
}

EXPORT int
ncclReduceScatter(const void *from, void *to, size_t count, int type, int operation,
                  struct nccl_member *member, void *stream)
{
    uint64_t own = (uintptr_t)from + (uint64_t)member->rank * nccl_bytes(count, type);
    return ncclAllReduce((const void *)(uintptr_t)own, to, count, type, operation, member,
                         stream);
}

/* Return an operation number for the program: the first after NCCL's five. */
EXPORT int
ncclRedOpCreatePreMulSum(int *operation, const void *scalar, int type, int residence,
                         const struct nccl_member *member)
{
    (void)scalar, (void)type, (void)residence, (void)member;
    *operation = 5;
    return NCCL_OK;
}

EXPORT int
ncclRedOpDestroy(int operation, const struct nccl_member *member)
{
    (void)operation, (void)member;
    return NCCL_OK;
}
