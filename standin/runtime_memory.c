/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's memory: ranges, pools of the stream-ordered allocator, the host's,
 * copies.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "memory.h"
#include "setup.h"
#include "stream.h"

/* --- ranges --------------------------------------------------------------------------------- */

static enum cuda_error
alloc(void **address, size_t size, enum range_kind kind)
{
    uint64_t at = 0;
    standin_lock();
    enum cuda_error result = standin_alloc(standin_device(), size, kind, &at);
    standin_unlock();
    *address = result == CUDA_OK ? (void *)(uintptr_t)at : NULL;
    return standin_note(result);
}

EXPORT enum cuda_error
cudaMalloc(void **address, size_t size)
{
    if (size == 0) {
        *address = NULL;
        return CUDA_OK;
    }
    return alloc(address, size, RANGE_DEVICE);
}

EXPORT enum cuda_error
cudaMallocManaged(void **address, size_t size, unsigned flags)
{
    (void)flags;
    return alloc(address, size, RANGE_MANAGED);
}

EXPORT enum cuda_error
cudaFree(void *address)
{
    if (!address)
        return CUDA_OK;
    standin_lock();
    enum cuda_error result = standin_free((uintptr_t)address);
    standin_unlock();
    return standin_note(result);
}

EXPORT enum cuda_error
cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    standin_lock();
    *total_bytes = standin_setup()->total_bytes;
    uint64_t used = standin_used(standin_device());
    *free_bytes = used < *total_bytes ? *total_bytes - used : 0;
    standin_unlock();
    return CUDA_OK;
}

/* --- the stream-ordered allocator ----------------------------------------------------------- */

/*
 * A pool frees memory at once. A real one keeps what its threshold allows, to be faster;
 * that memory would count as free here. The high-water marks are kept.
 */
static struct mem_pool {
    uint64_t used, high, threshold;
} pools[STANDIN_DEVICES_MAX];

enum pool_attribute {
    POOL_RELEASE_THRESHOLD = 4,
    POOL_RESERVED,
    POOL_RESERVED_HIGH,
    POOL_USED,
    POOL_USED_HIGH,
};

