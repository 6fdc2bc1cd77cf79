/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_CUDA_CONTEXT_H
#define DRYI_CUDA_CONTEXT_H

/*
 * A GPU of NVIDIA's driver and its primary context, as whoever calls the driver needs them.
 *
 * Every call is made between enter() and leave(). The device's primary context becomes
 * current, and the thread's capture mode relaxed; both are put back. In the other modes a call
 * that a graph cannot hold, like cuMemAlloc, spoils a capture that is under way.
 *
 *     struct dryi_cuda_stay stay = dryi_cuda_enter(context);
 *     if (stay.result != DRYI_CUDA_SUCCESS) ...
 *     result = dryi_cuda_note(context, context->driver.mem_alloc(...));
 *     dryi_cuda_leave(context, &stay);
 *
 * These are calls of the driver's interface alone. Their refusals are never left behind as the
 * CUDA runtime's last error, which a program's next launch would report as its own.
 *
 * Ownership  find, then retain, then close, which accepts what is half-built and zeroed.
 * Threads    Nothing is changed after retain but counters, which are atomic: any may call.
 * Errors     Once the driver says that it is shutting down or that the context is gone, and
 *            in a child after fork, enter() is refused and the context is_gone.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "device/cuda/cuda_driver.h"
#include "os/fork.h"

struct dryi_cuda_context {
    struct dryi_cuda_driver driver;
    struct dryi_fork_mark fork_mark;
    int device;
    void *handle; /* CUcontext */

    atomic_uint_least64_t refusals; /* of calls that cannot report */
    atomic_int last_error, is_gone;
};

/* Opens the library and finds device number `ordinal`; nothing of the device is taken yet. */
DRY_CHECK_RESULT enum dry_status dryi_cuda_context_find(struct dryi_cuda_context *context,
                                                        const char *library,
                                                        int32_t ordinal,
                                                        struct dry_error *err);
/* Some hundred MiB of the device, if this is the process's first. */
DRY_CHECK_RESULT enum dry_status dryi_cuda_context_retain(
    struct dryi_cuda_context *context, struct dry_error *err);
void dryi_cuda_context_close(struct dryi_cuda_context *context);

bool dryi_cuda_context_is_gone(const struct dryi_cuda_context *context);

/* Remember what the driver says, until it is gone; the result again. */
int dryi_cuda_note(struct dryi_cuda_context *context, int result);
/*
 * Count a refusal that the caller will not hear of. One of a context that is gone is not
 * counted: nothing can be given back there.
 */
void dryi_cuda_note_unheard(struct dryi_cuda_context *context, int result);
/*
 * The result of a call with the program's handle. The driver may say of a destroyed stream
 * that its context is destroyed; here that becomes INVALID_HANDLE, for an answer about a
 * handle must not end the device. If our own context is gone, enter() hears so.
 */
int dryi_cuda_of_handle(int result);

/* A stay: the things that leave() has to put back. */
struct dryi_cuda_stay {
    int result; /* not SUCCESS: nothing was entered */
    int capture_mode;
    bool has_mode;
};
struct dryi_cuda_stay dryi_cuda_enter(struct dryi_cuda_context *context);
/* The same into another context of the driver's, whose fate is not ours. */
struct dryi_cuda_stay dryi_cuda_enter_other(struct dryi_cuda_context *context,
                                            void *handle);
/* Put back what enter() changed. A refusal here undoes nothing of the calls between. */
void dryi_cuda_leave(struct dryi_cuda_context *context, struct dryi_cuda_stay *stay);

#endif
