/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's functions that the runtime has, too: memory, copies, streams, events, captures.
 *
 * PyTorch calls the runtime; kernel compilers and other libraries call the driver. Both share one
 * device, so each function here calls the runtime's. The driver keeps no last error.
 */
#include "memory.h"
#include "stream.h"

struct standin_graph;

/* Hide a failure of the driver from the runtime's last error. */
static enum cuda_error
forget(enum cuda_error result)
{
    if (result != CUDA_OK)
        standin_last(true);
    return result;
}

/* Define the driver's function `name`, which is `same` of the runtime. */
#define SAME(name, same, parameters, arguments)                                          \
    enum cuda_error same parameters;                                                     \
    EXPORT enum cuda_error name parameters                                               \
    {                                                                                    \
        return forget(same arguments);                                                   \
    }

/* --- memory --------------------------------------------------------------------------------- */

SAME(cuMemAlloc_v2, cudaMalloc, (void **at, size_t size), (at, size))
SAME(cuMemFree_v2, cudaFree, (void *at), (at))
SAME(cuMemAllocAsync, cudaMallocAsync, (void **at, size_t size, void *stream),
     (at, size, stream))
SAME(cuMemFreeAsync, cudaFreeAsync, (void *at, void *stream), (at, stream))
SAME(cuMemAllocManaged, cudaMallocManaged, (void **at, size_t size, unsigned flags),
     (at, size, flags))
SAME(cuMemGetInfo_v2, cudaMemGetInfo, (size_t * free, size_t *total), (free, total))
SAME(cuMemHostAlloc, cudaHostAlloc, (void **at, size_t size, unsigned flags),
     (at, size, flags))
SAME(cuMemAllocHost_v2, cudaMallocHost, (void **at, size_t size), (at, size))
SAME(cuMemFreeHost, cudaFreeHost, (void *at), (at))
SAME(cuMemHostRegister_v2, cudaHostRegister, (void *at, size_t size, unsigned flags),
     (at, size, flags))
SAME(cuMemHostUnregister, cudaHostUnregister, (void *at), (at))
SAME(cuMemHostGetDevicePointer_v2, cudaHostGetDevicePointer,
     (void **to, void *at, unsigned flags), (to, at, flags))
SAME(cuDeviceCanAccessPeer, cudaDeviceCanAccessPeer, (int *can, int device, int peer),
     (can, device, peer))
SAME(cuDeviceGetPCIBusId, cudaDeviceGetPCIBusId, (char *text, int length, int device),
     (text, length, device))
SAME(cuDeviceGetDefaultMemPool, cudaDeviceGetDefaultMemPool, (void **pool, int device),
     (pool, device))
SAME(cuDeviceGetMemPool, cudaDeviceGetMemPool, (void **pool, int device), (pool, device))

/* --- copies --------------------------------------------------------------------------------- */

enum cuda_error cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind,
                                void *stream);

/* Copies by address. All addresses share one space, so the kind of a copy does not matter. */
#define COPY(name, waits)                                                                \
    EXPORT enum cuda_error name(uint64_t to, uint64_t from, size_t bytes)                \
    {                                                                                    \
        void *target = (void *)(uintptr_t)to;                                            \
        const void *source = (const void *)(uintptr_t)from;                              \
        enum cuda_error result = cudaMemcpyAsync(target, source, bytes, 0, NULL);        \
        return forget(result == CUDA_OK && (waits) ? standin_wait(NULL, false)           \
                                                   : result);                            \
    }
#define COPY_ASYNC(name)                                                                 \
    EXPORT enum cuda_error name(uint64_t to, uint64_t from, size_t bytes, void *stream)  \
    {                                                                                    \
        void *target = (void *)(uintptr_t)to;                                            \
        const void *source = (const void *)(uintptr_t)from;                              \
        return forget(cudaMemcpyAsync(target, source, bytes, 0, stream));                \
    }
COPY(cuMemcpy, true)
COPY(cuMemcpyHtoD_v2, true)
COPY(cuMemcpyDtoH_v2, true)
COPY(cuMemcpyDtoD_v2, false)
COPY_ASYNC(cuMemcpyAsync)
COPY_ASYNC(cuMemcpyHtoDAsync_v2)
COPY_ASYNC(cuMemcpyDtoHAsync_v2)
COPY_ASYNC(cuMemcpyDtoDAsync_v2)

SAME(cuMemsetD8_v2, cudaMemset, (void *at, int value, size_t count), (at, value, count))
SAME(cuMemsetD8Async, cudaMemsetAsync, (void *at, int value, size_t count, void *stream),
     (at, value, count, stream))

/* --- streams and events --------------------------------------------------------------------- */

SAME(cuStreamCreate, cudaStreamCreateWithFlags, (void **stream, unsigned flags),
     (stream, flags))
