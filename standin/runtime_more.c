/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's functions that PyTorch does not call, but other libraries do.
 *
 * A library with an unresolved name cannot be loaded, even if it never calls it. So all
 * of the runtime's public names are here or in the other files. The few that affect
 * memory are implemented. The others refuse, as the runtime does for features that a
 * device lacks, and are counted.
 */
#include "memory.h"
#include "setup.h"
#include "stream.h"

/* --- memory --------------------------------------------------------------------------------- */

enum cuda_error cudaMalloc(void **address, size_t size);
enum cuda_error cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind,
                                void *stream);
enum cuda_error cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from,
                                  size_t from_pitch, size_t width, size_t height,
                                  int kind, void *stream);
enum cuda_error cudaMemsetAsync(void *at, int value, size_t bytes, void *stream);

/* Managed memory is already on the device. */
EXPORT enum cuda_error
cudaMemPrefetchAsync(const void *at, size_t bytes)
{
    (void)at, (void)bytes;
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaMemAdvise(const void *at, size_t bytes)
{
    (void)at, (void)bytes;
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaStreamAttachMemAsync(void *stream, void *at)
{
    (void)at;
    standin_work(stream);
    return CUDA_OK;
}

#define PITCH UINT64_C(512)

EXPORT enum cuda_error
cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height)
{
    *pitch = (width + PITCH - 1) & ~(PITCH - 1);
    return cudaMalloc(address, *pitch * height);
}

EXPORT enum cuda_error
cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
             size_t height, int kind)
{
    cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, NULL);
    return standin_note(standin_wait(NULL, false));
}

EXPORT enum cuda_error
cudaMemset2DAsync(void *at, size_t pitch, int value, size_t width, size_t height,
                  void *stream)
{
    enum cuda_error result = CUDA_OK;
    for (size_t row = 0; row < height && result == CUDA_OK; row++)
        result = cudaMemsetAsync((char *)at + row * pitch, value, width, stream);
    return result;
}

EXPORT enum cuda_error
cudaMemset2D(void *at, size_t pitch, int value, size_t width, size_t height)
{
    return cudaMemset2DAsync(at, pitch, value, width, height, NULL);
}

EXPORT enum cuda_error
cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset,
                        int kind, void *stream)
{
    (void)symbol, (void)from, (void)bytes, (void)offset, (void)kind;
    standin_work(stream);
    return CUDA_OK; /* no kernel reads it */
}

/* --- devices -------------------------------------------------------------------------------- */

#define FINE(name)                                                                       \
    EXPORT enum cuda_error name(void)                                                    \
    {                                                                                    \
        return CUDA_OK;                                                                  \
    }
FINE(cudaInitDevice)
FINE(cudaSetDeviceFlags)
FINE(cudaSetValidDevices)
FINE(cudaDeviceSetCacheConfig)
FINE(cudaDeviceSetSharedMemConfig)
FINE(cudaFuncSetCacheConfig)
FINE(cudaFuncSetSharedMemConfig)
FINE(cudaCtxResetPersistingL2Cache)
FINE(cudaDeviceGraphMemTrim)
FINE(cudaStreamSetAttribute)
FINE(cudaStreamCopyAttributes)
FINE(cudaGraphUpload)
FINE(cudaDeviceDisablePeerAccess)

/* Settings that are 0 unless they were set. */
#define ZERO(name)                                                                       \
    EXPORT enum cuda_error name(unsigned *value)                                         \
    {                                                                                    \
        *value = 0;                                                                      \
        return CUDA_OK;                                                                  \
    }
ZERO(cudaGetDeviceFlags)
ZERO(cudaDeviceGetCacheConfig)
ZERO(cudaDeviceGetSharedMemConfig)
ZERO(cudaHostGetFlags)

EXPORT enum cuda_error
cudaChooseDevice(int *device, const void *properties)
{
    (void)properties;
    *device = 0;
    return CUDA_OK;
}

enum peer_attribute { PEER_RANK = 1 };

