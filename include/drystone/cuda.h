/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_CUDA_H
#define DRY_CUDA_H

/*
 * An NVIDIA GPU as a device, through its driver, which is opened at run time.
 *
 *     struct dry_cuda_options options;
 *     dry_cuda_options_init(&options);
 *     if (dry_cuda_open(&options, &cuda, &err) != DRY_OK) ...
 *     struct dry_device device = dry_cuda_get_device(cuda);
 *     ...                                   for example, create a pool on it
 *     dry_cuda_close(cuda);
 *
 * alloc is cuMemAlloc. Pages and mapped ranges are cuMemCreate and cuMemMap, if driver
 * and device have virtual memory management. Otherwise traits.page_bytes is 0, and calls
 * that need pages return UNSUPPORTED.
 *
 * Nothing is linked: a program that never calls dry_cuda_open() runs on a machine without
 * a driver. Opening a device retains its primary context. If the process has none,
 * creating it takes some hundred MiB of device memory.
 *
 * Ownership  dry_cuda_open() and dry_cuda_close(). All memory of the device must be
 *            returned to it before close.
 * Errors
 *     NO_SPACE     The device is full.
 *     SYSTEM       Any other failure, with the driver's name and text for it.
 *     UNSUPPORTED  The call needs pages, and there are none.
 *     Calls without a status (free, unmap ...) count their failures, see struct
 *     dry_cuda_account. A device is gone once the driver reports that it is shutting down
 *     or that the context is destroyed, and in a child after fork. Calls that free then
 *     do nothing, every event has passed, and calls that allocate return SYSTEM.
 * Threads    Any thread may call. Each call makes the device's primary context current
 *            and the thread's stream capture mode relaxed, and then restores both.
 * Units      Bytes. A stream is a CUstream as a number; 0 is the default stream.
 */

#include <stdbool.h>

#include <drystone/device.h>
#include <drystone/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_cuda;

struct dry_cuda_options {
    size_t struct_size; /* set by dry_cuda_options_init() */
    const struct dry_memory *memory;
    int32_t device; /* ordinal among the devices in CUDA_VISIBLE_DEVICES; default 0 */
    const char *library; /* default "libcuda.so.1" */
    bool no_pages;       /* use cuMemAlloc even if the device supports pages */
    bool gpu_direct;     /* create pages for GPUDirect RDMA, if the device supports it */
    bool shareable; /* create pages that another process can import (POSIX descriptors) */
};

DRY_API void dry_cuda_options_init_sized(struct dry_cuda_options *options,
                                         size_t struct_size);
#define dry_cuda_options_init(options)                                                   \
    dry_cuda_options_init_sized(options, sizeof *(options))

/* Open a device. UNSUPPORTED: no driver, no such device, or no pages although `shareable`
   is set; err says which. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_cuda_open(
    const struct dry_cuda_options *options, struct dry_cuda **cuda,
    struct dry_error *err);
DRY_API void dry_cuda_close(struct dry_cuda *cuda);
DRY_API struct dry_device dry_cuda_get_device(struct dry_cuda *cuda);

struct dry_cuda_account {
    size_t struct_size;     /* DRY_INIT sets it */
    char name[96];          /* the device's name */
    int32_t driver_version; /* 12040: 12.4 */
    uint64_t refusals;      /* failed calls that return no status */
    int32_t last_error;     /* CUresult of the last failure of any call; 0: none */
    uint64_t retries; /* calls repeated after the driver released memory it had cached for
                         cudaMallocAsync and graphs */
    bool has_pages, is_gone;
};

/* Fill *account; thread-safe like all calls. */
DRY_API enum dry_status dry_cuda_get_account(const struct dry_cuda *cuda,
                                             struct dry_cuda_account *account);

#ifdef __cplusplus
}
#endif

#endif
