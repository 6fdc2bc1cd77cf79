/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver: devices, contexts, virtual memory; and how the runtime finds its functions.
 *
 * A context is its device's number plus CONTEXT_BASE, because it must not be NULL. The driver and
 * the runtime share one implementation of what both offer.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "setup.h"
#include "stream.h"

enum cuda_error standin_attribute(int *value, int attribute, int device);

#define CONTEXT_BASE 0x1000u

static void *
get_context(int device)
{
    return (void *)(uintptr_t)(CONTEXT_BASE + (unsigned)device);
}

EXPORT enum cuda_error
cuInit(unsigned flags)
{
    (void)flags;
    return CUDA_OK;
}

EXPORT enum cuda_error
cuDriverGetVersion(int *version)
{
    *version = standin_setup()->cuda_version;
    return CUDA_OK;
}

EXPORT enum cuda_error
cuGetErrorString(int error, const char **text)
{
    *text = standin_error_text(error);
    return CUDA_OK;
}

EXPORT enum cuda_error
cuGetErrorName(int error, const char **name)
{
    *name = standin_error_name(error);
    return CUDA_OK;
}

/* --- devices and contexts ------------------------------------------------------------------- */

EXPORT enum cuda_error
cuDeviceGet(int *device, int ordinal)
{
    if (ordinal < 0 || ordinal >= standin_setup()->device_count)
        return CUDA_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_OK;
}

EXPORT enum cuda_error
cuDeviceGetCount(int *count)
{
    *count = standin_setup()->device_count;
    return CUDA_OK;
}

EXPORT enum cuda_error
cuDeviceGetName(char *name, int length, int device)
{
    (void)device;
    snprintf(name, (size_t)length, "%s", standin_setup()->name);
    return CUDA_OK;
}

EXPORT enum cuda_error
cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    (void)device;
    *bytes = standin_setup()->total_bytes;
    return CUDA_OK;
}

EXPORT enum cuda_error
cuDeviceGetAttribute(int *value, int attribute, int device)
{
    return standin_attribute(value, attribute, device);
}

EXPORT enum cuda_error
cuDeviceGetUuid(unsigned char uuid[16], int device)
{
    static const unsigned char name[16] = {'d', 'r', 'y', 's', 't', 'o', 'n', 'e'};
    memcpy(uuid, name, sizeof name);
    uuid[15] = (unsigned char)device;
    return CUDA_OK;
}

EXPORT enum cuda_error
cuDeviceGetUuid_v2(unsigned char uuid[16], int device)
{
    return cuDeviceGetUuid(uuid, device);
}

EXPORT enum cuda_error
cuDevicePrimaryCtxRetain(void **context, int device)
{
    *context = get_context(device);
    return CUDA_OK;
}

EXPORT enum cuda_error
cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    return CUDA_OK;
}

EXPORT enum cuda_error
cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    standin_lock();
    *active = standin_used(device) > standin_setup()->context_bytes ||
              device == standin_device();
    standin_unlock();
    *flags = 0;
    return CUDA_OK;
}

EXPORT enum cuda_error
cuCtxGetCurrent(void **context)
{
    *context = get_context(standin_device());
    return CUDA_OK;
}

EXPORT enum cuda_error
cuCtxSetCurrent(void *context)
{
    return context ? standin_set_device((int)((uintptr_t)context - CONTEXT_BASE))
                   : CUDA_OK;
}

/* The current devices before each push of a thread. Deeper pushes are not remembered. */
#define PUSHED_MAX 64
static _Thread_local int pushed[PUSHED_MAX];
static _Thread_local unsigned pushed_count;

EXPORT enum cuda_error
cuCtxPushCurrent_v2(void *context)
{
    if (pushed_count < PUSHED_MAX)
        pushed[pushed_count] = standin_device();
    pushed_count++;
    return cuCtxSetCurrent(context);
}

EXPORT enum cuda_error
cuCtxPopCurrent_v2(void **context)
{
    if (pushed_count == 0)
        return CUDA_INVALID_CONTEXT;
    if (context)
        *context = get_context(standin_device());
    pushed_count--;
    return pushed_count < PUSHED_MAX ? standin_set_device(pushed[pushed_count]) : CUDA_OK;
}

EXPORT enum cuda_error
cuCtxGetDevice(int *device)
{
    *device = standin_device();
    return CUDA_OK;
}

EXPORT enum cuda_error
cuCtxSynchronize(void)
{
    return standin_wait(NULL, true);
}

EXPORT enum cuda_error
cuStreamGetCtx(void *stream, void **context)
{
    *context = get_context(standin_stream(stream)->device);
    return CUDA_OK;
}

/* --- virtual memory ------------------------------------------------------------------------- */

struct memory_location {
    int type, id;
};
struct memory_properties {
    int type, handle_types;
    struct memory_location location;
};

/* The device's memory is taken by cuMemCreate, and returned when released and no longer mapped. */
struct handle {
    uint64_t size;
    int device;
    int mappings;
    bool is_released;
};

