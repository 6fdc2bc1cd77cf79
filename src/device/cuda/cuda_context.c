/* SPDX-License-Identifier: Apache-2.0 */

/* Enter, leave and notes around every driver call, then find, retain and close. See
   cuda_context.h. */
#include "device/cuda/cuda_context.h"

#include "base/fail.h"

/* --- around every call ------------------------------------------------------------------ */

bool
dryi_cuda_context_is_gone(const struct dryi_cuda_context *context)
{
    return atomic_load_explicit(&context->is_gone, memory_order_relaxed) ||
           dryi_fork_mark_is_child(&context->fork_mark);
}

int
dryi_cuda_note(struct dryi_cuda_context *context, int result)
{
    if (result == DRYI_CUDA_SUCCESS || result == DRYI_CUDA_NOT_READY ||
        dryi_cuda_context_is_gone(context))
        return result;
    atomic_store_explicit(&context->last_error, result, memory_order_relaxed);
    if (result == DRYI_CUDA_DEINITIALIZED || result == DRYI_CUDA_CONTEXT_IS_DESTROYED ||
        result == DRYI_CUDA_NOT_INITIALIZED)
        atomic_store_explicit(&context->is_gone, 1, memory_order_relaxed);
    return result;
}

void
dryi_cuda_note_unheard(struct dryi_cuda_context *context, int result)
{
    if (dryi_cuda_note(context, result) != DRYI_CUDA_SUCCESS &&
        !dryi_cuda_context_is_gone(context))
        atomic_fetch_add_explicit(&context->refusals, 1, memory_order_relaxed);
}

int
dryi_cuda_of_handle(int result)
{
    return result == DRYI_CUDA_CONTEXT_IS_DESTROYED ? DRYI_CUDA_INVALID_HANDLE : result;
}

struct dryi_cuda_stay
dryi_cuda_enter(struct dryi_cuda_context *context)
{
    return dryi_cuda_enter_other(context, context->handle);
}

struct dryi_cuda_stay
dryi_cuda_enter_other(struct dryi_cuda_context *context, void *handle)
{
    const struct dryi_cuda_driver *d = &context->driver;
    struct dryi_cuda_stay stay = {.result = DRYI_CUDA_DEINITIALIZED};
    if (dryi_cuda_context_is_gone(context))
        return stay;
    stay.result = d->context_push(handle);
    if (handle != context->handle)
        stay.result = dryi_cuda_of_handle(stay.result);
    stay.result = dryi_cuda_note(context, stay.result);
    if (stay.result != DRYI_CUDA_SUCCESS || !d->exchange_capture_mode)
        return stay;
    stay.capture_mode = DRYI_CUDA_CAPTURE_RELAXED;
    int result = d->exchange_capture_mode(&stay.capture_mode);
    stay.has_mode = result == DRYI_CUDA_SUCCESS;
    dryi_cuda_note_unheard(context, result);
    return stay;
}

void
dryi_cuda_leave(struct dryi_cuda_context *context, struct dryi_cuda_stay *stay)
{
    const struct dryi_cuda_driver *d = &context->driver;
    if (stay->has_mode)
        dryi_cuda_note_unheard(context, d->exchange_capture_mode(&stay->capture_mode));
    void *former;
    dryi_cuda_note_unheard(context, d->context_pop(&former));
}

/* --- find, retain and close ------------------------------------------------------------- */

static enum dry_status
find_device(struct dryi_cuda_context *context, int32_t ordinal, struct dry_error *err)
{
    const struct dryi_cuda_driver *d = &context->driver;
    int result = d->init(0);
    if (result != DRYI_CUDA_SUCCESS)
        return dryi_cuda_driver_fail(d, result, "cuInit", err);
    int count = 0;
    result = d->device_get_count(&count);
    if (result != DRYI_CUDA_SUCCESS)
        return dryi_cuda_driver_fail(d, result, "cuDeviceGetCount", err);
    if (ordinal < 0 || ordinal >= count)
        return dryi_fail(err, DRY_ERR_UNSUPPORTED, "no device %d: the driver shows %d",
                         (int)ordinal, count);
    result = d->device_get(&context->device, ordinal);
    if (result != DRYI_CUDA_SUCCESS)
        return dryi_cuda_driver_fail(d, result, "cuDeviceGet", err);
    return DRY_OK;
}

enum dry_status
dryi_cuda_context_find(struct dryi_cuda_context *context, const char *library,
                       int32_t ordinal, struct dry_error *err)
{
    dryi_fork_mark_init(&context->fork_mark);
    enum dry_status status = dryi_cuda_driver_open(&context->driver, library, err);
    return status == DRY_OK ? find_device(context, ordinal, err) : status;
}

enum dry_status
dryi_cuda_context_retain(struct dryi_cuda_context *context, struct dry_error *err)
{
    const struct dryi_cuda_driver *d = &context->driver;
    int result = d->primary_context_retain(&context->handle, context->device);
    if (result == DRYI_CUDA_SUCCESS)
        return DRY_OK;
    context->handle = NULL;
    return dryi_cuda_driver_fail(d, result, "cuDevicePrimaryCtxRetain", err);
}

void
dryi_cuda_context_close(struct dryi_cuda_context *context)
{
    const struct dryi_cuda_driver *d = &context->driver;
    if (context->handle && !dryi_cuda_context_is_gone(context) &&
        d->primary_context_release)
        (void)d->primary_context_release(context->device);
    dryi_cuda_driver_close(&context->driver);
    dryi_fork_mark_finish(&context->fork_mark);
}
