/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct entry {
    const char *name;
    size_t offset;
    int is_optional;
};

#define ENTRY(name, member, is_optional)                                                 \
    {                                                                                    \
        name, offsetof(struct gpu, member), is_optional                                  \
    }

static const struct entry entries[] = {
    ENTRY("cuDeviceGet", device_get, 0),
    ENTRY("cuDevicePrimaryCtxRetain", retain, 0),
    ENTRY("cuDevicePrimaryCtxRelease_v2", release, 0),
    ENTRY("cuCtxPushCurrent_v2", push, 0),
    ENTRY("cuCtxPopCurrent_v2", pop, 0),
    ENTRY("cuMemsetD8_v2", set, 0),
    ENTRY("cuMemsetD8Async", set_async, 1),
    ENTRY("cuMemcpyDtoH_v2", read, 0),
    ENTRY("cuMemcpyHtoDAsync_v2", copy_to, 0),
    ENTRY("cuMemcpyDtoHAsync_v2", copy_from, 0),
    ENTRY("cuMemHostAlloc", host_alloc, 1),
    ENTRY("cuMemFreeHost", host_free, 1),
    ENTRY("cuStreamCreate", stream_create, 0),
    ENTRY("cuStreamDestroy_v2", stream_destroy, 0),
    ENTRY("cuStreamSynchronize", stream_synchronize, 0),
    ENTRY("cuMemcpyDtoD_v2", copy, 1),
    ENTRY("cuMemsetD2D8_v2", set_2d, 1),
    ENTRY("cuMemAddressReserve", address_reserve, 1),
    ENTRY("cuMemAddressFree", address_free, 1),
    ENTRY("cuMemCreate", mem_create, 1),
    ENTRY("cuMemRelease", mem_release, 1),
    ENTRY("cuMemMap", mem_map, 1),
    ENTRY("cuMemSetAccess", mem_set_access, 1),
    ENTRY("cuMemUnmap", mem_unmap, 1),
};

int
gpu_open(struct gpu *gpu, const char *library, int ordinal)
{
    struct gpu found = {.library = dlopen(library, RTLD_NOW | RTLD_NODELETE)};
    if (!found.library) {
        fprintf(stderr, "cannot load %s\n", library);
        return 1;
    }
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *function = dlsym(found.library, entries[i].name);
        memcpy((char *)&found + entries[i].offset, &function, sizeof function);
        if (!function && !entries[i].is_optional) {
            fprintf(stderr, "%s has no %s\n", library, entries[i].name);
            return 1;
        }
    }
    if (found.device_get(&found.device, ordinal) ||
        found.retain(&found.context, found.device) || found.push(found.context)) {
        fprintf(stderr, "device %d has no context for us\n", ordinal);
        return 1;
    }
    *gpu = found;
    return 0;
}

void
gpu_close(struct gpu *gpu)
{
    void *former;
    gpu->pop(&former);
    gpu->release(gpu->device);
    dlclose(gpu->library);
}
