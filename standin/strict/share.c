/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for another process. A process has one stand-in, so a process may open its own
 * memory here, which a driver refuses. Everything else is as between two processes.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "strict/driver.h"
#include "strict/state.h"

#ifndef STAND_IN_OLD

/* --- ranges ------------------------------------------------------------------------------- */

/* The bytes of a name, which locate the range. */
struct written {
    char magic[8];
    uint64_t address, size;
};

static const char magic[8] = "STANDIN";

EXPORT int
cuIpcGetMemHandle(struct dry_range_name *name, dryi_cuda_address address)
{
    int result = stand_in_begin(NEEDS_CONTEXT);
    const struct span *range = stand_in_find_containing(&stand_in_state.ranges, address);
    bool is_range = range && range->address == address;
    if (result == DRYI_CUDA_SUCCESS && !is_range) {
        result = stand_in_misuse("cuIpcGetMemHandle of what is not a range");
    } else if (result == DRYI_CUDA_SUCCESS && range) {
        struct written written = {.address = address, .size = range->size};
        memcpy(written.magic, magic, sizeof magic);
        *name = (struct dry_range_name){{0}};
        memcpy(name->bytes, &written, sizeof written);
    }
    return stand_in_end(result);
}

static int
open_range(const struct written *written, dryi_cuda_address *address)
{
    struct state *s = &stand_in_state;
    const struct span *range = stand_in_find_containing(&s->ranges, written->address);
    if (memcmp(written->magic, magic, sizeof magic) != 0 || !range ||
        range->size != written->size)
        return DRYI_CUDA_INVALID_VALUE;
    for (size_t i = 0; i < s->opened.count; i++) {
        if (s->opened.items[i].opened_of == written->address)
            return stand_in_misuse("cuIpcOpenMemHandle of what is open");
    }
    struct span opened = {.size = written->size, .opened_of = written->address};
    if (!stand_in_take_address(written->size, s->setup.granularity, &opened.address))
        return DRYI_CUDA_OUT_OF_MEMORY;
    stand_in_add(&s->opened, &opened);
    *address = opened.address;
    return DRYI_CUDA_SUCCESS;
}

EXPORT int
cuIpcOpenMemHandle_v2(dryi_cuda_address *address, struct dry_range_name name,
                      unsigned flags)
{
    struct written written;
    memcpy(&written, name.bytes, sizeof written);
    int result = stand_in_begin(NEEDS_CONTEXT);
    if (result == DRYI_CUDA_SUCCESS && flags != DRYI_CUDA_IPC_LAZY_PEER)
        result = stand_in_misuse("cuIpcOpenMemHandle without its flag");
    if (result == DRYI_CUDA_SUCCESS)
        result = open_range(&written, address);
    return stand_in_end(result);
}

EXPORT int
cuIpcCloseMemHandle(dryi_cuda_address address)
{
    struct spans *opened = &stand_in_state.opened;
    int result = stand_in_begin(NEEDS_CONTEXT);
    size_t i = stand_in_find(opened, address);
    if (result == DRYI_CUDA_SUCCESS &&
        (i == opened->count || opened->items[i].address != address))
        result = stand_in_misuse("cuIpcCloseMemHandle of what is not open");
    if (result == DRYI_CUDA_SUCCESS)
        stand_in_drop(opened, i);
    return stand_in_end(result);
}

/* --- pages -------------------------------------------------------------------------------- */

EXPORT int
cuMemRetainAllocationHandle(dryi_cuda_handle *handle, void *address)
{
    struct state *s = &stand_in_state;
    int result = stand_in_begin(NEEDS_CONTEXT);
    const struct span *mapping =
        stand_in_find_containing(&s->mappings, (uint64_t)(uintptr_t)address);
    if (result == DRYI_CUDA_SUCCESS && !mapping) {
        result = stand_in_misuse("cuMemRetainAllocationHandle where nothing is mapped");
    } else if (result == DRYI_CUDA_SUCCESS && mapping) {
        struct handle *h = &s->handles[mapping->slot];
        h->opens++;
        *handle = stand_in_get_number(h);
    }
    return stand_in_end(result);
}

/* Write the handle's number to a memfd, which replaces the driver's descriptor. */
static int
write_down(dryi_cuda_handle number, int *descriptor)
{
    int file = memfd_create("stand-in", MFD_CLOEXEC);
    if (file < 0)
        return DRYI_CUDA_OUT_OF_MEMORY;
    if (pwrite(file, &number, sizeof number, 0) != (ssize_t)sizeof number) {
        close(file);
        return DRYI_CUDA_OUT_OF_MEMORY;
    }
    *descriptor = file;
    return DRYI_CUDA_SUCCESS;
}

EXPORT int
cuMemExportToShareableHandle(void *descriptor, dryi_cuda_handle handle, int type,
                             unsigned long long flags)
{
    int result = stand_in_begin(NEEDS_CONTEXT);
    const struct handle *h = stand_in_find_handle(handle);
    if (result == DRYI_CUDA_SUCCESS &&
        (!h || type != DRYI_CUDA_MEM_POSIX_HANDLE || flags))
        result = stand_in_misuse("cuMemExportToShareableHandle of what is not a handle");
    else if (result == DRYI_CUDA_SUCCESS && !h->is_shareable)
        result = DRYI_CUDA_INVALID_VALUE;
    if (result == DRYI_CUDA_SUCCESS)
        result = write_down(handle, descriptor);
    return stand_in_end(result);
}

EXPORT int
cuMemImportFromShareableHandle(dryi_cuda_handle *handle, void *descriptor, int type)
{
    dryi_cuda_handle number = 0;
    int result = stand_in_begin(NEEDS_CONTEXT);
    if (result == DRYI_CUDA_SUCCESS && type != DRYI_CUDA_MEM_POSIX_HANDLE)
        result = stand_in_misuse("a type of handles the stand-in has not heard of");
    if (result == DRYI_CUDA_SUCCESS && pread((int)(intptr_t)descriptor, &number,
                                             sizeof number, 0) != (ssize_t)sizeof number)
        result = DRYI_CUDA_INVALID_VALUE;
    uint64_t slot = number & ((1u << 20) - 1);
    if (result == DRYI_CUDA_SUCCESS && slot >= stand_in_state.handle_count)
        result = DRYI_CUDA_INVALID_VALUE;
    if (result == DRYI_CUDA_SUCCESS) {
        struct handle *h = &stand_in_state.handles[slot];
        if (h->is_live && stand_in_get_number(h) == number) {
            h->opens++;
            *handle = number;
        } else {
            result = DRYI_CUDA_INVALID_VALUE;
        }
    }
    return stand_in_end(result);
}

#endif
