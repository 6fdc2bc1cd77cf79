/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA's runtime, driver and NVML over a dry_device, as far as PyTorch's allocator calls them.
 *
 * Built as libcudart, with libcuda and libnvidia-ml as further names of it. It is for a process
 * that loads libc10_cuda and no other library of PyTorch, and is compiled with the headers that
 * the wheel was built with (scripts/get_torch.py). Functions that are missing here are never
 * called: PyTorch's libraries bind them lazily, and a call would end the process.
 */
#include "native.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_BYTES ((size_t)2 << 20)
#define DRIVER_VERSION 13000
#define NVML_SUCCESS 0
#define NVML_NOT_SUPPORTED 3
#define NVML_INSUFFICIENT_SIZE 7

/* A range of cudaMalloc, kept because cudaFree gets no size. */
struct range {
    uint64_t address, size;
};

/* From cuMemCreate. The device's memory is only taken when it is mapped. */
struct memory {
    size_t size;
    int is_mapped;
};

struct event {
    uint64_t event;
    int is_recorded;
};

static struct {
    struct dry_device device;
    struct range *ranges;
    size_t count, capacity;
    size_t unmapped_bytes; /* created, but not mapped */
    cudaError_t last;
} runtime;

void
native_set_device(struct dry_device device)
{
    runtime.device = device;
}

static cudaError_t
note(cudaError_t error)
{
    if (error != cudaSuccess)
        runtime.last = error;
    return error;
}

/* --- the runtime, with one device ----------------------------------------------------------- */

cudaError_t
cudaGetDeviceCount(int *count)
{
    *count = 1;
    return cudaSuccess;
}

cudaError_t
cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}

cudaError_t
cudaSetDevice(int device)
{
    native_need(device == 0, "another device is set");
    return cudaSuccess;
}

cudaError_t
cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    struct dry_device_traits traits;
    (void)device;
    runtime.device.ops->get_traits(runtime.device.self, &traits);
    memset(properties, 0, sizeof *properties);
    memcpy(properties->name, "stand-in", sizeof "stand-in");
    properties->totalGlobalMem = traits.total_bytes;
    properties->major = 9;
    properties->multiProcessorCount = 1;
    return cudaSuccess;
}

cudaError_t
cudaDriverGetVersion(int *version)
{
    *version = DRIVER_VERSION;
    return cudaSuccess;
}

cudaError_t
cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = *greatest = 0;
    return cudaSuccess;
}

cudaError_t
cudaDeviceSynchronize(void)
{
    return cudaSuccess; /* called before memory is freed, when its events have passed */
}

cudaError_t
cudaGetLastError(void)
{
    cudaError_t last = runtime.last;
    runtime.last = cudaSuccess;
    return last;
}

const char *
cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "out of memory" : "an error";
}

const char *
cudaGetErrorName(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "an error";
}

/* --- memory --------------------------------------------------------------------------------- */

cudaError_t
cudaMalloc(void **address, size_t size)
{
    uint64_t at;
    *address = NULL;
    if (runtime.device.ops->alloc(runtime.device.self, size, &at) != DRY_OK)
        return note(cudaErrorMemoryAllocation);
    if (runtime.count == runtime.capacity) {
        runtime.capacity = runtime.capacity ? 2 * runtime.capacity : 64;
        runtime.ranges =
            realloc(runtime.ranges, runtime.capacity * sizeof *runtime.ranges);
        native_need(runtime.ranges != NULL, "no memory");
    }
    runtime.ranges[runtime.count++] = (struct range){at, size};
    *address = (void *)(uintptr_t)at;
    return cudaSuccess;
}

cudaError_t
cudaFree(void *address)
{
    size_t i = 0;
    while (i < runtime.count && runtime.ranges[i].address != (uintptr_t)address)
        i++;
    native_need(i < runtime.count, "cudaFree of what is not there");
    struct range range = runtime.ranges[i];
    runtime.ranges[i] = runtime.ranges[--runtime.count];
    runtime.device.ops->free(runtime.device.self, range.address, range.size);
    return cudaSuccess;
}

cudaError_t
cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    uint64_t free_now, total;
    runtime.device.ops->get_info(runtime.device.self, &free_now, &total);
    *free_bytes = free_now - runtime.unmapped_bytes;
    *total_bytes = total;
    return cudaSuccess;
}

/* --- streams and events --------------------------------------------------------------------- */

cudaError_t
cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    (void)stream;
    *status = cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

cudaError_t
cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    (void)mode;
    return cudaSuccess;
}

cudaError_t
cudaStreamSynchronize(cudaStream_t stream)
{
    runtime.device.ops->stream_wait(runtime.device.self, (uintptr_t)stream);
    return cudaSuccess;
}

cudaError_t
cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    (void)flags;
    struct event *made = calloc(1, sizeof *made);
    native_need(made != NULL, "no memory");
    *event = (cudaEvent_t)made;
    return cudaSuccess;
}

static void
forget_event(struct event *event)
{
    if (event->is_recorded)
        runtime.device.ops->event_destroy(runtime.device.self, event->event);
    event->is_recorded = 0;
}

cudaError_t
cudaEventDestroy(cudaEvent_t event)
{
    forget_event((struct event *)event);
    free(event);
    return cudaSuccess;
}

cudaError_t
cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    struct event *e = (struct event *)event;
    forget_event(e);
    if (runtime.device.ops->event_record(runtime.device.self, (uintptr_t)stream,
                                         &e->event) != DRY_OK)
        return note(cudaErrorUnknown);
    e->is_recorded = 1;
    return cudaSuccess;
}

cudaError_t
cudaEventQuery(cudaEvent_t event)
{
    const struct event *e = (const struct event *)event;
    if (!e->is_recorded || runtime.device.ops->event_query(runtime.device.self, e->event))
        return cudaSuccess;
    return note(cudaErrorNotReady);
}

