/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PIN_EVENTS_H
#define DRYI_HOST_PIN_EVENTS_H

/*
 * Events of a driver that are used again. Making one is dear, and dearer when several threads
 * do (reference: the driver serialises them). So they are made some at a time, without a clock
 * in them, and kept.
 *
 * Memory that is registered is so for all GPUs, so its streams may be any GPU's. An event must
 * be of its stream's context; each context has free events of its own here.
 *
 * An event is the number of a slot. Its driver's event is asked for again while another thread
 * grows the slots, therefore slots are read with the lock; no driver's call is made with it.
 *
 * Threads    Any, but init and finish.
 */

#include <stddef.h>

#include "device/cuda/cuda_context.h"
#include "os/lock.h"

#include <drystone/memory.h>

#define DRYI_PIN_CONTEXTS_MAX 64

struct dryi_pin_event;

struct dryi_pin_events {
    struct dryi_cuda_context *context; /* the GPU's own */
    struct dry_memory memory;
    struct dryi_lock lock;
    struct dryi_pin_event *slots;
    size_t slot_count, slot_capacity;
    size_t unused_slot; /* of slots without an event, a list; 0: none, as in the next */
    struct {
        void *handle;     /* of a context */
        size_t free_slot; /* a list, of slots with an event of it */
    } contexts[DRYI_PIN_CONTEXTS_MAX];
    size_t context_count;
    /* The other GPUs whose default streams were named; each is retained until the end. */
    struct {
        int device;
        void *handle;
    } others[DRYI_PIN_CONTEXTS_MAX];
    size_t other_count;
};

void dryi_pin_events_init(struct dryi_pin_events *events,
                          struct dryi_cuda_context *context,
                          const struct dry_memory *memory);
/* All events are destroyed, also those that nobody returned. */
void dryi_pin_events_finish(struct dryi_pin_events *events);

DRY_CHECK_RESULT enum dry_status dryi_pin_events_record(struct dryi_pin_events *events,
                                                        uint64_t stream, uint64_t *event,
                                                        struct dry_error *err);
/* As dryi_pin.event_is_done. */
int dryi_pin_events_is_done(struct dryi_pin_events *events, uint64_t event);
void dryi_pin_events_return(struct dryi_pin_events *events, uint64_t event);

#endif
