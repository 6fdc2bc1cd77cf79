/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_PINNED_STREAM_H
#define DRYI_HOST_PINNED_STREAM_H

/*
 * Streams that use blocks. A use is one stream's use of one block. It is open from the free of
 * the block until an event is recorded behind it. A batch is the uses that one event of their
 * stream stands for: all end when the event passes. pinned_event.c works on these.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

/*
 * A stream's use of a block. At first it is in a list of its block; once the block is freed,
 * in the list of the batch that the next event of the stream stands for. The first use of a
 * batch that has its event holds that event, and the next batch.
 */
struct dryi_pinned_use {
    uint32_t block, stream;
    uint32_t next;       /* of the block, or of the batch, or of the unused */
    uint32_t next_batch; /* of the first of a batch */
    uint64_t event;      /* the same */
};

/* A stream, or a graph, which is a stream without events. */
struct dryi_pinned_stream {
    uint64_t handle;
    uint32_t use_count; /* uses that name it; 0: the entry is unused */
    uint32_t first_batch, last_batch;
    uint32_t open_first, open_last, open_count; /* no event yet */
    uint32_t closing_first; /* uses whose event is being recorded, without the lock */
    uint32_t next_due, next_waiting, next_unused;
    bool is_due;     /* in the list of those with enough open uses */
    bool is_waiting; /* in the queue of those with batches */
    bool is_closing;
    bool is_graph;
    bool is_lost;     /* an event of it is neither passed nor to come */
    bool is_released; /* the graph is gone */
};

struct dryi_pinned_streams {
    struct dryi_map by_handle, by_graph; /* -> index in list */
    struct dryi_pinned_stream *list;
    size_t capacity;
    uint32_t count; /* of list, used or not */
    struct dryi_pinned_use *uses;
    size_t use_capacity;
    uint32_t use_count;          /* of uses, used or not */
    uint32_t unused;             /* first of the unused ones */
    uint32_t unused_stream, due; /* lists of streams; NONE: empty */
    /* A queue of streams, perhaps with some whose batches are gone: the next to be asked. */
    uint32_t first_waiting, last_waiting, waiting_count;
    uint32_t batch_count; /* with an event, in all streams */
    uint32_t frees;       /* since the last poll */
};

#endif
