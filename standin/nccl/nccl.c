/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's communicators, their memory and windows. nccl.h explains the design. */
#include "nccl.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "memory.h"
#include "setup.h"
#include "stream.h"

#define NO_COLOUR (-1)
#define MIB UINT64_C(0x100000)
#define FIRST_BYTES (70 * MIB) /* kernels, and what the device has once */
#define PAIR_BYTES (544 * MIB - FIRST_BYTES)
#define MANY_BYTES (688 * MIB - FIRST_BYTES)
#define LATE_VERSION 22200 /* communicators connect when they are used */

/* Passed by value, as in NCCL's header. */
struct unique_id {
    char bytes[128];
};

/* --- the library ---------------------------------------------------------------------------- */

EXPORT int
ncclGetVersion(int *version)
{
    *version = standin_setup()->nccl_version;
    return NCCL_OK;
}

EXPORT const char *
ncclGetErrorString(int result)
{
    return result == NCCL_OK ? "no error" : "invalid argument";
}

EXPORT const char *
ncclGetLastError(struct nccl_member *member)
{
    (void)member;
    return "";
}

EXPORT int
ncclGetUniqueId(struct unique_id *id)
{
    static uint64_t last;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t words[] = {__atomic_add_fetch(&last, 1, __ATOMIC_RELAXED),
                        (uint64_t)getpid(), (uint64_t)now.tv_sec, (uint64_t)now.tv_nsec};
    memset(id, 0, sizeof *id);
    memcpy(id->bytes, words, sizeof words);
    return NCCL_OK;
}

EXPORT int
ncclCommGetUniqueId(struct nccl_member *member, struct unique_id *id)
{
    (void)member;
    return ncclGetUniqueId(id);
}

uint64_t
nccl_bytes(uint64_t count, int type)
{
    static const unsigned char sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return count * (type >= 0 && type < (int)sizeof sizes ? sizes[type] : 1);
}

/* --- communicators -------------------------------------------------------------------------- */

/* Hash bytes into `number` as FNV-1a does, to derive ids that hardly collide. */
static uint64_t
mix(uint64_t number, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < count; i++)
        number = (number ^ at[i]) * UINT64_C(0x100000001b3);
    return number;
}

static uint64_t taken[STANDIN_DEVICES_MAX], taken_peak[STANDIN_DEVICES_MAX];

/* Take bytes that NCCL is assumed to use (nccl.h). Returns false if the device is full. */
static bool
take(int device, uint64_t bytes)
{
    if (!standin_take(device, bytes))
        return false;
    uint64_t *now = &taken[device], *peak = &taken_peak[device];
    *now += bytes;
    *peak = *now > *peak ? *now : *peak;
    return true;
}

/* Take what a device's first communicator takes. */
static bool
take_first(int device)
{
    standin_lock();
    bool is_there = taken[device] > 0 || take(device, FIRST_BYTES);
    standin_unlock();
    return is_there;
}

/* Take the buffers between a rank and its peers. */
static bool
connect_peers(struct nccl_member *member)
{
    uint64_t bytes = member->size > 2 ? MANY_BYTES : member->size == 2 ? PAIR_BYTES : 0;
    standin_lock();
    bool is_connected = member->buffer_bytes == bytes || take(member->device, bytes);
    if (is_connected)
        member->buffer_bytes = bytes;
    standin_unlock();
    return is_connected;
}

int
nccl_work(struct nccl_member *member, void *stream)
{
    standin_work(stream);
    return connect_peers(member) ? NCCL_OK : NCCL_CUDA_ERROR;
}

static void
give_buffers(const struct nccl_member *member)
{
    standin_lock();
    standin_give(member->device, member->buffer_bytes);
    taken[member->device] -= member->buffer_bytes;
    standin_unlock();
}

/* Called by the hook for its report: the peak of NCCL's bytes on a device. */
EXPORT uint64_t
drystone_standin_nccl_bytes(int device)
{
    return device >= 0 && device < STANDIN_DEVICES_MAX ? taken_peak[device] : 0;
}

