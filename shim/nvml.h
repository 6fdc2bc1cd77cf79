/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_SHIM_NVML_H
#define DRY_SHIM_NVML_H

/*
 * The bytes that this process has of a GPU, PyTorch's and all others, by the driver's library for
 * management (NVML). It is C and C++, for both seams have their copy of it.
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

/* Functions of the library; list is NULL where it cannot be used. */
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

/* Find the library's functions and begin with it, once in a process: it is never ended. */
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

/* Return the processes of a device, *count of them, to be freed; NULL: it does not tell. */
static inline struct nvml_process *
nvml_list(const struct nvml *nvml, void *device, unsigned *count)
{
    struct nvml_process *processes = NULL;
    int result = NVML_TOO_SMALL;
    for (unsigned room = 8; result == NVML_TOO_SMALL && room <= NVML_PROCESSES_MAX;
         room *= 2) {
        void *larger = realloc(processes, room * sizeof *processes);
        if (!larger)
            break;
        processes = (struct nvml_process *)larger;
        *count = room;
        result = nvml->list(device, count, processes);
    }
    if (result == NVML_OK)
        return processes;
    free(processes);
    return NULL;
}

/*
 * Return the bytes of the GPU at the PCI bus id `bus`. 0: the driver does not tell, as in a
 * container whose numbers of processes are its own. Any thread may call it.
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
        /* The largest number says that the driver does not count. */
        if (processes[i].pid == (unsigned)getpid() && processes[i].bytes != ULLONG_MAX)
            bytes = processes[i].bytes;
    }
    free(processes);
    return bytes;
}

#endif
