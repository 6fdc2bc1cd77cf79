/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PIN_EVENTS_H
#define DRYI_HOST_PIN_EVENTS_H

/*
 * A pool of reusable driver events. Creating an event is expensive, and more so from
 * several threads, because the driver serializes the calls. So events are created in
 * batches, without timing, and kept.
 *
 * Registered memory is registered for all GPUs, so any GPU's streams may use it. An event
 * must belong to its stream's context, so each context has a free list of its own.
 *
 * An event is the number of a slot, which holds the driver's event. Slots are read under
 * the lock, because another thread may grow the array. The lock is not held during driver
 * calls.
 *
 * Threads    Any thread may call all functions except init and finish.
 */

#include <stddef.h>

#include "device/cuda/cuda_context.h"
#include "os/lock.h"

#include <drystone/memory.h>

#define DRYI_PIN_CONTEXTS_MAX 64

struct dryi_pin_event;

struct dryi_pin_events {
    struct dryi_cuda_context *context; /* the context of the cache's own GPU */
    struct dry_memory memory;
    struct dryi_lock lock;
    struct dryi_pin_event *slots;
    size_t slot_count, slot_capacity;
    size_t unused_slot; /* first of the list of slots without an event; 0 ends this list
                           and the next */
    struct {
        void *handle;     /* the driver's context */
        size_t free_slot; /* first of the list of slots with a free event of the
                             context */
    } contexts[DRYI_PIN_CONTEXTS_MAX];
    size_t context_count;
    /* Primary contexts of other GPUs whose default streams were named; each is retained
       until finish. */
    struct {
        int device;
        void *handle;
    } others[DRYI_PIN_CONTEXTS_MAX];
    size_t other_count;
};

void dryi_pin_events_init(struct dryi_pin_events *events,
                          struct dryi_cuda_context *context,
                          const struct dry_memory *memory);
/* Destroy all events, including those not returned. */
void dryi_pin_events_finish(struct dryi_pin_events *events);

DRY_CHECK_RESULT enum dry_status dryi_pin_events_record(struct dryi_pin_events *events,
                                                        uint64_t stream, uint64_t *event,
                                                        struct dry_error *err);
/* See dryi_pin.event_is_done. */
int dryi_pin_events_is_done(struct dryi_pin_events *events, uint64_t event);
void dryi_pin_events_return(struct dryi_pin_events *events, uint64_t event);

#endif