EXPORT enum cuda_error
cudaDeviceGetDefaultMemPool(void **pool, int device)
{
    if (device < 0 || device >= standin_setup()->device_count)
        return standin_note(CUDA_INVALID_DEVICE);
    *pool = &pools[device];
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaDeviceGetMemPool(void **pool, int device)
{
    return cudaDeviceGetDefaultMemPool(pool, device);
}

EXPORT enum cuda_error
cudaMallocAsync(void **address, size_t size, void *stream)
{
    enum cuda_error result = alloc(address, size ? size : 1, RANGE_POOLED);
    if (result != CUDA_OK)
        return result;
    standin_work(stream);
    standin_lock();
    const struct range *range = standin_find((uintptr_t)*address);
    struct mem_pool *pool = &pools[range->device];
    pool->used += range->size;
    pool->high = pool->used > pool->high ? pool->used : pool->high;
    standin_unlock();
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaMallocFromPoolAsync(void **address, size_t size, void *pool, void *stream)
{
    (void)pool;
    return cudaMallocAsync(address, size, stream);
}

EXPORT enum cuda_error
cudaFreeAsync(void *address, void *stream)
{
    standin_work(stream);
    standin_lock();
    const struct range *range = standin_find((uintptr_t)address);
    if (range && range->device >= 0)
        pools[range->device].used -= range->size;
    standin_unlock();
    return cudaFree(address);
}

EXPORT enum cuda_error
cudaMemPoolGetAttribute(struct mem_pool *pool, int attribute, uint64_t *value)
{
    switch (attribute) {
    case POOL_RELEASE_THRESHOLD:
        *value = pool->threshold;
        return CUDA_OK;
    case POOL_RESERVED:
    case POOL_USED:
        *value = pool->used;
        return CUDA_OK;
    case POOL_RESERVED_HIGH:
    case POOL_USED_HIGH:
        *value = pool->high;
        return CUDA_OK;
    default:
        *(int *)value = 1; /* reuse is allowed */
        return CUDA_OK;
    }
}

EXPORT enum cuda_error
cudaMemPoolSetAttribute(struct mem_pool *pool, int attribute, const uint64_t *value)
{
    if (attribute == POOL_RELEASE_THRESHOLD)
        pool->threshold = *value;
    else if (attribute == POOL_RESERVED_HIGH || attribute == POOL_USED_HIGH)
        pool->high = pool->used;
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaMemPoolTrimTo(struct mem_pool *pool, size_t keep)
{
    (void)pool, (void)keep;
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaMemPoolSetAccess(struct mem_pool *pool, const void *access, size_t count)
{
    (void)pool, (void)access, (void)count;
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaDeviceGetGraphMemAttribute(int device, int attribute, uint64_t *value)
{
    (void)device, (void)attribute;
    *value = 0; /* graphs of PyTorch take no memory of their own */
    return CUDA_OK;
}

/* --- host memory ---------------------------------------------------------------------------- */

/*
 * Record host memory. With setup's `pins` it is also locked, which takes as long as it
 * really does.
 */
static enum cuda_error
add_host(void *address, size_t size, enum range_kind kind)
{
    standin_lock();
    enum cuda_error result = standin_add_host((uintptr_t)address, size, kind);
    standin_unlock();
    if (result != CUDA_OK || !standin_setup()->pins || mlock(address, size) == 0)
        return result;
    standin_lock();
    standin_free((uintptr_t)address);
    standin_unlock();
    return CUDA_NO_MEMORY;
}

static enum cuda_error
alloc_host(void **address, size_t size)
{
    void *fresh;
    size_t rounded = size ? (size + 4095) & ~(size_t)4095 : 4096;
    if (posix_memalign(&fresh, 4096, rounded) != 0)
        return CUDA_NO_MEMORY;
    enum cuda_error result = add_host(fresh, rounded, RANGE_HOST);
    if (result == CUDA_OK)
        *address = fresh;
    else
        free(fresh);
    return result;
}

EXPORT enum cuda_error
cudaHostAlloc(void **address, size_t size, unsigned flags)
{
    (void)flags;
    return standin_note(alloc_host(address, size));
}

EXPORT enum cuda_error
cudaMallocHost(void **address, size_t size)
{
    return standin_note(alloc_host(address, size));
}

static enum cuda_error
drop_host(void *address, enum range_kind kind)
{
    standin_lock();
    const struct range *range = standin_find((uintptr_t)address);
    bool fits = range && range->address == (uintptr_t)address && range->kind == kind;
    size_t size = fits ? range->size : 0;
    if (fits)
        standin_free((uintptr_t)address);
    standin_unlock();
    if (fits && standin_setup()->pins)
        munlock(address, size);
    return fits ? CUDA_OK : kind == RANGE_HOST ? CUDA_INVALID_VALUE : CUDA_NOT_REGISTERED;
}

EXPORT enum cuda_error
cudaFreeHost(void *address)
{
    if (!address)
        return CUDA_OK;
    enum cuda_error result = drop_host(address, RANGE_HOST);
    if (result == CUDA_OK)
        free(address);
    return standin_note(result);
}

EXPORT enum cuda_error
cudaHostRegister(void *address, size_t size, unsigned flags)
{
    (void)flags;
    return standin_note(add_host(address, size, RANGE_REGISTERED));
}

EXPORT enum cuda_error
cudaHostUnregister(void *address)
{
    return standin_note(drop_host(address, RANGE_REGISTERED));
}

EXPORT enum cuda_error
cudaHostGetDevicePointer(void **device, void *host, unsigned flags)
{
    (void)flags;
    *device = host;
    return CUDA_OK;
}

struct pointer_attributes {
    int type, device;
    void *device_pointer, *host_pointer;
};
enum memory_type { MEMORY_UNKNOWN, MEMORY_HOST, MEMORY_DEVICE, MEMORY_MANAGED };

EXPORT enum cuda_error
cudaPointerGetAttributes(struct pointer_attributes *attributes, const void *address)
{
    static const int types[] = {
        [RANGE_DEVICE] = MEMORY_DEVICE, [RANGE_MANAGED] = MEMORY_MANAGED,
        [RANGE_POOLED] = MEMORY_DEVICE, [RANGE_RESERVED] = MEMORY_DEVICE,
        [RANGE_HOST] = MEMORY_HOST,     [RANGE_REGISTERED] = MEMORY_HOST,
    };
    standin_lock();
    const struct range *range = standin_find((uintptr_t)address);
    int type = range ? types[range->kind] : MEMORY_UNKNOWN;
    int device = range ? range->device : -1;
    standin_unlock();
    void *same = (void *)(uintptr_t)address;
    *attributes = (struct pointer_attributes){
        .type = type,
        .device = type == MEMORY_HOST ? standin_device() : device,
        .device_pointer = type == MEMORY_UNKNOWN ? NULL : same,
        .host_pointer = type == MEMORY_DEVICE ? NULL : same,
    };
    return CUDA_OK;
}

/* --- copies --------------------------------------------------------------------------------- */

/* The number that this thread's next copy to the host delivers; -1: the bytes in memory. */
static __thread int64_t answer = -1;

/* Called by the hook when it knows what a kernel would have counted. */
EXPORT void
drystone_standin_answer(int64_t value)
{
    answer = value;
}

/* A copy in a capture is only a node of its graph. */
static enum cuda_error
copy(void *to, const void *from, size_t bytes, void *stream)
{
    standin_work(stream);
    if (standin_stream(stream)->capture)
        return CUDA_OK;
    standin_copy((uintptr_t)to, (uintptr_t)from, bytes);
    bool is_number = bytes == sizeof(int32_t) || bytes == sizeof(int64_t);
    if (answer >= 0 && is_number && standin_find_device((uintptr_t)to) < 0) {
        memcpy(to, &answer, bytes); /* little-endian: the low half first */
        answer = -1;
    }
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream)
{
    (void)kind;
    return copy(to, from, bytes, stream);
}

EXPORT enum cuda_error
cudaMemcpy(void *to, const void *from, size_t bytes, int kind)
{
    (void)kind;
    copy(to, from, bytes, NULL);
    return standin_wait(NULL, true);
}

EXPORT enum cuda_error
cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                    size_t bytes, void *stream)
{
    (void)to_device, (void)from_device;
    return copy(to, from, bytes, stream);
}

EXPORT enum cuda_error
cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
    (void)to_device, (void)from_device;
    return copy(to, from, bytes, NULL);
}

EXPORT enum cuda_error
cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                  size_t width, size_t height, int kind, void *stream)
{
    (void)kind;
    for (size_t row = 0; row < height; row++)
        copy((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width,
             stream);
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaMemsetAsync(void *at, int value, size_t bytes, void *stream)
{
    standin_work(stream);
    if (!standin_stream(stream)->capture)
        standin_set((uintptr_t)at, value, bytes);
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaMemset(void *at, int value, size_t bytes)
{
    return cudaMemsetAsync(at, value, bytes, NULL);
}
