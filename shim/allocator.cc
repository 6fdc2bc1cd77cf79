// SPDX-License-Identifier: Apache-2.0
#include "allocator.h"

#include <algorithm>
#include <cstdlib>

#include <c10/core/impl/GPUTrace.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/Exception.h>

namespace shim
{

namespace
{

constexpr size_t exbibyte = size_t(1) << 60;

Allocator *the_active;

void
free_cached(void *address)
{
    the_active->raw_delete(address);
}

void
free_uncached(void *address)
{
    if (const auto *trace = c10::impl::GPUTrace::get_trace())
        (*trace)->trace_gpu_memory_deallocation(c10::DeviceType::CUDA,
                                                reinterpret_cast<uintptr_t>(address));
    C10_CUDA_CHECK(cudaFree(address));
}

DeviceIndex
current_device()
{
    DeviceIndex device = 0;
    C10_CUDA_CHECK(c10::cuda::GetDevice(&device));
    return device;
}

// PyTorch's own variable: every request then goes to the driver.
bool
is_caching_forbidden()
{
    static const bool forbidden =
        std::getenv("PYTORCH_NO_CUDA_MEMORY_CACHING") != nullptr;
    return forbidden;
}

// Set the limits of the pinned cache, which newer releases name here as well.
template <class Info>
void
set_host_limits(Info *info)
{
    if constexpr (requires { info->max_cached_size; })
        info->max_round_threshold = info->max_cached_size = SIZE_MAX;
}

// Return the settings for a snapshot. Placement paged only changes the last settings' text.
torch_cuda::AllocatorConfigInfo
config_info(const Settings &settings)
{
    using Config = torch_cuda::CUDAAllocatorConfig;
    torch_cuda::AllocatorConfigInfo info{};
    info.garbage_collection_threshold = Config::garbage_collection_threshold();
    info.max_split_size = Config::max_split_size();
    info.pinned_num_register_threads = Config::pinned_num_register_threads();
    info.expandable_segments = Config::expandable_segments();
    info.release_lock_on_malloc = Config::release_lock_on_cudamalloc();
    info.pinned_use_host_register = Config::pinned_use_cuda_host_register();
    set_host_limits(&info);
    info.last_allocator_settings = Config::last_allocator_settings();
    info.roundup_power2_divisions = Config::roundup_power2_divisions();
    if (settings.placement == DRY_PLACEMENT_PAGED)
        info.last_allocator_settings = "drystone_placement:paged," + settings.conf;
    return info;
}

} // namespace

Allocator *
active()
{
    return the_active;
}

void
set_active(Allocator *allocator)
{
    the_active = allocator;
}

// --- devices -----------------------------------------------------------------------------------

void
Allocator::init(int count)
{
    std::lock_guard<std::mutex> lock(mutex_);
    while (devices_.size() < static_cast<size_t>(count))
        devices_.push_back(std::make_unique<std::atomic<Device *>>(nullptr));
}

// Return the device; NULL if it had no request so far.
Device *
Allocator::made(DeviceIndex device)
{
    TORCH_CHECK(device >= 0 && static_cast<size_t>(device) < devices_.size(),
                "Allocator not initialized for device ", int(device),
                ": did you call init?");
    return devices_[device]->load(std::memory_order_acquire);
}

// Return the device. The first request opens it, because a context takes memory of the GPU.
Device &
Allocator::at(DeviceIndex device)
{
    if (Device *ready = made(device))
        return *ready;
    std::lock_guard<std::mutex> lock(mutex_);
    if (Device *ready = made(device))
        return *ready;
    auto fresh = std::make_unique<Device>(device, settings_);
    for (const auto &conf : confs_)
        fresh->set_conf(conf);
    if (history_.is_on)
        fresh->set_history(history_);
    for (const auto &observer : observers_)
        fresh->on_out_of_memory(observer);
    for (const auto &observer : rejection_observers_)
        fresh->on_rejection(observer);
    if (!trackers_.empty())
        fresh->listen(trackers_);
    devices_[device]->store(fresh.get(), std::memory_order_release);
    return *fresh.release();
}

std::vector<Device *>
Allocator::all_made()
{
    std::vector<Device *> found;
    for (const auto &device : devices_) {
        if (Device *ready = device->load(std::memory_order_acquire))
            found.push_back(ready);
    }
    return found;
}

// Return the device that has a block in use at this address, and the block; NULL: none has.
Device *
Allocator::of(const void *address, struct dry_pool_block *block)
{
    for (Device *device : all_made()) {
        if (device->find(address, block))
            return device;
    }
    return nullptr;
}

void
Allocator::set_conf(const std::string &conf)
{
    std::lock_guard<std::mutex> lock(mutex_);
    TORCH_CHECK(settings_.placement == DRY_PLACEMENT_TORCH,
                "placement paged keeps the options that it began with");
    for (Device *device : all_made())
        device->set_conf(conf);
    confs_.push_back(conf);
}

double
Allocator::getMemoryFraction(DeviceIndex device)
{
    Device *ready = made(device);
    return ready ? ready->fraction() : 1.0;
}

void
Allocator::setMemoryFraction(double fraction, DeviceIndex device)
{
    TORCH_CHECK(0 <= fraction && fraction <= 1, "invalid fraction:", fraction,
                ". Please set within [0, 1].");
    at(device).set_fraction(fraction);
}

void
Allocator::emptyCache(MempoolId_t id)
{
    for (size_t i = 0; i < devices_.size(); i++) {
        Device *device = devices_[i]->load(std::memory_order_acquire);
        bool is_all = id == MempoolId_t{0, 0};
        // Without reserved bytes placement paged waits for no stream, nor does a device without
        // requests.
        if (is_all && (!device || (settings_.placement == DRY_PLACEMENT_PAGED &&
                                   device->stats().reserved_bytes[0].current == 0)))
            idle_waits_[i]++;
        try {
            if (device)
                device->empty_cache(id);
        } catch (const c10::Error &error) {
            if (is_all)
                throw;
            // The end of a MemPool calls this with its id, and must not throw.
            TORCH_WARN_ONCE(error.what_without_backtrace());
        }
    }
}

void
Allocator::cacheInfo(DeviceIndex device, size_t *largest)
{
    *largest = at(device).largest_free(*largest);
}

void
Allocator::enablePeerAccess(DeviceIndex device, DeviceIndex peer)
{
    c10::cuda::CUDAGuard guard(device);
    cudaError_t error = cudaDeviceEnablePeerAccess(peer, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled)
        (void)cudaGetLastError();
    else
        C10_CUDA_CHECK(error);
    at(peer).enable_peer(device);
}

// --- blocks ------------------------------------------------------------------------------------

c10::DataPtr
Allocator::allocate(size_t size)
{
    TORCH_CHECK_WITH(OutOfMemoryError, size < exbibyte,
                     "CUDA out of memory. Tried to allocate more than 1EB memory.");
    DeviceIndex device = current_device();
    void *address = nullptr;
    if (C10_UNLIKELY(!caches_ || is_caching_forbidden()))
        return uncached(size, device);
    if (size != 0)
        address = at(device).alloc(size, c10::cuda::getCurrentCUDAStream(device));
    const auto *trace = c10::impl::GPUTrace::get_trace();
    if (C10_UNLIKELY(trace && address))
        (*trace)->trace_gpu_memory_allocation(c10::DeviceType::CUDA,
                                              reinterpret_cast<uintptr_t>(address));
    return {address, address, &free_cached, c10::Device(c10::DeviceType::CUDA, device)};
}

c10::DataPtr
Allocator::uncached(size_t size, DeviceIndex device)
{
    void *address = nullptr;
    if (size != 0) {
        C10_CUDA_CHECK(cudaMalloc(&address, size));
        if (const auto *trace = c10::impl::GPUTrace::get_trace())
            (*trace)->trace_gpu_memory_allocation(c10::DeviceType::CUDA,
                                                  reinterpret_cast<uintptr_t>(address));
    }
    return {address, address, &free_uncached, c10::Device(c10::DeviceType::CUDA, device)};
}

c10::DeleterFnPtr
Allocator::raw_deleter() const
{
    return caches_ && !is_caching_forbidden() ? &free_cached : &free_uncached;
}

void
Allocator::copy_data(void *to, const void *from, size_t size) const
{
    C10_CUDA_CHECK(cudaMemcpy(to, from, size, cudaMemcpyDeviceToDevice));
}

void *
Allocator::raw_alloc(size_t size)
{
    DeviceIndex device = current_device();
    return raw_alloc_with_stream(size, c10::cuda::getCurrentCUDAStream(device));
}

void *
Allocator::raw_alloc_with_stream(size_t size, cudaStream_t stream)
{
    if (size == 0)
        return nullptr;
    DeviceIndex device = current_device();
    if (C10_UNLIKELY(!caches_ || is_caching_forbidden()))
        return uncached(size, device).release_context();
    return at(device).alloc(size, stream);
}

void
Allocator::raw_delete(void *address)
{
    if (!address)
        return;
    const auto *trace = c10::impl::GPUTrace::get_trace();
    if (C10_UNLIKELY(trace))
        (*trace)->trace_gpu_memory_deallocation(c10::DeviceType::CUDA,
                                                reinterpret_cast<uintptr_t>(address));
    for (const auto &device : devices_) {
        Device *ready = device->load(std::memory_order_acquire);
        if (ready && ready->free(address))
            return;
    }
    TORCH_CHECK(!caches_ || is_caching_forbidden(), "invalid device pointer: ", address);
    C10_CUDA_CHECK(cudaFree(address));
}

// Memory of others, such as another process, has another deleter, and its free waits for no stream.
void
Allocator::recordStream(const c10::DataPtr &data, c10::cuda::CUDAStream stream)
{
    if (!data.get() || data.get_deleter() != &free_cached)
        return;
    struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
    Device *device = of(data.get(), &block);
    TORCH_CHECK(device, "No allocated block can be found");
    device->record_stream(data.get(), stream);
}

void *
Allocator::getBaseAllocation(void *address, size_t *size)
{
    struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
    TORCH_CHECK(of(address, &block), "invalid device pointer: ", address);
    if (size)
        *size = block.segment_size;
    return reinterpret_cast<void *>(block.segment_address);
}

// Pages of the driver's virtual memory need cudaMemcpyPeerAsync unless the devices have peer
// access.
cudaError_t
Allocator::memcpyAsync(void *to, int to_device, const void *from, int from_device,
                       size_t size, cudaStream_t stream, bool has_peer)
{
    if (has_peer || to_device == from_device)
        return cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, stream);
    return cudaMemcpyPeerAsync(to, to_device, from, from_device, size, stream);
}

