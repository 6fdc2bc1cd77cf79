/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STANDIN_STREAM_H
#define STANDIN_STREAM_H

/*
 * Streams, events, captures, graphs.
 *
 * A stream counts the work it was given. Work is done at once by default: an event has passed as
 * soon as it is recorded. With setup's `late` an event has passed once somebody has waited for it
 * or for something behind it. A real device lies between these two ends of a bracket.
 *
 * A capture begins on one stream and takes in every stream that waits for an event recorded in
 * it. Nothing of it runs; a graph counts its nodes, and keeps what must live as long as it does.
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
    struct standin_graph *capture; /* recorded in it */
    double time_ms;
};

/* The stream of a handle, the default one of the thread's device for 0 to 2; NULL: none such. */
struct standin_stream *standin_stream(void *handle);
/* Note work on a stream; while it is captured, a node of its graph. */
void standin_work(void *handle);
/* Wait for a stream; NULL: for all of the thread's device. */
enum cuda_error standin_wait(void *handle, bool all);

/* A function of the program's that is called, once, when its object is given up. */
struct standin_user_object {
    void (*destroy)(void *self);
    void *self;
    int references;
};

#endif
