/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_SHIM_NVML_H
#define DRY_SHIM_NVML_H

/*
 * The bytes that this process has of a GPU, PyTorch's and all others, by NVML, the driver's
 * management library. The header is C and C++, because both shim and plug include it.
 */

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <dlfcn.h>
#include <unistd.h>

enum { NVML_OK = 0, NVML_TOO_SMALL = 7, NVML_PROCESSES_MAX = 1 << 16 };

/* nvmlProcessInfo_v1_t */
struct nvml_process {
    unsigned pid;
    unsigned long long bytes;
};

/* Functions of the library; `list` is NULL if NVML is unusable. */
struct nvml {
    int (*init)(void);
    int (*find)(const char *bus, void **device);
    int (*list)(void *device, unsigned *count, struct nvml_process *processes);
};

static inline void
nvml_look_up(void *library, const char *name, void *to)
{
    void *found = dlsym(library, name);
    memcpy(to, &found, sizeof found);
}

/* Load and initialize the library, once in a process. It is never shut down. */
static inline struct nvml
nvml_open(void)
{
    struct nvml nvml = {NULL, NULL, NULL};
    void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY);
    if (!library)
        return nvml;
    nvml_look_up(library, "nvmlInit_v2", &nvml.init);
    nvml_look_up(library, "nvmlDeviceGetHandleByPciBusId_v2", &nvml.find);
    nvml_look_up(library, "nvmlDeviceGetComputeRunningProcesses", &nvml.list);
    if (!nvml.init || !nvml.find || nvml.init() != NVML_OK)
        nvml.list = NULL;
    return nvml;
}

/* Return the *count processes of a device, which the caller frees; NULL: NVML does not tell. */
static inline struct nvml_process *
nvml_list(const struct nvml *nvml, void *device, unsigned *count)
{
    struct nvml_process *processes = NULL;
    int result = NVML_TOO_SMALL;
    for (unsigned capacity = 8;
         result == NVML_TOO_SMALL && capacity <= NVML_PROCESSES_MAX; capacity *= 2) {
        void *larger = realloc(processes, capacity * sizeof *processes);
        if (!larger)
            break;
        processes = (struct nvml_process *)larger;
        *count = capacity;
        result = nvml->list(device, count, processes);
    }
    if (result == NVML_OK)
        return processes;
    free(processes);
    return NULL;
}

/*
 * Return this process's bytes of the GPU at the PCI bus id `bus`. 0: the driver does not
 * tell, as in a container with its own process numbers. Any thread may call it.
 */
static inline uint64_t
nvml_process_bytes(const struct nvml *nvml, const char *bus)
{
    void *device = NULL;
    unsigned count = 0;
    uint64_t bytes = 0;
    if (!nvml->list || nvml->find(bus, &device) != NVML_OK)
        return 0;
    struct nvml_process *processes = nvml_list(nvml, device, &count);
    if (!processes)
        return 0;
    for (unsigned i = 0; i < count; i++) {
        /* ULLONG_MAX says that the driver does not count. */
        if (processes[i].pid == (unsigned)getpid() && processes[i].bytes != ULLONG_MAX)
            bytes = processes[i].bytes;
    }
    free(processes);
    return bytes;
}

#endif