// --- figures and history -----------------------------------------------------------------------

Stats
Allocator::getDeviceStats(DeviceIndex device)
{
    Device *ready = made(device);
    Stats stats = ready ? ready->stats() : Stats{};
    if (!ready)
        stats.max_split_size =
            static_cast<int64_t>(torch_cuda::CUDAAllocatorConfig::max_split_size());
    stats.num_sync_all_streams += idle_waits_[device];
    return stats;
}

void
Allocator::resetAccumulatedStats(DeviceIndex device)
{
    if (Device *ready = made(device))
        ready->reset_accumulated();
    idle_waits_[device] = 0;
}

void
Allocator::resetPeakStats(DeviceIndex device)
{
    if (Device *ready = made(device))
        ready->reset_peaks();
}

SnapshotInfo
Allocator::snapshot(MempoolId_t id, bool has_traces)
{
    SnapshotInfo info;
    for (const auto &device : devices_) {
        Device *ready = device->load(std::memory_order_acquire);
        info.device_traces.emplace_back();
        if (ready && has_traces)
            info.device_traces.back() = ready->trace();
        if (ready)
            ready->add_segments(id, &info.segments);
    }
    std::lock_guard<std::mutex> lock(mutex_);
    info.external_annotations = annotations_;
    info.config_metadata = config_info(settings_);
    return info;
}

