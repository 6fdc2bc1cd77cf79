/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and events. Work on a stream gets the next ordinal, and the stream completes ordinals in
 * order. A held stream stops at work that is not released. A stream also stops at a wait until the
 * other stream has completed the event. An event is the ordinal of its last record.
 */
#include <stdlib.h>

#include "strict/driver.h"
#include "strict/state.h"

/*
 * Handles 0, 1 and 2 are the default streams; others look like addresses, but must not be
 * accessed.
 */
#define FIRST_SLOT 3
#define STREAM_STEP UINT64_C(4096)

static void
add_stream(void)
{
    struct state *s = &stand_in_state;
    s->streams = stand_in_grow(s->streams, &s->stream_capacity, s->stream_count + 1,
                               sizeof *s->streams);
    s->streams[s->stream_count++] = (struct stream){0};
}

void
stand_in_streams_begin(void)
{
    struct state *s = &stand_in_state;
    while (s->stream_count < FIRST_SLOT) {
        add_stream();
        struct stream *stream = &s->streams[s->stream_count - 1];
        stream->is_live = true;
        stream->id = s->next_serial++;
        stream->device = -1; /* uses the current context, whichever that is */
    }
}

void
stand_in_streams_forget(void)
{
    struct state *s = &stand_in_state;
    for (size_t i = 0; i < s->stream_count; i++)
        free(s->streams[i].waits);
    free(s->streams);
    free(s->events);
}

static struct stream *
find_stream(void *handle)
{
    uint64_t number = (uintptr_t)handle;
    uint64_t slot = number < FIRST_SLOT ? number : number / STREAM_STEP;
    if (slot >= stand_in_state.stream_count ||
        (number >= FIRST_SLOT && number % STREAM_STEP))
        return NULL;
    struct stream *stream = &stand_in_state.streams[slot];
    return stream->is_live ? stream : NULL;
}

static bool
is_of_this_context(const struct stream *stream)
{
    return stream->device < 0 || stream->device == stand_in_device();
}

/* Return how far this stream can go now. Waits that are over are removed. */
static uint64_t
next_completed(struct stream *stream)
{
    uint64_t end = stream->is_held ? stream->released : stream->recorded;
    size_t over = 0;
    while (over < stream->wait_count) {
        const struct wait *wait = &stream->waits[over];
        if (stand_in_state.streams[wait->stream].completed < wait->until)
            break;
        over++;
    }
    for (size_t i = over; i < stream->wait_count; i++)
        stream->waits[i - over] = stream->waits[i];
    stream->wait_count -= over;
    if (stream->wait_count && stream->waits[0].ordinal - 1 < end)
        end = stream->waits[0].ordinal - 1;
    return end;
}

void
stand_in_advance(void)
{
    struct state *s = &stand_in_state;
    bool moved = true;
    while (moved) {
        moved = false;
        for (size_t i = 0; i < s->stream_count; i++) {
            uint64_t end = next_completed(&s->streams[i]);
            if (end > s->streams[i].completed) {
                s->streams[i].completed = end;
                stand_in_copy((uint32_t)i, end);
                moved = true;
            }
        }
    }
}

void
stand_in_hold(void *handle)
{
    struct stream *stream = find_stream(handle);
    if (stream && !stream->is_held) {
        stream->is_held = true;
        stream->released = stream->recorded;
    }
}

static void
release(struct stream *stream, uint64_t ordinal)
{
    if (stream->released < ordinal)
        stream->released = ordinal;
}

void
stand_in_complete(void *handle)
{
    struct stream *stream = find_stream(handle);
    if (!stream)
        return;
    release(stream, stream->recorded);
    stand_in_advance();
}

/* Complete a stream up to an ordinal, with everything that it waits for. */
static void
complete_up_to(struct stream *stream, uint64_t ordinal)
{
    struct state *s = &stand_in_state;
    release(stream, ordinal);
    stand_in_advance();
    if (stream->completed >= ordinal)
        return;
    for (size_t i = 0; i < s->stream_count; i++)
        release(&s->streams[i], s->streams[i].recorded);
    stand_in_advance();
}

EXPORT int
cuStreamCreate(void **handle, unsigned flags)
{
    (void)flags;
    struct state *s = &stand_in_state;
    int result = stand_in_begin(NEEDS_CONTEXT);
    if (result != DRYI_CUDA_SUCCESS)
        return stand_in_end(result);
    size_t slot = FIRST_SLOT;
    while (slot < s->stream_count &&
           (s->streams[slot].is_live ||
            s->streams[slot].completed < s->streams[slot].recorded))
        slot++;
    if (slot == s->stream_count)
        add_stream();
    struct stream *stream = &s->streams[slot];
    stream->is_live = true;
    stream->is_held = false;
    stream->id = s->next_serial++;
    stream->device = stand_in_device();
    *handle = (void *)(uintptr_t)(slot * STREAM_STEP);
    return stand_in_end(DRYI_CUDA_SUCCESS);
}