/* Create a member. An `id` of 0 means that it exchanges no messages with other ranks. */
static int
create(struct nccl_member **member, int rank, int size, bool is_split, uint64_t id)
{
    if (size <= 0 || rank < 0 || rank >= size)
        return NCCL_BAD_ARGUMENT;
    *member = calloc(1, sizeof **member);
    if (!*member)
        return NCCL_SYSTEM_ERROR;
    **member = (struct nccl_member){.rank = rank,
                                    .size = size,
                                    .device = standin_device(),
                                    .is_split = is_split,
                                    .id = id};
    bool is_late = standin_setup()->nccl_version >= LATE_VERSION;
    if (!take_first((*member)->device) || !(is_late || connect_peers(*member))) {
        free(*member);
        *member = NULL;
        return NCCL_CUDA_ERROR;
    }
    if (id != 0 && !is_split)
        (*member)->box = nccl_box_open(id, rank, size);
    return NCCL_OK;
}

/*
 * Return the id of a communicator derived from `parent`: all ranks derive them in the same order.
 */
static uint64_t
id_of_child(struct nccl_member *parent, int colour)
{
    uint64_t words[] = {++parent->child_count, (uint64_t)colour};
    return parent->id ? mix(parent->id, words, sizeof words) : 0;
}

EXPORT int
ncclCommInitRank(struct nccl_member **member, int size, struct unique_id id, int rank)
{
    return create(member, rank, size, false, mix(1, &id, sizeof id));
}

EXPORT int
ncclCommInitRankConfig(struct nccl_member **member, int size, struct unique_id id,
                       int rank, const void *config)
{
    (void)config;
    return ncclCommInitRank(member, size, id, rank);
}

EXPORT int
ncclCommInitRankScalable(struct nccl_member **member, int size, int rank, int id_count,
                         const struct unique_id *ids, const void *config)
{
    (void)config;
    return create(member, rank, size, false, mix(1, ids, (size_t)id_count * sizeof *ids));
}

EXPORT int
ncclCommInitAll(struct nccl_member **members, int count, const int *devices)
{
    int result = NCCL_OK, before = standin_device();
    for (int i = 0; i < count && result == NCCL_OK; i++) {
        result = NCCL_BAD_ARGUMENT;
        if (standin_set_device(devices ? devices[i] : i) == CUDA_OK)
            result = create(&members[i], i, count, false, 0);
    }
    (void)standin_set_device(before);
    return result;
}

static __thread int told_size; /* 0: the hook gave no size */

/*
 * Called by the hook before this thread splits a communicator: the new one will have
 * `size` ranks. The colours of the other ranks would tell, but they may not exist.
 */
EXPORT void
drystone_standin_split(int size)
{
    told_size = size;
}

/* The arguments of each rank when a communicator is split. */
struct split {
    int colour, key;
};

/*
 * Exchange colour and key with all ranks of `parent`, and compute this rank's place in
 * its colour. Returns false if a rank does not answer.
 */
static bool
count_colour(const struct nccl_member *parent, struct split own, int *rank, int *size)
{
    *rank = 0, *size = 1;
    for (int other = 0; other < parent->size; other++)
        nccl_box_send(parent->box, other, (uintptr_t)&own, sizeof own);
    for (int other = 0; other < parent->size; other++) {
        struct split split;
        if (other == parent->rank)
            continue;
        if (!nccl_box_receive(parent->box, other, (uintptr_t)&split, sizeof split))
            return false;
        if (split.colour != own.colour)
            continue;
        bool is_before =
            split.key < own.key || (split.key == own.key && other < parent->rank);
        *rank += is_before, ++*size;
    }
    return true;
}

/*
 * Without answers from all ranks, the key is taken as the rank, as if keys counted from
 * 0. Without a size from the hook, the parent's is used.
 */
EXPORT int
ncclCommSplit(struct nccl_member *parent, int colour, int key,
              struct nccl_member **member, const void *config)
{
    (void)config;
    int rank, size, told = told_size;
    uint64_t id = id_of_child(parent, colour);
    bool is_known =
        parent->box && count_colour(parent, (struct split){colour, key}, &rank, &size);
    told_size = 0;
    *member = NULL;
    if (colour == NO_COLOUR)
        return NCCL_OK;
    if (is_known)
        return create(member, rank, size, false, id);
    size = told > 0 ? told : parent->size;
    return create(member, key >= 0 && key < size ? key : 0, size, told <= 0, id);
}

EXPORT int
ncclCommShrink(struct nccl_member *parent, const int *excluded, int count,
               struct nccl_member **member, const void *config, int flags)
{
    (void)config, (void)flags;
    int lower = 0;
    for (int i = 0; i < count; i++)
        lower += excluded[i] < parent->rank;
    return create(member, parent->rank - lower, parent->size - count, parent->is_split,
                  id_of_child(parent, 0));
}

