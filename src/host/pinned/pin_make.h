/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PIN_MAKE_H
#define DRYI_HOST_PIN_MAKE_H

/*
 * The makers of a dryi_pin: by a driver's registration, and by mlock().
 *
 * Both pin regions of <drystone/pages.h>. A region is all there before it is pinned, filled by
 * threads on the node it is for, so that nobody has to fault pages in under a lock. It is gone
 * in a child after fork, because a kernel copies what is pinned when it forks. Each range is
 * one region and one registration. Whoever takes pieces of at most 1 GiB never holds the
 * driver's lock longer than that takes, and meets none of the limits a call has.
 */

#include <drystone/device.h>
#include <drystone/memory.h>
#include <drystone/pages.h>

#include "host/pinned/pin.h"
#include "os/kernel.h"

/* Which pages; zeroes are base pages of PREFER, as many threads as help, no timeout. */
struct dryi_pin_pages {
    const struct dry_memory *memory;  /* NULL: malloc's */
    const struct dryi_kernel *kernel; /* NULL: this machine's */
    const char *root;                 /* in front of /sys and /proc; NULL: "" */
    enum dry_pages_kind kind;
    uint64_t page_bytes; /* as in struct dry_pages_options */
    enum dry_pages_policy policy;
    uint32_t thread_count, timeout_ms;
};

struct dryi_pin_cuda_options {
    struct dryi_pin_pages pages;
    const char *library; /* "libcuda.so.1" */
    int32_t device;      /* whose node pages go to, and whose context registers */
};

/*
 * Registered for all contexts and for kernels. Without a node, pages go to the one the GPU
 * hangs on, where the machine tells, and elsewhere if that is full; STRICT nowhere else.
 *
 * Errors     UNSUPPORTED: no driver, no such device, or a driver that cannot register.
 */
DRY_CHECK_RESULT enum dry_status dryi_pin_make_cuda(
    const struct dryi_pin_cuda_options *options, struct dryi_pin *pin,
    struct dry_error *err);

/* The account of a pin made by dryi_pin_make_cuda(). */
struct dryi_pin_cuda_account {
    int32_t gpu_node;    /* -1: not known */
    uint64_t refusals;   /* of calls that cannot report */
    uint64_t kept_bytes; /* left mapped for good, since nobody could unregister them */
    int32_t last_error;  /* CUresult, 0: none */
    int is_gone;
};
void dryi_pin_cuda_get_account(const struct dryi_pin *pin,
                               struct dryi_pin_cuda_account *account);

struct dryi_pin_lock_options {
    struct dryi_pin_pages pages;
    /* The device whose streams use the memory; asked by any thread. ops NULL: no streams. */
    struct dry_device device;
};

/* Locked against swapping, up to RLIMIT_MEMLOCK; pages of a pool are never swapped anyway. */
DRY_CHECK_RESULT enum dry_status dryi_pin_make_lock(
    const struct dryi_pin_lock_options *options, struct dryi_pin *pin,
    struct dry_error *err);

#endif
