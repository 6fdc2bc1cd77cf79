// SPDX-License-Identifier: Apache-2.0
// PyTorch's allocator of pinned host memory, over Drystone's pinned cache.
//
// One object serves all GPUs, because memory is registered for all. PyTorch keeps a pointer to it
// for the life of the process, so the object is created once and never destroyed. A block's context
// is its address. So PyTorch's context or pointer is ours if a block in use begins there.
//
// The former allocator lives on: it owns the memory that it handed out, and receives all calls
// about memory that is not ours.
//
// Words
//     scope  the time in which PyTorch captures a graph, between begin_ and end_allocate_to_pool()
//     held   said of a block that a captured graph may use, see dry_pinned_hold()
//
// Threads  Any thread may call.
// Errors   C++ exceptions of PyTorch: OutOfMemoryError if memory runs out, else Error.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <ATen/core/CachingHostAllocator.h>

#include <drystone/pinned.h>

#include "captures.h"
#include "pinned_trace.h"
#include "release.h"

namespace shim
{

struct PinnedSettings {
    struct dry_pinned_options options; // except what the members below set
    uint64_t ahead_bytes = 0;          // bytes to pin ahead, in the background
    int device = -1;                   // -1: the current one at the first request
    std::string library;               // empty: the driver's
};

class Pinned final : public at::HostAllocator
{
  public:
    using StreamFilter = std::function<bool(c10::Stream)>;

    Pinned(PinnedSettings settings, at::HostAllocator *former);

    // Return the cache, created if necessary. Throws if creation fails.
    struct dry_pinned *cache();
    // Return the cache; NULL before the first request.
    struct dry_pinned *
    made() const
    {
        return cache_.load(std::memory_order_acquire);
    }

    // c10::Allocator
    c10::DataPtr allocate(size_t size) override;
    c10::DeleterFnPtr raw_deleter() const override;
    void copy_data(void *to, const void *from, size_t size) const override;

    // at::HostAllocator
    bool record_event(void *address, void *context, c10::Stream stream) override;
    void empty_cache() override;
    at::HostStats get_stats() override;
    void reset_accumulated_stats() override;
    void reset_peak_stats() override;
    void begin_allocate_to_pool(MempoolId_t id, StreamFilter filter);
    void end_allocate_to_pool(MempoolId_t id);
    void release_pool(MempoolId_t id);
#if DRY_TORCH >= 214
    void record_history(bool is_on, HostTrace::Gather gather, size_t entries,
                        HostTrace::When when, bool clear) override;
    bool
    is_history_enabled() const override
    {
        return trace_.is_on();
    }
    std::vector<at::HostSegmentInfo> get_segments() override;
    std::vector<HostTrace::Entry> get_traces() override;
    void record_external_register(void *address, size_t size) override;
    void record_external_unregister(void *address) override;
#endif

  private:
    void open();
    void pin_ahead(struct dry_pinned *cache);
    void free(void *address);
    bool record(void *address, const c10::cuda::CUDAStream &stream);
    void hold(void *address, uint64_t graph);
    void release_ended();
    [[noreturn]] void fail(enum dry_status status, size_t size);
    static void free_block(void *address);

    const PinnedSettings settings_;
    at::HostAllocator *const former_;
    std::mutex open_mutex_;
    std::atomic<struct dry_pinned *> cache_{nullptr};
    Captures captures_;
    std::mutex scopes_mutex_;         // guards scopes_ and pools_
    std::vector<MempoolId_t> scopes_; // open scopes
    // Pools begun here and not released, with their number of users.
    std::map<MempoolId_t, int> pools_;
    std::atomic<int> scope_count_{0};
#if DRY_TORCH >= 214
    HostTrace trace_;
#endif
};

// Return the allocator; NULL until it is PyTorch's.
Pinned *active_pinned();
void set_active_pinned(Pinned *pinned);

} // namespace shim
