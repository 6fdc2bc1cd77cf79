/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PIN_H
#define DRYI_HOST_PIN_H

/*
 * A pin makes pinned memory of the host, and says when streams are done with it. The pinned
 * cache (pinned.c) asks for it, as a pool asks a device. Pins are made by pin_cuda.c (pages
 * of ours, registered with a driver) and pin_lock.c (the same, by mlock).
 *
 * Ownership  A range belongs to whoever took it, an event too.
 * Threads    All but finish by any thread at any time. The cache never calls take, give, room or
 *            event_record with a lock of its own held. It calls event_is_done with its lock
 *            held, so that must not wait for anything.
 * Units      Bytes.
 */

#include <stdint.h>

#include <drystone/status.h>

/* Populated, page-locked, one registration: no block ever spans two. */
struct dryi_pin_range {
    uint64_t address, bytes;
    void *handle; /* of whoever made it */
};

struct dryi_pin {
    void *self;
    /*
     * Take at least `bytes` (> 0), rounded up; the range says to what. node -1: the
     * GPU's, if it is known; -2: anywhere.
     * NO_SPACE: there is no room; MEMORY: none for records; SYSTEM: anything else. Nothing
     * is left behind by a failure.
     */
    enum dry_status (*take)(void *self, uint64_t bytes, int32_t node,
                            struct dryi_pin_range *range, struct dry_error *err);
    /*
     * Give back a range that nobody uses any more. The maker counts what the driver refuses.
     */
    void (*give)(void *self, const struct dryi_pin_range *range);
    /* Record an event behind everything that `stream` was asked for until now. */
    enum dry_status (*event_record)(void *self, uint64_t stream, uint64_t *event,
                                    struct dry_error *err);
    /*
     * 1: passed; 0: not yet; -1: the context is gone or broken, and nobody knows. Blocks that
     * wait for such an event are never handed out again.
     */
    int (*event_is_done)(void *self, uint64_t event);
    void (*event_return)(void *self, uint64_t event);
    /* The room now: the least of control group, node, and MemAvailable less a reserve. */
    uint64_t (*room)(void *self, int32_t node);
    void (*finish)(void *self);
};

#endif
