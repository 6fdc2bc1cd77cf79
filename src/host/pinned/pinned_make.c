/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of a pin for a pinned cache: a driver that registers, or else mlock(). */
#include <drystone/pinned.h>

#include "host/pinned/pin_make.h"
#include "host/pinned/pinned.h"
#include "host/pinned/pinned_options.h"

static enum dry_status
make_pin(const struct dry_pinned_options *o, struct dryi_pin *pin, struct dry_error *err)
{
    /* Without o->memory: the thread that warms takes pages too, and must not call that. */
    const struct dryi_pin_pages pages = {
        .kind = o->page_kind,
        .page_bytes = o->page_bytes,
        .policy = o->page_policy,
    };
    const struct dryi_pin_cuda_options cuda = {
        .pages = pages,
        .library = o->library ? o->library : "libcuda.so.1",
        .device = o->device,
    };
    const struct dryi_pin_lock_options lock = {.pages = pages};
    if (o->backend == DRY_PINNED_LOCK)
        return dryi_pin_make_lock(&lock, pin, err);
    enum dry_status status = dryi_pin_make_cuda(&cuda, pin, err);
    /* A driver that is there and fails is not passed over in silence. */
    if (status != DRY_ERR_UNSUPPORTED || o->backend == DRY_PINNED_CUDA)
        return status;
    return dryi_pin_make_lock(&lock, pin, err);
}

enum dry_status
dry_pinned_create(const struct dry_pinned_options *options, struct dry_pinned **pinned,
                  struct dry_error *err)
{
    struct dry_pinned_options o;
    struct dryi_pin pin;
    enum dry_status status = dryi_pinned_options_take(options, &o, err);
    if (status == DRY_OK)
        status = make_pin(&o, &pin, err);
    if (status != DRY_OK)
        return status;
    status = dryi_pinned_create(&o, &pin, pinned, err);
    if (status != DRY_OK)
        pin.finish(pin.self);
    return status;
}
