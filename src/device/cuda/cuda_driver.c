/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A table has each function's name, its offset in the struct, and whether a device needs
 * the function. Opening fills the struct from the table. Names are those of NVIDIA's CUDA
 * Driver API reference.
 */
#include "device/cuda/cuda_driver.h"

#include <errno.h>
#include <string.h>

#include "base/fail.h"
#include "os/library.h"

enum need { NEEDED, FOR_PAGES, OPTIONAL };

struct entry {
    const char *name;
    size_t offset; /* offset in struct dryi_cuda_driver */
    enum need need;
};

#define ENTRY(name, member, need)                                                        \
    {                                                                                    \
        name, offsetof(struct dryi_cuda_driver, member), need                            \
    }

static const struct entry entries[] = {
    ENTRY("cuInit", init, NEEDED),
    ENTRY("cuDriverGetVersion", driver_get_version, NEEDED),
    ENTRY("cuDeviceGet", device_get, NEEDED),
    ENTRY("cuDeviceGetCount", device_get_count, NEEDED),
    ENTRY("cuDeviceGetName", device_get_name, NEEDED),
    ENTRY("cuDeviceTotalMem_v2", device_total_mem, NEEDED),
    ENTRY("cuDeviceGetAttribute", device_get_attribute, NEEDED),
    ENTRY("cuDevicePrimaryCtxRetain", primary_context_retain, NEEDED),
    ENTRY("cuDevicePrimaryCtxRelease_v2", primary_context_release, OPTIONAL),
    ENTRY("cuCtxPushCurrent_v2", context_push, NEEDED),
    ENTRY("cuCtxPopCurrent_v2", context_pop, NEEDED),
    ENTRY("cuCtxSynchronize", context_synchronize, NEEDED),
    ENTRY("cuMemAlloc_v2", mem_alloc, NEEDED),
    ENTRY("cuMemFree_v2", mem_free, NEEDED),
    ENTRY("cuMemGetInfo_v2", mem_get_info, NEEDED),
    ENTRY("cuEventCreate", event_create, NEEDED),
    ENTRY("cuEventRecord", event_record, NEEDED),
    ENTRY("cuEventQuery", event_query, NEEDED),
    ENTRY("cuEventSynchronize", event_synchronize, NEEDED),
    ENTRY("cuEventDestroy_v2", event_destroy, NEEDED),
    ENTRY("cuStreamSynchronize", stream_synchronize, NEEDED),
    ENTRY("cuStreamWaitEvent", stream_wait_event, NEEDED),
    ENTRY("cuMemAddressReserve", mem_address_reserve, FOR_PAGES),
    ENTRY("cuMemAddressFree", mem_address_free, FOR_PAGES),
    ENTRY("cuMemCreate", mem_create, FOR_PAGES),
    ENTRY("cuMemRelease", mem_release, FOR_PAGES),
    ENTRY("cuMemMap", mem_map, FOR_PAGES),
    ENTRY("cuMemUnmap", mem_unmap, FOR_PAGES),
    ENTRY("cuMemSetAccess", mem_set_access, FOR_PAGES),
    ENTRY("cuMemGetAllocationGranularity", mem_get_granularity, FOR_PAGES),
    ENTRY("cuGetErrorName", get_error_name, OPTIONAL),
    ENTRY("cuGetErrorString", get_error_string, OPTIONAL),
    ENTRY("cuDeviceGetPCIBusId", device_get_pci_bus_id, OPTIONAL),
    ENTRY("cuIpcGetMemHandle", ipc_get, OPTIONAL),
    ENTRY("cuIpcOpenMemHandle_v2", ipc_open, OPTIONAL),
    ENTRY("cuIpcCloseMemHandle", ipc_close, OPTIONAL),
    ENTRY("cuMemRetainAllocationHandle", mem_retain_handle, OPTIONAL),
    ENTRY("cuMemExportToShareableHandle", mem_export, OPTIONAL),
    ENTRY("cuMemImportFromShareableHandle", mem_import, OPTIONAL),
    ENTRY("cuDeviceCanAccessPeer", device_can_access_peer, OPTIONAL),
    ENTRY("cuMemHostRegister_v2", mem_host_register, OPTIONAL),
    ENTRY("cuMemHostUnregister", mem_host_unregister, OPTIONAL),
    ENTRY("cuStreamGetCtx", stream_get_context, OPTIONAL),
    ENTRY("cuStreamIsCapturing", stream_is_capturing, OPTIONAL),
    ENTRY("cuThreadExchangeStreamCaptureMode", exchange_capture_mode, OPTIONAL),
    ENTRY("cuDeviceGetMemPool", device_get_pool, OPTIONAL),
    ENTRY("cuMemPoolGetAttribute", pool_get_attribute, OPTIONAL),
    ENTRY("cuMemPoolTrimTo", pool_trim, OPTIONAL),
    ENTRY("cuDeviceGetGraphMemAttribute", graph_get_attribute, OPTIONAL),
    ENTRY("cuDeviceGraphMemTrim", graph_trim, OPTIONAL),
    ENTRY("cuStreamGetId", stream_get_id, OPTIONAL),
};
#define ENTRY_COUNT (sizeof entries / sizeof *entries)