EXPORT int
cuStreamDestroy_v2(void *handle)
{
    int result = stand_in_begin(NEEDS_CONTEXT);
    struct stream *stream = find_stream(handle);
    if (result != DRYI_CUDA_SUCCESS)
        return stand_in_end(result);
    if (!stream || (uintptr_t)handle < FIRST_SLOT) {
        stand_in_misuse("cuStreamDestroy of what is not a stream");
        return stand_in_end(DRYI_CUDA_INVALID_HANDLE);
    }
    stream->is_live = false; /* its work goes on */
    return stand_in_end(DRYI_CUDA_SUCCESS);
}

/* Return the stream of a call. NULL: *result says why not. */
static struct stream *
begin_with_stream(void *handle, int *result)
{
    *result = stand_in_begin(NEEDS_CONTEXT);
    if (*result != DRYI_CUDA_SUCCESS)
        return NULL;
    struct stream *stream = find_stream(handle);
    if (stream && is_of_this_context(stream))
        return stream;
    stand_in_misuse("a stream that is not one, or of another context");
    *result = DRYI_CUDA_INVALID_HANDLE;
    return NULL;
}

uint64_t
stand_in_put(void *handle, uint32_t *number)
{
    struct stream *stream = find_stream(handle);
    if (!stream || !is_of_this_context(stream))
        return 0;
    *number = (uint32_t)(stream - stand_in_state.streams);
    return ++stream->recorded;
}

#ifndef STAND_IN_OLD
/* The context of a default stream is the current one. */
EXPORT int
cuStreamGetCtx(void *handle, void **context)
{
    int result = stand_in_begin(NEEDS_CONTEXT);
    const struct stream *stream = find_stream(handle);
    if (result == DRYI_CUDA_SUCCESS && !stream)
        result = DRYI_CUDA_CONTEXT_IS_DESTROYED;
    if (result == DRYI_CUDA_SUCCESS)
        *context =
            &stand_in_state
                 .retained[stream->device < 0 ? stand_in_device() : stream->device];
    return stand_in_end(result);
}

/* A capture includes all streams but the default ones. */
EXPORT int
cuStreamIsCapturing(void *handle, int *status)
{
    bool is_default = (uintptr_t)handle < FIRST_SLOT;
    int result = stand_in_begin(is_default ? NEEDS_CONTEXT : NEEDS_INIT);
    if (result == DRYI_CUDA_SUCCESS)
        *status = stand_in_state.is_capturing && !is_default;
    return stand_in_end(result);
}

EXPORT int
cuStreamGetId(void *handle, unsigned long long *id)
{
    /* Only the default streams depend on the current context. */
    bool is_default = (uintptr_t)handle < FIRST_SLOT;
    int result = stand_in_begin(is_default ? NEEDS_CONTEXT : NEEDS_INIT);
    if (result == DRYI_CUDA_SUCCESS && stand_in_state.is_capturing && !is_default) {
        stand_in_misuse("cuStreamGetId of a stream under capture");
        result = DRYI_CUDA_CAPTURE_UNSUPPORTED;
    } else if (result == DRYI_CUDA_SUCCESS) {
        const struct stream *stream = find_stream(handle);
        if (stream)
            *id = stream->id;
        else
            result = DRYI_CUDA_INVALID_HANDLE;
    }
    return stand_in_end(result);
}
#endif

/* Includes destroyed streams, whose work goes on. */
EXPORT int
cuCtxSynchronize(void)
{
    struct state *s = &stand_in_state;
    int result = stand_in_begin(NEEDS_CONTEXT);
    if (result == DRYI_CUDA_SUCCESS)
        result = stand_in_unsafe();
    for (size_t i = 0; result == DRYI_CUDA_SUCCESS && i < s->stream_count; i++)
        complete_up_to(&s->streams[i], s->streams[i].recorded);
    return stand_in_end(result);
}

EXPORT int
cuStreamSynchronize(void *handle)
{
    int result;
    struct stream *stream = begin_with_stream(handle, &result);
    if (stream)
        result = stand_in_unsafe();
    if (stream && result == DRYI_CUDA_SUCCESS)
        complete_up_to(stream, stream->recorded);
    return stand_in_end(result);
}

/* --- events ----------------------------------------------------------------------------- */

