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
 *     ...                                   a pool on it, say
 *     dry_cuda_close(cuda);
 *
 * alloc is cuMemAlloc. Pages and mapped ranges are cuMemCreate and cuMemMap, if driver and
 * device have virtual memory management. Otherwise traits.page_bytes is 0, and calls that need
 * pages are UNSUPPORTED.
 *
 * Nothing is linked: a program that never calls dry_cuda_open() runs on a machine without a
 * driver. Opening a device takes a context of it: some hundred MiB of its memory, if the
 * process has none yet.
 *
 * Ownership  dry_cuda_open() and dry_cuda_close(). Everything taken from the device must have
 *            been given back before close.
 * Errors
 *     NO_SPACE     The device is full.
 *     SYSTEM       Any other refusal, with the driver's name and text for it.
 *     UNSUPPORTED  The call needs pages, and there are none.
 *     Calls that cannot report (free, unmap ...) count their refusals, see struct
 *     dry_cuda_account. A device is gone once the driver says that it is shutting down or that
 *     the context is gone, and in a child after fork. Calls that give back then do nothing,
 *     every event has passed, and calls that take are SYSTEM.
 * Threads    Any thread may call. Each call makes the device's primary context current and the
 *            thread's stream capture mode relaxed, and then restores both.
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
    int32_t device;      /* ordinal, as CUDA_VISIBLE_DEVICES leaves them; default 0 */
    const char *library; /* default "libcuda.so.1" */
    bool no_pages;       /* cuMemAlloc alone, even if pages could be had */
    bool gpu_direct;     /* pages that GPUDirect RDMA can use, if the device can */
    bool shareable;      /* pages that another process can import (POSIX descriptors) */
};

DRY_API void dry_cuda_options_init_sized(struct dry_cuda_options *options,
                                         size_t struct_size);
#define dry_cuda_options_init(options)                                                   \
    dry_cuda_options_init_sized(options, sizeof *(options))

/*
 * Open a device. UNSUPPORTED: there is no driver, no such device, or no pages for `shareable`;
 * err says which.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_cuda_open(
    const struct dry_cuda_options *options, struct dry_cuda **cuda,
    struct dry_error *err);
DRY_API void dry_cuda_close(struct dry_cuda *cuda);
DRY_API struct dry_device dry_cuda_get_device(struct dry_cuda *cuda);

struct dry_cuda_account {
    size_t struct_size;     /* DRY_INIT sets it */
    char name[96];          /* of the device */
    int32_t driver_version; /* 12040: 12.4 */
    uint64_t refusals;      /* of calls that cannot report */
    int32_t last_error;     /* CUresult of the last refusal of any call, 0 if none */
    uint64_t retries; /* calls repeated after the driver gave back what it had kept for
                         cudaMallocAsync and for graphs */
    bool has_pages, is_gone;
};

/* Fill *account. */
DRY_API enum dry_status dry_cuda_get_account(const struct dry_cuda *cuda,
                                             struct dry_cuda_account *account);

#ifdef __cplusplus
}
#endif

#endif
