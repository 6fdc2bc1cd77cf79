/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_DEVICE_H
#define DRY_DEVICE_H

/*
 * The owner of the memory: the questions that a pool asks of a device.
 *
 * A device is two words, a table of functions and a self. Implementations: the simulated device
 * (<drystone/sim.h>), an NVIDIA GPU through its driver (<drystone/cuda.h>), and the host's own
 * memory (<drystone/host_device.h>). The names follow the CUDA driver:
 *
 *     alloc, free  cudaMalloc, cudaFree
 *     reserve      cuMemAddressReserve
 *     map          cuMemCreate + cuMemMap + cuMemSetAccess over a range
 *     unmap        cuMemUnmap + cuMemRelease over a range
 *     create_page  cuMemCreate of traits.page_bytes
 *     map_pages    cuMemMap a page and one cuMemSetAccess
 *     unmap_pages  cuMemUnmap; the pages are still the caller's
 *
 * A page is memory apart from addresses. None of these calls is ordered with streams: whoever
 * unmaps or gives back must know that every use is over.
 *
 * Ownership  Ranges and pages belong to whoever took them. Events are values to be given back.
 * Errors     A call that fails has changed nothing.
 *     NO_SPACE  The device is full. Nothing was taken.
 *     SYSTEM    Anything else.
 *     The device itself counts the refusals of its driver to calls that cannot fail here (free,
 *     unmap ...).
 * Threads    Each device says so itself. A pool calls its device with the pool's lock held.
 *            Only stream_id is asked by several threads at once, beside this lock.
 * Units      Bytes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The traits of a device, constant while it lives. Others would get a call of their own. */
struct dry_device_traits {
    uint64_t total_bytes; /* of the device; UINT64_MAX: no limit known */
    /*
     * Of a page, a power of two; 0: memory comes with its addresses, alloc alone. A device of
     * dry_cuda_open() has 4096 pages or more, of 2 to 64 MiB.
     */
    uint64_t page_bytes;
};

/* A range as another process opens it: bytes of the driver's (CUipcMemHandle). */
struct dry_range_name {
    unsigned char bytes[64];
};

struct dry_device_ops {
    size_t struct_size; /* what lies beyond is NULL: the device has no such call */
    void (*get_traits)(void *self, struct dry_device_traits *traits);

    /* Take a range of exactly `size` bytes. */
    enum dry_status (*alloc)(void *self, uint64_t size, uint64_t *address);
    void (*free)(void *self, uint64_t address, uint64_t size);

    /* Take address space without memory. */
    enum dry_status (*reserve)(void *self, uint64_t size, uint64_t *address);
    void (*unreserve)(void *self, uint64_t address, uint64_t size);
    /* Put memory under [address, address + size) of a reservation, in pages of `page` bytes. */
    enum dry_status (*map)(void *self, uint64_t address, uint64_t size, uint64_t page);
    void (*unmap)(void *self, uint64_t address, uint64_t size, uint64_t page);

    /* Take a page. The calls for pages require traits.page_bytes > 0. */
    enum dry_status (*create_page)(void *self, uint64_t *page);
    void (*release_page)(void *self, uint64_t page);
    /* Map `count` pages, one after the other, at page-aligned addresses of a reservation. */
    enum dry_status (*map_pages)(void *self, uint64_t address, const uint64_t *pages,
                                 size_t count);
    /* Unmap `count` pages at addresses that map_pages filled, in any portions. */
    enum dry_status (*unmap_pages)(void *self, uint64_t address, size_t count);

    /* Tell the free and all bytes of the whole device, as cudaMemGetInfo does. */
    void (*get_info)(void *self, uint64_t *free_bytes, uint64_t *total_bytes);

    /* Put an event, a mark in a stream's order: any number but UINT64_MAX. */
    enum dry_status (*event_record)(void *self, uint64_t stream, uint64_t *event);
    /* Tell if the stream has passed the event. */
    bool (*event_query)(void *self, uint64_t event);
    /*
     * Wait until the stream has passed the event. SYSTEM: refused; nobody knows if the stream
     * has passed it.
     */
    enum dry_status (*event_wait)(void *self, uint64_t event);
    void (*event_destroy)(void *self, uint64_t event);
    /*
     * Wait until all that the stream was given so far is over. SYSTEM: refused; the work may go
     * on.
     */
    enum dry_status (*stream_wait)(void *self, uint64_t stream);
    /* Make all later work on `stream` wait for the event; the caller does not wait. */
    enum dry_status (*stream_follow)(void *self, uint64_t stream, uint64_t event);
    /*
     * Tell a number that no other stream ever has, even after this stream is destroyed and its
     * handle given to another (cuStreamGetId). NULL: a stream's handle is such a number.
     */
    uint64_t (*stream_id)(void *self, uint64_t stream);
    /*
     * Wait until all that any stream was given so far is over, destroyed streams included
     * (cuCtxSynchronize). SYSTEM: refused. Called only if stream_id is there. NULL: the last
     * work of a stream that is gone can never be waited for.
     */
    enum dry_status (*wait_all)(void *self);

    /*
     * Let device number `peer` use what map and map_pages put under addresses from now on; and
     * what lies under [address, address + size) already, which begins and ends with pages
     * (cuMemSetAccess). What alloc gives is not concerned: the driver opens it for a peer as a
     * whole (cuCtxEnablePeerAccess). Repetitions are ignored. ARGUMENT: this device itself, or
     * none of the driver's. SYSTEM: the devices cannot reach each other. Both NULL: every device
     * can use the memory as it is.
     */
    enum dry_status (*add_peer)(void *self, int32_t peer);
    enum dry_status (*let_peer)(void *self, uint64_t address, uint64_t size,
                                int32_t peer);

    /*
     * Memory for another process. All of these NULL: the device has none to share.
     *
     * name_range names a range of alloc (cuIpcGetMemHandle). In the other process open_range puts
     * it under an address, and close_range ends that. A range is opened once in a process.
     */
    enum dry_status (*name_range)(void *self, uint64_t address,
                                  struct dry_range_name *name);
    enum dry_status (*open_range)(void *self, const struct dry_range_name *name,
                                  uint64_t *address);
    enum dry_status (*close_range)(void *self, uint64_t address);
    /*
     * Make a POSIX descriptor for each of `count` mapped pages of `page` bytes from `address` on;
     * the caller closes them (cuMemExportToShareableHandle). UNSUPPORTED: the pages were not
     * created for that.
     *
     * import_pages maps pages by their descriptors, which stay the caller's, under addresses of
     * their own; unmap and unreserve end that.
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