#define SLOT_BITS 20
#define EVENT_SHIFT 4 /* so that a handle looks like an address */

static struct event *
find_event(void *handle)
{
    uint64_t number = (uintptr_t)handle >> EVENT_SHIFT;
    size_t slot = number & ((1u << SLOT_BITS) - 1);
    if (slot >= stand_in_state.event_count)
        return NULL;
    struct event *event = &stand_in_state.events[slot];
    return event->is_live && event->serial == number >> SLOT_BITS ? event : NULL;
}

static struct event *
begin_with_event(void *handle, int *result)
{
    *result = stand_in_begin(NEEDS_CONTEXT);
    if (*result != DRYI_CUDA_SUCCESS)
        return NULL;
    struct event *event = find_event(handle);
    if (event && event->device == stand_in_device())
        return event;
    stand_in_misuse("an event that is not one, or of another context");
    *result = DRYI_CUDA_INVALID_HANDLE;
    return NULL;
}

EXPORT int
cuEventCreate(void **handle, unsigned flags)
{
    struct state *s = &stand_in_state;
    int result = stand_in_begin(NEEDS_CONTEXT);
    if (result == DRYI_CUDA_SUCCESS && flags != DRYI_CUDA_EVENT_WITHOUT_TIME)
        result = stand_in_misuse("an event that takes the time");
    if (result != DRYI_CUDA_SUCCESS)
        return stand_in_end(result);
    size_t slot = 0;
    while (slot < s->event_count && s->events[slot].is_live)
        slot++;
    if (slot == s->event_count) {
        s->events = stand_in_grow(s->events, &s->event_capacity, s->event_count + 1,
                                  sizeof *s->events);
        s->event_count++;
    }
    s->events[slot] = (struct event){
        .serial = s->next_serial++, .device = stand_in_device(), .is_live = true};
    uint64_t number = (s->events[slot].serial << SLOT_BITS | slot) << EVENT_SHIFT;
    *handle = (void *)(uintptr_t)number;
    return stand_in_end(DRYI_CUDA_SUCCESS);
}

EXPORT int
cuEventRecord(void *handle, void *stream_handle)
{
    int result;
    struct event *event = begin_with_event(handle, &result);
    struct stream *stream = event ? find_stream(stream_handle) : NULL;
    if (event && (!stream || !is_of_this_context(stream))) {
        stand_in_misuse("an event recorded on what is not a stream of its context");
        result = DRYI_CUDA_INVALID_HANDLE;
    } else if (event) {
        event->is_recorded = true;
        event->stream = (uint32_t)(stream - stand_in_state.streams);
        event->ordinal = ++stream->recorded;
        stand_in_advance();
    }
    return stand_in_end(result);
}

static bool
is_done(const struct event *event)
{
    return !event->is_recorded ||
           stand_in_state.streams[event->stream].completed >= event->ordinal;
}

EXPORT int
cuEventQuery(void *handle)
{
    int result;
    const struct event *event = begin_with_event(handle, &result);
    if (event)
        result = stand_in_unsafe();
    if (event && result == DRYI_CUDA_SUCCESS && !is_done(event))
        result = DRYI_CUDA_NOT_READY;
    return stand_in_end(result);
}

EXPORT int
cuEventSynchronize(void *handle)
{
    int result;
    const struct event *event = begin_with_event(handle, &result);
    if (event)
        result = stand_in_unsafe();
    if (event && result == DRYI_CUDA_SUCCESS && !is_done(event))
        complete_up_to(&stand_in_state.streams[event->stream], event->ordinal);
    return stand_in_end(result);
}

EXPORT int
cuEventDestroy_v2(void *handle)
{
    int result;
    struct event *event = begin_with_event(handle, &result);
    if (event)
        event->is_live = false;
    return stand_in_end(result);
}

EXPORT int
cuStreamWaitEvent(void *stream_handle, void *handle, unsigned flags)
{
    (void)flags;
    int result;
    struct stream *stream = begin_with_stream(stream_handle, &result);
    const struct event *event = stream ? find_event(handle) : NULL;
    if (stream && !event) {
        stand_in_misuse("a stream that waits for what is not an event");
        result = DRYI_CUDA_INVALID_HANDLE;
    } else if (stream && !is_done(event)) {
        stream->waits = stand_in_grow(stream->waits, &stream->wait_capacity,
                                      stream->wait_count + 1, sizeof *stream->waits);
        stream->waits[stream->wait_count++] = (struct wait){.ordinal = ++stream->recorded,
                                                            .until = event->ordinal,
                                                            .stream = event->stream};
    }
    return stand_in_end(result);
}
