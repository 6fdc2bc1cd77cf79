// SPDX-License-Identifier: Apache-2.0
// One GPU: a Drystone device, a pool on it, and PyTorch's functions on both.
//
// Threads  Any thread may call, but only one creates a device.
// Errors   C++ exceptions of PyTorch: OutOfMemoryError, or Error with the pool's message.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include <drystone/cuda.h>
#include <drystone/pool.h>

#include "contexts.h"
#include "fed.h"
#include "ipc.h"
#include "release.h"

namespace shim
{

// How pools are created; the texts are those of struct dry_pool_options.
struct Settings {
    enum dry_placement placement = DRY_PLACEMENT_PAGED;
    std::string conf, compat;
};

// The arguments of recordHistory().
struct History {
    bool is_on = false;
    torch_cuda::CreateContextFn gather = nullptr;
    size_t entries = 1;
    RecordContext when = RecordContext::NEVER;
    bool clear = false;
    std::vector<std::string> skipped; // names of actions
};

class Device
{
  public:
    Device(DeviceIndex index, const Settings &settings);
    ~Device();
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;

    void *alloc(size_t size, cudaStream_t stream);
    // Returns false if the address is not of this device.
    bool free(void *address);
    void record_stream(void *address, cudaStream_t stream);
    // Find the block in use at an address. Returns false if there is none.
    bool find(const void *address, struct dry_pool_block *block);

    torch_cuda::ShareableHandle
    share(void *address)
    {
        return shares_.share(*this, pool_, address);
    }
    std::shared_ptr<void>
    open_shared(const std::string &bytes)
    {
        return shares_.open(*this, pool_, bytes);
    }
    // Let GPU `peer` access this GPU's pages.
    void enable_peer(DeviceIndex peer);

    void set_conf(const std::string &conf);
    void set_fraction(double fraction);
    double
    fraction() const
    {
        return fraction_;
    }
    void empty_cache(MempoolId_t id);
    size_t largest_free(size_t limit);

    Stats stats();
    void
    get_counters(struct dry_pool_counters *counters)
    {
        dry_pool_get_counters(pool_, counters);
    }
    void reset_accumulated();
    void reset_peaks();

    // record.cc
    void set_history(const History &history);
    void listen(const std::vector<torch_cuda::AllocatorTraceTracker> &trackers);
    void add_segments(MempoolId_t id, std::vector<SegmentInfo> *segments);
    std::vector<TraceEntry> trace();
    Gathered find_context(const void *address);

    // private.cc
    void open_pool(MempoolId_t id, Custom allocator = nullptr);
    void release_pool(MempoolId_t id);
    uint64_t count_users(MempoolId_t id);
    void set_flag(MempoolId_t id, unsigned flag, bool is_on);
    bool has_just(MempoolId_t id, const std::unordered_set<void *> &expected);
    void begin_pool(MempoolId_t id, Filter filter);
    void end_pool(MempoolId_t id);
    // Begin a capture of the streams in this thread's last scope: PyTorch begins both together.
    void begin_capture();
    void end_capture();

    // Visit the expandable segments that have pages.
    void walk_expandable(
        const std::function<void(const struct dry_pool_expandable &)> &visit);
    std::shared_ptr<torch_cuda::AllocatorState> checkpoint(MempoolId_t id);
    torch_cuda::CheckpointDelta restore(const torch_cuda::AllocatorState &state,
                                        c10::DeleterFnPtr deleter);

    void on_rejection(RejectionObserver observer);
    void on_out_of_memory(torch_cuda::OutOfMemoryObserver observer);

    // Throw an error that explains any status other than DRY_OK.
    void check(enum dry_status status, const char *what) const;
    std::string reason(enum dry_status status) const;

  private:
    struct Scope {
        MempoolId_t id;
        Filter filter;
        FedPool *fed;           // NULL: a private pool of pool_
        std::thread::id thread; // thread that began the scope
    };
    struct Capture {
        std::thread::id thread; // thread that began the capture
        Filter filter;
    };

    void open(const Settings &settings);
    struct dry_pool *pool_for(cudaStream_t stream);
    struct dry_pool *find_pool(MempoolId_t id);
    void feed(MempoolId_t id, Custom allocator);
    bool is_captured(cudaStream_t stream);
    static bool is_any_captured(void *self, uint64_t stream);
    bool forget_capture();
    FedPool *find_fed(MempoolId_t id);
    std::vector<struct dry_pool *> fed_pools();
    bool free_fed(uint64_t address);
    void drop_idle_fed();
    [[noreturn]] void fail(struct dry_pool *pool, enum dry_status status, size_t size,
                           cudaStream_t stream);
    [[noreturn]] void out_of_memory(struct dry_pool *pool, size_t size,
                                    cudaStream_t stream);
    void keep_history(struct dry_pool *pool);
    void listen_to(struct dry_pool *pool);
    void report(void *address, int64_t change);
    TraceEntry make_entry(const struct dry_pool_event &event, c10::approx_time_t time);
    static bool free_what_waits(void *self, uint64_t size, uint64_t stream);
    static uint32_t gather(void *self);
    static void release(void *self, uint32_t context);
    static void tell(void *self, const struct dry_pool_event *event);

    const DeviceIndex index_;
    const enum dry_placement placement_;
    struct dry_cuda *cuda_ = nullptr;
    struct dry_pool *pool_ = nullptr;
    double fraction_ = 1.0;
    const std::string compat_;

    Contexts contexts_;
    Shares shares_;
    std::mutex history_mutex_; // guards history_ and trackers_
    History history_;
    std::atomic<torch_cuda::CreateContextFn> gather_{nullptr};
    std::atomic<RecordContext> when_{RecordContext::NEVER};
    std::vector<torch_cuda::AllocatorTraceTracker> trackers_;

    std::mutex scopes_mutex_;                    // guards scopes_ and fed_
    std::vector<std::unique_ptr<Scope>> scopes_; // open scopes, in order of their begin
    // Filters of captures, kept until the last capture ends.
    std::vector<std::unique_ptr<Filter>> captured_;
    size_t capture_count_ = 0;
    std::vector<std::unique_ptr<FedPool>> fed_;
    std::atomic<bool> has_fed_{false};
    // Guards captures_; taken while the pool may hold its lock.
    std::mutex captures_mutex_;
    std::vector<Capture> captures_;
    std::mutex observers_mutex_; // guards observers_
    std::vector<torch_cuda::OutOfMemoryObserver> observers_;
    std::vector<RejectionObserver> rejection_observers_;
};

// Texts that the calling thread attaches to its allocations, until it changes them.
struct Notes {
    std::vector<std::string> compile;
    std::string metadata;
};
Notes &notes();

inline uint64_t
get_number(cudaStream_t stream)
{
    return reinterpret_cast<uintptr_t>(stream);
}

inline struct dry_pool_id
pool_id(MempoolId_t id)
{
    return {id.first, id.second};
}

} // namespace shim
