/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STANDIN_STRICT_DRIVER_H
#define STANDIN_STRICT_DRIVER_H

/* The exported functions are those of NVIDIA's CUDA Driver API, as it documents them. */

#include "device/cuda/cuda_driver.h"
#include "strict/stand_in.h"

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuGetErrorName(int error, const char **name);
int cuGetErrorString(int error, const char **text);
int cuDeviceGet(int *device, int ordinal);
int cuDeviceGetCount(int *count);
int cuDeviceGetName(char *name, int length, int device);
int cuDeviceTotalMem_v2(size_t *bytes, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxPushCurrent_v2(void *context);
int cuCtxPopCurrent_v2(void **context);
int cuCtxSynchronize(void);
int cuThreadExchangeStreamCaptureMode(int *mode);
int cuDeviceGetMemPool(void **pool, int device);
int cuMemPoolGetAttribute(void *pool, int attribute, void *value);
int cuMemPoolTrimTo(void *pool, size_t keep_bytes);
int cuDeviceGetGraphMemAttribute(int device, int attribute, void *value);
int cuDeviceGraphMemTrim(int device);

int cuIpcGetMemHandle(struct dry_range_name *name, dryi_cuda_address address);
int cuIpcOpenMemHandle_v2(dryi_cuda_address *address, struct dry_range_name name,
                          unsigned flags);
int cuIpcCloseMemHandle(dryi_cuda_address address);
int cuMemRetainAllocationHandle(dryi_cuda_handle *handle, void *address);
int cuMemExportToShareableHandle(void *descriptor, dryi_cuda_handle handle, int type,
                                 unsigned long long flags);
int cuMemImportFromShareableHandle(dryi_cuda_handle *handle, void *descriptor, int type);
int cuDeviceCanAccessPeer(int *can, int device, int peer);
int cuDeviceGetPCIBusId(char *id, int length, int device);
int cuMemHostRegister_v2(void *address, size_t bytes, unsigned flags);
int cuMemHostUnregister(void *address);
int cuMemcpyHtoDAsync_v2(dryi_cuda_address to, const void *from, size_t bytes,
                         void *stream);
int cuMemcpyDtoHAsync_v2(void *to, dryi_cuda_address from, size_t bytes, void *stream);

int cuMemAlloc_v2(dryi_cuda_address *address, size_t bytes);
int cuMemFree_v2(dryi_cuda_address address);
int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes);
int cuMemcpyHtoD_v2(dryi_cuda_address to, const void *from, size_t bytes);
int cuMemcpyDtoH_v2(void *to, dryi_cuda_address from, size_t bytes);
int cuMemsetD8_v2(dryi_cuda_address address, unsigned char value, size_t bytes);
int cuMemAddressReserve(dryi_cuda_address *address, size_t bytes, size_t alignment,
                        dryi_cuda_address at, unsigned long long flags);
int cuMemAddressFree(dryi_cuda_address address, size_t bytes);
int cuMemCreate(dryi_cuda_handle *handle, size_t bytes,
                const struct dryi_cuda_memory *memory, unsigned long long flags);
int cuMemRelease(dryi_cuda_handle handle);
int cuMemMap(dryi_cuda_address address, size_t bytes, size_t offset,
             dryi_cuda_handle handle, unsigned long long flags);
int cuMemUnmap(dryi_cuda_address address, size_t bytes);
int cuMemSetAccess(dryi_cuda_address address, size_t bytes,
                   const struct dryi_cuda_access *access, size_t count);
int cuMemGetAllocationGranularity(size_t *bytes, const struct dryi_cuda_memory *memory,
                                  int option);

int cuStreamCreate(void **stream, unsigned flags);
int cuStreamDestroy_v2(void *stream);
int cuStreamGetCtx(void *stream, void **context);
int cuStreamGetId(void *stream, unsigned long long *id);
int cuStreamIsCapturing(void *stream, int *status);
int cuStreamSynchronize(void *stream);
int cuStreamWaitEvent(void *stream, void *event, unsigned flags);
int cuEventCreate(void **event, unsigned flags);
int cuEventRecord(void *event, void *stream);
int cuEventQuery(void *event);
int cuEventSynchronize(void *event);
int cuEventDestroy_v2(void *event);

#endif