enum dry_status
dryi_cuda_driver_open(struct dryi_cuda_driver *driver, const char *library,
                      struct dry_error *err)
{
    struct dryi_cuda_driver found = {0};
    enum dry_status status = dryi_library_open(library, &found.library, err);
    if (status != DRY_OK)
        return status;
    for (size_t i = 0; i < ENTRY_COUNT; i++) {
        const struct entry *e = &entries[i];
        dryi_library_function *function = dryi_library_find(found.library, e->name);
        memcpy((char *)&found + e->offset, &function, sizeof function);
        if (!function && e->need == NEEDED) {
            dryi_library_close(found.library);
            return dryi_fail(err, DRY_ERR_UNSUPPORTED, "%s has no %s", library, e->name);
        }
    }
    *driver = found;
    return DRY_OK;
}

void
dryi_cuda_driver_close(struct dryi_cuda_driver *driver)
{
    dryi_library_close(driver->library);
    *driver = (struct dryi_cuda_driver){0};
}

int
dryi_cuda_driver_has_pages(const struct dryi_cuda_driver *driver)
{
    for (size_t i = 0; i < ENTRY_COUNT; i++) {
        dryi_library_function *function;
        memcpy(&function, (const char *)driver + entries[i].offset, sizeof function);
        if (!function && entries[i].need == FOR_PAGES)
            return 0;
    }
    return 1;
}

enum dry_status
dryi_cuda_status(int result)
{
    if (result == DRYI_CUDA_SUCCESS)
        return DRY_OK;
    return result == DRYI_CUDA_OUT_OF_MEMORY ? DRY_ERR_NO_SPACE : DRY_ERR_SYSTEM;
}

/* Return whether the result means that there is no driver or no device. */
static int
is_absence(int result)
{
    return result == DRYI_CUDA_STUB_LIBRARY || result == DRYI_CUDA_NO_DEVICE ||
           result == DRYI_CUDA_INVALID_DEVICE;
}

enum dry_status
dryi_cuda_driver_fail(const struct dryi_cuda_driver *driver, int result, const char *what,
                      struct dry_error *err)
{
    const char *name = NULL, *text = NULL;
    if (driver->get_error_name)
        driver->get_error_name(result, &name);
    if (driver->get_error_string)
        driver->get_error_string(result, &text);
    errno = 0; /* the failure is the driver's, not the operating system's */
    return dryi_fail(err,
                     is_absence(result) ? DRY_ERR_UNSUPPORTED : dryi_cuda_status(result),
                     "%s: CUDA error %d, %s (%s)", what, result, name ? name : "no name",
                     text ? text : "no text");
}
