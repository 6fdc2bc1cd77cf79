/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PIN_H
#define DRYI_HOST_PIN_H

/*
 * A pin supplies pinned host memory, and tells when streams are done with it. It is to
 * the pinned cache (pinned.c) what a device is to a pool. Pins are made by pin_cuda.c
 * (pages registered with a driver) and pin_lock.c (pages locked by mlock).
 *
 * Ownership  A range or event belongs to the caller that took or recorded it.
 * Threads    Any thread may call any function but finish at any time. The cache calls
 *            take, give, available_bytes and event_record without a lock of its own. It calls
 *            event_is_done with its lock held, so event_is_done must not block.
 * Units      Bytes.
 */

#include <stdint.h>

#include <drystone/status.h>

/* A populated, page-locked range with one registration. A block never spans two
   ranges. */
struct dryi_pin_range {
    uint64_t address, bytes;
    void *handle; /* private to the maker */
};

struct dryi_pin {
    void *self;
    /*
     * Pin at least `bytes` (> 0), rounded up; `range` has the actual size. node -1: the
     * GPU's node, if known; -2: any node. NO_SPACE: not enough memory; MEMORY: none for
     * records; SYSTEM: any other failure. A failed call leaves nothing pinned.
     */
    enum dry_status (*take)(void *self, uint64_t bytes, int32_t node,
                            struct dryi_pin_range *range, struct dry_error *err);
    /* Unpin a range that is no longer used. The maker counts failures of the driver. */
    void (*give)(void *self, const struct dryi_pin_range *range);
    /* Record an event after all work submitted to `stream` so far. */
    enum dry_status (*event_record)(void *self, uint64_t stream, uint64_t *event,
                                    struct dry_error *err);
    /*
     * Return 1 if the event has passed, and 0 if not yet. Return -1 if that can never be
     * known, because the context is destroyed or broken. Blocks that wait for such an
     * event are never reused.
     */
    int (*event_is_done)(void *self, uint64_t event);
    void (*event_return)(void *self, uint64_t event);
    /* Return the bytes that can be pinned now: the least of the control groups' and the
       node's free bytes, and MemAvailable minus a reserve. */
    uint64_t (*available_bytes)(void *self, int32_t node);
    void (*finish)(void *self);
};

#endif
