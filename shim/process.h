// SPDX-License-Identifier: Apache-2.0
// The process's bytes on a GPU, by the driver's library for management (NVML).
#pragma once

#include <cstdint>

#include "release.h"

namespace shim
{

// Find the bytes of a GPU that this process has, PyTorch's and all others; 0: the driver does not
// tell, as in a container whose numbers of processes are its own. Throws nothing.
uint64_t process_bytes(DeviceIndex device);

} // namespace shim
