// SPDX-License-Identifier: Apache-2.0
// Stacks that PyTorch gathers, under the numbers that a pool keeps of them.
//
// A pool knows a context as a number, and says when nothing refers to the number any more. Here
// the number stands for PyTorch's shared_ptr, and for the texts that PyTorch notes beside it.
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
    std::string compile = "N/A"; // what torch.compile was about
    std::string metadata;
};

class Contexts
{
  public:
    // Keep a context; the number is another one for each call, until it is dropped.
    uint32_t keep(Context context);
    void drop(uint32_t number);
    // The context under a number; an empty one for DRY_NONE.
    Context find(uint32_t number);

  private:
    std::mutex mutex_;
    std::vector<Context> kept_;
    std::vector<uint32_t> unused_;
};

} // namespace shim
