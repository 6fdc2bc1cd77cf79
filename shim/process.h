// SPDX-License-Identifier: Apache-2.0
// What the driver says of this process, by its library for management (NVML).
#pragma once

#include <cstdint>

#include "release.h"

namespace shim
{

// Find the bytes of a GPU that this process has, PyTorch's and all others; 0: the driver does not
// tell, as in a container whose numbers of processes are its own. Throws nothing.
uint64_t process_bytes(DeviceIndex device);

} // namespace shim
