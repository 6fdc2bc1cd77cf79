// SPDX-License-Identifier: Apache-2.0
// The process's bytes on a GPU, by NVML, the driver's management library.
#pragma once

#include <cstdint>

#include "release.h"

namespace shim
{

// Return this process's bytes on a GPU, PyTorch's and all others; 0: the driver does not tell, as
// in a container with its own process numbers. Never throws.
uint64_t process_bytes(DeviceIndex device);

} // namespace shim