/* The mappings of handles: cuMemUnmap gets only addresses. */
static struct mapping {
    uint64_t address, size;
    struct handle *handle;
    struct mapping *next;
} * mappings;

static void
drop_unused(struct handle *handle)
{
    if (!handle->is_released || handle->mappings > 0)
        return;
    standin_give(handle->device, handle->size);
    free(handle);
}

EXPORT enum cuda_error
cuMemGetAllocationGranularity(size_t *bytes, const struct memory_properties *properties,
                              int option)
{
    (void)properties, (void)option;
    *bytes = STANDIN_PAGE;
    return CUDA_OK;
}

EXPORT enum cuda_error
cuMemAddressReserve(uint64_t *address, size_t size, size_t alignment, uint64_t hint,
                    unsigned long long flags)
{
    (void)alignment, (void)hint, (void)flags;
    standin_lock();
    enum cuda_error result =
        standin_alloc(standin_device(), size, RANGE_RESERVED, address);
    standin_unlock();
    return result;
}

EXPORT enum cuda_error
cuMemAddressFree(uint64_t address, size_t size)
{
    (void)size;
    standin_lock();
    enum cuda_error result = standin_free(address);
    standin_unlock();
    return result;
}

EXPORT enum cuda_error
cuMemCreate(struct handle **handle, size_t size,
            const struct memory_properties *properties, unsigned long long flags)
{
    (void)flags;
    int device = properties->location.id;
    if (size == 0 || size % STANDIN_PAGE || device < 0 ||
        device >= standin_setup()->device_count)
        return CUDA_INVALID_VALUE;
    standin_lock();
    struct handle *made = standin_take(device, size) ? calloc(1, sizeof *made) : NULL;
    standin_unlock();
    if (!made)
        return CUDA_NO_MEMORY;
    made->size = size;
    made->device = device;
    *handle = made;
    return CUDA_OK;
}

EXPORT enum cuda_error
cuMemRelease(struct handle *handle)
{
    standin_lock();
    handle->is_released = true;
    drop_unused(handle);
    standin_unlock();
    return CUDA_OK;
}

EXPORT enum cuda_error
cuMemMap(uint64_t address, size_t size, size_t offset, struct handle *handle,
         unsigned long long flags)
{
    (void)flags;
    struct mapping *mapping = calloc(1, sizeof *mapping);
    if (!mapping || offset + size > handle->size) {
        free(mapping);
        return CUDA_INVALID_VALUE;
    }
    standin_lock();
    *mapping = (struct mapping){address, size, handle, mappings};
    mappings = mapping;
    handle->mappings++;
    standin_unlock();
    return CUDA_OK;
}

EXPORT enum cuda_error
cuMemUnmap(uint64_t address, size_t size)
{
    bool any = false;
    standin_set(address, 0, size);
    standin_lock();
    for (struct mapping **link = &mappings; *link;) {
        struct mapping *mapping = *link;
        if (mapping->address - address >= size) {
            link = &mapping->next;
            continue;
        }
        *link = mapping->next;
        mapping->handle->mappings--;
        drop_unused(mapping->handle);
        free(mapping);
        any = true;
    }
    standin_unlock();
    return any ? CUDA_OK : CUDA_INVALID_VALUE;
}

EXPORT enum cuda_error
cuMemSetAccess(uint64_t address, size_t size, const void *access, size_t count)
{
    (void)address, (void)size, (void)access, (void)count;
    return CUDA_OK;
}

EXPORT enum cuda_error
cuMemGetAddressRange_v2(uint64_t *base, size_t *size, uint64_t address)
{
    standin_lock();
    const struct range *range = standin_find(address);
    if (range && base)
        *base = range->address;
    if (range && size)
        *size = range->size;
    standin_unlock();
    return range ? CUDA_OK : CUDA_INVALID_VALUE;
}

enum pointer_attribute {
    POINTER_CONTEXT = 1,
    POINTER_TYPE,
    POINTER_DEVICE,
    POINTER_HOST,
    POINTER_MANAGED = 8,
    POINTER_ORDINAL,
    POINTER_START = 11,
    POINTER_SIZE,
    POINTER_MAPPED,
};
enum pointer_type { POINTER_OF_HOST = 1, POINTER_OF_DEVICE };

/* Store an attribute of an address in `range`; `device` is -1 for host memory. */
static enum cuda_error
put_pointer(void *value, int attribute, uint64_t address, const struct range *range,
            int device)
{
    bool is_host = device < 0;
    if (attribute == POINTER_CONTEXT)
        *(void **)value = get_context(is_host ? standin_device() : device);
    else if (attribute == POINTER_TYPE)
        *(unsigned *)value = is_host ? POINTER_OF_HOST : POINTER_OF_DEVICE;
    else if (attribute == POINTER_DEVICE || (attribute == POINTER_HOST && is_host))
        *(uint64_t *)value = address;
    else if (attribute == POINTER_MANAGED)
        *(int *)value = range && range->kind == RANGE_MANAGED;
    else if (attribute == POINTER_ORDINAL)
        *(int *)value = is_host ? standin_device() : device;
    else if (attribute == POINTER_START)
        *(uint64_t *)value = range ? range->address : address;
    else if (attribute == POINTER_SIZE)
        *(size_t *)value = range ? range->size : 0;
    else if (attribute == POINTER_MAPPED)
        *(int *)value = 1;
    else
        return attribute == POINTER_HOST ? CUDA_INVALID_VALUE : CUDA_NOT_SUPPORTED;
    return CUDA_OK;
}

