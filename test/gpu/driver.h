/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_GPU_DRIVER_H
#define TEST_GPU_DRIVER_H

/*
 * What the checks need of the driver beside the device under test: to write and read the
 * GPU's memory, to make streams, and to time single calls. Names and types are those of
 * NVIDIA's CUDA Driver API reference.
 */

#include <stddef.h>

struct gpu_access {
    int location_type, location_id, flags; /* CUmemAccessDesc */
};

struct dryi_cuda_memory; /* CUmemAllocationProp */

struct gpu {
    void *library, *context;
    int (*device_get)(int *device, int ordinal);
    int (*retain)(void **context, int device);
    int (*release)(int device);
    int (*push)(void *context);
    int (*pop)(void **context);
    int (*set)(unsigned long long address, unsigned char value, size_t bytes);
    int (*set_async)(unsigned long long address, unsigned char value, size_t bytes,
                     void *stream); /* NULL: there is none, `set` serves */
    int (*read)(void *to, unsigned long long from, size_t bytes);
    int (*copy_to)(unsigned long long to, const void *from, size_t bytes, void *stream);
    int (*copy_from)(void *to, unsigned long long from, size_t bytes, void *stream);
    int (*host_alloc)(void **at, size_t bytes, unsigned flags); /* may be NULL */
    int (*host_free)(void *at);
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_destroy)(void *stream);
    int (*stream_synchronize)(void *stream);
    /* NULL where the driver has none. */
    int (*copy)(unsigned long long to, unsigned long long from, size_t bytes);
    int (*set_2d)(unsigned long long address, size_t pitch, unsigned char value,
                  size_t width, size_t height);
    /* NULL where the driver has no virtual memory. */
    int (*address_reserve)(unsigned long long *address, size_t bytes, size_t alignment,
                           unsigned long long wanted, unsigned long long flags);
    int (*address_free)(unsigned long long address, size_t bytes);
    int (*mem_create)(unsigned long long *handle, size_t bytes,
                      const struct dryi_cuda_memory *memory, unsigned long long flags);
    int (*mem_release)(unsigned long long handle);
    int (*mem_map)(unsigned long long address, size_t bytes, size_t offset,
                   unsigned long long handle, unsigned long long flags);
    int (*mem_set_access)(unsigned long long address, size_t bytes,
                          const struct gpu_access *access, size_t count);
    int (*mem_unmap)(unsigned long long address, size_t bytes);
    int device;
};

/* 0, or 1 with a line on stderr. The device's primary context is current from here on. */
int gpu_open(struct gpu *gpu, const char *library, int ordinal);
void gpu_close(struct gpu *gpu);

#endif
