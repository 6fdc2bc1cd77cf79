/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_REPLAY_PROGRAM_H
#define DRYI_REPLAY_PROGRAM_H

/*
 * The recorded program: what it requested, independent of its allocator's answers.
 *
 * A program is a list of operations on requests. The first `carried_count` requests are the
 * carried-over allocations: blocks alive before the window, by address (or in file order if there
 * are no addresses). The other requests follow in the order of their alloc events.
 *
 * If a free waited for other streams, the record shows only how long it waited. The free becomes
 * three operations. A stream made for this wait is recorded on the block, the block is freed, and
 * the stream is done at the recorded free_completed.
 *
 * segment_free events are effects; the program contains their causes. A burst of them that no
 * request explains becomes a call of empty_cache(). A burst that made space for the very next
 * segment, at a height that was never exceeded, was a retry on a full device. It becomes
 * OP_DEVICE_FULL, a note for the self-check only. If the self-check finds that the cache could have
 * served the request, the note becomes empty_cache() after all. A burst of private pools alone
 * means that a pool ended (OP_EMPTY_POOL).
 *
 * Retries and empty_cache() wait for all streams. So a free that completes right before a burst
 * completed because of its cause, and is moved after it.
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
    OP_STREAM,        /* arg: stream, used by the next OP_RECORD_STREAM */
    OP_RECORD_STREAM, /* arg: request */
    OP_STREAM_DONE,   /* arg: stream */
    OP_EMPTY_CACHE,
    OP_OOM, /* arg: failed request; an OP_FREE follows, for runs in which it succeeds */
    OP_DEVICE_FULL,  /* arg: index in `limits`; for the self-check only */
    OP_POOL_BEGIN,   /* arg: lane */
    OP_POOL_END,     /* arg: lane */
    OP_POOL_RELEASE, /* arg: lane; its segments are freed next,
                        so the pool has no users */
    OP_EMPTY_POOL,   /* arg: lane; its cached memory is freed */
};

#define NO_EVENT UINT32_MAX
#define NO_STREAM UINT32_MAX
/* 1 EiB: more than any device has, and sums of a few such numbers do not overflow. */
#define DEVICE_BYTES_MAX (UINT64_C(1) << 60)

/* A stream and a pool. Interned by content, so it has no padding. */
struct lane {
    uint64_t stream;
    struct dryi_pool_id pool;
};

/* A block that was alive before the window. */
struct carried {
    uint64_t addr, requested;
    uint64_t block_size; /* 0 if unknown */
    uint32_t lane;
    uint32_t free_event; /* the event that frees it; NO_EVENT: none */
    uint32_t order;      /* index in order of discovery */
    /* index in `streams` of the stream that its free waits for, if the free was requested before
       the window; else NO_STREAM */
    uint32_t pending_stream;
    bool is_inferred; /* block_size exceeds the rounded request, and was inferred */
};

/* A moment when the device was full. Heights are bytes above those at the window's start. */
struct limit {
    int64_t before;      /* reserved bytes when the first attempt failed */
    int64_t after;       /* reserved bytes after the request succeeded or failed */
    uint64_t need;       /* upper bound of the bytes that the attempt requested */
    uint64_t free_bytes; /* the device's free bytes at an OOM; else UINT64_MAX */
    uint32_t event;
    uint32_t rejected_op; /* 1 + the operation that is an
                             empty_cache() after all; 0: none */
};

struct dryi_program {
    struct dry_memory memory;
    const struct dry_trace_view *view;
    const struct dry_trace_device *device;
    bool has_addresses;
    const uint8_t *action; /* columns of the device's events; NULL if there are none */
    const uint64_t *addr, *size;
    const uint32_t *trace_lane;

    uint8_t *kinds;
    uint32_t *args;
    uint32_t *events; /* index within the device of each operation's event */
    size_t kind_capacity, arg_capacity, event_capacity;
    size_t op_count;

    uint64_t *sizes; /* `sizes`, `lanes` and `alloc_events` are indexed by request */
    uint32_t *lanes;
    uint32_t *alloc_events;
    size_t size_capacity, lane_capacity, alloc_event_capacity;
    size_t request_count;

    struct carried *carried;
    size_t carried_capacity;
    size_t carried_count;

    struct dryi_intern lane_table; /* entries are struct lane */
    struct dryi_intern streams;    /* uint64_t, arguments of
                                      OP_STREAM and OP_STREAM_DONE */

    struct limit *limits;
    size_t limit_capacity;
    uint32_t limit_count;

    uint32_t *segment_events; /* indices within the device, in order */
    size_t segment_event_capacity;
    size_t segment_event_count;

    int64_t reserved_end; /* bytes above those at the window's start */
    int64_t reserved_peak;
    size_t pending_count, empty_cache_count, retry_count, oom_count, unknown_count;
    size_t frees_inferred;
    size_t assumed_count; /* frees taken as complete when requested */
    uint32_t oom_event;   /* first OOM event; NO_EVENT if none */

    const char *inconsistency; /* why the record contradicts
                                  itself; NULL if it does not */
    uint32_t inconsistent_event;
};

/*
 * Build the program of one device. `conf` holds the recorded settings, which round the sizes of
 * carried-over allocations. A record that contradicts itself is not an error: see `inconsistency`.
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

/* Return a request's recorded address. Requires that the trace has addresses. */
static inline uint64_t
dryi_program_addr(const struct dryi_program *p, uint32_t request)
{
    if (request < p->carried_count)
        return p->carried[request].addr;
    return p->view->addr[p->device->first_event + p->alloc_events[request]];
}

#endif
