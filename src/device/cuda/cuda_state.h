/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_CUDA_STATE_H
#define DRYI_CUDA_STATE_H

/*
 * The CUDA device's state, shared by its files: cuda.c (the device), cuda_peer.c (access
 * by other devices) and cuda_share.c (other processes). Each driver call is made between
 * enter() and leave(), see cuda_context.h.
 */

#include <drystone/cuda.h>

#include <stdatomic.h>
#include <stdbool.h>

#include "device/cuda/cuda_context.h"
#include "os/lock.h"

/* Size of the cache of stream ids, hashed by handle; a power of two. */
#define DRYI_CUDA_STREAMS_KEPT 64

/* A cached id: the stream's id when the driver was last queried for this handle. */
struct dryi_cuda_stream {
    atomic_uint_least64_t handle, id;
};

struct dry_cuda {
    struct dry_memory memory;
    struct dryi_cuda_context context;
    struct dry_device_ops ops; /* stream_id is NULL if the driver lacks it */
    char name[96];
    int driver_version;
    struct dry_device_traits traits;
    struct dryi_cuda_memory page; /* properties of new pages, for cuMemCreate */
    uint64_t grain_bytes; /* alignment of handles and addresses, which divides a page; 0:
                             no pages */

    atomic_uint_least64_t retries;
    atomic_int unmaps_singly;
    atomic_uint_least64_t peers; /* bit n: device n has access to mapped memory */

    /* Guards writes, and reads that need a consistent pair of handle and id. */
    struct dryi_lock streams_lock;
    struct dryi_cuda_stream streams[DRYI_CUDA_STREAMS_KEPT];
};

static inline bool
is_gone(const struct dry_cuda *cuda)
{
    return dryi_cuda_context_is_gone(&cuda->context);
}

static inline int
note(struct dry_cuda *cuda, int result)
{
    return dryi_cuda_note(&cuda->context, result);
}

static inline void
note_unheard(struct dry_cuda *cuda, int result)
{
    dryi_cuda_note_unheard(&cuda->context, result);
}

static inline struct dryi_cuda_stay
enter(struct dry_cuda *cuda)
{
    return dryi_cuda_enter(&cuda->context);
}

static inline void
leave(struct dry_cuda *cuda, struct dryi_cuda_stay *stay)
{
    dryi_cuda_leave(&cuda->context, stay);
}

#endif
