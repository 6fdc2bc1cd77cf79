/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_CUDA_DRIVER_H
#define DRYI_CUDA_DRIVER_H

/*
 * The functions of NVIDIA's driver that a device needs, found at run time.
 *
 * Types and numbers are those of NVIDIA's CUDA Driver API reference, declared here under
 * own names, so that building does not need the toolkit. Names with _v2 are the binary
 * interface since CUDA 3.2 and 4.0; programs that call the plain names are compiled to
 * them.
 */

#include <stddef.h>
#include <stdint.h>

#include <drystone/device.h>
#include <drystone/status.h>

/* CUresult: the values that the code distinguishes. */
enum {
    DRYI_CUDA_SUCCESS = 0,
    DRYI_CUDA_INVALID_VALUE = 1,
    DRYI_CUDA_OUT_OF_MEMORY = 2,
    DRYI_CUDA_NOT_INITIALIZED = 3, /* also in a child of the process that called cuInit */
    DRYI_CUDA_DEINITIALIZED = 4, /* the process is ending and the driver has shut down */
    DRYI_CUDA_STUB_LIBRARY = 34,
    DRYI_CUDA_NO_DEVICE = 100,
    DRYI_CUDA_INVALID_DEVICE = 101,
    DRYI_CUDA_INVALID_CONTEXT = 201,
    DRYI_CUDA_INVALID_HANDLE = 400,
    DRYI_CUDA_NOT_READY = 600,
    DRYI_CUDA_ILLEGAL_ADDRESS = 700,
    DRYI_CUDA_CONTEXT_IS_DESTROYED = 709,
    DRYI_CUDA_HOST_ALREADY_REGISTERED = 712,
    DRYI_CUDA_HOST_NOT_REGISTERED = 713,
    DRYI_CUDA_LAUNCH_FAILED = 719,
    DRYI_CUDA_NOT_SUPPORTED = 801,
    DRYI_CUDA_CAPTURE_UNSUPPORTED = 900,
    DRYI_CUDA_CAPTURED_EVENT = 907, /* the event was captured into a graph */
};

/* CUdevice_attribute: support of optional features. */
enum {
    DRYI_CUDA_HAS_VIRTUAL_MEMORY = 102,
    DRYI_CUDA_HAS_POSIX_HANDLES = 103,
    DRYI_CUDA_HAS_GPU_DIRECT_PAGES = 110,
};

enum {
    DRYI_CUDA_MEM_PINNED = 1,         /* CUmemAllocationType */
    DRYI_CUDA_MEM_POSIX_HANDLE = 1,   /* CUmemAllocationHandleType */
    DRYI_CUDA_MEM_ON_DEVICE = 1,      /* CUmemLocationType */
    DRYI_CUDA_MEM_READ_WRITE = 3,     /* CUmemAccess_flags */
    DRYI_CUDA_GRANULARITY_LEAST = 0,  /* CUmemAllocationGranularity_flags */
    DRYI_CUDA_EVENT_WITHOUT_TIME = 2, /* CUevent_flags */
    DRYI_CUDA_CAPTURE_RELAXED = 2,    /* CUstreamCaptureMode */
    DRYI_CUDA_POOL_RESERVED = 5,      /* CUmemPool_attribute */
    DRYI_CUDA_GRAPH_RESERVED = 2,     /* CUgraphMem_attribute */
    DRYI_CUDA_IPC_LAZY_PEER = 1,      /* CUipcMem_flags */
    DRYI_CUDA_HOST_PORTABLE = 1,      /* CU_MEMHOSTREGISTER_PORTABLE: for all contexts */
    DRYI_CUDA_HOST_MAPPED = 2, /* CU_MEMHOSTREGISTER_DEVICEMAP: also mapped for kernels */
};

/* CUmemLocation, with the driver's layout. */
struct dryi_cuda_location {
    int type, id;
};

/* CUmemAllocationProp, with the driver's layout. */
struct dryi_cuda_memory {
    int type;
    int handle_types;
    struct dryi_cuda_location location;
    void *win32_meta_data;
    unsigned char compression_type;
    unsigned char gpu_direct_capable;
    unsigned short usage;
    unsigned char reserved[4];
};

/* CUmemAccessDesc, with the driver's layout. */
struct dryi_cuda_access {
    struct dryi_cuda_location location;
    int flags;
};

_Static_assert(sizeof(struct dryi_cuda_memory) == 24 + sizeof(void *), "the driver's");
_Static_assert(sizeof(struct dryi_cuda_access) == 12, "the driver's");

/* CUdevice is an int; CUcontext, CUevent, CUstream and CUmemoryPool are pointers. */
typedef unsigned long long dryi_cuda_address; /* CUdeviceptr */
typedef unsigned long long dryi_cuda_handle;  /* CUmemGenericAllocationHandle */

struct dryi_cuda_driver {
    void *library;