Gathered
Allocator::getContextForPointer(const void *address)
{
    struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
    Device *device = of(address, &block);
    return device ? device->find_context(address) : nullptr;
}

void
Allocator::recordHistory(bool is_on, torch_cuda::CreateContextFn gather, size_t entries,
                         RecordContext when, bool clear,
                         const std::vector<std::string> &skipped)
{
    TORCH_CHECK(when == RecordContext::NEVER || gather);
    std::lock_guard<std::mutex> lock(mutex_);
    history_ = {is_on, gather, entries, when, clear, skipped};
    if (!is_on || clear)
        annotations_.clear();
    for (Device *device : all_made())
        device->set_history(history_);
}

void
Allocator::recordHistory(bool is_on, torch_cuda::CreateContextFn gather, size_t entries,
                         RecordContext when, bool clear)
{
    recordHistory(is_on, gather, entries, when, clear, {});
}

void
Allocator::recordAnnotation(const std::vector<std::pair<std::string, std::string>> &texts)
{
    std::lock_guard<std::mutex> lock(mutex_);
    if (!history_.is_on)
        return;
    Annotations::value_type entry(current_device(), 0);
    for (const auto &text : texts)
        entry.recordUserMetadata(text.first, text.second);
    auto now = std::chrono::system_clock::now().time_since_epoch();
    entry.time_.t_ = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
    if (annotations_.size() >= history_.entries && !annotations_.empty())
        annotations_.erase(annotations_.begin());
    annotations_.push_back(std::move(entry));
}

