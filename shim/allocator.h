// SPDX-License-Identifier: Apache-2.0
// PyTorch's allocator of device memory, over Drystone's pools.
//
// One object serves all devices. PyTorch keeps a pointer to it for the life of the process, so the
// object is created once and never destroyed. Functions replace PyTorch's where its release
// declares them virtual.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "device.h"
#include "release.h"

namespace shim
{

class Allocator : public torch_cuda::CUDAAllocator
{
  public:
    explicit Allocator(Settings settings) : settings_(std::move(settings))
    {
    }
    const Settings &
    settings() const
    {
        return settings_;
    }

    // Apply settings of a running program to open devices, and to those that are opened later.
    void set_conf(const std::string &conf);

    // c10::Allocator
    c10::DataPtr allocate(size_t size) override;
    c10::DeleterFnPtr raw_deleter() const override;
    void copy_data(void *to, const void *from, size_t size) const override;

    // blocks
    void *raw_alloc(size_t size) override;
    void *raw_alloc_with_stream(size_t size, cudaStream_t stream) override;
    void raw_delete(void *address) override;
    void recordStream(const c10::DataPtr &data, c10::cuda::CUDAStream stream) override;
    void *getBaseAllocation(void *address, size_t *size) override;
    cudaError_t memcpyAsync(void *to, int to_device, const void *from, int from_device,
                            size_t size, cudaStream_t stream, bool has_peer) override;

    // devices
    Device *made(DeviceIndex device);
    void init(int count) override;
    bool
    initialized() override
    {
        return !devices_.empty();
    }
    void
    enable(bool is_on) override
    {
        caches_ = is_on;
    }
    bool
    isEnabled() const override
    {
        return caches_;
    }
    double getMemoryFraction(DeviceIndex device) override;
    void setMemoryFraction(double fraction, DeviceIndex device) override;
    void emptyCache(MempoolId_t id = {0, 0}) override;
    void cacheInfo(DeviceIndex device, size_t *largest) override;
    void enablePeerAccess(DeviceIndex device, DeviceIndex peer) override;
    std::string
    name() override
    {
        return "drystone";
    }

    // figures and history
    Stats getDeviceStats(DeviceIndex device) override;
    void resetAccumulatedStats(DeviceIndex device) override;
    void resetPeakStats(DeviceIndex device) override;
    SnapshotInfo snapshot(MempoolId_t id, bool has_traces);
    SnapshotInfo
    snapshot(MempoolId_t id)
    {
        return snapshot(id, true);
    }
    bool
    isHistoryEnabled() override
    {
        return history_.is_on;
    }
    Gathered getContextForPointer(const void *address);
    void recordHistory(bool is_on, torch_cuda::CreateContextFn gather, size_t entries,
                       RecordContext when, bool clear,
                       const std::vector<std::string> &skipped);
    void recordHistory(bool is_on, torch_cuda::CreateContextFn gather, size_t entries,
                       RecordContext when, bool clear);
    void recordAnnotation(
        const std::vector<std::pair<std::string, std::string>> &texts) override;
    void pushCompileContext(std::string &text) override;
    void popCompileContext() override;
    bool
    supportsUserMetadata()
    {
        return true;
    }
    void
    setUserMetadata(const std::string &text)
    {
        notes().metadata = text;
    }
    std::string
    getUserMetadata()
    {
        return notes().metadata;
    }
    void attachOutOfMemoryObserver(torch_cuda::OutOfMemoryObserver observer) override;
    void attachAllocatorTraceTracker(torch_cuda::AllocatorTraceTracker tracker) override;

    // private pools and graphs
    void beginAllocateToPool(DeviceIndex device, MempoolId_t id, Filter filter) override;
    void endAllocateToPool(DeviceIndex device, MempoolId_t id) override;
    void markCaptureBegin(DeviceIndex device);
    void markCaptureEnd(DeviceIndex device);
    void releasePool(DeviceIndex device, MempoolId_t id) override;
    void createOrIncrefPool(DeviceIndex device, MempoolId_t id,
                            Custom allocator) override;
    int getPoolUseCount(DeviceIndex device, MempoolId_t id) override;
    void setUseOnOOM(DeviceIndex device, MempoolId_t id, bool is_used);
    void
    setUseOnOOM(DeviceIndex device, MempoolId_t id)
    {
        setUseOnOOM(device, id, true);
    }
    void setNoSplit(DeviceIndex device, MempoolId_t id);
    bool checkPoolLiveAllocations(DeviceIndex device, MempoolId_t id,
                                  const std::unordered_set<void *> &expected) override;
    std::shared_ptr<torch_cuda::AllocatorState> getCheckpointState(
        DeviceIndex device, MempoolId_t id) override;
    torch_cuda::CheckpointDelta setCheckpointPoolState(
        DeviceIndex device, std::shared_ptr<torch_cuda::AllocatorState> state) override;
    torch_cuda::ShareableHandle shareIpcHandle(void *address) override;
    std::shared_ptr<void> getIpcDevPtr(std::string handle) override;
#if DRY_TORCH >= 210
    std::vector<torch_cuda::StreamSegmentSize> getExpandableSegmentSizes(
        DeviceIndex device) override;
#endif
#if DRY_TORCH >= 212
    void attachOomRejectionObserver(RejectionObserver observer) override;
#endif

  private:
    Device &at(DeviceIndex device);
    Device *of(const void *address, struct dry_pool_block *block);
    std::vector<Device *> all_made();
    c10::DataPtr uncached(size_t size, DeviceIndex device);

    const Settings settings_;
    std::atomic<bool> caches_{true};
    std::mutex mutex_; // guards the members below, and the creation of devices
    std::vector<std::unique_ptr<std::atomic<Device *>>> devices_;
    // Calls of emptyCache() on each device that wait for no stream. PyTorch counts each as a wait.
    std::atomic<int64_t> idle_waits_[C10_COMPILE_TIME_MAX_GPUS] = {};
    History history_;
    std::vector<torch_cuda::OutOfMemoryObserver> observers_;
    std::vector<RejectionObserver> rejection_observers_;
    std::vector<torch_cuda::AllocatorTraceTracker> trackers_;
    std::vector<std::string> confs_; // arguments of set_conf(), in order
    Annotations annotations_;
};

// Return the allocator; NULL until it is PyTorch's.
Allocator *active();
void set_active(Allocator *allocator);

} // namespace shim
