/* SPDX-License-Identifier: Apache-2.0 */
/* Makers. A cache gets a pin by a driver, or else by mlock(). A tensor in a block is a
   wrapped tensor whose release frees the block. */
#include <drystone/pinned.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "host/pinned/pin_make.h"
#include "host/pinned/pinned.h"
#include "host/pinned/pinned_options.h"
#include "host/pinned/pinned_state.h"

static enum dry_status
make_pin(const struct dry_pinned_options *o, struct dryi_pin *pin, struct dry_error *err)
{
    /* Without o->memory: the pinner thread also allocates pages, and must not call it. */
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
    /* An existing driver that fails is an error, not a reason to fall back. */
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

/* --- tensors ------------------------------------------------------------------------------ */

struct loan {
    struct dry_pinned *pinned;
    void *address;
};

static void
end_loan(void *self)
{
    struct loan *loan = self;
    struct dry_pinned *p = loan->pinned;
    /* Refused in the child of a fork, where the block belongs to the parent. */
    (void)dry_pinned_free(p, loan->address);
    dryi_memory_free(&p->memory, loan, 1, sizeof *loan);
}

static enum dry_status
take_block(struct dry_pinned *p, uint64_t bytes, void **address, struct dry_error *err)
{
    enum dry_status status = dry_pinned_alloc(p, bytes, DRY_PINNED_NO_STREAM, address);
    return status == DRY_OK
               ? status
               : dryi_fail(err, status, "no block of %llu bytes: %s",
                           (unsigned long long)bytes, dry_status_text(status));
}

enum dry_status
dry_pinned_create_tensor(struct dry_pinned *pinned,
                         const struct dry_tensor_options *options,
                         struct dry_tensor **tensor, struct dry_error *err)
{
    struct dry_tensor_options o;
    uint64_t bytes = 0;
    dry_tensor_options_init(&o);
    enum dry_status status = dryi_sized_take(&o, sizeof o, options, err);
    if (status == DRY_OK)
        status = dry_tensor_measure(&o.form, &bytes, err);
    if (status != DRY_OK)
        return status;
    struct loan *loan = dryi_memory_zalloc(&pinned->memory, 1, sizeof *loan);
    if (!loan)
        return dryi_fail_memory(err, "a tensor");
    loan->pinned = pinned;
    status = take_block(pinned, bytes, &loan->address, err);
    if (status != DRY_OK) {
        dryi_memory_free(&pinned->memory, loan, 1, sizeof *loan);
        return status;
    }
    const struct dry_tensor_memory memory = {
        .address = loan->address, .bytes = bytes, .release = end_loan, .self = loan};
    status = dry_tensor_wrap(&o, &memory, tensor, err);
    if (status != DRY_OK)
        end_loan(loan);
    return status;
}
