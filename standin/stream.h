/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STANDIN_STREAM_H
#define STANDIN_STREAM_H

/*
 * Streams, events, captures, graphs.
 *
 * A stream counts its work. Work is done at once by default: an event has passed as soon
 * as it is recorded. With setup's `late` an event passes when the program waits for it or
 * for later work. A real device is between these two extremes.
 *
 * A capture begins on one stream and extends to every stream that waits for an event
 * recorded in it. None of its work runs. A graph counts its nodes, and keeps the objects
 * that must live as long.
 *
 * S1  completed <= recorded, for every stream.
 * S2  A stream that is captured belongs to a live capture; all of them leave at its end.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "standin.h"

/* Handles that are no pointers: the default streams. */
#define STREAM_LEGACY 1u
#define STREAM_PER_THREAD 2u

struct standin_graph;

struct standin_stream {
    int device;
    int priority;
    unsigned flags;
    uint64_t id;
    uint64_t recorded, completed;
    struct standin_graph *capture; /* NULL: not captured */
    struct standin_stream *next;
};

struct standin_event {
    int device;
    bool is_timed, is_recorded;
    struct standin_stream *stream;
    uint64_t ordinal;
    struct standin_graph *capture; /* the capture it was recorded in, or NULL */
    double time_ms;
};

/* Return a handle's stream; 0 to 2 are the default stream of the thread's device. */
struct standin_stream *standin_stream(void *handle);
/* Record work on a stream; in a capture it becomes a node of the graph. */
void standin_work(void *handle);
/* Wait for a stream; with `all`, for all streams of the thread's device. */
enum cuda_error standin_wait(void *handle, bool all);

/* A callback of the program that runs once, when the last reference is released. */
struct standin_user_object {
    void (*destroy)(void *self);
    void *self;
    int references;
};

#endif
