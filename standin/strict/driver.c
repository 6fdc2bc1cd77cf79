/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, contexts, names of errors, and memory that the driver keeps for itself. */
#include "strict/driver.h"

#include <stdio.h>
#include <string.h>

#include "strict/state.h"

EXPORT int
cuInit(unsigned flags)
{
    int result = stand_in_begin(NEEDS_NOTHING);
    if (result == DRYI_CUDA_SUCCESS && flags)
        result = stand_in_misuse("cuInit with flags");
    if (result == DRYI_CUDA_SUCCESS)
        result = stand_in_state.setup.init_result;
    if (result == DRYI_CUDA_SUCCESS)
        stand_in_state.is_initialized = true;
    return stand_in_end(result);
}

EXPORT int
cuDriverGetVersion(int *version)
{
    int result = stand_in_begin(NEEDS_NOTHING);
    if (result == DRYI_CUDA_SUCCESS)
        *version = 12040;
    return stand_in_end(result);
}

static const struct {
    int number;
    const char *name, *text;
} errors[] = {
    {DRYI_CUDA_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {DRYI_CUDA_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {DRYI_CUDA_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {DRYI_CUDA_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {DRYI_CUDA_HOST_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {DRYI_CUDA_HOST_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {DRYI_CUDA_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
};

EXPORT int
cuGetErrorName(int error, const char **name)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        if (errors[i].number == error) {
            *name = errors[i].name;
            return DRYI_CUDA_SUCCESS;
        }
    }
    *name = NULL;
    return DRYI_CUDA_INVALID_VALUE;
}

EXPORT int
cuGetErrorString(int error, const char **text)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        if (errors[i].number == error) {
            *text = errors[i].text;
            return DRYI_CUDA_SUCCESS;
        }
    }
    *text = NULL;
    return DRYI_CUDA_INVALID_VALUE;
}

static int
begin_with_device(int device)
{
    int result = stand_in_begin(NEEDS_INIT);
    if (result == DRYI_CUDA_SUCCESS &&
        (device < 0 || device >= stand_in_state.setup.device_count))
        result = DRYI_CUDA_INVALID_DEVICE;
    return result;
}

EXPORT int
cuDeviceGet(int *device, int ordinal)
{
    int result = begin_with_device(ordinal);
    if (result == DRYI_CUDA_SUCCESS)
        *device = ordinal;
    return stand_in_end(result);
}

EXPORT int
cuDeviceGetCount(int *count)
{
    int result = stand_in_begin(NEEDS_INIT);
    if (result == DRYI_CUDA_SUCCESS)
        *count = stand_in_state.setup.device_count;
    return stand_in_end(result);
}

EXPORT int
cuDeviceGetName(char *name, int length, int device)
{
    int result = begin_with_device(device);
    if (result == DRYI_CUDA_SUCCESS)
        snprintf(name, (size_t)length, "Stand-in %d", device);
    return stand_in_end(result);
}

EXPORT int
cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    int result = begin_with_device(device);
    if (result == DRYI_CUDA_SUCCESS)
        *bytes = stand_in_state.setup.total_bytes;
    return stand_in_end(result);
}

EXPORT int
cuDeviceGetAttribute(int *value, int attribute, int device)
{
    const struct stand_in_setup *setup = &stand_in_state.setup;
    int result = begin_with_device(device);
    if (result != DRYI_CUDA_SUCCESS)
        return stand_in_end(result);
    if (attribute == DRYI_CUDA_HAS_VIRTUAL_MEMORY)
        *value = !setup->no_virtual_memory;
    else if (attribute == DRYI_CUDA_HAS_POSIX_HANDLES)
        *value = !setup->no_posix_handles;
    else if (attribute == DRYI_CUDA_HAS_GPU_DIRECT_PAGES)
        *value = !setup->no_gpu_direct;
    else
        result = stand_in_misuse("an attribute the stand-in has not heard of");
    return stand_in_end(result);
}

#ifndef STAND_IN_OLD
EXPORT int
cuDeviceCanAccessPeer(int *can, int device, int peer)
{
    int result = begin_with_device(device);
    if (result == DRYI_CUDA_SUCCESS &&
        (peer < 0 || peer >= stand_in_state.setup.device_count || peer == device))
        result = stand_in_misuse("a peer that is none");
    if (result == DRYI_CUDA_SUCCESS)
        *can = !stand_in_state.setup.no_peers;
    return stand_in_end(result);
}

/* Return the id in upper case, as the driver does. */
EXPORT int
cuDeviceGetPCIBusId(char *id, int length, int device)
{
    int result = begin_with_device(device);
    if (result == DRYI_CUDA_SUCCESS && stand_in_state.setup.no_bus_id)
        result = DRYI_CUDA_NOT_SUPPORTED;
    if (result == DRYI_CUDA_SUCCESS)
        snprintf(id, (size_t)length, "0000:%02X:00.0", 0x3A + device);
    return stand_in_end(result);
}
#endif

EXPORT int
cuDevicePrimaryCtxRetain(void **context, int device)
{
    int result = begin_with_device(device);
    if (result == DRYI_CUDA_SUCCESS) {
        stand_in_state.retained[device]++;
        *context = &stand_in_state.retained[device];
    }
    return stand_in_end(result);
}

static uint64_t
count_spans(const struct spans *spans, int device)
{
    uint64_t count = 0;
    for (size_t i = 0; i < spans->count; i++)
        count += spans->items[i].device == device;
    return count;
}

/* Count the objects that a context's last release would destroy. */
static uint64_t
count_things(int device)
{
    const struct state *s = &stand_in_state;
    uint64_t count = count_spans(&s->ranges, device) + count_spans(&s->mappings, device) +
                     count_spans(&s->registrations, device) +
                     count_spans(&s->reservations, device);
    for (size_t i = 0; i < s->handle_count; i++)
        count += s->handles[i].is_live && s->handles[i].device == device;
    for (size_t i = 0; i < s->event_count; i++)
        count += s->events[i].is_live && s->events[i].device == device;
    return count;
}

EXPORT int
cuDevicePrimaryCtxRelease_v2(int device)
{
    struct state *s = &stand_in_state;
    int result = begin_with_device(device);
    if (result == DRYI_CUDA_SUCCESS && s->retained[device] == 0)
        result = stand_in_misuse("a context released that nobody has");
    if (result == DRYI_CUDA_SUCCESS && --s->retained[device] == 0)
        s->account.abandoned += count_things(device);
    return stand_in_end(result);
}

EXPORT int
cuCtxPushCurrent_v2(void *context)
{
    int result = stand_in_begin(NEEDS_INIT);
    if (result == DRYI_CUDA_SUCCESS)
        result = stand_in_push(context);
    return stand_in_end(result);
}

EXPORT int
cuCtxPopCurrent_v2(void **context)
{
    int result = stand_in_begin(NEEDS_INIT);
    if (result == DRYI_CUDA_SUCCESS)
        result = stand_in_pop(context);
    return stand_in_end(result);
}

#ifndef STAND_IN_OLD

EXPORT int
cuThreadExchangeStreamCaptureMode(int *mode)
{
    int result = stand_in_begin(NEEDS_INIT);
    if (result == DRYI_CUDA_SUCCESS)
        stand_in_exchange_mode(mode);
    return stand_in_end(result);
}

/* --- memory that the driver keeps --------------------------------------------------------- */

/* The handle of a device's pool is the address of its kept bytes. */
EXPORT int
cuDeviceGetMemPool(void **pool, int device)
{
    int result = begin_with_device(device);
    if (result == DRYI_CUDA_SUCCESS)
        *pool = &stand_in_state.pool_keeps[device];
    return stand_in_end(result);
}

EXPORT int
cuMemPoolGetAttribute(void *pool, int attribute, void *value)
{
    int result = stand_in_begin(NEEDS_INIT);
    if (result == DRYI_CUDA_SUCCESS && attribute != DRYI_CUDA_POOL_RESERVED)
        result = stand_in_misuse("an attribute of a pool the stand-in has not heard of");
    if (result == DRYI_CUDA_SUCCESS)
        memcpy(value, pool, sizeof(uint64_t));
    return stand_in_end(result);
}

EXPORT int
cuMemPoolTrimTo(void *pool, size_t keep_bytes)
{
    int result = stand_in_begin(NEEDS_INIT);
    if (result == DRYI_CUDA_SUCCESS) {
        uint64_t *keeps = pool;
        int device = (int)(keeps - stand_in_state.pool_keeps);
        if (*keeps > keep_bytes) {
            stand_in_give(device, *keeps - keep_bytes);
            *keeps = keep_bytes;
        }
    }
    return stand_in_end(result);
}

EXPORT int
cuDeviceGetGraphMemAttribute(int device, int attribute, void *value)
{
    int result = begin_with_device(device);
    if (result == DRYI_CUDA_SUCCESS && attribute != DRYI_CUDA_GRAPH_RESERVED)
        result = stand_in_misuse("an attribute of graphs the stand-in has not heard of");
    if (result == DRYI_CUDA_SUCCESS)
        memcpy(value, &stand_in_state.graphs_keep[device], sizeof(uint64_t));
    return stand_in_end(result);
}

EXPORT int
cuDeviceGraphMemTrim(int device)
{
    int result = begin_with_device(device);
    if (result == DRYI_CUDA_SUCCESS) {
        stand_in_give(device, stand_in_state.graphs_keep[device]);
        stand_in_state.graphs_keep[device] = 0;
    }
    return stand_in_end(result);
}

#endif
