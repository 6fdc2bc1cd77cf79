/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVML: the number of devices, and how much memory which process uses. A device is its
 * number plus 1.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"
#include "setup.h"

enum nvml_error { NVML_OK, NVML_INVALID = 2, NVML_UNSUPPORTED = 3, NVML_TOO_SMALL = 7 };

static int
get_number(void *device)
{
    return (int)(uintptr_t)device - 1;
}

EXPORT int
nvmlInit_v2(void)
{
    return NVML_OK;
}

EXPORT int
nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    return NVML_OK;
}

EXPORT int
nvmlInit(void)
{
    return NVML_OK;
}

EXPORT int
nvmlShutdown(void)
{
    return NVML_OK;
}

EXPORT const char *
nvmlErrorString(int error)
{
    return error == NVML_OK ? "Success" : "Not Supported";
}

EXPORT int
nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = standin_setup()->cuda_version;
    return NVML_OK;
}

EXPORT int
nvmlSystemGetDriverVersion(char *text, unsigned length)
{
    snprintf(text, length, "999.0");
    return NVML_OK;
}

EXPORT int
nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = (unsigned)standin_setup()->device_count;
    return NVML_OK;
}

EXPORT int
nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    if (index >= (unsigned)standin_setup()->device_count)
        return NVML_INVALID;
    *device = (void *)(uintptr_t)(index + 1);
    return NVML_OK;
}

EXPORT int
nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device)
{
    unsigned domain, number;
    if (sscanf(bus, "%x:%x", &domain, &number) != 2 || number == 0)
        return NVML_INVALID;
    return nvmlDeviceGetHandleByIndex_v2(number - 1, device);
}

EXPORT int
nvmlDeviceGetIndex(void *device, unsigned *index)
{
    *index = (unsigned)get_number(device);
    return NVML_OK;
}

EXPORT int
nvmlDeviceGetName(void *device, char *name, unsigned length)
{
    (void)device;
    snprintf(name, length, "%s", standin_setup()->name);
    return NVML_OK;
}

EXPORT int
nvmlDeviceGetUUID(void *device, char *text, unsigned length)
{
    snprintf(text, length, "GPU-64727973-746f-6e65-0000-%012x",
             (unsigned)get_number(device));
    return NVML_OK;
}

EXPORT int
nvmlDeviceGetHandleByUUID(const char *text, void **device)
{
    char own[64];
    for (unsigned i = 0; i < (unsigned)standin_setup()->device_count; i++) {
        nvmlDeviceGetUUID((void *)(uintptr_t)(i + 1), own, sizeof own);
        if (strcmp(own, text) == 0)
            return nvmlDeviceGetHandleByIndex_v2(i, device);
    }
    return NVML_INVALID;
}

EXPORT int
nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor)
{
    (void)device;
    *major = standin_setup()->major;
    *minor = standin_setup()->minor;
    return NVML_OK;
}

struct nvml_memory {
    unsigned long long total, free, used;
};

EXPORT int
nvmlDeviceGetMemoryInfo(void *device, struct nvml_memory *memory)
{
    standin_lock();
    memory->used = standin_used(get_number(device));
    standin_unlock();
    memory->total = standin_setup()->total_bytes;
    memory->free = memory->used < memory->total ? memory->total - memory->used : 0;
    return NVML_OK;
}

struct nvml_process {
    unsigned pid;
    unsigned long long bytes;
    unsigned instance, compute_instance;
};

/* Report this process, as if no other used the device. */
EXPORT int
nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                        struct nvml_process *processes)
{
    if (*count == 0 || !processes) {
        *count = 1;
        return NVML_TOO_SMALL;
    }
    *count = 1;
    standin_lock();
    processes[0] = (struct nvml_process){
        (unsigned)getpid(), standin_used(get_number(device)), UINT32_MAX, UINT32_MAX};
    standin_unlock();
    return NVML_OK;
}

struct nvml_process_v1 {
    unsigned pid;
    unsigned long long bytes;
};

EXPORT int
nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count,
                                     struct nvml_process_v1 *processes)
{
    struct nvml_process found;
    int result =
        nvmlDeviceGetComputeRunningProcesses_v3(device, count, processes ? &found : NULL);
    if (result == NVML_OK)
        processes[0] = (struct nvml_process_v1){found.pid, found.bytes};
    return result;
}

/*
 * Report that the device belongs to no fabric: all members after the version are 0, and so is the
 * state among them. The lowest bytes of the version are the size of the caller's struct.
 */
EXPORT int
nvmlDeviceGetGpuFabricInfoV(void *device, unsigned *fabric)
{
    unsigned bytes = *fabric & 0xffffff;
    (void)device;
    if (bytes < sizeof *fabric || bytes > 256)
        return NVML_INVALID;
    memset(fabric + 1, 0, bytes - sizeof *fabric);
    return NVML_OK;
}

EXPORT int
nvmlDeviceGetP2PStatus(void *device, void *peer, int what, int *status)
{
    (void)device, (void)peer, (void)what;
    *status = 0;
    return NVML_OK;
}

EXPORT int
nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned link, int *type)
{
    (void)device, (void)link, (void)type;
    return NVML_UNSUPPORTED;
}

EXPORT int
nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, void *info)
{
    (void)device, (void)link, (void)info;
    return NVML_UNSUPPORTED;
}