EXPORT enum cuda_error
cudaDeviceGetP2PAttribute(int *value, int attribute, int from, int to)
{
    *value = attribute != PEER_RANK && from != to;
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaOccupancyMaxActiveClusters(int *count, const void *function, const void *launch)
{
    (void)function, (void)launch;
    *count = standin_setup()->sm_count;
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaOccupancyMaxPotentialClusterSize(int *size, const void *function, const void *launch)
{
    (void)function, (void)launch;
    *size = 8; /* all cards with clusters allow this */
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *function, int blocks,
                                          int threads)
{
    (void)function, (void)threads;
    *bytes = standin_setup()->shared_per_sm / (blocks > 0 ? (size_t)blocks : 1);
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaGetFuncBySymbol(void **function, const void *symbol)
{
    *function = (void *)(uintptr_t)symbol;
    return CUDA_OK;
}

EXPORT enum cuda_error
cudaGetKernel(void **kernel, const void *symbol)
{
    return cudaGetFuncBySymbol(kernel, symbol);
}

/* --- functions that are refused ------------------------------------------------------------- */

#define REFUSED(name)                                                                    \
    EXPORT enum cuda_error name(void)                                                    \
    {                                                                                    \
        standin_note_name(#name);                                                        \
        return standin_note(CUDA_NOT_SUPPORTED);                                         \
    }
/* Textures, surfaces, arrays. */
REFUSED(cudaArrayGetInfo)
REFUSED(cudaArrayGetMemoryRequirements)
REFUSED(cudaArrayGetPlane)
REFUSED(cudaArrayGetSparseProperties)
REFUSED(cudaCreateChannelDesc)
REFUSED(cudaCreateSurfaceObject)
REFUSED(cudaCreateTextureObject)
REFUSED(cudaDestroySurfaceObject)
REFUSED(cudaDestroyTextureObject)
REFUSED(cudaDeviceGetTexture1DLinearMaxWidth)
REFUSED(cudaExternalMemoryGetMappedMipmappedArray)
REFUSED(cudaFreeArray)
REFUSED(cudaFreeMipmappedArray)
REFUSED(cudaGetChannelDesc)
REFUSED(cudaGetMipmappedArrayLevel)
REFUSED(cudaGetSurfaceObjectResourceDesc)
REFUSED(cudaGetTextureObjectResourceDesc)
REFUSED(cudaGetTextureObjectResourceViewDesc)
REFUSED(cudaGetTextureObjectTextureDesc)
REFUSED(cudaGraphicsResourceGetMappedMipmappedArray)
REFUSED(cudaGraphicsSubResourceGetMappedArray)
REFUSED(cudaMalloc3DArray)
REFUSED(cudaMallocArray)
REFUSED(cudaMallocMipmappedArray)
REFUSED(cudaMemcpy2DArrayToArray)
REFUSED(cudaMemcpy2DFromArray)
REFUSED(cudaMemcpy2DFromArrayAsync)
REFUSED(cudaMemcpy2DToArray)
REFUSED(cudaMemcpy2DToArrayAsync)
REFUSED(cudaMemcpyArrayToArray)
REFUSED(cudaMemcpyFromArray)
REFUSED(cudaMemcpyFromArrayAsync)
REFUSED(cudaMemcpyToArray)
REFUSED(cudaMemcpyToArrayAsync)
REFUSED(cudaMipmappedArrayGetMemoryRequirements)
REFUSED(cudaMipmappedArrayGetSparseProperties)
/* Memory of others: graphics, other processes, other interfaces. */
REFUSED(cudaDestroyExternalMemory)
REFUSED(cudaDestroyExternalSemaphore)
REFUSED(cudaDeviceGetNvSciSyncAttributes)
REFUSED(cudaExternalMemoryGetMappedBuffer)
REFUSED(cudaGetExportTable)
REFUSED(cudaGraphAddExternalSemaphoresSignalNode)
REFUSED(cudaGraphAddExternalSemaphoresWaitNode)
REFUSED(cudaGraphExecExternalSemaphoresSignalNodeSetParams)
REFUSED(cudaGraphExecExternalSemaphoresWaitNodeSetParams)
REFUSED(cudaGraphExternalSemaphoresSignalNodeGetParams)
REFUSED(cudaGraphExternalSemaphoresSignalNodeSetParams)
REFUSED(cudaGraphExternalSemaphoresWaitNodeGetParams)
REFUSED(cudaGraphExternalSemaphoresWaitNodeSetParams)
REFUSED(cudaGraphicsMapResources)
REFUSED(cudaGraphicsResourceGetMappedPointer)
REFUSED(cudaGraphicsResourceSetMapFlags)
REFUSED(cudaGraphicsUnmapResources)
REFUSED(cudaGraphicsUnregisterResource)
REFUSED(cudaImportExternalMemory)
REFUSED(cudaImportExternalSemaphore)
REFUSED(cudaMemPoolExportPointer)
REFUSED(cudaMemPoolExportToShareableHandle)
REFUSED(cudaMemPoolImportFromShareableHandle)
REFUSED(cudaMemPoolImportPointer)
REFUSED(cudaSignalExternalSemaphoresAsync)
REFUSED(cudaWaitExternalSemaphoresAsync)
/* Graphs built node by node. */
REFUSED(cudaGraphAddChildGraphNode)
REFUSED(cudaGraphAddDependencies)
REFUSED(cudaGraphAddEventRecordNode)
REFUSED(cudaGraphAddEventWaitNode)
REFUSED(cudaGraphAddHostNode)
REFUSED(cudaGraphAddKernelNode)
REFUSED(cudaGraphAddMemAllocNode)
REFUSED(cudaGraphAddMemFreeNode)
REFUSED(cudaGraphAddMemcpyNode)
REFUSED(cudaGraphAddMemcpyNode1D)
REFUSED(cudaGraphAddMemcpyNodeFromSymbol)
REFUSED(cudaGraphAddMemcpyNodeToSymbol)
REFUSED(cudaGraphAddMemsetNode)
REFUSED(cudaGraphChildGraphNodeGetGraph)
REFUSED(cudaGraphClone)
REFUSED(cudaGraphConditionalHandleCreate_v2)
REFUSED(cudaGraphDestroyNode)
REFUSED(cudaGraphEventRecordNodeGetEvent)
REFUSED(cudaGraphEventRecordNodeSetEvent)
REFUSED(cudaGraphEventWaitNodeGetEvent)
REFUSED(cudaGraphEventWaitNodeSetEvent)
REFUSED(cudaGraphExecChildGraphNodeSetParams)
REFUSED(cudaGraphExecEventRecordNodeSetEvent)
REFUSED(cudaGraphExecEventWaitNodeSetEvent)
REFUSED(cudaGraphExecGetFlags)
REFUSED(cudaGraphExecGetId)
REFUSED(cudaGraphExecHostNodeSetParams)
REFUSED(cudaGraphExecKernelNodeSetParams)
REFUSED(cudaGraphExecMemcpyNodeSetParams)
REFUSED(cudaGraphExecMemcpyNodeSetParams1D)
REFUSED(cudaGraphExecMemcpyNodeSetParamsFromSymbol)
REFUSED(cudaGraphExecMemcpyNodeSetParamsToSymbol)
REFUSED(cudaGraphExecMemsetNodeSetParams)
REFUSED(cudaGraphExecNodeSetParams)
REFUSED(cudaGraphExecUpdate)
REFUSED(cudaGraphGetEdges)
REFUSED(cudaGraphGetId)
REFUSED(cudaGraphGetRootNodes)
REFUSED(cudaGraphHostNodeGetParams)
REFUSED(cudaGraphHostNodeSetParams)
REFUSED(cudaGraphInstantiateWithParams)
REFUSED(cudaGraphKernelNodeCopyAttributes)
REFUSED(cudaGraphKernelNodeGetAttribute)
REFUSED(cudaGraphKernelNodeGetParams)
REFUSED(cudaGraphKernelNodeSetAttribute)
REFUSED(cudaGraphKernelNodeSetParams)
REFUSED(cudaGraphMemAllocNodeGetParams)
REFUSED(cudaGraphMemFreeNodeGetParams)
REFUSED(cudaGraphMemcpyNodeGetParams)
REFUSED(cudaGraphMemcpyNodeSetParams)
REFUSED(cudaGraphMemcpyNodeSetParams1D)
REFUSED(cudaGraphMemcpyNodeSetParamsFromSymbol)
REFUSED(cudaGraphMemcpyNodeSetParamsToSymbol)
REFUSED(cudaGraphMemsetNodeGetParams)
REFUSED(cudaGraphMemsetNodeSetParams)
REFUSED(cudaGraphNodeFindInClone)
REFUSED(cudaGraphNodeGetContainingGraph)
REFUSED(cudaGraphNodeGetDependentNodes)
REFUSED(cudaGraphNodeGetEnabled)
REFUSED(cudaGraphNodeGetLocalId)
REFUSED(cudaGraphNodeGetToolsId)
REFUSED(cudaGraphNodeSetEnabled)
REFUSED(cudaGraphNodeSetParams)
REFUSED(cudaGraphReleaseUserObject)
REFUSED(cudaGraphRemoveDependencies)
/* Parts of a device. */
REFUSED(cudaDevResourceGenerateDesc)
REFUSED(cudaDevSmResourceSplit)
REFUSED(cudaDevSmResourceSplitByCount)
REFUSED(cudaDeviceGetDevResource)
REFUSED(cudaDeviceGetExecutionCtx)
REFUSED(cudaExecutionCtxDestroy)
REFUSED(cudaExecutionCtxGetDevResource)
REFUSED(cudaExecutionCtxGetDevice)
REFUSED(cudaExecutionCtxGetId)
REFUSED(cudaExecutionCtxRecordEvent)
REFUSED(cudaExecutionCtxStreamCreate)
REFUSED(cudaExecutionCtxSynchronize)
REFUSED(cudaExecutionCtxWaitEvent)
REFUSED(cudaGreenCtxCreate)
REFUSED(cudaStreamGetDevResource)
/* Logs. */
REFUSED(cudaLogsCurrent)
REFUSED(cudaLogsDumpToFile)
REFUSED(cudaLogsDumpToMemory)
REFUSED(cudaLogsRegisterCallback)
REFUSED(cudaLogsUnregisterCallback)
/* Pools created by a program. */
REFUSED(cudaDeviceSetMemPool)
REFUSED(cudaMemGetDefaultMemPool)
REFUSED(cudaMemGetMemPool)
REFUSED(cudaMemPoolCreate)
REFUSED(cudaMemPoolDestroy)
REFUSED(cudaMemPoolGetAccess)
REFUSED(cudaMemSetMemPool)
/* Other functions. */
REFUSED(cudaDeviceFlushGPUDirectRDMAWrites)
REFUSED(cudaDeviceGetHostAtomicCapabilities)
REFUSED(cudaDeviceGetP2PAtomicCapabilities)
REFUSED(cudaDeviceRegisterAsyncNotification)
REFUSED(cudaDeviceReset)
REFUSED(cudaDeviceUnregisterAsyncNotification)
REFUSED(cudaFuncGetName)
REFUSED(cudaFuncGetParamInfo)
REFUSED(cudaGetSymbolSize)
REFUSED(cudaLibraryEnumerateKernels)
REFUSED(cudaMalloc3D)
REFUSED(cudaMemDiscardAndPrefetchBatchAsync)
REFUSED(cudaMemDiscardBatchAsync)
REFUSED(cudaMemPrefetchBatchAsync)
REFUSED(cudaMemRangeGetAttribute)
REFUSED(cudaMemRangeGetAttributes)
REFUSED(cudaMemcpy3D)
REFUSED(cudaMemcpy3DAsync)
REFUSED(cudaMemcpy3DBatchAsync)
REFUSED(cudaMemcpy3DPeer)
REFUSED(cudaMemcpy3DPeerAsync)
REFUSED(cudaMemcpyBatchAsync)
REFUSED(cudaMemcpyFromSymbol)
REFUSED(cudaMemcpyFromSymbolAsync)
REFUSED(cudaMemset3D)
REFUSED(cudaMemset3DAsync)
REFUSED(cudaStreamGetAttribute)
REFUSED(cudaUserObjectRetain)
