// SPDX-License-Identifier: Apache-2.0
#include "contexts.h"

#include <drystone/status.h>
#include <drystone/trace.h>

namespace shim
{

uint32_t
Contexts::keep(Context context)
{
    std::lock_guard<std::mutex> lock(mutex_);
    if (unused_.empty()) {
        kept_.push_back(std::move(context));
        unused_.reserve(kept_.capacity()); // drop() then needs no memory, and cannot fail
        return static_cast<uint32_t>(kept_.size() - 1);
    }
    uint32_t number = unused_.back();
    unused_.pop_back();
    kept_[number] = std::move(context);
    return number;
}

void
Contexts::drop(uint32_t number)
{
    Context dropped; // destroyed after the unlock
    std::lock_guard<std::mutex> lock(mutex_);
    std::swap(dropped, kept_[number]);
    unused_.push_back(number);
}

Context
Contexts::find(uint32_t number)
{
    std::lock_guard<std::mutex> lock(mutex_);
    return number < kept_.size() ? kept_[number] : Context{};
}

} // namespace shim
