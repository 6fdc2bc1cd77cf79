// SPDX-License-Identifier: Apache-2.0
// Maps a pool's context numbers to the stacks that PyTorch gathers.
//
// A pool knows a context as a number, and reports when the number is no longer used. A number here
// maps to PyTorch's shared_ptr and to the texts that PyTorch records with it.
//
// Threads  Any thread may call.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "release.h"

namespace shim
{

struct Context {
    Gathered gathered;
    std::string compile = "N/A"; // the function that torch.compile was compiling
    std::string metadata;
};

class Contexts
{
  public:
    // Keep a context. Returns its number, which is unique until it is dropped.
    uint32_t keep(Context context);
    void drop(uint32_t number);
    // Return the context of a number; an empty one for DRY_NONE.
    Context find(uint32_t number);

  private:
    std::mutex mutex_;
    std::vector<Context> kept_;
    std::vector<uint32_t> unused_;
};

} // namespace shim
