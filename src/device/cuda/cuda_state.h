/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_CUDA_STATE_H
#define DRYI_CUDA_STATE_H

/*
 * A GPU as a device, for its files: cuda (the device), cuda_peer (who may use what is mapped) and
 * cuda_share (memory for another process). Each call of the driver stands between enter() and
 * leave(), see cuda_context.h.
 */

#include <drystone/cuda.h>

#include <stdatomic.h>
#include <stdbool.h>

#include "device/cuda/cuda_context.h"
#include "os/lock.h"

/* Streams whose ids are kept, by handle; a power of two. */
#define DRYI_CUDA_STREAMS_KEPT 64

/* The id that a stream had when somebody last asked about this handle. */
struct dryi_cuda_stream {
    atomic_uint_least64_t handle, id;
};

struct dry_cuda {
    struct dry_memory memory;
    struct dryi_cuda_context context;
    struct dry_device_ops ops; /* stream_id only where the driver has it */
    char name[96];
    int driver_version;
    struct dry_device_traits traits;
    struct dryi_cuda_memory page; /* what cuMemCreate is asked for */
    uint64_t
        grain_bytes; /* of handles and addresses; a page is a multiple; 0: no pages */

    atomic_uint_least64_t retries;
    atomic_int unmaps_singly;
    atomic_uint_least64_t peers; /* a bit for each device that uses what is mapped, too */

    /* The lock is of writers, and of who wants a handle and its id of one moment. */
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
