/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_DEVICE_H
#define DRY_DEVICE_H

/*
 * Who owns the memory: what a place asks of a device.
 *
 * Two words: a table of functions and a self. Implementations: the simulated device
 * (<drystone/sim.h>), an NVIDIA GPU through its driver (<drystone/cuda.h>), and the host's
 * own memory (<drystone/host_device.h>). The names follow the CUDA driver: alloc and free
 * are cudaMalloc and cudaFree; reserve, map and unmap are cuMemAddressReserve, cuMemCreate +
 * cuMemMap + cuMemSetAccess, and cuMemUnmap + cuMemRelease over a range.
 *
 * A page is memory apart from addresses: create_page is cuMemCreate of traits.page_bytes,
 * map_pages is cuMemMap a page and one cuMemSetAccess, unmap_pages is cuMemUnmap, after
 * which the pages are still the caller's. Nothing of this is ordered with streams: whoever
 * unmaps or gives back must know that every use is over.
 *
 * Ownership  Ranges and pages belong to whoever took them; events are values to be given
 *            back.
 * Errors     NO_SPACE: the device is full, nothing was taken. SYSTEM: anything else; a call
 *            that fails has changed nothing. What cannot fail here (free, unmap ...) is
 *            counted by the device where its driver refuses.
 * Threads    A device says so itself; places call it with their caller's lock held.
 *            stream_id alone is also asked by several threads at once, beside that lock.
 * Units      Bytes.
 */

#include <stddef.h>
#include <stdint.h>

#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a device can do; constant while it lives. */
struct dry_device_traits {
    uint64_t total_bytes; /* of the device; UINT64_MAX: no limit known */
    uint64_t page_bytes;  /* of a page; 0: memory comes with its addresses, alloc alone */
};

struct dry_device_ops {
    void (*get_traits)(void *self, struct dry_device_traits *traits);

    /* A range of exactly `size` bytes. */
    enum dry_status (*alloc)(void *self, uint64_t size, uint64_t *address);
    void (*free)(void *self, uint64_t address, uint64_t size);

    /* Address space without memory. */
    enum dry_status (*reserve)(void *self, uint64_t size, uint64_t *address);
    void (*unreserve)(void *self, uint64_t address, uint64_t size);
    /* Memory for [address, address + size) of a reservation, in pages of `page` bytes. */
    enum dry_status (*map)(void *self, uint64_t address, uint64_t size, uint64_t page);
    void (*unmap)(void *self, uint64_t address, uint64_t size, uint64_t page);

    /* Pages: only where traits.page_bytes > 0. */
    enum dry_status (*create_page)(void *self, uint64_t *page);
    void (*release_page)(void *self, uint64_t page);
    /* `count` pages, one after the other, at page-aligned addresses of a reservation. */
    enum dry_status (*map_pages)(void *self, uint64_t address, const uint64_t *pages,
                                 size_t count);
    /* Addresses that map_pages filled, in any portions. */
    enum dry_status (*unmap_pages)(void *self, uint64_t address, size_t count);

    /* Device-wide: as cudaMemGetInfo. */
    void (*get_info)(void *self, uint64_t *free_bytes, uint64_t *total_bytes);

    /*
     * A mark in a stream's order, any number but UINT64_MAX; query says whether the stream
     * has passed it.
     */
    enum dry_status (*event_record)(void *self, uint64_t stream, uint64_t *event);
    int (*event_query)(void *self, uint64_t event);
    /* SYSTEM: refused; whether the stream has passed it is not known. */
    enum dry_status (*event_wait)(void *self, uint64_t event);
    void (*event_destroy)(void *self, uint64_t event);
    /* Until all that the stream was given so far is over. SYSTEM: refused; it may go on. */
    enum dry_status (*stream_wait)(void *self, uint64_t stream);
    /* All later work on `stream` waits for the event; the caller does not. */
    enum dry_status (*stream_follow)(void *self, uint64_t stream, uint64_t event);
    /*
     * A number no other stream ever has, also after this one is destroyed and its handle
     * given to another (cuStreamGetId). NULL: a stream's handle is such a number.
     */
    uint64_t (*stream_id)(void *self, uint64_t stream);
    /*
     * Until all that any stream was given so far is over, also those destroyed meanwhile
     * (cuCtxSynchronize). SYSTEM: refused. Asked only where stream_id is there; NULL: what a
     * stream that is gone still does can never be waited for.
     */
    enum dry_status (*wait_all)(void *self);
};

struct dry_device {
    const struct dry_device_ops *ops;
    void *self;
};

#ifdef __cplusplus
}
#endif

#endif
