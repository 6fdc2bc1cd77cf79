/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_DEVICE_H
#define DRY_DEVICE_H

/*
 * The interface through which a pool gets memory from a device.
 *
 * A device is a table of functions and a `self` pointer. Implementations: the simulated
 * device (<drystone/sim.h>), an NVIDIA GPU through its driver (<drystone/cuda.h>), and
 * the host's own memory (<drystone/host_device.h>). The names follow the CUDA driver:
 *
 *     alloc, free  cudaMalloc, cudaFree
 *     reserve      cuMemAddressReserve
 *     map          cuMemCreate + cuMemMap + cuMemSetAccess over a range
 *     unmap        cuMemUnmap + cuMemRelease over a range
 *     create_page  cuMemCreate of traits.page_bytes
 *     map_pages    cuMemMap a page and one cuMemSetAccess
 *     unmap_pages  cuMemUnmap; the pages are still the caller's
 *
 * A page is memory without an address. None of these calls is ordered with streams: a
 * caller that unmaps or frees must know that every use is over.
 *
 * Ownership  Ranges and pages belong to the caller that allocated them. The caller
 *            destroys each event.
 * Errors     A call that fails has changed nothing.
 *     NO_SPACE  The device is full. Nothing was taken.
 *     SYSTEM    Any other failure.
 *     The device counts failures of its driver in calls without a status (free, unmap
 *     ...).
 * Threads    Each device documents its own rules. A pool calls its device under the
 *            pool's lock, except stream_id, which several threads may call at once.
 * Units      Bytes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Traits of a device, constant while it exists. Traits that change would need a call of
   their own. */
struct dry_device_traits {
    uint64_t total_bytes; /* the device's memory; UINT64_MAX: no limit known */
    /* The size of a page, a power of two; 0: the device has no pages, only alloc. A
       device of dry_cuda_open() has at least 4096 pages of 2 to 64 MiB. */
    uint64_t page_bytes;
};

/* An opaque name by which another process opens a range (CUipcMemHandle). */
struct dry_range_name {
    unsigned char bytes[64];
};

struct dry_device_ops {
    size_t struct_size; /* size of the implementer's table; calls beyond it are absent, as
                           if NULL */
    void (*get_traits)(void *self, struct dry_device_traits *traits);

    /* Allocate a range of exactly `size` bytes. */
    enum dry_status (*alloc)(void *self, uint64_t size, uint64_t *address);
    void (*free)(void *self, uint64_t address, uint64_t size);

    /* Reserve address space without memory. */
    enum dry_status (*reserve)(void *self, uint64_t size, uint64_t *address);
    void (*unreserve)(void *self, uint64_t address, uint64_t size);
    /* Back [address, address + size) of a reservation with memory, in pages of `page`
       bytes. */
    enum dry_status (*map)(void *self, uint64_t address, uint64_t size, uint64_t page);
    void (*unmap)(void *self, uint64_t address, uint64_t size, uint64_t page);

    /* Create a page. The calls for pages require traits.page_bytes > 0. */
    enum dry_status (*create_page)(void *self, uint64_t *page);
    void (*release_page)(void *self, uint64_t page);
    /* Map `count` pages, in order, at consecutive page-aligned addresses of a
       reservation. */
    enum dry_status (*map_pages)(void *self, uint64_t address, const uint64_t *pages,
                                 size_t count);
    /* Unmap `count` pages at addresses filled by map_pages; they need not match its
       calls. */
    enum dry_status (*unmap_pages)(void *self, uint64_t address, size_t count);

    /* Get the free and total bytes of the whole device, as cudaMemGetInfo does. */
    void (*get_info)(void *self, uint64_t *free_bytes, uint64_t *total_bytes);

    /* Record an event, a mark in a stream's order. *event is any number but
       UINT64_MAX. */
    enum dry_status (*event_record)(void *self, uint64_t stream, uint64_t *event);
    /* Return whether the stream has passed the event. */
    bool (*event_query)(void *self, uint64_t event);
    /* Wait until the stream has passed the event. SYSTEM: the wait failed, and whether
       the stream has passed is unknown. */
    enum dry_status (*event_wait)(void *self, uint64_t event);
    void (*event_destroy)(void *self, uint64_t event);
    /* Wait until all work submitted to the stream so far is done. SYSTEM: the wait
       failed, and work may still run. */
    enum dry_status (*stream_wait)(void *self, uint64_t stream);
    /* Make all later work on `stream` wait for the event; the caller does not wait. */
    enum dry_status (*stream_follow)(void *self, uint64_t stream, uint64_t event);
    /*
     * Return a number that no other stream ever has, even after this stream is destroyed
     * and its handle reused (cuStreamGetId). NULL: the stream's handle itself is such a
     * number.
     */
    uint64_t (*stream_id)(void *self, uint64_t stream);
    /*
     * Wait until all work submitted so far to any stream is done, including destroyed
     * streams (cuCtxSynchronize). SYSTEM: the wait failed. Called only if stream_id is
     * not NULL. NULL: the last work of a destroyed stream can never be waited for.
     */
    enum dry_status (*wait_all)(void *self);

    /*
     * Grant device number `peer` access (cuMemSetAccess). add_peer grants it to all
     * memory that map and map_pages back from now on. let_peer grants it to the whole
     * pages already under [address, address + size). Memory of alloc is not concerned:
     * the driver opens it to a peer as a whole (cuCtxEnablePeerAccess). Repeated calls
     * are ignored. ARGUMENT: `peer` is this device, or not one of the driver's. SYSTEM:
     * the devices cannot reach each other. Both NULL: every device can access the memory.
     */
    enum dry_status (*add_peer)(void *self, int32_t peer);
    enum dry_status (*let_peer)(void *self, uint64_t address, uint64_t size,
                                int32_t peer);

    /*
     * Share memory with another process. All NULL: the device cannot share.
     *
     * name_range names a range of alloc (cuIpcGetMemHandle). In the other process
     * open_range maps it at an address, and close_range unmaps it. A process may open a
     * range only once.
     */
    enum dry_status (*name_range)(void *self, uint64_t address,
                                  struct dry_range_name *name);
    enum dry_status (*open_range)(void *self, const struct dry_range_name *name,
                                  uint64_t *address);
    enum dry_status (*close_range)(void *self, uint64_t address);
    /*
     * Export `count` mapped pages of `page` bytes from `address` on, as one POSIX
     * descriptor each (cuMemExportToShareableHandle). The caller closes them.
     * UNSUPPORTED: the pages were not created shareable.
     *
     * import_pages maps pages by their descriptors at a new address range. The caller
     * keeps the descriptors, and ends the mapping by unmap and unreserve.
     */
    enum dry_status (*export_pages)(void *self, uint64_t address, size_t count,
                                    uint64_t page, int *descriptors);
    enum dry_status (*import_pages)(void *self, const int *descriptors, size_t count,
                                    uint64_t page, uint64_t *address);
};

struct dry_device {
    const struct dry_device_ops *ops;
    void *self;
};

#ifdef __cplusplus
}
#endif

#endif
