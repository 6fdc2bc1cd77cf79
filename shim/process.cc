// SPDX-License-Identifier: Apache-2.0
#include "process.h"

#include <cuda_runtime_api.h>

#include "nvml.h"

namespace shim
{

uint64_t
process_bytes(DeviceIndex device)
{
    static const struct nvml nvml = nvml_open();
    char bus[32];
    if (cudaDeviceGetPCIBusId(bus, sizeof bus, device) == cudaSuccess)
        return nvml_process_bytes(&nvml, bus);
    (void)cudaGetLastError();
    return 0;
}

} // namespace shim