cudaError_t
cudaEventSynchronize(cudaEvent_t event)
{
    const struct event *e = (const struct event *)event;
    if (e->is_recorded)
        runtime.device.ops->event_wait(runtime.device.self, e->event);
    return cudaSuccess;
}

/* --- the driver, for expandable segments ---------------------------------------------------- */

CUresult
cuMemAddressReserve(CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr hint,
                    unsigned long long flags)
{
    uint64_t at;
    (void)alignment, (void)hint, (void)flags;
    if (runtime.device.ops->reserve(runtime.device.self, size, &at) != DRY_OK)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *address = at;
    return CUDA_SUCCESS;
}

CUresult
cuMemAddressFree(CUdeviceptr address, size_t size)
{
    runtime.device.ops->unreserve(runtime.device.self, address, size);
    return CUDA_SUCCESS;
}

CUresult
cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
            const CUmemAllocationProp *properties, unsigned long long flags)
{
    size_t free_bytes, total_bytes;
    (void)properties, (void)flags;
    cudaMemGetInfo(&free_bytes, &total_bytes);
    if (free_bytes < size)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct memory *memory = calloc(1, sizeof *memory);
    native_need(memory != NULL, "no memory");
    memory->size = size;
    runtime.unmapped_bytes += size;
    *handle = (uintptr_t)memory;
    return CUDA_SUCCESS;
}

CUresult
cuMemRelease(CUmemGenericAllocationHandle handle)
{
    struct memory *memory = (struct memory *)(uintptr_t)handle;
    if (!memory->is_mapped)
        runtime.unmapped_bytes -= memory->size;
    free(memory);
    return CUDA_SUCCESS;
}

CUresult
cuMemMap(CUdeviceptr address, size_t size, size_t offset,
         CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    struct memory *memory = (struct memory *)(uintptr_t)handle;
    (void)offset, (void)flags;
    native_need(memory->size == size, "a part of memory is mapped");
    runtime.unmapped_bytes -= size;
    memory->is_mapped = 1;
    return runtime.device.ops->map(runtime.device.self, address, size, size) == DRY_OK
               ? CUDA_SUCCESS
               : CUDA_ERROR_UNKNOWN;
}

CUresult
cuMemUnmap(CUdeviceptr address, size_t size)
{
    runtime.device.ops->unmap(runtime.device.self, address, size, size);
    return CUDA_SUCCESS;
}

CUresult
cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *access,
               size_t count)
{
    (void)address, (void)size, (void)access, (void)count;
    return CUDA_SUCCESS;
}

CUresult
cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *properties,
                              CUmemAllocationGranularity_flags option)
{
    (void)properties, (void)option;
    *granularity = PAGE_BYTES;
    return CUDA_SUCCESS;
}

CUresult
cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)attribute, (void)device;
    *value = 0; /* neither fabric nor GPUDirect */
    return CUDA_SUCCESS;
}

CUresult
cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult
cuGetErrorString(CUresult error, const char **text)
{
    *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "an error";
    return CUDA_SUCCESS;
}

/* Has the names of all functions that are missing here (wheel.py). */
int
native_refuse(void)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

static cudaError_t
find_entry(const char *name, void **call, enum cudaDriverEntryPointQueryResult *result)
{
    *call = dlsym(RTLD_DEFAULT, name);
    if (result)
        *result =
            *call ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return *call ? cudaSuccess : note(cudaErrorSymbolNotFound);
}

#if CUDART_VERSION < 13000
cudaError_t
cudaGetDriverEntryPoint(const char *name, void **call, unsigned long long flags,
                        enum cudaDriverEntryPointQueryResult *result)
{
    (void)flags;
    return find_entry(name, call, result);
}
#endif

cudaError_t
cudaGetDriverEntryPointByVersion(const char *name, void **call, unsigned version,
                                 unsigned long long flags,
                                 enum cudaDriverEntryPointQueryResult *result)
{
    (void)version, (void)flags;
    return find_entry(name, call, result);
}

/* --- NVML: memory of processes, no fabric ---------------------------------------------------- */

struct nvml_process { /* nvmlProcessInfo_v1_t */
    unsigned pid;
    unsigned long long bytes;
};

struct nvml_fabric { /* nvmlGpuFabricInfo_v2_t */
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state; /* 0: not supported */
    unsigned health;
};

int
nvmlInit_v2(void)
{
    return NVML_SUCCESS;
}

int
nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = DRIVER_VERSION;
    return NVML_SUCCESS;
}

int
nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device)
{
    (void)bus;
    *device = NULL;
    return NVML_SUCCESS;
}

/* Report this process, with all bytes of the device that are not free. */
int
nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count,
                                     struct nvml_process *processes)
{
    size_t free_bytes, total_bytes;
    (void)device;
    if (*count == 0 || !processes) {
        *count = 1;
        return NVML_INSUFFICIENT_SIZE;
    }
    *count = 1;
    cudaMemGetInfo(&free_bytes, &total_bytes);
    processes[0] = (struct nvml_process){(unsigned)getpid(), total_bytes - free_bytes};
    return NVML_SUCCESS;
}

int
nvmlDeviceGetGpuFabricInfoV(void *device, struct nvml_fabric *fabric)
{
    (void)device;
    fabric->status = NVML_SUCCESS;
    fabric->state = 0;
    return NVML_SUCCESS;
}

int
nvmlDeviceGetNvLinkRemoteDeviceType(void)
{
    return NVML_NOT_SUPPORTED;
}

int
nvmlDeviceGetNvLinkRemotePciInfo_v2(void)
{
    return NVML_NOT_SUPPORTED;
}
