/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PIN_MAKE_H
#define DRYI_HOST_PIN_MAKE_H

/*
 * Makers of a dryi_pin: by registration with a driver, and by mlock().
 *
 * Both pin regions of <drystone/pages.h>. A region is fully populated before it is
 * pinned, by threads on its own node, so that the driver faults in no pages under its
 * lock. It is not mapped in a child after fork, because fork would copy all pinned pages.
 * Each range is one region and one registration. Callers should take at most 1 GiB per
 * range: this bounds the time under the driver's lock, and avoids the driver's size
 * limits.
 */

#include <drystone/device.h>
#include <drystone/memory.h>
#include <drystone/pages.h>

#include "host/pinned/pin.h"
#include "os/kernel.h"

/* The pages to pin; all zero means base pages, PREFER, as many threads as help, no
   timeout. */
struct dryi_pin_pages {
    const struct dry_memory *memory;  /* NULL: malloc */
    const struct dryi_kernel *kernel; /* NULL: the running kernel's calls */
    const char *root;                 /* prefix of /sys and /proc; NULL: "" */
    enum dry_pages_kind kind;
    uint64_t page_bytes; /* see struct dry_pages_options */
    enum dry_pages_policy policy;
    uint32_t thread_count, timeout_ms;
};

struct dryi_pin_cuda_options {
    struct dryi_pin_pages pages;
    const char *library; /* the driver's library, "libcuda.so.1" */
    int32_t device;      /* the GPU whose node the pages go to, and whose context
                            registers them */
};

/*
 * Make a pin whose memory is registered for all contexts and mapped for kernels. Without
 * a node, pages go to the GPU's node, if known, and to other nodes if it is full, except
 * with STRICT.
 *
 * Errors     UNSUPPORTED: no driver, no such device, or a driver that cannot register.
 */
DRY_CHECK_RESULT enum dry_status dryi_pin_make_cuda(
    const struct dryi_pin_cuda_options *options, struct dryi_pin *pin,
    struct dry_error *err);

/* Diagnostics of a pin made by dryi_pin_make_cuda(). */
struct dryi_pin_cuda_account {
    int32_t gpu_node;    /* -1: not known */
    uint64_t refusals;   /* failed driver calls that return no status */
    uint64_t kept_bytes; /* bytes that stay mapped because the driver failed to unregister
                            them */
    int32_t last_error;  /* CUresult of the last failure; 0: none */
    int is_gone;
};
void dryi_pin_cuda_get_account(const struct dryi_pin *pin,
                               struct dryi_pin_cuda_account *account);

struct dryi_pin_lock_options {
    struct dryi_pin_pages pages;
    /* The device whose streams use the memory; any thread calls it. ops NULL: no
       streams. */
    struct dry_device device;
};

/* Make a pin that locks memory against swapping, up to RLIMIT_MEMLOCK. Pages of a pool
   are never swapped and need no lock. */
DRY_CHECK_RESULT enum dry_status dryi_pin_make_lock(
    const struct dryi_pin_lock_options *options, struct dryi_pin *pin,
    struct dry_error *err);

#endif
