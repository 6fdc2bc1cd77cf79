// SPDX-License-Identifier: Apache-2.0
// The history of pinned memory, which PyTorch has since 2.14: events, and stacks of blocks.
//
// A free is recorded as completed at once, even if streams still use the block: the cache reports
// no later moment.
//
// Threads  Any thread may call.
#pragma once

#include "release.h"

#if DRY_TORCH >= 214

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include <c10/core/RingBuffer.h>
#include <c10/util/ApproximateClock.h>

namespace shim
{

class HostTrace
{
  public:
    using Entry = c10::CachingDeviceAllocator::TraceEntry;
    using Gather = c10::CachingDeviceAllocator::CreateContextFn;
    using When = c10::CachingDeviceAllocator::RecordContext;

    void record(bool is_on, Gather gather, size_t entries, When when, bool clear);
    bool
    is_on() const
    {
        return is_on_.load(std::memory_order_relaxed);
    }
    void on_alloc(const void *address, size_t size);
    void on_free(const void *address, size_t size);
    // Return the events, oldest first, with their times in microseconds.
    std::vector<Entry> entries();
    // Return the stack that a block in use was allocated with; NULL: none was gathered.
    Gathered find_context(uint64_t address);

  private:
    Gathered gather(When least);
    void add(Entry::Action action, uint64_t address, size_t size, Gathered gathered);

    std::atomic<bool> is_on_{false};
    std::atomic<Gather> gather_{nullptr};
    std::atomic<When> when_{When::NEVER};
    c10::RingBuffer<Entry> entries_;
    c10::ApproximateClockToUnixTimeConverter clock_;
    std::mutex mutex_;                      // guards contexts_
    std::map<uint64_t, Gathered> contexts_; // blocks in use, by address
};

} // namespace shim

#endif
