/* SPDX-License-Identifier: Apache-2.0 */

/* Structures are those of CUDA 12's nvml.h. Functions missing in a driver are skipped. */
#include "live/nvml.h"

#include <stdlib.h>
#include <string.h>

#include <dlfcn.h>

enum { SUCCESS = 0 };

struct memory_info { /* nvmlMemory_t */
    unsigned long long total, free, used;
};

struct process_info { /* nvmlProcessInfo_t of _v2 and _v3 */
    unsigned pid;
    unsigned long long bytes;
    unsigned instance, compute_instance;
};

struct nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*get_count)(unsigned *count);
    int (*get_handle)(unsigned index, void **device);
    int (*get_name)(void *device, char *text, unsigned capacity);
    int (*get_uuid)(void *device, char *text, unsigned capacity);
    int (*get_memory)(void *device, struct memory_info *memory);
    int (*list)(void *device, unsigned *count, struct process_info *processes);

    size_t count;
    void *handles[NVML_DEVICES_MAX];
    struct nvml_device devices[NVML_DEVICES_MAX];
    struct process_info listed[NVML_PROCESSES_MAX];
};

static void
look_up(const struct nvml *nvml, const char *name, void *to)
{
    void *found = dlsym(nvml->library, name);
    memcpy(to, &found, sizeof found);
}

static void
look_up_all(struct nvml *n)
{
    look_up(n, "nvmlInit_v2", &n->init);
    look_up(n, "nvmlShutdown", &n->shutdown);
    look_up(n, "nvmlDeviceGetCount_v2", &n->get_count);
    look_up(n, "nvmlDeviceGetHandleByIndex_v2", &n->get_handle);
    look_up(n, "nvmlDeviceGetName", &n->get_name);
    look_up(n, "nvmlDeviceGetUUID", &n->get_uuid);
    look_up(n, "nvmlDeviceGetMemoryInfo", &n->get_memory);
    look_up(n, "nvmlDeviceGetComputeRunningProcesses_v3", &n->list);
    if (!n->list)
        look_up(n, "nvmlDeviceGetComputeRunningProcesses_v2", &n->list);
}

/* Get a text from the driver; "" if the driver has none. The last byte is set to 0, in
   case the driver does not terminate the text. */
static void
get_text(int (*get)(void *device, char *text, unsigned capacity), void *device,
         char *text, size_t capacity)
{
    text[0] = '\0';
    if (!get || get(device, text, (unsigned)capacity) != SUCCESS)
        text[0] = '\0';
    text[capacity - 1] = '\0';
}

static bool
find_devices(struct nvml *n)
{
    unsigned count = 0;
    if (n->get_count(&count) != SUCCESS)
        return false;
    n->count = count < NVML_DEVICES_MAX ? count : NVML_DEVICES_MAX;
    for (size_t i = 0; i < n->count; i++) {
        struct nvml_device *device = &n->devices[i];
        device->processes = calloc(NVML_PROCESSES_MAX, sizeof *device->processes);
        if (!device->processes)
            return false;
        if (n->get_handle((unsigned)i, &n->handles[i]) != SUCCESS) {
            n->handles[i] = NULL;
            continue;
        }
        get_text(n->get_name, n->handles[i], device->name, sizeof device->name);
        get_text(n->get_uuid, n->handles[i], device->uuid, sizeof device->uuid);
    }
    return true;
}

struct nvml *
nvml_open(const char **why)
{
    struct nvml *n = calloc(1, sizeof *n);
    *why = "there is no memory";
    if (!n)
        return NULL;
    n->library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    *why = "there is no NVIDIA driver (libnvidia-ml.so.1)";
    if (n->library) {
        look_up_all(n);
        *why = "the NVIDIA driver's NVML does not answer";
        bool has_all = n->init && n->shutdown && n->get_count && n->get_handle;
        if (has_all && n->init() == SUCCESS) {
            if (find_devices(n))
                return n;
            n->shutdown();
        }
    }
    n->shutdown = NULL;
    nvml_close(n);
    return NULL;
}

void
nvml_close(struct nvml *nvml)
{
    if (!nvml)
        return;
    if (nvml->shutdown)
        nvml->shutdown();
    if (nvml->library)
        dlclose(nvml->library);
    for (size_t i = 0; i < nvml->count; i++)
        free(nvml->devices[i].processes);
    free(nvml);
}

static void
list_processes(struct nvml *n, void *handle, struct nvml_device *device)
{
    unsigned count = NVML_PROCESSES_MAX;
    device->process_count = 0;
    if (!n->list || n->list(handle, &count, n->listed) != SUCCESS)
        return;
    if (count > NVML_PROCESSES_MAX)
        count = NVML_PROCESSES_MAX;
    for (unsigned i = 0; i < count; i++)
        device->processes[i] =
            (struct nvml_process){n->listed[i].pid, n->listed[i].bytes};
    device->process_count = count;
}

void
nvml_sample(struct nvml *nvml)
{
    for (size_t i = 0; i < nvml->count; i++) {
        struct nvml_device *device = &nvml->devices[i];
        struct memory_info memory;
        device->total = device->used = NVML_UNKNOWN;
        device->process_count = 0;
        if (!nvml->handles[i])
            continue;
        if (nvml->get_memory && nvml->get_memory(nvml->handles[i], &memory) == SUCCESS) {
            device->total = memory.total;
            device->used = memory.used;
        }
        list_processes(nvml, nvml->handles[i], device);
    }
}

size_t
nvml_count(const struct nvml *nvml)
{
    return nvml ? nvml->count : 0;
}

const struct nvml_device *
nvml_device(const struct nvml *nvml, size_t i)
{
    return &nvml->devices[i];
}