    int (*init)(unsigned flags);
    int (*driver_get_version)(int *version);
    int (*device_get)(int *device, int ordinal);
    int (*device_get_count)(int *count);
    int (*device_get_name)(char *name, int length, int device);
    int (*device_total_mem)(size_t *bytes, int device);
    int (*device_get_attribute)(int *value, int attribute, int device);
    int (*primary_context_retain)(void **context, int device);
    int (*primary_context_release)(int device);
    int (*context_push)(void *context);
    int (*context_pop)(void **context);
    int (*context_synchronize)(void);

    int (*mem_alloc)(dryi_cuda_address *address, size_t bytes);
    int (*mem_free)(dryi_cuda_address address);
    int (*mem_get_info)(size_t *free_bytes, size_t *total_bytes);

    int (*event_create)(void **event, unsigned flags);
    int (*event_record)(void *event, void *stream);
    int (*event_query)(void *event);
    int (*event_synchronize)(void *event);
    int (*event_destroy)(void *event);
    int (*stream_synchronize)(void *stream);
    int (*stream_wait_event)(void *stream, void *event, unsigned flags);

    /* Since CUDA 10.2. If any is missing, has_pages is false. */
    int (*mem_address_reserve)(dryi_cuda_address *address, size_t bytes, size_t alignment,
                               dryi_cuda_address at, unsigned long long flags);
    int (*mem_address_free)(dryi_cuda_address address, size_t bytes);
    int (*mem_create)(dryi_cuda_handle *handle, size_t bytes,
                      const struct dryi_cuda_memory *memory, unsigned long long flags);
    int (*mem_release)(dryi_cuda_handle handle);
    int (*mem_map)(dryi_cuda_address address, size_t bytes, size_t offset,
                   dryi_cuda_handle handle, unsigned long long flags);
    int (*mem_unmap)(dryi_cuda_address address, size_t bytes);
    int (*mem_set_access)(dryi_cuda_address address, size_t bytes,
                          const struct dryi_cuda_access *access, size_t count);
    int (*mem_get_granularity)(size_t *bytes, const struct dryi_cuda_memory *memory,
                               int option);

    /* Optional: each may be NULL. The numbers are the CUDA releases that introduced them. */
    int (*get_error_name)(int error, const char **name);
    int (*get_error_string)(int error, const char **text);
    int (*device_get_pci_bus_id)(char *id, int length, int device); /* since 4.1 */
    /* CUipcMemHandle has the size of struct dry_range_name, and is passed by value. */
    int (*ipc_get)(struct dry_range_name *name,
                   dryi_cuda_address address); /* since 4.1 */
    int (*ipc_open)(dryi_cuda_address *address, struct dry_range_name name,
                    unsigned flags);                                   /* since 4.1 */
    int (*ipc_close)(dryi_cuda_address address);                       /* since 4.1 */
    int (*mem_retain_handle)(dryi_cuda_handle *handle, void *address); /* since 11.0 */
    int (*mem_export)(void *descriptor, dryi_cuda_handle handle, int type,
                      unsigned long long flags); /* since 10.2 */
    int (*mem_import)(dryi_cuda_handle *handle, void *descriptor,
                      int type);                                   /* since 10.2 */
    int (*device_can_access_peer)(int *can, int device, int peer); /* since 4.0 */
    int (*mem_host_register)(void *address, size_t bytes, unsigned flags);
    int (*mem_host_unregister)(void *address);
    int (*stream_get_context)(void *stream, void **context);            /* since 9.2 */
    int (*exchange_capture_mode)(int *mode);                            /* since 10.1 */
    int (*device_get_pool)(void **pool, int device);                    /* since 11.2 */
    int (*pool_get_attribute)(void *pool, int attribute, void *value);  /* since 11.2 */
    int (*pool_trim)(void *pool, size_t keep_bytes);                    /* since 11.2 */
    int (*graph_get_attribute)(int device, int attribute, void *value); /* since 11.4 */
    int (*graph_trim)(int device);                                      /* since 11.4 */
    int (*stream_get_id)(void *stream, unsigned long long *id);         /* since 12.0 */
    int (*stream_is_capturing)(void *stream, int *status);              /* since 10.0 */
};

/* Load the driver and find its functions. UNSUPPORTED: no such library, or a required
   function is missing; err says which. */
DRY_CHECK_RESULT enum dry_status dryi_cuda_driver_open(struct dryi_cuda_driver *driver,
                                                       const char *library,
                                                       struct dry_error *err);
void dryi_cuda_driver_close(struct dryi_cuda_driver *driver);

/* Return whether all functions for pages were found. */
int dryi_cuda_driver_has_pages(const struct dryi_cuda_driver *driver);

/* Fill err with "WHAT: CUDA_ERROR_NAME (its text)" and return the matching status. */
enum dry_status dryi_cuda_driver_fail(const struct dryi_cuda_driver *driver, int result,
                                      const char *what, struct dry_error *err);
/* Convert a CUresult: OK, NO_SPACE for out of memory, else SYSTEM. */
enum dry_status dryi_cuda_status(int result);

#endif
