/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PROGRAM_BUILD_H
#define DRYI_PROGRAM_BUILD_H

/*
 * A program while it is built from the events of a device: its state, and the steps that
 * program.c (pairing of events) and program_burst.c (bursts of segment_free) share. Running
 * out of memory sets `failed`; the caller of all looks at it between events.
 *
 * Words: a request of a carried-over allocation has DRYI_CARRIED_BIT until all of them
 * are known. A pending stream stands for whatever else used a block whose free waits. A
 * stream is held while its OP_STREAM_DONE waits for its place behind a burst.
 */

#include "base/map.h"
#include "replay/program.h"

/* Carried-over allocations are numbered apart until all are known, and sorted then. */
#define DRYI_CARRIED_BIT UINT32_C(0x80000000)
#define DRYI_REQUEST_COUNT_MAX UINT32_C(0x7fffffff)

/* Values of the streams that stand for "whatever else used the block". */
#define DRYI_PENDING_STREAM_VALUE(slot) (UINT64_MAX - (slot))

struct dryi_build {
    struct dryi_program *p;
    const struct dryi_torch_conf *conf;
    const uint8_t *action; /* of the device's events */
    const uint64_t *addr, *size;
    const uint32_t *trace_lane;
    uint32_t event_count;

    struct dryi_map live;    /* address -> request */
    struct dryi_map pending; /* address -> stream index, of those with a free under way */
    uint32_t *lane_cache;    /* trace lane -> lane; NO_EVENT: look it up */
    size_t lane_cache_count;
    uint32_t *free_streams; /* pending streams that are done */
    size_t free_stream_capacity, free_stream_count;
    uint32_t pending_stream_count;
    const struct dry_trace_segment **private_segments; /* by address */
    size_t private_count;

    uint32_t *held; /* streams whose OP_STREAM_DONE waits for its place */
    size_t held_capacity, held_count;
    size_t settled; /* operations up to the last OOM, which waited for all streams */
    int64_t reserved;
    uint32_t burst_event; /* of segment_free and segment_unmap; NO_EVENT: none */
    int64_t burst_before;
    uint64_t burst_need;    /* the first growth after the burst */
    bool burst_has_default; /* it gives back memory of the default pools */
    uint32_t *burst_lanes;  /* of private pools it gives back memory of */
    size_t burst_lane_capacity, burst_lane_count;
    bool failed; /* no memory */
};

/* Note the first contradiction of the record, at an event; always false. */
bool dryi_build_contradict(struct dryi_build *b, uint32_t event, const char *why);

/* Append an operation that comes from `event`. */
void dryi_build_emit(struct dryi_build *b, enum op_kind kind, uint32_t arg,
                     uint32_t event);

/* Gather the segments of private pools, by address; false if there is no memory. */
bool dryi_build_find_private(struct dryi_build *b);

/* The lane of an event: its own, or that of the private segment at `addr`. */
uint32_t dryi_build_lane(struct dryi_build *b, uint32_t trace_lane, uint64_t addr);
uint32_t dryi_build_intern_lane(struct dryi_build *b, uint64_t stream,
                                struct dryi_pool_id pool);
uint32_t dryi_build_intern_stream(struct dryi_build *b, uint64_t value);

/* True for a lane of a private pool. */
bool dryi_build_is_private(const struct dryi_build *b, uint32_t lane);

/* Take a pending stream that nothing waits for, or make one; give it back when it is done. */
uint32_t dryi_build_take_stream(struct dryi_build *b);
void dryi_build_return_stream(struct dryi_build *b, uint32_t stream);

/* Append a request of the window; its number among those. */
uint32_t dryi_build_add_request(struct dryi_build *b, uint64_t size, uint32_t lane,
                                uint32_t event);
/* Append a carried-over allocation, not given back as yet; NULL: no memory. */
struct carried *dryi_build_add_carried(struct dryi_build *b, uint64_t addr,
                                       uint64_t requested, uint32_t lane);

/* Hold a stream. */
void dryi_build_hold_stream(struct dryi_build *b, uint32_t stream);
/*
 * Take the streams that were done right before a burst off the end of the program, and
 * hold them. The cause of the burst waited for them, so they are put back behind it.
 */
void dryi_build_hold_done(struct dryi_build *b);
/* Emit OP_STREAM_DONE for all streams that are held. */
void dryi_build_put_back(struct dryi_build *b, uint32_t event);

#endif