SAME(cuStreamCreateWithPriority, cudaStreamCreateWithPriority,
     (void **stream, unsigned flags, int priority), (stream, flags, priority))
SAME(cuStreamDestroy_v2, cudaStreamDestroy, (void *stream), (stream))
SAME(cuStreamSynchronize, cudaStreamSynchronize, (void *stream), (stream))
SAME(cuStreamQuery, cudaStreamQuery, (void *stream), (stream))
SAME(cuStreamGetPriority, cudaStreamGetPriority, (void *stream, int *priority),
     (stream, priority))
SAME(cuStreamGetFlags, cudaStreamGetFlags, (void *stream, unsigned *flags),
     (stream, flags))
SAME(cuStreamGetId, cudaStreamGetId, (void *stream, unsigned long long *id), (stream, id))
SAME(cuStreamWaitEvent, cudaStreamWaitEvent,
     (void *stream, const struct standin_event *event, unsigned flags),
     (stream, event, flags))
SAME(cuCtxGetStreamPriorityRange, cudaDeviceGetStreamPriorityRange,
     (int *least, int *greatest), (least, greatest))
SAME(cuEventCreate, cudaEventCreateWithFlags,
     (struct standin_event * *event, unsigned flags), (event, flags))
SAME(cuEventDestroy_v2, cudaEventDestroy, (struct standin_event * event), (event))
SAME(cuEventRecord, cudaEventRecord, (struct standin_event * event, void *stream),
     (event, stream))
SAME(cuEventRecordWithFlags, cudaEventRecordWithFlags,
     (struct standin_event * event, void *stream, unsigned flags), (event, stream, flags))
SAME(cuEventQuery, cudaEventQuery, (const struct standin_event *event), (event))
SAME(cuEventSynchronize, cudaEventSynchronize, (const struct standin_event *event),
     (event))
SAME(cuEventElapsedTime, cudaEventElapsedTime,
     (float *ms, const struct standin_event *begin, const struct standin_event *end),
     (ms, begin, end))
SAME(cuEventElapsedTime_v2, cudaEventElapsedTime_v2,
     (float *ms, const struct standin_event *begin, const struct standin_event *end),
     (ms, begin, end))
SAME(cuLaunchHostFunc, cudaLaunchHostFunc,
     (void *stream, void (*function)(void *), void *self), (stream, function, self))

/* --- captures and graphs -------------------------------------------------------------------- */

SAME(cuStreamBeginCapture_v2, cudaStreamBeginCapture, (void *stream, int mode),
     (stream, mode))
SAME(cuStreamEndCapture, cudaStreamEndCapture,
     (void *stream, struct standin_graph **graph), (stream, graph))
SAME(cuStreamIsCapturing, cudaStreamIsCapturing, (void *stream, int *status),
     (stream, status))
SAME(cuStreamGetCaptureInfo_v2, cudaStreamGetCaptureInfo_v2,
     (void *stream, int *status, unsigned long long *id, struct standin_graph **graph,
      const void ***nodes, size_t *count),
     (stream, status, id, graph, nodes, count))
SAME(cuStreamGetCaptureInfo_v3, cudaStreamGetCaptureInfo_v3,
     (void *stream, int *status, unsigned long long *id, struct standin_graph **graph,
      const void ***nodes, const void **edges, size_t *count),
     (stream, status, id, graph, nodes, edges, count))
SAME(cuThreadExchangeStreamCaptureMode, cudaThreadExchangeStreamCaptureMode, (int *mode),
     (mode))
SAME(cuGraphCreate, cudaGraphCreate, (struct standin_graph * *graph, unsigned flags),
     (graph, flags))
SAME(cuGraphDestroy, cudaGraphDestroy, (struct standin_graph * graph), (graph))
SAME(cuUserObjectCreate, cudaUserObjectCreate,
     (struct standin_user_object * *object, void *self, void (*destroy)(void *),
      unsigned references, unsigned flags),
     (object, self, destroy, references, flags))
SAME(cuUserObjectRelease, cudaUserObjectRelease,
     (struct standin_user_object * object, unsigned count), (object, count))
SAME(cuGraphRetainUserObject, cudaGraphRetainUserObject,
     (struct standin_graph * graph, struct standin_user_object *object, unsigned count,
      unsigned flags),
     (graph, object, count, flags))
SAME(cuGraphExecDestroy, cudaGraphExecDestroy, (struct standin_graph * exec), (exec))
SAME(cuGraphLaunch, cudaGraphLaunch, (struct standin_graph * exec, void *stream),
     (exec, stream))
SAME(cuGraphInstantiateWithFlags, cudaGraphInstantiateWithFlags,
     (struct standin_graph * *exec, struct standin_graph *graph,
      unsigned long long flags),
     (exec, graph, flags))
