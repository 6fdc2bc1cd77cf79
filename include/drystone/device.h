/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_DEVICE_H
#define DRY_DEVICE_H

/*
 * Who owns the memory: what a place asks of a device.
 *
 * Two words: a table of functions and a self. Implementations: the simulated device
 * (<drystone/sim.h>). The names follow the CUDA driver: alloc and free are cudaMalloc and
 * cudaFree; reserve, map and unmap are cuMemAddressReserve, cuMemCreate + cuMemMap +
 * cuMemSetAccess, and cuMemUnmap + cuMemRelease over a range.
 *
 * Ownership  Ranges belong to whoever took them; events are values to be given back.
 * Errors     NO_SPACE: the device is full, nothing was taken. SYSTEM: anything else.
 * Threads    A device says so itself; places call it with their caller's lock held.
 * Units      Bytes.
 */

#include <stddef.h>
#include <stdint.h>

#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_device_ops {
    /* A range of exactly `size` bytes. */
    enum dry_status (*alloc)(void *self, uint64_t size, uint64_t *address);
    void (*free)(void *self, uint64_t address, uint64_t size);

    /* Address space without memory. */
    enum dry_status (*reserve)(void *self, uint64_t size, uint64_t *address);
    void (*unreserve)(void *self, uint64_t address, uint64_t size);
    /* Memory for [address, address + size) of a reservation, in pages of `page` bytes. */
    enum dry_status (*map)(void *self, uint64_t address, uint64_t size, uint64_t page);
    void (*unmap)(void *self, uint64_t address, uint64_t size, uint64_t page);

    /* Device-wide: as cudaMemGetInfo. */
    void (*get_info)(void *self, uint64_t *free_bytes, uint64_t *total_bytes);

    /* A mark in a stream's order; query says whether the stream has passed it. */
    enum dry_status (*event_record)(void *self, uint64_t stream, uint64_t *event);
    int (*event_query)(void *self, uint64_t event);
    void (*event_wait)(void *self, uint64_t event);
    void (*event_destroy)(void *self, uint64_t event);
    void (*stream_wait)(void *self, uint64_t stream);
};

struct dry_device {
    const struct dry_device_ops *ops;
    void *self;
};

#ifdef __cplusplus
}
#endif

#endif
