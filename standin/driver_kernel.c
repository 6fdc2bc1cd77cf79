/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's kernels beyond modules: libraries, limits, tensor maps, for kernels
 * compiled at run time.
 *
 * A library, a kernel and a function are all the same opaque handle. The limits of a
 * context are stored, because programs read back what they set.
 */
#include <string.h>

#include "setup.h"
#include "stream.h"

static char handle_of_all;

/* --- limits --------------------------------------------------------------------------------- */

enum { LIMIT_COUNT = 16 };

/* By their documented numbers: the stack, the buffer of printf(), the heap; in bytes. */
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

enum function_attribute { FUNCTION_THREADS_MAX, FUNCTION_REGISTERS = 4 };

EXPORT enum cuda_error
cuKernelGetAttribute(int *value, int attribute, void *kernel, int device)
{
    (void)kernel, (void)device;
    *value = attribute == FUNCTION_THREADS_MAX ? 1024
             : attribute == FUNCTION_REGISTERS ? 32
                                               : 0;
    return CUDA_OK;
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