EXPORT enum cuda_error
cuPointerGetAttribute(void *value, int attribute, uint64_t address)
{
    int device = standin_find_device(address);
    standin_lock();
    const struct range *range = standin_find(address);
    enum cuda_error result = CUDA_INVALID_VALUE;
    if (range || device >= 0)
        result = put_pointer(value, attribute, address, range, device);
    standin_unlock();
    return result;
}

/* An attribute that the address lacks reads as 0; that is no error. */
EXPORT enum cuda_error
cuPointerGetAttributes(unsigned count, const int *attributes, void **values,
                       uint64_t address)
{
    for (unsigned i = 0; i < count; i++) {
        bool is_narrow =
            attributes[i] == POINTER_TYPE || attributes[i] == POINTER_MANAGED ||
            attributes[i] == POINTER_ORDINAL || attributes[i] == POINTER_MAPPED;
        if (cuPointerGetAttribute(values[i], attributes[i], address) != CUDA_OK)
            memset(values[i], 0, is_narrow ? sizeof(int) : sizeof(void *));
    }
    return CUDA_OK;
}

EXPORT enum cuda_error
cuMemsetD32Async(uint64_t address, unsigned value, size_t count, void *stream)
{
    standin_work(stream);
    if (value == 0)
        standin_set(address, 0, count * 4);
    return CUDA_OK;
}

/* --- functions that are refused -------------------------------------------------------------- */

/* Sharing with other processes, multicast, green contexts, logs: refused, as a driver may do. */
#define REFUSED(name)                                                                    \
    EXPORT enum cuda_error name(void)                                                    \
    {                                                                                    \
        return CUDA_NOT_SUPPORTED;                                                       \
    }
REFUSED(cuMemExportToShareableHandle)
REFUSED(cuMemImportFromShareableHandle)
REFUSED(cuMemRetainAllocationHandle)
REFUSED(cuMemGetAllocationPropertiesFromHandle)
REFUSED(cuStreamWriteValue32)
REFUSED(cuMulticastCreate)
REFUSED(cuMulticastAddDevice)
REFUSED(cuMulticastBindMem)
REFUSED(cuMulticastUnbind)
REFUSED(cuGreenCtxCreate)
REFUSED(cuGreenCtxDestroy)
REFUSED(cuGreenCtxStreamCreate)
REFUSED(cuCtxFromGreenCtx)
REFUSED(cuDeviceGetDevResource)
REFUSED(cuDevSmResourceSplitByCount)
REFUSED(cuDevResourceGenerateDesc)
REFUSED(cuLogsRegisterCallback)
REFUSED(cuLogsUnregisterCallback)
/* Takes the place of unknown functions: get_entry() records their names. */
REFUSED(standin_refuse)

/* --- how the driver is found ---------------------------------------------------------------- */

/* Find the newest of "NAME_v3", "NAME_v2" and NAME, which the documentation calls NAME. */
static void *
find_entry(const char *name)
{
    static const char *const endings[] = {"_v3", "_v2", ""};
    char whole[128];
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        snprintf(whole, sizeof whole, "%s%s", name, endings[i]);
        void *found = dlsym(RTLD_DEFAULT, whole);
        if (found)
            return found;
    }
    return NULL;
}

enum entry_result { ENTRY_FOUND, ENTRY_NOT_FOUND };

/*
 * Find a function. An unknown name gets a function that refuses: programs may take a
 * missing name for a broken driver.
 */
static enum cuda_error
get_entry(const char *name, void **entry, int *result)
{
    *entry = find_entry(name);
    if (!*entry) {
        standin_note_name(name);
        *entry = dlsym(RTLD_DEFAULT, "standin_refuse");
    }
    if (result)
        *result = *entry ? ENTRY_FOUND : ENTRY_NOT_FOUND;
    return *entry ? CUDA_OK : CUDA_NOT_FOUND;
}

EXPORT enum cuda_error
cudaGetDriverEntryPointByVersion(const char *name, void **entry, unsigned version,
                                 unsigned long long flags, int *result)
{
    (void)version, (void)flags;
    return get_entry(name, entry, result);
}

EXPORT enum cuda_error
cudaGetDriverEntryPoint(const char *name, void **entry, unsigned long long flags,
                        int *result)
{
    (void)flags;
    return get_entry(name, entry, result);
}

EXPORT enum cuda_error
cuGetProcAddress_v2(const char *name, void **entry, int version, uint64_t flags,
                    int *result)
{
    (void)version, (void)flags;
    return get_entry(name, entry, result);
}

EXPORT enum cuda_error
cuGetProcAddress(const char *name, void **entry, int version, uint64_t flags)
{
    (void)version, (void)flags;
    return get_entry(name, entry, NULL);
}