void
Allocator::pushCompileContext(std::string &text)
{
    notes().compile.push_back(text);
}

void
Allocator::popCompileContext()
{
    if (!notes().compile.empty())
        notes().compile.pop_back();
}

void
Allocator::attachOutOfMemoryObserver(torch_cuda::OutOfMemoryObserver observer)
{
    std::lock_guard<std::mutex> lock(mutex_);
    observers_.push_back(observer);
    for (Device *device : all_made())
        device->on_out_of_memory(observer);
}

#if DRY_TORCH >= 212
void
Allocator::attachOomRejectionObserver(RejectionObserver observer)
{
    std::lock_guard<std::mutex> lock(mutex_);
    rejection_observers_.push_back(observer);
    for (Device *device : all_made())
        device->on_rejection(observer);
}
#endif

void
Allocator::attachAllocatorTraceTracker(torch_cuda::AllocatorTraceTracker tracker)
{
    std::lock_guard<std::mutex> lock(mutex_);
    trackers_.push_back(std::move(tracker));
    for (Device *device : all_made())
        device->listen(trackers_);
}

// --- private pools and graphs --------------------------------------------------------------------

void
Allocator::beginAllocateToPool(DeviceIndex device, MempoolId_t id, Filter filter)
{
    at(device).begin_pool(id, std::move(filter));
}

void
Allocator::endAllocateToPool(DeviceIndex device, MempoolId_t id)
{
    at(device).end_pool(id);
}

void
Allocator::markCaptureBegin(DeviceIndex device)
{
    at(device).begin_capture();
}

void
Allocator::markCaptureEnd(DeviceIndex device)
{
    at(device).end_capture();
}

void
Allocator::releasePool(DeviceIndex device, MempoolId_t id)
{
    at(device).release_pool(id);
}

void
Allocator::createOrIncrefPool(DeviceIndex device, MempoolId_t id, Custom allocator)
{
    at(device).open_pool(id, std::move(allocator));
}

int
Allocator::getPoolUseCount(DeviceIndex device, MempoolId_t id)
{
    return static_cast<int>(at(device).count_users(id));
}

void
Allocator::setUseOnOOM(DeviceIndex device, MempoolId_t id, bool is_used)
{
    at(device).set_flag(id, DRY_POOL_USE_ON_OOM, is_used);
}

void
Allocator::setNoSplit(DeviceIndex device, MempoolId_t id)
{
    at(device).set_flag(id, DRY_POOL_NO_SPLIT, true);
}

bool
Allocator::checkPoolLiveAllocations(DeviceIndex device, MempoolId_t id,
                                    const std::unordered_set<void *> &expected)
{
    return at(device).has_just(id, expected);
}

std::shared_ptr<torch_cuda::AllocatorState>
Allocator::getCheckpointState(DeviceIndex device, MempoolId_t id)
{
    return at(device).checkpoint(id);
}

torch_cuda::CheckpointDelta
Allocator::setCheckpointPoolState(DeviceIndex device,
                                  std::shared_ptr<torch_cuda::AllocatorState> state)
{
    return at(device).restore(*state, &free_cached);
}

torch_cuda::ShareableHandle
Allocator::shareIpcHandle(void *address)
{
    struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
    Device *device = of(address, &block);
    TORCH_CHECK(device, "invalid device pointer: ", address);
    return device->share(address);
}

std::shared_ptr<void>
Allocator::getIpcDevPtr(std::string handle)
{
    return at(current_device()).open_shared(handle);
}

#if DRY_TORCH >= 210
std::vector<torch_cuda::StreamSegmentSize>
Allocator::getExpandableSegmentSizes(DeviceIndex device)
{
    std::vector<torch_cuda::StreamSegmentSize> sizes;
    if (Device *ready = made(device))
        ready->walk_expandable([&sizes](const struct dry_pool_expandable &segment) {
            auto stream = reinterpret_cast<cudaStream_t>(uintptr_t(segment.stream));
            sizes.emplace_back(stream, segment.is_small, segment.mapped_bytes);
        });
    return sizes;
}
#endif

} // namespace shim
