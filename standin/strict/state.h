/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STANDIN_STRICT_STATE_H
#define STANDIN_STRICT_STATE_H

/*
 * The state of the stand-in. A process has one, as it has one driver; every exported function is
 *
 *     int result = stand_in_begin(NEEDS_...);      takes the lock, may refuse
 *     if (result == DRYI_CUDA_SUCCESS)
 *         result = ...
 *     return stand_in_end(result);
 */

#include <pthread.h>
#include <stddef.h>
#include <sys/types.h>

#include "device/cuda/cuda_driver.h"
#include "strict/stand_in.h"

#define EXPORT __attribute__((visibility("default")))
#define MAX_DEVICES 8
#define MAX_DEPTH 16

/* A range from cuMemAlloc, a reservation, a mapping, registered memory; sorted by address. */
struct span {
    uint64_t address, size;
    int device;
    uint32_t slot;          /* of the handle, of a mapping */
    uint32_t accessible_by; /* devices that a mapping is opened for, a bit each */
    unsigned char *bytes;   /* of a range, from the first write on */
    uint64_t opened_of;     /* of an opened range: the range itself */
};
struct spans {
    struct span *items;
    size_t count, capacity;
};

/* A copy between registered memory and a device, done when its stream gets there. */
struct copy {
    uint32_t stream;
    uint64_t ordinal;
    uint64_t device_address, host_address;
    size_t bytes;
    bool is_to_device;
};

struct handle {
    uint64_t serial, size;
    int device;
    bool is_live, is_shareable;
    uint32_t opens; /* not released yet, so often */
    uint32_t mappings;
    unsigned char *bytes; /* from the first write on */
};

struct event {
    uint64_t serial;
    int device;
    bool is_live, is_recorded;
    uint32_t stream;
    uint64_t ordinal;
};

/* The stream goes no further than `ordinal` before another has got to `until`. */
struct wait {
    uint64_t ordinal, until;
    uint32_t stream;
};

struct stream {
    bool is_live, is_held;
    int device;
    uint64_t id;
    uint64_t recorded, released, completed; /* ordinals; released counts while held */
    struct wait *waits;
    size_t wait_count, wait_capacity;
};

struct state {
    bool is_set_up, is_initialized;
    pid_t owner;
    struct stand_in_setup setup;
    struct stand_in_account account;
    uint64_t fail_after; /* UINT64_MAX: never */
    int fail_result;
    int broken; /* what every call answers; 0: nothing is broken */
    bool is_capturing;
    const char *misuse;
    uint64_t next_address, next_serial;
    uint64_t used_bytes[MAX_DEVICES];
    uint64_t pool_keeps[MAX_DEVICES], graphs_keep[MAX_DEVICES];
    int retained[MAX_DEVICES]; /* of the primary context, which is its address */

    struct spans ranges, reservations, mappings, registrations, opened;
    struct copy *copies;
    size_t copy_count, copy_capacity;
    struct handle *handles;
    size_t handle_count, handle_capacity;
    size_t free_slot; /* no free handle lies before it */
    struct event *events;
    size_t event_count, event_capacity;
    struct stream *streams;
    size_t stream_count, stream_capacity;
};

extern struct state stand_in_state;

enum need { NEEDS_NOTHING, NEEDS_INIT, NEEDS_CONTEXT };

int stand_in_begin(enum need need);
int stand_in_end(int result);
/* Counts, remembers the text, and returns what the caller gets. */
int stand_in_misuse(const char *text);
/* A call that a graph under capture cannot hold. */
int stand_in_unsafe(void);
/* Return the device of the current context. */
int stand_in_device(void);
void stand_in_exchange_mode(int *mode);
int stand_in_push(void *context);
int stand_in_pop(void **context);
uint64_t stand_in_depth(void);
/* Room for `needed` elements; the test machine has memory. */
void *stand_in_grow(void *array, size_t *capacity, size_t needed, size_t element_bytes);

/* Events, streams. */
void stand_in_streams_begin(void);
void stand_in_streams_forget(void);
void stand_in_hold(void *stream);
void stand_in_complete(void *stream);
/* In a call of the current context: the next ordinal of a stream, 0 for what is none. */
uint64_t stand_in_put(void *stream, uint32_t *number);
void stand_in_advance(void);

/* Memory. */
void stand_in_memory_forget(void);
/* The first that ends behind `address`. */
size_t stand_in_find(const struct spans *spans, uint64_t address);
struct handle *stand_in_find_handle(dryi_cuda_handle number);
dryi_cuda_handle stand_in_number_of(const struct handle *handle);
/* Addresses that never come again; false: there are none left. */
bool stand_in_take_address(uint64_t bytes, uint64_t alignment, uint64_t *address);
struct span *stand_in_find_containing(const struct spans *spans, uint64_t address);
void stand_in_add(struct spans *spans, const struct span *span);
void stand_in_drop(struct spans *spans, size_t i);
/* Like a kernel's: what touches memory it may not touch breaks the context. */
int stand_in_transfer(uint64_t address, size_t bytes, void *out, const void *in);
/* Copies of a stream up to an ordinal. */
void stand_in_copy(uint32_t stream, uint64_t ordinal);
/* Take `bytes` of the device's memory. False: it is full. */
bool stand_in_take(int device, uint64_t bytes);
void stand_in_give(int device, uint64_t bytes);

#endif
