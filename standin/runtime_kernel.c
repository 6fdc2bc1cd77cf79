/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's kernels: registered, looked up, queried, launched; none of them runs.
 *
 * A launch is only work on its stream. Registration keeps what later calls must return:
 * the variables of a module, whose bytes are on the host here.
 */
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "setup.h"
#include "stream.h"

struct dim3 {
    unsigned x, y, z;
};

/* --- registration, called by compiled code -------------------------------------------------- */

EXPORT void **
__cudaRegisterFatBinary(void *binary)
{
    (void)binary;
    static void *module;
    return &module;
}

EXPORT void
__cudaRegisterFatBinaryEnd(void **module)
{
    (void)module;
}

/* Return whether a module with managed variables was initialized. The result is not used. */
EXPORT char
__cudaInitModule(void **module)
{
    (void)module;
    return 0;
}

/* A managed variable's bytes are on the host. `at` is where the program stores their address. */
EXPORT void
__cudaRegisterManagedVar(void **module, void **at, char *device, const char *name,
                         int ext, size_t size, int constant, int global)
{
    (void)module, (void)device, (void)name, (void)ext, (void)constant, (void)global;
    *at = calloc(1, size);
}

EXPORT void
__cudaUnregisterFatBinary(void **module)
{
    (void)module;
}

EXPORT void
__cudaRegisterFunction(void **module, const char *host, char *device, const char *name,
                       int limit, void *thread, void *block, void *grid, void *size,
                       int *warp)
{
    (void)module, (void)host, (void)device, (void)name, (void)limit;
    (void)thread, (void)block, (void)grid, (void)size, (void)warp;
}

/* A variable of a module is its shadow in the program. */
EXPORT void
__cudaRegisterVar(void **module, char *host, char *device, const char *name, int ext,
                  size_t size, int constant, int global)
{
    (void)module, (void)host, (void)device, (void)name, (void)ext;
    (void)size, (void)constant, (void)global;
}

EXPORT enum cuda_error
cudaGetSymbolAddress(void **address, const void *symbol)
{
    *address = (void *)(uintptr_t)symbol;
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                   int kind)
{
    (void)symbol, (void)from, (void)bytes, (void)offset, (void)kind;
    return CUDA_OK; /* no kernel reads it */
}

/* --- launches ------------------------------------------------------------------------------- */

static __thread struct {
    struct dim3 grid, block;
    size_t shared;
    void *stream;
} configuration;

EXPORT unsigned
__cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t shared,
                            void *stream)
{
    configuration.grid = grid;
    configuration.block = block;
    configuration.shared = shared;
    configuration.stream = stream;
    return 0;
}

EXPORT enum cuda_error
__cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *shared,
                           void **stream)
{
    *grid = configuration.grid;
    *block = configuration.block;
    *shared = configuration.shared;
    *stream = configuration.stream;
    return CUDA_OK;
}

EXPORT enum cuda_error
__cudaGetKernel(void **kernel, const void *function)
{
    *kernel = (void *)(uintptr_t)function;
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block,
                 void **arguments, size_t shared, void *stream)
{
    (void)function, (void)grid, (void)block, (void)arguments, (void)shared;
    standin_work(stream);
    return CUDA_OK;
}

EXPORT enum cuda_error
__cudaLaunchKernel(const void *kernel, struct dim3 grid, struct dim3 block,
                   void **arguments, size_t shared, void *stream)
{
    return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

EXPORT enum cuda_error
cudaLaunchCooperativeKernel(const void *function, struct dim3 grid, struct dim3 block,
                            void **arguments, size_t shared, void *stream)
{
    return cudaLaunchKernel(function, grid, block, arguments, shared, stream);
}

struct launch_configuration {
    struct dim3 grid, block;
    size_t shared;
    void *stream;
};

EXPORT enum cuda_error
cudaLaunchKernelExC(const struct launch_configuration *launch, const void *function,
                    void **arguments)
{
    (void)function, (void)arguments;
    standin_work(launch->stream);
    return CUDA_OK;
}

/* --- attributes of kernels ------------------------------------------------------------------ */

/* The members of cudaFuncAttributes up to those that programs read. */
struct function_attributes {
    size_t shared_bytes, constant_bytes, local_bytes;
    int threads_max, registers, ptx_version, binary_version, cache_mode, dynamic_max,
        carveout;
};

/*
 * Return the architecture of a wheel's code. Code for an architecture's first minor
 * release runs on its later ones.
 */
static int
architecture(void)
{
    const struct standin_setup *setup = standin_setup();
    int minor = setup->major == 8 ? (setup->minor >= 6 ? 6 : 0) : 0;
    return setup->major * 10 + (setup->major == 7 ? setup->minor : minor);
}

EXPORT enum cuda_error
cudaFuncGetAttributes(struct function_attributes *attributes, const void *function)
{
    (void)function;
    *attributes = (struct function_attributes){
        .threads_max = 1024,
        .registers = 32,
        .ptx_version = architecture(),
        .binary_version = architecture(),
        .dynamic_max = (int)standin_setup()->shared_per_block,
    };
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaFuncSetAttribute(const void *function, int attribute, int value)
{
    (void)function, (void)attribute, (void)value;
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *count, const void *function,
                                                       int block_size, size_t shared,
                                                       unsigned flags)
{
    (void)function, (void)shared, (void)flags;
    int blocks = block_size > 0 ? standin_setup()->threads_per_sm / block_size : 1;
    *count = blocks < 1 ? 1 : blocks > 32 ? 32 : blocks;
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *count, const void *function,
                                              int block_size, size_t shared)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count, function,
                                                                  block_size, shared, 0);
}

EXPORT enum cuda_error
cudaProfilerStart(void)
{
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaProfilerStop(void)
{
    return CUDA_OK;
}
