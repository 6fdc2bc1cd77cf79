/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STANDIN_STRICT_STATE_H
#define STANDIN_STRICT_STATE_H

/*
 * The state of the stand-in. A process has one, as it has one driver. Every exported function is
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

/*
 * A range from cuMemAlloc, a reservation, a mapping, registered memory; sorted by
 * address.
 */
struct span {
    uint64_t address, size;
    int device;
    uint32_t slot;          /* slot of a mapping's handle */
    uint32_t accessible_by; /* a bit for each device with access to a mapping */
    unsigned char *bytes;   /* a range's memory, allocated by the first access */
    uint64_t opened_of;     /* address of the original of an opened range */
};
struct spans {
    struct span *items;
    size_t count, capacity;
};

/* A copy between registered memory and a device, performed when its stream gets to `ordinal`. */
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
    uint32_t opens; /* number of references that are not released */
    uint32_t mappings;
    unsigned char *bytes; /* allocated by the first access */
};

struct event {
    uint64_t serial;
    int device;
    bool is_live, is_recorded;
    uint32_t stream;
    uint64_t ordinal;
};

/* The stream stops before `ordinal` until stream `stream` has completed `until`. */
struct wait {
    uint64_t ordinal, until;
    uint32_t stream;
};

struct stream {
    bool is_live, is_held;
    int device;
    uint64_t id;
    /* ordinals; `released` only counts while held */
    uint64_t recorded, released, completed;
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
    int broken; /* result of every call; 0: none is forced */
    bool is_capturing;
    const char *misuse;
    uint64_t next_address, next_serial;
    uint64_t used_bytes[MAX_DEVICES];
    uint64_t pool_keeps[MAX_DEVICES], graphs_keep[MAX_DEVICES];
    /* Count of the primary context, whose handle is this element's address. */
    int retained[MAX_DEVICES];

    struct spans ranges, reservations, mappings, registrations, opened;
    struct copy *copies;
    size_t copy_count, copy_capacity;
    struct handle *handles;
    size_t handle_count, handle_capacity;
    size_t free_slot; /* all slots before it are in use */
    struct event *events;
    size_t event_count, event_capacity;
    struct stream *streams;
    size_t stream_count, stream_capacity;
};

extern struct state stand_in_state;

enum need { NEEDS_NOTHING, NEEDS_INIT, NEEDS_CONTEXT };

int stand_in_begin(enum need need);
int stand_in_end(int result);
/* Count a misuse and store its text. Returns the result for the caller. */
int stand_in_misuse(const char *text);
/* Check a call that a graph under capture cannot contain. */
int stand_in_unsafe(void);
/* Return the device of the current context. */
int stand_in_device(void);
void stand_in_exchange_mode(int *mode);
int stand_in_push(void *context);
int stand_in_pop(void **context);
/* Grow an array to `needed` elements. Aborts if memory runs out. */
void *stand_in_grow(void *array, size_t *capacity, size_t needed, size_t element_bytes);

/* Events, streams. */
void stand_in_streams_begin(void);
void stand_in_streams_forget(void);
void stand_in_hold(void *stream);
void stand_in_complete(void *stream);
/*
 * Return the next ordinal of a stream, and its number; 0 if it is no stream of the
 * context. Requires a current context.
 */
uint64_t stand_in_put(void *stream, uint32_t *number);
void stand_in_advance(void);

/* Memory. */
void stand_in_memory_forget(void);
/* Return the index of the first span that ends after `address`. */
size_t stand_in_find(const struct spans *spans, uint64_t address);
struct handle *stand_in_find_handle(dryi_cuda_handle number);
dryi_cuda_handle stand_in_get_number(const struct handle *handle);
/* Take addresses that are never reused. Returns false if none are left. */
bool stand_in_take_address(uint64_t bytes, uint64_t alignment, uint64_t *address);
struct span *stand_in_find_containing(const struct spans *spans, uint64_t address);
void stand_in_add(struct spans *spans, const struct span *span);
void stand_in_drop(struct spans *spans, size_t i);
/* Copy like a kernel: an access without permission breaks the context. */
int stand_in_transfer(uint64_t address, size_t bytes, void *out, const void *in);
/* Perform a stream's pending copies up to an ordinal. */
void stand_in_copy(uint32_t stream, uint64_t ordinal);
/* Take `bytes` of the device's memory. Returns false if it is full. */
bool stand_in_take(int device, uint64_t bytes);
void stand_in_give(int device, uint64_t bytes);

#endif