EXPORT int
ncclCommGrow(struct nccl_member *parent, int size, const struct unique_id *id, int rank,
             struct nccl_member **member, const void *config)
{
    (void)config;
    return create(member, parent ? parent->rank : rank, size, false,
                  id ? mix(1, id, sizeof *id) : 0);
}

EXPORT int
ncclCommDestroy(struct nccl_member *member)
{
    if (member) {
        give_buffers(member);
        nccl_box_close(member->box);
    }
    free(member);
    return NCCL_OK;
}

EXPORT int
ncclCommAbort(struct nccl_member *member)
{
    return ncclCommDestroy(member);
}

EXPORT int
ncclCommFinalize(struct nccl_member *member)
{
    (void)member;
    return NCCL_OK;
}

EXPORT int
ncclCommRevoke(struct nccl_member *member, int flags)
{
    (void)member, (void)flags;
    return NCCL_OK;
}

EXPORT int
ncclCommSuspend(struct nccl_member *member, int flags)
{
    (void)member, (void)flags;
    return NCCL_OK;
}

EXPORT int
ncclCommResume(struct nccl_member *member)
{
    (void)member;
    return NCCL_OK;
}

/* --- queries -------------------------------------------------------------------------------- */

EXPORT int
ncclCommGetAsyncError(struct nccl_member *member, int *error)
{
    (void)member;
    *error = NCCL_OK;
    return NCCL_OK;
}

EXPORT int
ncclCommCount(const struct nccl_member *member, int *count)
{
    *count = member->size;
    return NCCL_OK;
}

EXPORT int
ncclCommUserRank(const struct nccl_member *member, int *rank)
{
    *rank = member->rank;
    return NCCL_OK;
}

EXPORT int
ncclCommCuDevice(const struct nccl_member *member, int *device)
{
    *device = member->device;
    return NCCL_OK;
}

EXPORT int
ncclCommMemStats(struct nccl_member *member, int what, uint64_t *value)
{
    (void)what;
    *value = member->buffer_bytes;
    return NCCL_OK;
}

/* --- memory --------------------------------------------------------------------------------- */

EXPORT int
ncclMemAlloc(void **pointer, size_t bytes)
{
    uint64_t address = 0;
    standin_lock();
    enum cuda_error error =
        standin_alloc(standin_device(), bytes, RANGE_DEVICE, &address);
    standin_unlock();
    if (standin_note(error) != CUDA_OK)
        return NCCL_CUDA_ERROR;
    *pointer = (void *)(uintptr_t)address;
    return NCCL_OK;
}

EXPORT int
ncclMemFree(void *pointer)
{
    standin_lock();
    enum cuda_error error = pointer ? standin_free((uintptr_t)pointer) : CUDA_OK;
    standin_unlock();
    return standin_note(error) == CUDA_OK ? NCCL_OK : NCCL_CUDA_ERROR;
}

/* The handle of a registration or window is the buffer itself. */
EXPORT int
ncclCommRegister(const struct nccl_member *member, void *buffer, size_t bytes,
                 void **handle)
{
    (void)member, (void)bytes;
    *handle = buffer;
    return NCCL_OK;
}

EXPORT int
ncclCommDeregister(const struct nccl_member *member, void *handle)
{
    (void)member, (void)handle;
    return NCCL_OK;
}

EXPORT int
ncclCommWindowRegister(struct nccl_member *member, void *buffer, size_t bytes,
                       void **window, int flags)
{
    (void)member, (void)bytes, (void)flags;
    *window = buffer;
    return NCCL_OK;
}

EXPORT int
ncclCommWindowDeregister(struct nccl_member *member, void *window)
{
    (void)member, (void)window;
    return NCCL_OK;
}

EXPORT int
ncclWinGetUserPtr(struct nccl_member *member, void *window, void **pointer)
{
    (void)member;
    *pointer = window;
    return NCCL_OK;
}

/* Every peer's memory is this rank's. */
EXPORT int
ncclGetPeerDevicePointer(void *window, size_t offset, int peer, void **pointer)
{
    (void)peer;
    *pointer = (char *)window + offset;
    return NCCL_OK;
}

/* There is no multicast. */
EXPORT int
ncclGetLsaMultimemDevicePointer(void *window, size_t offset, void **pointer)
{
    (void)window, (void)offset;
    *pointer = NULL;
    return NCCL_OK;
}
