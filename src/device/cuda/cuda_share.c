/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Memory for another process. A range of cuMemAlloc has a name of 64 bytes; each page has
 * a descriptor. The device does not store handles of mapped pages, so the driver returns
 * the handle for an address. Source: cuIpcGetMemHandle, cuMemRetainAllocationHandle and
 * cuMemExportToShareableHandle in NVIDIA's CUDA Driver API reference.
 */

#include "device/cuda/cuda_share.h"

#include "device/cuda/cuda_peer.h"
#include "os/descriptor.h"

/* --- ranges ------------------------------------------------------------------------------- */

enum dry_status
dryi_cuda_name_range(void *self, uint64_t address, struct dry_range_name *name)
{
    struct dry_cuda *cuda = self;
    if (!cuda->context.driver.ipc_get)
        return DRY_ERR_UNSUPPORTED;
    struct dryi_cuda_stay stay = enter(cuda);
    if (stay.result != DRYI_CUDA_SUCCESS)
        return dryi_cuda_status(stay.result);
    struct dry_range_name given = {{0}};
    int result = note(cuda, cuda->context.driver.ipc_get(&given, address));
    leave(cuda, &stay);
    if (result == DRYI_CUDA_SUCCESS)
        *name = given;
    return dryi_cuda_status(result);
}

enum dry_status
dryi_cuda_open_range(void *self, const struct dry_range_name *name, uint64_t *address)
{
    struct dry_cuda *cuda = self;
    if (!cuda->context.driver.ipc_open)
        return DRY_ERR_UNSUPPORTED;
    struct dryi_cuda_stay stay = enter(cuda);
    if (stay.result != DRYI_CUDA_SUCCESS)
        return dryi_cuda_status(stay.result);
    dryi_cuda_address opened = 0;
    int result = note(
        cuda, cuda->context.driver.ipc_open(&opened, *name, DRYI_CUDA_IPC_LAZY_PEER));
    leave(cuda, &stay);
    if (result == DRYI_CUDA_SUCCESS)
        *address = opened;
    return dryi_cuda_status(result);
}

enum dry_status
dryi_cuda_close_range(void *self, uint64_t address)
{
    struct dry_cuda *cuda = self;
    if (!cuda->context.driver.ipc_close)
        return DRY_ERR_UNSUPPORTED;
    struct dryi_cuda_stay stay = enter(cuda);
    if (stay.result != DRYI_CUDA_SUCCESS)
        return is_gone(cuda) ? DRY_OK : dryi_cuda_status(stay.result);
    int result = note(cuda, cuda->context.driver.ipc_close(address));
    leave(cuda, &stay);
    return is_gone(cuda) ? DRY_OK : dryi_cuda_status(result);
}

/* --- pages -------------------------------------------------------------------------------- */

static int
export_page(struct dry_cuda *cuda, uint64_t address, int *descriptor)
{
    const struct dryi_cuda_driver *d = &cuda->context.driver;
    dryi_cuda_handle handle = 0;
    int made = -1;
    int result = note(cuda, d->mem_retain_handle(&handle, (void *)(uintptr_t)address));
    if (result != DRYI_CUDA_SUCCESS)
        return result;
    result = note(cuda, d->mem_export(&made, handle, DRYI_CUDA_MEM_POSIX_HANDLE, 0));
    note_unheard(cuda, d->mem_release(handle));
    if (result == DRYI_CUDA_SUCCESS)
        *descriptor = made;
    return result;
}

enum dry_status
dryi_cuda_export_pages(void *self, uint64_t address, size_t count, uint64_t page,
                       int *descriptors)
{
    struct dry_cuda *cuda = self;
    const struct dryi_cuda_driver *d = &cuda->context.driver;
    if (!cuda->page.handle_types || !d->mem_retain_handle || !d->mem_export)
        return DRY_ERR_UNSUPPORTED;
    struct dryi_cuda_stay stay = enter(cuda);
    int result = stay.result;
    if (result != DRYI_CUDA_SUCCESS)
        return dryi_cuda_status(result);
    size_t done = 0;
    while (done < count && result == DRYI_CUDA_SUCCESS) {
        result = export_page(cuda, address + done * page, &descriptors[done]);
        done += result == DRYI_CUDA_SUCCESS;
    }
    while (result != DRYI_CUDA_SUCCESS && done > 0)
        dryi_descriptor_close(descriptors[--done]);
    leave(cuda, &stay);
    return dryi_cuda_status(result);
}

/* Map the page of a descriptor; afterwards only the mapping keeps the page. */
static int
import_page(struct dry_cuda *cuda, int descriptor, uint64_t address, uint64_t page)
{
    const struct dryi_cuda_driver *d = &cuda->context.driver;
    dryi_cuda_handle handle = 0;
    int result = note(cuda, d->mem_import(&handle, (void *)(intptr_t)descriptor,
                                          DRYI_CUDA_MEM_POSIX_HANDLE));
    if (result != DRYI_CUDA_SUCCESS)
        return result;
    result = note(cuda, d->mem_map(address, page, 0, handle, 0));
    note_unheard(cuda, d->mem_release(handle));
    return result;
}

/* Import all pages or none. Requires a stay, and a reservation of their size. */
static int
import_all(struct dry_cuda *cuda, const int *descriptors, size_t count, uint64_t page,
           uint64_t address)
{
    int result = DRYI_CUDA_SUCCESS;
    size_t done = 0;
    while (done < count && result == DRYI_CUDA_SUCCESS) {
        result = import_page(cuda, descriptors[done], address + done * page, page);
        done += result == DRYI_CUDA_SUCCESS;
    }
    if (result == DRYI_CUDA_SUCCESS)
        result = dryi_cuda_set_access(cuda, address, count * page);
    while (result != DRYI_CUDA_SUCCESS && done > 0)
        note_unheard(cuda, cuda->context.driver.mem_unmap(address + --done * page, page));
    return result;
}

enum dry_status
dryi_cuda_import_pages(void *self, const int *descriptors, size_t count, uint64_t page,
                       uint64_t *address)
{
    struct dry_cuda *cuda = self;
    const struct dryi_cuda_driver *d = &cuda->context.driver;
    uint64_t bytes, grain = cuda->grain_bytes;
    if (grain == 0 || !d->mem_import)
        return DRY_ERR_UNSUPPORTED;
    if (count == 0 || page == 0 || page % grain != 0 ||
        __builtin_mul_overflow((uint64_t)count, page, &bytes))
        return DRY_ERR_ARGUMENT;
    struct dryi_cuda_stay stay = enter(cuda);
    if (stay.result != DRYI_CUDA_SUCCESS)
        return dryi_cuda_status(stay.result);
    dryi_cuda_address taken = 0;
    int result = note(cuda, d->mem_address_reserve(&taken, bytes, grain, 0, 0));
    if (result == DRYI_CUDA_SUCCESS) {
        result = import_all(cuda, descriptors, count, page, taken);
        if (result != DRYI_CUDA_SUCCESS)
            note_unheard(cuda, d->mem_address_free(taken, bytes));
    }
    leave(cuda, &stay);
    if (result == DRYI_CUDA_SUCCESS)
        *address = taken;
    return dryi_cuda_status(result);
}
