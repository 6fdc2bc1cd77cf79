/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PINNED_STREAM_H
#define DRYI_HOST_PINNED_STREAM_H

/*
 * Streams that use blocks. A use is one stream's use of one block. It is open from the
 * free of the block until an event is recorded after it. A batch is the uses covered by
 * one event of their stream: all end when the event passes. See pinned_event.c.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

/*
 * A stream's use of a block. First it is in its block's list. Once the block is freed, it
 * is in the list of the batch that the stream's next event will cover. The first use of a
 * batch has the event, and the link to the next batch.
 */
struct dryi_pinned_use {
    uint32_t block, stream;
    uint32_t next;       /* next in the list of the block, the batch, or unused entries */
    uint32_t next_batch; /* valid in the first use of a batch */
    uint64_t event;      /* valid in the first use of a batch */
};

/* A stream, or a graph, which has no events. */
struct dryi_pinned_stream {
    uint64_t handle;
    uint32_t use_count; /* uses by this stream; 0: the entry is unused */
    uint32_t first_batch, last_batch;
    uint32_t open_first, open_last, open_count; /* open uses: without an event */
    uint32_t closing_first; /* uses whose event is being recorded without the lock */
    uint32_t next_due, next_waiting, next_unused;
    bool is_due;     /* listed among streams with event_batch or more open uses */
    bool is_waiting; /* queued among streams with batches */
    bool is_closing;
    bool is_graph;
    bool is_lost;     /* an event of it was lost: whether it passed can never be known */
    bool is_released; /* the graph is destroyed */
};

struct dryi_pinned_streams {
    struct dryi_map by_handle, by_graph; /* handle -> index in list */
    struct dryi_pinned_stream *list;
    size_t capacity;
    uint32_t count; /* entries of list, used or not */
    struct dryi_pinned_use *uses;
    size_t use_capacity;
    uint32_t use_count;          /* entries of uses, used or not */
    uint32_t unused;             /* first unused entry of uses */
    uint32_t unused_stream, due; /* first of each list of streams; NONE: empty */
    /* The queue of streams to poll, in turn. It may contain streams whose batches have
       ended. */
    uint32_t first_waiting, last_waiting, waiting_count;
    uint32_t batch_count; /* batches with an event, over all streams */
    uint32_t frees;       /* frees since the last poll */
};

#endif
