/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's kernels: modules and libraries compiled at run time, limits, tensor maps.
 *
 * A module, a library, a kernel and a function are all the same opaque handle. The limits of a
 * context are stored, because programs read back what they set.
 */
#include <string.h>

#include "setup.h"
#include "stream.h"

static char handle_of_all;

/* --- limits --------------------------------------------------------------------------------- */

enum { LIMIT_COUNT = 16 };

/* Indexed by documented number: the stack, printf()'s buffer, the heap; in bytes. */
static size_t limits[LIMIT_COUNT] = {1024, 1 << 20, 8 << 20, 2, 2048, 128};

EXPORT enum cuda_error
cuCtxSetLimit(unsigned limit, size_t value)
{
    if (limit >= LIMIT_COUNT)
        return CUDA_INVALID_VALUE;
    standin_lock();
    limits[limit] = value;
    standin_unlock();
    return CUDA_OK;
}

EXPORT enum cuda_error
cuCtxGetLimit(size_t *value, unsigned limit)
{
    if (limit >= LIMIT_COUNT)
        return CUDA_INVALID_VALUE;
    standin_lock();
    *value = limits[limit];
    standin_unlock();
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaDeviceSetLimit(unsigned limit, size_t value)
{
    return standin_note(cuCtxSetLimit(limit, value));
}

EXPORT enum cuda_error
cudaDeviceGetLimit(size_t *value, unsigned limit)
{
    return standin_note(cuCtxGetLimit(value, limit));
}

/* --- modules: kernels compiled at run time -------------------------------------------------- */

EXPORT enum cuda_error
cuModuleLoadData(void **module, const void *image)
{
    (void)image;
    *module = &handle_of_all;
    return CUDA_OK;
}

EXPORT enum cuda_error
cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options,
                   void **values)
{
    (void)count, (void)options, (void)values;
    return cuModuleLoadData(module, image);
}

EXPORT enum cuda_error
cuModuleLoad(void **module, const char *path)
{
    return cuModuleLoadData(module, path);
}

EXPORT enum cuda_error
cuModuleUnload(void *module)
{
    (void)module;
    return CUDA_OK;
}

EXPORT enum cuda_error
cuModuleGetFunction(void **function, void *module, const char *name)
{
    (void)module, (void)name;
    *function = &handle_of_all;
    return CUDA_OK;
}

enum function_attribute { FUNCTION_THREADS_MAX, FUNCTION_REGISTERS = 4 };

EXPORT enum cuda_error
cuFuncGetAttribute(int *value, int attribute, void *function)
{
    (void)function;
    *value = attribute == FUNCTION_THREADS_MAX ? 1024
             : attribute == FUNCTION_REGISTERS ? 32
                                               : 0;
    return CUDA_OK;
}

EXPORT enum cuda_error
cuFuncSetAttribute(void *function, int attribute, int value)
{
    (void)function, (void)attribute, (void)value;
    return CUDA_OK;
}

EXPORT enum cuda_error
cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
               void *stream, void **arguments, void **extra)
{
    (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x,
        (void)block_y;
    (void)block_z, (void)shared, (void)arguments, (void)extra;
    standin_work(stream);
    return CUDA_OK;
}

struct driver_launch {
    unsigned grid[3], block[3], shared;
    void *stream;
};

EXPORT enum cuda_error
cuLaunchKernelEx(const struct driver_launch *launch, void *function, void **arguments,
                 void **extra)
{
    (void)function, (void)arguments, (void)extra;
    standin_work(launch->stream);
    return CUDA_OK;
}

EXPORT enum cuda_error
cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, void *function, int block_size,
                                            size_t shared)
{
    (void)function, (void)shared;
    int blocks = block_size > 0 ? standin_setup()->threads_per_sm / block_size : 1;
    *count = blocks < 1 ? 1 : blocks > 32 ? 32 : blocks;
    return CUDA_OK;
}

EXPORT enum cuda_error
cuOccupancyMaxActiveClusters(int *count, void *function, const void *launch)
{
    (void)function, (void)launch;
    *count = standin_setup()->sm_count;
    return CUDA_OK;
}

/* --- libraries and kernels ------------------------------------------------------------------ */

EXPORT enum cuda_error
cuLibraryLoadData(void **library, const void *code, const int *options, void **values,
                  unsigned count)
{
    (void)code, (void)options, (void)values, (void)count;
    *library = &handle_of_all;
    return CUDA_OK;
}

EXPORT enum cuda_error
cuLibraryLoadFromFile(void **library, const char *path, const int *options, void **values,
                      unsigned count)
{
    return cuLibraryLoadData(library, path, options, values, count);
}

EXPORT enum cuda_error
cuLibraryUnload(void *library)
{
    (void)library;
    return CUDA_OK;
}

EXPORT enum cuda_error
cuLibraryGetKernel(void **kernel, void *library, const char *name)
{
    (void)library, (void)name;
    *kernel = &handle_of_all;
    return CUDA_OK;
}

EXPORT enum cuda_error
cuLibraryGetModule(void **module, void *library)
{
    *module = library;
    return CUDA_OK;
}

EXPORT enum cuda_error
cuKernelGetFunction(void **function, void *kernel)
{
    *function = kernel;
    return CUDA_OK;
}

EXPORT enum cuda_error
cuFuncGetModule(void **module, void *function)
{
    *module = function;
    return CUDA_OK;
}

EXPORT enum cuda_error
cuKernelGetAttribute(int *value, int attribute, void *kernel, int device)
{
    (void)device;
    return cuFuncGetAttribute(value, attribute, kernel);
}

EXPORT enum cuda_error
cuKernelSetAttribute(int attribute, int value, void *kernel, int device)
{
    (void)attribute, (void)value, (void)kernel, (void)device;
    return CUDA_OK;
}

EXPORT enum cuda_error
cuFuncSetCacheConfig(void *function, int preference)
{
    (void)function, (void)preference;
    return CUDA_OK;
}

EXPORT enum cuda_error
cuLaunchCooperativeKernel(void *function, unsigned grid_x, unsigned grid_y,
                          unsigned grid_z, unsigned block_x, unsigned block_y,
                          unsigned block_z, unsigned shared, void *stream,
                          void **arguments)
{
    (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x;
    (void)block_y, (void)block_z, (void)shared, (void)arguments;
    standin_work(stream);
    return CUDA_OK;
}

/* --- tensor maps ---------------------------------------------------------------------------- */

/* A map is for a kernel that does not run: it is zeroed, and the other arguments are ignored. */
#define TENSOR_MAP_BYTES 128

EXPORT enum cuda_error
cuTensorMapEncodeTiled(void *map)
{
    memset(map, 0, TENSOR_MAP_BYTES);
    return CUDA_OK;
}

EXPORT enum cuda_error
cuTensorMapEncodeIm2col(void *map)
{
    return cuTensorMapEncodeTiled(map);
}

EXPORT enum cuda_error
cuTensorMapReplaceAddress(void *map, void *address)
{
    (void)map, (void)address;
    return CUDA_OK;
}
