// SPDX-License-Identifier: Apache-2.0
#include "process.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

namespace shim
{

namespace
{

constexpr int ok = 0, too_small = 7; // nvmlReturn_t
constexpr unsigned processes_max = 1 << 16;

// nvmlProcessInfo_v1_t
struct Process {
    unsigned pid;
    unsigned long long bytes;
};

struct Nvml {
    int (*init)() = nullptr;
    int (*find)(const char *bus, void **device) = nullptr;
    int (*list)(void *device, unsigned *count, Process *processes) = nullptr;
};

template <class Function>
void
look_up(void *library, const char *name, Function *to)
{
    *to = reinterpret_cast<Function>(dlsym(library, name));
}

Nvml
load()
{
    Nvml nvml;
    void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY);
    if (!library)
        return nvml;
    look_up(library, "nvmlInit_v2", &nvml.init);
    look_up(library, "nvmlDeviceGetHandleByPciBusId_v2", &nvml.find);
    look_up(library, "nvmlDeviceGetComputeRunningProcesses", &nvml.list);
    if (!nvml.init || !nvml.find || nvml.init() != ok)
        nvml.list = nullptr;
    return nvml;
}

uint64_t
bytes_of(const Nvml &nvml, void *device)
{
    std::vector<Process> processes(8);
    unsigned count = static_cast<unsigned>(processes.size());
    int result;
    while ((result = nvml.list(device, &count, processes.data())) == too_small &&
           count < processes_max) {
        processes.resize(std::max<size_t>(count, processes.size() + 1));
        count = static_cast<unsigned>(processes.size());
    }
    if (result != ok)
        return 0;
    auto self = static_cast<unsigned>(getpid());
    for (unsigned i = 0; i < count && i < processes.size(); i++) {
        // The largest number says that the driver does not count.
        if (processes[i].pid == self)
            return processes[i].bytes == std::numeric_limits<unsigned long long>::max()
                       ? 0
                       : processes[i].bytes;
    }
    return 0;
}

} // namespace

uint64_t
process_bytes(DeviceIndex device)
{
    char bus[32];
    void *handle = nullptr;
    try {
        static const Nvml nvml = load();
        if (!nvml.list)
            return 0;
        if (cudaDeviceGetPCIBusId(bus, sizeof bus, device) != cudaSuccess) {
            (void)cudaGetLastError();
            return 0;
        }
        return nvml.find(bus, &handle) == ok ? bytes_of(nvml, handle) : 0;
    } catch (const std::exception &) {
        return 0; // no memory: the request's own error is what matters
    }
}

} // namespace shim
