/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_REPLAY_PROGRAM_H
#define DRYI_REPLAY_PROGRAM_H

/*
 * The recorded program: what it asked for, free of what its allocator answered.
 *
 * A program is a list of operations on requests. The first `carried_count` requests are
 * the carried-over allocations: blocks that were alive before the window, in address
 * order (or in the order of the file if it has no addresses). The others follow in the
 * order of their alloc events.
 *
 * A free that waited for other streams says in the record only how long it took. It becomes
 * three operations: a stream of its own is recorded on the block before the free, and that
 * stream is done at the recorded free_completed.
 *
 * segment_free events are effects. A burst of them that no request explains was caused by
 * the program calling empty_cache(), and becomes that call. A burst that made room for
 * the very next segment, at a height the device never went beyond, was a retry of a full
 * device. It becomes a note for the self-check alone (OP_DEVICE_FULL), unless the
 * self-check finds that the request would have been served from the cache: then the
 * program called empty_cache() after all. A burst of private pools alone is a pool that
 * ended (OP_EMPTY_POOL). Both a retry and empty_cache() wait for all streams, so a free
 * that completes right before a burst completed because of it: it is placed after it.
 */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/memory.h>
#include <drystone/trace.h>

#include "base/intern.h"
#include "place/torch/torch.h"

enum op_kind {
    OP_ALLOC,         /* arg: request */
    OP_FREE,          /* arg: request */
    OP_STREAM,        /* arg: stream; names the stream of the next OP_RECORD_STREAM */
    OP_RECORD_STREAM, /* arg: request */
    OP_STREAM_DONE,   /* arg: stream */
    OP_EMPTY_CACHE,
    OP_OOM,          /* arg: request that failed; an OP_FREE follows, should it not */
    OP_DEVICE_FULL,  /* arg: index in `limits`; for the self-check alone */
    OP_POOL_BEGIN,   /* arg: lane */
    OP_POOL_END,     /* arg: lane */
    OP_POOL_RELEASE, /* arg: lane; its segments go back next, so nobody uses it */
    OP_EMPTY_POOL,   /* arg: lane; its cached memory goes back */
};

#define NO_EVENT UINT32_MAX
#define NO_STREAM UINT32_MAX
/* More than any device has; sums of a few such still fit. */
#define DEVICE_BYTES_MAX (UINT64_C(1) << 60)

/* A stream and a pool; interned by content, so padding-free. */
struct lane {
    uint64_t stream;
    struct dryi_pool_id pool;
};

/* A block alive before the window. */
struct carried {
    uint64_t addr, requested;
    uint64_t block_size; /* 0: not known yet */
    uint32_t lane;
    uint32_t free_event;     /* when the window gives it back; NO_EVENT: never */
    uint32_t order;          /* of discovery */
    uint32_t pending_stream; /* its free was asked before the window: the stream it waits
                                for, index in `streams`; else NO_STREAM */
    bool is_inferred; /* block_size is more than the rounded request, found from hints */
};

/* A moment at which the device had no more room. Heights are above the window's start. */
struct limit {
    int64_t before; /* reserved when the first attempt failed */
    int64_t after;  /* reserved when the request was done with, one way or the other */
    uint64_t need;  /* bytes of the attempt, at most */
    uint64_t free_bytes; /* of an OOM: what the device had left; else UINT64_MAX */
    uint32_t event;
    uint32_t rejected_op; /* the operation, plus 1, that is an empty_cache() after all */
};

struct dryi_program {
    struct dry_memory memory;
    const struct dry_trace_view *view;
    const struct dry_trace_device *device;
    bool has_addresses;
    const uint8_t *action; /* the device's events; NULL where there are none */
    const uint64_t *addr, *size;
    const uint32_t *trace_lane;

    uint8_t *kinds;
    uint32_t *args;
    uint32_t *events; /* the event an operation comes from, counted in the device */
    size_t kind_capacity, arg_capacity, event_capacity;
    size_t op_count;

    uint64_t *sizes; /* by request */
    uint32_t *lanes;
    uint32_t *alloc_events;
    size_t size_capacity, lane_capacity, alloc_event_capacity;
    size_t request_count;

    struct carried *carried;
    size_t carried_capacity;
    size_t carried_count;

    struct dryi_intern lane_table; /* struct lane */
    struct dryi_intern streams;    /* values of OP_STREAM and OP_STREAM_DONE */

    struct limit *limits;
    size_t limit_capacity;
    uint32_t limit_count;

    uint32_t *segment_events; /* in order, counted in the device */
    size_t segment_event_capacity;
    size_t segment_event_count;

    int64_t reserved_end; /* above the window's start */
    int64_t reserved_peak;
    size_t pending_count, empty_cache_count, retry_count, oom_count, unknown_count;
    size_t frees_inferred;
    uint32_t oom_event; /* the first; NO_EVENT if none */

    const char *inconsistency; /* why the record contradicts itself, or NULL */
    uint32_t inconsistent_event;
};

/*
 * Build the program of one device. `conf` is the recorded one: it rounds the sizes of
 * carried-over allocations. A record that contradicts itself is no failure: see
 * `inconsistency`.
 */
DRY_CHECK_RESULT enum dry_status dryi_program_init(struct dryi_program *program,
                                                   const struct dry_trace *trace,
                                                   const struct dry_trace_device *device,
                                                   const struct dryi_torch_conf *conf,
                                                   const struct dry_memory *memory,
                                                   struct dry_error *err);
void dryi_program_finish(struct dryi_program *program);

static inline const struct lane *
dryi_program_lane(const struct dryi_program *p, uint32_t lane)
{
    return dryi_intern_get(&p->lane_table, lane, NULL);
}

static inline uint64_t
dryi_program_stream(const struct dryi_program *p, uint32_t stream)
{
    return *(const uint64_t *)dryi_intern_get(&p->streams, stream, NULL);
}

/* The recorded address of a request (for traces with addresses). */
static inline uint64_t
dryi_program_addr(const struct dryi_program *p, uint32_t request)
{
    if (request < p->carried_count)
        return p->carried[request].addr;
    return p->view->addr[p->device->first_event + p->alloc_events[request]];
}

#endif
