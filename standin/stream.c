/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.h explains the design. A stream stays in the list until it is destroyed. A wait
 * for a stream completes all of its work so far, which is at most what a real device
 * would have completed.
 */
#include "stream.h"

#include <stdlib.h>
#include <time.h>

#include "setup.h"

struct standin_graph {
    uint64_t id, node_count;
    struct standin_user_object **objects;
    size_t object_count;
    bool is_open;    /* its capture has not ended */
    bool is_spoiled; /* a call that no graph can contain has spoiled it */
    int references;
};

static struct standin_stream defaults[STANDIN_DEVICES_MAX];
static struct standin_stream *streams;
static uint64_t last_id = 100;

struct standin_stream *
standin_stream(void *handle)
{
    uintptr_t number = (uintptr_t)handle;
    if (number > STREAM_PER_THREAD)
        return handle;
    struct standin_stream *stream = &defaults[standin_device()];
    stream->device = standin_device();
    stream->id = (uint64_t)stream->device + 1;
    return stream;
}

void
standin_work(void *handle)
{
    standin_lock();
    struct standin_stream *stream = standin_stream(handle);
    if (stream->capture)
        stream->capture->node_count++;
    else
        stream->recorded++;
    if (!standin_setup()->is_late)
        stream->completed = stream->recorded;
    standin_unlock();
}

enum cuda_error
standin_wait(void *handle, bool all)
{
    enum cuda_error result = CUDA_OK;
    standin_lock();
    struct standin_stream *stream = standin_stream(handle);
    if (stream->capture && !all)
        result = CUDA_CAPTURE_UNSUPPORTED;
    else
        stream->completed = stream->recorded;
    for (struct standin_stream *s = all ? streams : NULL; s; s = s->next) {
        if (s->device == standin_device() && !s->capture)
            s->completed = s->recorded;
    }
    standin_unlock();
    return result;
}

/* --- streams -------------------------------------------------------------------------------- */

