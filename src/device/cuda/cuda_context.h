/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_CUDA_CONTEXT_H
#define DRYI_CUDA_CONTEXT_H

/*
 * A GPU of NVIDIA's driver with its primary context, and the frame around each driver
 * call.
 *
 * Every call is made between enter() and leave(). enter() makes the device's primary
 * context current and the thread's capture mode relaxed; leave() restores both. In other
 * modes a call that cannot be captured, such as cuMemAlloc, invalidates an open capture.
 *
 *     struct dryi_cuda_stay stay = dryi_cuda_enter(context);
 *     if (stay.result != DRYI_CUDA_SUCCESS) ...
 *     result = dryi_cuda_note(context, context->driver.mem_alloc(...));
 *     dryi_cuda_leave(context, &stay);
 *
 * Only the driver API is called. So failures never become the CUDA runtime's last error,
 * which the program would attribute to its next launch.
 *
 * Ownership  find, then retain, then close, which also accepts half-built and zeroed
 *            contexts.
 * Threads    After retain only counters change, which are atomic, so any thread may call.
 * Errors     Once the driver reports that it is shutting down or that the context is
 *            destroyed, and in a child after fork, enter() fails and is_gone is set.
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

    atomic_uint_least64_t refusals; /* failed calls that return no status */
    atomic_int last_error, is_gone;
};

/* Open the library and find device number `ordinal`; no device memory is used yet. */
DRY_CHECK_RESULT enum dry_status dryi_cuda_context_find(struct dryi_cuda_context *context,
                                                        const char *library,
                                                        int32_t ordinal,
                                                        struct dry_error *err);
/* Retain the primary context. Creating it takes some hundred MiB of the device, if the
   process has none. */
DRY_CHECK_RESULT enum dry_status dryi_cuda_context_retain(
    struct dryi_cuda_context *context, struct dry_error *err);
void dryi_cuda_context_close(struct dryi_cuda_context *context);

bool dryi_cuda_context_is_gone(const struct dryi_cuda_context *context);

/* Record a driver's result as last_error, and is_gone if it says so. Returns the
   result. */
int dryi_cuda_note(struct dryi_cuda_context *context, int result);
/* Count a failure that the caller cannot return. Failures of a destroyed context are not
   counted: it has no memory to free. */
void dryi_cuda_note_unheard(struct dryi_cuda_context *context, int result);
/*
 * Convert the result of a call with a handle of the program. For a destroyed stream the
 * driver may report a destroyed context; this becomes INVALID_HANDLE, so that a wrong
 * handle does not end the device. If the device's own context is destroyed, enter()
 * detects it.
 */
int dryi_cuda_of_handle(int result);

/* A stay: the state that leave() must restore. */
struct dryi_cuda_stay {
    int result; /* not SUCCESS: the context was not entered */
    int capture_mode;
    bool has_mode;
};
struct dryi_cuda_stay dryi_cuda_enter(struct dryi_cuda_context *context);
/* Enter another context of the driver, whose destruction does not affect this device. */
struct dryi_cuda_stay dryi_cuda_enter_other(struct dryi_cuda_context *context,
                                            void *handle);
/* Restore what enter() changed. A failure here does not invalidate the calls in
   between. */
void dryi_cuda_leave(struct dryi_cuda_context *context, struct dryi_cuda_stay *stay);

#endif
