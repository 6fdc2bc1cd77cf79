/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PROGRAM_BUILD_H
#define DRYI_PROGRAM_BUILD_H

/*
 * State and steps shared by program.c (pairs events) and program_burst.c (bursts of
 * segment_free) while they build a program. Running out of memory sets `failed`; the outermost
 * caller checks it between events.
 *
 * A carried-over request's number has DRYI_CARRIED_BIT until all of them are known. A pending
 * stream represents all streams that a block's free waits for. A stream is held while its
 * OP_STREAM_DONE must be emitted after a burst.
 */

#include "base/map.h"
#include "replay/program.h"

/* Carried-over allocations have separate numbers until all are known and sorted. */
#define DRYI_CARRIED_BIT UINT32_C(0x80000000)
#define DRYI_REQUEST_COUNT_MAX UINT32_C(0x7fffffff)

/* The value of a pending stream, for OP_STREAM: numbered down from UINT64_MAX. */
#define DRYI_PENDING_STREAM_VALUE(slot) (UINT64_MAX - (slot))

struct dryi_build {
    struct dryi_program *p;
    const struct dryi_torch_conf *conf;
    const uint8_t *action; /* arrays of the device's events */
    const uint64_t *addr, *size;
    const uint32_t *trace_lane;
    uint32_t event_count;

    struct dryi_map live;    /* address -> request, in use or with a pending free */
    struct dryi_map pending; /* address -> index of the pending stream, for
                                blocks whose free waits */
    uint32_t *lane_cache;    /* trace lane -> lane; NO_EVENT: not interned */
    size_t lane_cache_count;
    uint32_t *free_streams; /* pending streams that are done and can be reused */
    size_t free_stream_capacity, free_stream_count;
    uint32_t pending_stream_count;
    const struct dry_trace_segment **private_segments; /* sorted by address */
    size_t private_count;

    uint32_t *held; /* streams whose OP_STREAM_DONE comes after the burst */
    size_t held_capacity, held_count;
    size_t settled; /* operations up to the last OOM, which waited for all streams */
    int64_t reserved;
    uint32_t burst_event; /* first event of the current burst of segment_free and
                             segment_unmap; NO_EVENT: none */
    int64_t burst_before;
    uint64_t burst_need;    /* bytes of the first segment or page after the burst */
    bool burst_has_default; /* the burst freed memory of the default pools */
    uint32_t *burst_lanes;  /* private pools whose memory the burst freed */
    size_t burst_lane_capacity, burst_lane_count;
    bool lacks_completions; /* dryi_trace_lacks_completions() */
    bool failed;            /* memory ran out */
};

/* Record the first contradiction and its event. Always returns false. */
bool dryi_build_contradict(struct dryi_build *b, uint32_t event, const char *why);

/* Append an operation caused by `event`. */
void dryi_build_emit(struct dryi_build *b, enum op_kind kind, uint32_t arg,
                     uint32_t event);

/* Collect the segments of private pools, by address. Returns false if memory ran out. */
bool dryi_build_find_private(struct dryi_build *b);

/* Return an event's lane. If the event does not name its pool, the private
   segment at `addr` does. */
uint32_t dryi_build_lane(struct dryi_build *b, uint32_t trace_lane, uint64_t addr);
uint32_t dryi_build_intern_lane(struct dryi_build *b, uint64_t stream,
                                struct dryi_pool_id pool);
uint32_t dryi_build_intern_stream(struct dryi_build *b, uint64_t value);

/* Return whether the lane is of a private pool. */
bool dryi_build_is_private(const struct dryi_build *b, uint32_t lane);

/* Take a pending stream that is done, or make a new one. Return it after its OP_STREAM_DONE. */
uint32_t dryi_build_take_stream(struct dryi_build *b);
void dryi_build_return_stream(struct dryi_build *b, uint32_t stream);

/* Append a request of the window. Returns its index among the window's requests. */
uint32_t dryi_build_add_request(struct dryi_build *b, uint64_t size, uint32_t lane,
                                uint32_t event);
/* Append a carried-over allocation that has not been freed. Returns NULL if memory ran out. */
struct carried *dryi_build_add_carried(struct dryi_build *b, uint64_t addr,
                                       uint64_t requested, uint32_t lane);

/* Hold a stream: emit its OP_STREAM_DONE later. */
void dryi_build_hold_stream(struct dryi_build *b, uint32_t stream);
/* Remove the OP_STREAM_DONEs at the end of the program, and hold their streams. The burst's cause
   waited for them, so they must come after it. */
void dryi_build_hold_done(struct dryi_build *b);
/* Emit OP_STREAM_DONE for all held streams. */
void dryi_build_put_back(struct dryi_build *b, uint32_t event);

#endif