static enum cuda_error
create(void **handle, unsigned flags, int priority)
{
    struct standin_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return CUDA_NO_MEMORY;
    standin_lock();
    *stream = (struct standin_stream){.device = standin_device(),
                                      .flags = flags,
                                      .priority = priority,
                                      .id = ++last_id,
                                      .next = streams};
    streams = stream;
    standin_unlock();
    *handle = stream;
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaStreamCreate(void **handle)
{
    return standin_note(create(handle, 0, 0));
}

EXPORT enum cuda_error
cudaStreamCreateWithFlags(void **handle, unsigned flags)
{
    return standin_note(create(handle, flags, 0));
}

EXPORT enum cuda_error
cudaStreamCreateWithPriority(void **handle, unsigned flags, int priority)
{
    return standin_note(create(handle, flags, priority));
}

EXPORT enum cuda_error
cudaStreamDestroy(void *handle)
{
    if ((uintptr_t)handle <= STREAM_PER_THREAD)
        return standin_note(CUDA_INVALID_HANDLE);
    standin_lock();
    struct standin_stream **link = &streams;
    while (*link && *link != handle)
        link = &(*link)->next;
    if (*link)
        *link = (*link)->next;
    standin_unlock();
    /* its memory is not freed: events recorded on it may still be queried */
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaStreamGetPriority(void *handle, int *priority)
{
    *priority = standin_stream(handle)->priority;
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaStreamGetFlags(void *handle, unsigned *flags)
{
    *flags = standin_stream(handle)->flags;
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaStreamGetId(void *handle, unsigned long long *id)
{
    /* Driver 580 does this whatever the thread's mode of capture. */
    standin_lock();
    struct standin_stream *stream = standin_stream(handle);
    *id = stream->id;
    bool is_captured = stream->capture != NULL;
    if (is_captured)
        stream->capture->is_spoiled = true;
    standin_unlock();
    return is_captured ? standin_note(CUDA_CAPTURE_UNSUPPORTED) : CUDA_OK;
}

EXPORT enum cuda_error
cudaStreamGetDevice(void *handle, int *device)
{
    *device = standin_stream(handle)->device;
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaStreamQuery(void *handle)
{
    standin_lock();
    const struct standin_stream *stream = standin_stream(handle);
    bool is_done = stream->completed >= stream->recorded;
    bool is_captured = stream->capture != NULL;
    standin_unlock();
    if (is_captured)
        return standin_note(CUDA_CAPTURE_UNSUPPORTED);
    return is_done ? CUDA_OK : CUDA_NOT_READY;
}

EXPORT enum cuda_error
cudaStreamSynchronize(void *handle)
{
    return standin_note(standin_wait(handle, false));
}

EXPORT enum cuda_error
cudaDeviceSynchronize(void)
{
    return standin_note(standin_wait(NULL, true));
}

/* --- events --------------------------------------------------------------------------------- */

static double
now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

enum { EVENT_UNTIMED = 2 }; /* a flag of an event */

EXPORT enum cuda_error
cudaEventCreateWithFlags(struct standin_event **event, unsigned flags)
{
    *event = calloc(1, sizeof **event);
    if (!*event)
        return standin_note(CUDA_NO_MEMORY);
    (*event)->device = standin_device();
    (*event)->is_timed = !(flags & EVENT_UNTIMED);
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaEventCreate(struct standin_event **event)
{
    return cudaEventCreateWithFlags(event, 0);
}

EXPORT enum cuda_error
cudaEventDestroy(struct standin_event *event)
{
    free(event);
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaEventRecord(struct standin_event *event, void *handle)
{
    if (!event)
        return standin_note(CUDA_INVALID_HANDLE);
    standin_work(handle);
    standin_lock();
    struct standin_stream *stream = standin_stream(handle);
    event->stream = stream;
    event->ordinal = stream->recorded;
    event->capture = stream->capture;
    event->is_recorded = true;
    event->time_ms = now_ms();
    standin_unlock();
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaEventRecordWithFlags(struct standin_event *event, void *handle, unsigned flags)
{
    (void)flags;
    return cudaEventRecord(event, handle);
}

EXPORT enum cuda_error
cudaEventQuery(const struct standin_event *event)
{
    if (!event)
        return standin_note(CUDA_INVALID_HANDLE);
    standin_lock();
    bool is_captured = event->capture && event->capture->is_open;
    bool is_done = !event->is_recorded || event->stream->completed >= event->ordinal;
    standin_unlock();
    if (is_captured)
        return standin_note(CUDA_CAPTURE_UNSUPPORTED);
    return standin_note(is_done ? CUDA_OK : CUDA_NOT_READY);
}

EXPORT enum cuda_error
cudaEventSynchronize(const struct standin_event *event)
{
    if (!event)
        return standin_note(CUDA_INVALID_HANDLE);
    standin_lock();
    if (event->is_recorded && event->stream->completed < event->ordinal)
        event->stream->completed = event->ordinal;
    standin_unlock();
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaEventElapsedTime(float *ms, const struct standin_event *begin,
                     const struct standin_event *end)
{
    if (!begin || !end || !begin->is_recorded || !end->is_recorded)
        return standin_note(CUDA_INVALID_HANDLE);
    if (!begin->is_timed || !end->is_timed)
        return standin_note(CUDA_INVALID_HANDLE);
    double took = end->time_ms - begin->time_ms;
    *ms = (float)(took > 0 ? took : 1e-3);
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaEventElapsedTime_v2(float *ms, const struct standin_event *begin,
                        const struct standin_event *end)
{
    return cudaEventElapsedTime(ms, begin, end);
}

EXPORT enum cuda_error
cudaStreamWaitEvent(void *handle, const struct standin_event *event, unsigned flags)
{
    (void)flags;
    if (!event)
        return standin_note(CUDA_INVALID_HANDLE);
    standin_lock();
    struct standin_stream *stream = standin_stream(handle);
    if (event->capture && event->capture->is_open)
        stream->capture = event->capture;
    standin_unlock();
    return CUDA_OK;
}

/* --- captures ------------------------------------------------------------------------------- */

enum capture_status { CAPTURE_NONE, CAPTURE_ACTIVE, CAPTURE_INVALIDATED };

static enum cuda_error
begin_capture(void *handle, struct standin_graph *graph)
{
    enum cuda_error result = CUDA_OK;
    if (!graph)
        return CUDA_NO_MEMORY;
    standin_lock();
    struct standin_stream *stream = standin_stream(handle);
    if (stream->capture || (uintptr_t)handle <= STREAM_PER_THREAD) {
        result = CUDA_CAPTURE_UNSUPPORTED;
    } else {
        graph->id = ++last_id;
        graph->is_open = true;
        stream->capture = graph;
    }
    standin_unlock();
    return result;
}

EXPORT enum cuda_error
cudaStreamBeginCapture(void *handle, int mode)
{
    (void)mode;
    struct standin_graph *graph = calloc(1, sizeof *graph);
    enum cuda_error result = begin_capture(handle, graph);
    if (result != CUDA_OK)
        free(graph);
    else
        graph->references = 1;
    return standin_note(result);
}

EXPORT enum cuda_error
cudaStreamBeginCaptureToGraph(void *handle, struct standin_graph *graph, void **nodes,
                              const void *edges, size_t count, int mode)
{
    (void)nodes, (void)edges, (void)count, (void)mode;
    return standin_note(begin_capture(handle, graph));
}

EXPORT enum cuda_error
cudaStreamEndCapture(void *handle, struct standin_graph **graph)
{
    enum cuda_error result = CUDA_OK;
    standin_lock();
    struct standin_graph *ended = standin_stream(handle)->capture;
    *graph = ended;
    if (ended) {
        ended->is_open = false;
        result = ended->is_spoiled ? CUDA_CAPTURE_INVALIDATED : CUDA_OK;
        for (struct standin_stream *s = streams; s; s = s->next) {
            if (s->capture == ended)
                s->capture = NULL;
        }
    } else {
        result = CUDA_INVALID_VALUE;
    }
    standin_unlock();
    return standin_note(result);
}

EXPORT enum cuda_error
cudaStreamIsCapturing(void *handle, int *status)
{
    standin_lock();
    *status = standin_stream(handle)->capture ? CAPTURE_ACTIVE : CAPTURE_NONE;
    standin_unlock();
    return CUDA_OK;
}

static void
get_capture(void *handle, int *status, unsigned long long *id,
            struct standin_graph **graph)
{
    standin_lock();
    struct standin_graph *capture = standin_stream(handle)->capture;
    *status = capture ? CAPTURE_ACTIVE : CAPTURE_NONE;
    if (capture && id)
        *id = capture->id;
    if (capture && graph)
        *graph = capture;
    standin_unlock();
}

/* With edges, as of CUDA 13; earlier releases call it cudaStreamGetCaptureInfo_v3. */
EXPORT enum cuda_error
cudaStreamGetCaptureInfo_v3(void *handle, int *status, unsigned long long *id,
                            struct standin_graph **graph, const void ***nodes,
                            const void **edges, size_t *count)
{
    get_capture(handle, status, id, graph);
    if (nodes)
        *nodes = NULL;
    if (edges)
        *edges = NULL;
    if (count)
        *count = 0;
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaStreamGetCaptureInfo_v2(void *handle, int *status, unsigned long long *id,
                            struct standin_graph **graph, const void ***nodes,
                            size_t *count)
{
    return cudaStreamGetCaptureInfo_v3(handle, status, id, graph, nodes, NULL, count);
}

/* CUDA 12 and earlier pass three parameters; the others are only read for CUDA 13. */
EXPORT enum cuda_error
cudaStreamGetCaptureInfo(void *handle, int *status, unsigned long long *id,
                         struct standin_graph **graph, const void ***nodes,
                         const void **edges, size_t *count)
{
    if (standin_setup()->cuda_version >= 13000)
        return cudaStreamGetCaptureInfo_v3(handle, status, id, graph, nodes, edges,
                                           count);
    get_capture(handle, status, id, NULL);
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaThreadExchangeStreamCaptureMode(int *mode)
{
    static __thread int current;
    int before = current;
    current = *mode;
    *mode = before;
    return CUDA_OK;
}

/* --- graphs --------------------------------------------------------------------------------- */

EXPORT enum cuda_error
cudaGraphCreate(struct standin_graph **graph, unsigned flags)
{
    (void)flags;
    *graph = calloc(1, sizeof **graph);
    if (!*graph)
        return standin_note(CUDA_NO_MEMORY);
    (*graph)->references = 1;
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaGraphGetNodes(const struct standin_graph *graph, void **nodes, size_t *count)
{
    for (size_t i = 0; nodes && i < *count && i < graph->node_count; i++)
        nodes[i] = (void *)(uintptr_t)(i + 1);
    *count = graph->node_count;
    return CUDA_OK;
}

static void
release(struct standin_graph *graph)
{
    standin_lock();
    bool is_last = --graph->references == 0;
    standin_unlock();
    if (!is_last)
        return;
    for (size_t i = 0; i < graph->object_count; i++) {
        if (--graph->objects[i]->references == 0) {
            graph->objects[i]->destroy(graph->objects[i]->self);
            free(graph->objects[i]);
        }
    }
    free(graph->objects);
    free(graph);
}

/* An executable graph is another reference to its graph. */
EXPORT enum cuda_error
cudaGraphInstantiate(struct standin_graph **exec, struct standin_graph *graph,
                     unsigned long long flags)
{
    (void)flags;
    standin_lock();
    graph->references++;
    standin_unlock();
    *exec = graph;
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaGraphInstantiateWithFlags(struct standin_graph **exec, struct standin_graph *graph,
                              unsigned long long flags)
{
    return cudaGraphInstantiate(exec, graph, flags);
}

EXPORT enum cuda_error
cudaGraphDestroy(struct standin_graph *graph)
{
    if (graph)
        release(graph);
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaGraphExecDestroy(struct standin_graph *exec)
{
    if (exec)
        release(exec);
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaGraphLaunch(struct standin_graph *exec, void *handle)
{
    (void)exec;
    standin_work(handle);
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaUserObjectCreate(struct standin_user_object **object, void *self,
                     void (*destroy)(void *), unsigned references, unsigned flags)
{
    (void)flags;
    *object = calloc(1, sizeof **object);
    if (!*object)
        return standin_note(CUDA_NO_MEMORY);
    **object = (struct standin_user_object){destroy, self, (int)references};
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaUserObjectRelease(struct standin_user_object *object, unsigned count)
{
    object->references -= (int)count;
    if (object->references <= 0) {
        object->destroy(object->self);
        free(object);
    }
    return CUDA_OK;
}

#define OBJECT_MOVES 1u /* the caller's references become the graph's */

EXPORT enum cuda_error
cudaGraphRetainUserObject(struct standin_graph *graph, struct standin_user_object *object,
                          unsigned count, unsigned flags)
{
    void *more =
        realloc(graph->objects, (graph->object_count + 1) * sizeof *graph->objects);
    if (!more)
        return standin_note(CUDA_NO_MEMORY);
    graph->objects = more;
    graph->objects[graph->object_count++] = object;
    if (!(flags & OBJECT_MOVES))
        object->references += (int)count;
    return CUDA_OK;
}

/* --- host functions in a stream ------------------------------------------------------------- */

EXPORT enum cuda_error
cudaLaunchHostFunc(void *handle, void (*function)(void *), void *self)
{
    standin_work(handle);
    if (!standin_stream(handle)->capture)
        function(self);
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaStreamAddCallback(void *handle, void (*function)(void *, int, void *), void *self,
                      unsigned flags)
{
    (void)flags;
    standin_work(handle);
    function(handle, CUDA_OK, self);
    return CUDA_OK;
}
