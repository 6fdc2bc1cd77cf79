// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include "figures.h"
#include "process.h"
#include "try_options.h"

#include <c10/util/Exception.h>

namespace shim
{

namespace
{

constexpr size_t text_max = 8192;

template <class Array>
void
add_all(Array *to, const struct dry_stat_array &from)
{
    add_figure(&(*to)[0], from.all);
    add_figure(&(*to)[1], from.small_pool);
    add_figure(&(*to)[2], from.large_pool);
}

// A template, so that members that a release lacks are left out.
template <class To>
void
add_counts(To *to, const struct dry_stats &from)
{
    to->num_alloc_retries += from.num_alloc_retries;
    to->num_ooms += from.num_ooms;
    to->num_sync_all_streams += from.num_sync_all_streams;
    to->num_device_alloc += from.num_device_alloc;
    to->num_device_free += from.num_device_free;
    to->max_split_size = from.max_split_size;
    if constexpr (requires { to->num_oom_rejections; })
        to->num_oom_rejections += from.num_oom_rejections;
}

// A template for the same reason: releases before 2.15 have no figures of private pools.
template <class To>
void
add_private_stats(To *to, struct dry_pool *pool)
{
    if constexpr (requires { to->reserved_bytes_by_private_pools; }) {
        auto visit = [](void *self, struct dry_pool_id id,
                        const struct dry_stat_array *reserved) {
            auto &pools = static_cast<To *>(self)->reserved_bytes_by_private_pools;
            add_all(&pools[MempoolId_t{id.a, id.b}], *reserved);
        };
        dry_pool_visit_private_stats(pool, visit, to);
    }
}

void
add_stats(Stats *to, struct dry_pool *pool)
{
    struct dry_stats from;
    dry_pool_get_stats(pool, &from);
    add_all(&to->allocation, from.allocation);
    add_all(&to->segment, from.segment);
    add_all(&to->active, from.active);
    add_all(&to->inactive_split, from.inactive_split);
    add_all(&to->allocated_bytes, from.allocated_bytes);
    add_all(&to->reserved_bytes, from.reserved_bytes);
    add_all(&to->active_bytes, from.active_bytes);
    add_all(&to->inactive_split_bytes, from.inactive_split_bytes);
    add_all(&to->requested_bytes, from.requested_bytes);
    add_figure(&to->oversize_allocations, from.oversize_allocations);
    add_figure(&to->oversize_segments, from.oversize_segments);
    add_counts(to, from);
    add_private_stats(to, pool);
}

} // namespace

Device::Device(DeviceIndex index, const Settings &settings)
    : index_(index), placement_(settings.placement), compat_(settings.compat)
{
    try {
        open(settings);
    } catch (...) {
        dry_pool_destroy(pool_);
        dry_cuda_close(cuda_);
        throw;
    }
}

void
Device::open(const Settings &settings)
{
    struct dry_error error = {};
    struct dry_cuda_options cuda;
    dry_cuda_options_init(&cuda);
    cuda.device = index_;
    cuda.shareable = true; // tensors can then be sent to other processes
    enum dry_status status = dry_cuda_open(&cuda, &cuda_, &error);
    if (status == DRY_ERR_UNSUPPORTED) {
        cuda.shareable = false;
        status = dry_cuda_open(&cuda, &cuda_, &error);
    }
    TORCH_CHECK(status == DRY_OK, "drystone: cannot open cuda:", int(index_), ": ",
                error.text);
    struct dry_pool_options pool =
        shim_options(settings.placement, settings.conf.c_str(), settings.compat.c_str());
    pool.device = dry_cuda_get_device(cuda_);
    pool.device_index = index_;
    status = dry_pool_create(&pool, &pool_, &error);
    TORCH_CHECK(status == DRY_OK, "drystone: cannot make a pool on cuda:", int(index_),
                ": ", error.text);
    check(dry_pool_add_oom_callback(pool_, free_what_waits, this), "callback");
}

Device::~Device()
{
    fed_.clear();
    dry_pool_destroy(pool_);
    dry_cuda_close(cuda_);
}

// Run PyTorch's own callbacks. One of them frees memory that other processes no longer use.
bool
Device::free_what_waits(void *, uint64_t, uint64_t)
{
    bool is_freed = false;
    auto *registry = c10::FreeCudaMemoryCallbacksRegistry();
    for (const auto &name : registry->Keys()) {
        try {
            is_freed |= registry->Create(name)->Execute();
        } catch (const std::exception &) {
            // The request that waits for memory fails with its own error.
        }
    }
    return is_freed;
}

void
Device::check(enum dry_status status, const char *what) const
{
    TORCH_CHECK(status == DRY_OK, "drystone: ", what, " on cuda:", int(index_), ": ",
                reason(status));
}

// Return the meaning of a status, with the driver's last error number if the driver failed.
std::string
Device::reason(enum dry_status status) const
{
    struct dry_cuda_account account = DRY_INIT(struct dry_cuda_account);
    dry_cuda_get_account(cuda_, &account);
    std::string text = dry_status_text(status);
    if (status == DRY_ERR_SYSTEM)
        text += " (the driver's last error: " + std::to_string(account.last_error) + ")";
    return text;
}

// --- blocks ----------------------------------------------------------------------------------

void *
Device::alloc(size_t size, cudaStream_t stream)
{
    uint64_t address;
    struct dry_pool *pool =
        C10_UNLIKELY(has_fed_.load(std::memory_order_relaxed)) ? pool_for(stream) : pool_;
    enum dry_status status = dry_pool_alloc(pool, size, get_number(stream), &address);
    if (C10_UNLIKELY(status != DRY_OK))
        fail(pool, status, size, stream);
    void *at = reinterpret_cast<void *>(address);
    if (C10_UNLIKELY(c10::memoryProfilingEnabled()))
        report(at, 1);
    return at;
}

bool
Device::free(void *address)
{
    if (C10_UNLIKELY(c10::memoryProfilingEnabled()))
        report(address, -1);
    enum dry_status status = dry_pool_free(pool_, reinterpret_cast<uintptr_t>(address));
    if (C10_LIKELY(status == DRY_OK))
        return true;
    // A forked child has none of its parent's device memory, so there is nothing to free.
    if (status == DRY_ERR_UNSUPPORTED)
        return true;
    if (status == DRY_ERR_ARGUMENT)
        return free_fed(reinterpret_cast<uintptr_t>(address));
    // Tensor destructors must not throw: the block stays in use.
    TORCH_WARN_ONCE("drystone: a block of cuda:", int(index_),
                    " cannot be freed: ", reason(status));
    return true;
}

void
Device::record_stream(void *address, cudaStream_t stream)
{
    uint64_t at = reinterpret_cast<uintptr_t>(address), used = get_number(stream);
    enum dry_status status = dry_pool_record_stream(pool_, at, used);
    for (struct dry_pool *pool : fed_pools()) {
        if (status == DRY_ERR_ARGUMENT)
            status = dry_pool_record_stream(pool, at, used);
    }
    check(status, "record_stream");
}

bool
Device::find(const void *address, struct dry_pool_block *block)
{
    uint64_t at = reinterpret_cast<uintptr_t>(address);
    enum dry_status status = dry_pool_get_block(pool_, at, block);
    for (struct dry_pool *pool : fed_pools()) {
        if (status != DRY_OK)
            status = dry_pool_get_block(pool, at, block);
    }
    return status == DRY_OK;
}

// Report to PyTorch's profiler. `change` is the sign of the block's size.
void
Device::report(void *address, int64_t change)
{
    struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
    struct dry_stats stats;
    if (!find(address, &block))
        return;
    dry_pool_get_stats(pool_, &stats);
    int64_t size = static_cast<int64_t>(block.size);
    int64_t allocated = stats.allocated_bytes.all.current - (change < 0 ? size : 0);
    c10::reportMemoryUsageToProfiler(
        address, change * size, static_cast<size_t>(allocated),
        static_cast<size_t>(stats.reserved_bytes.all.current),
        {c10::DeviceType::CUDA, index_});
}

// --- failures ----------------------------------------------------------------------------------

void
Device::fail(struct dry_pool *pool, enum dry_status status, size_t size,
             cudaStream_t stream)
{
    if (status == DRY_ERR_NO_SPACE)
        out_of_memory(pool, size, stream);
    TORCH_CHECK_WITH(OutOfMemoryError, status != DRY_ERR_ARGUMENT,
                     "CUDA out of memory. Tried to allocate more than 1EB memory.");
    TORCH_CHECK(false, "drystone: allocating ", size, " bytes on cuda:", int(index_),
                ": ", reason(status));
}

void
Device::out_of_memory(struct dry_pool *pool, size_t size, cudaStream_t stream)
{
    struct dry_pool_explanation why = DRY_INIT(struct dry_pool_explanation);
    enum dry_status status = dry_pool_explain(pool, size, get_number(stream), &why);
    TORCH_CHECK_WITH(OutOfMemoryError, status == DRY_OK,
                     "CUDA out of memory. Tried to allocate ", size, " bytes.");
    c10::reportOutOfMemoryToProfiler(static_cast<int64_t>(size), why.allocated_bytes,
                                     why.reserved_bytes, {c10::DeviceType::CUDA, index_});
    std::vector<torch_cuda::OutOfMemoryObserver> observers;
    std::vector<RejectionObserver> rejected;
    {
        std::lock_guard<std::mutex> lock(observers_mutex_);
        observers = observers_;
        if (why.is_rejected)
            rejected = rejection_observers_;
    }
    size_t total = why.limit_bytes < why.total_bytes ? why.limit_bytes : why.total_bytes;
    for (const auto &observer : rejected)
        observer(index_, size, why.allocated_bytes, why.total_bytes);
    for (const auto &observer : observers)
        observer(index_, why.segment_size, total, why.free_bytes);
    dry_oom_hint hint = placement_ == DRY_PLACEMENT_PAGED ? DRY_OOM_HINT_NONE
                        : torch_cuda::CUDAAllocatorConfig::expandable_segments()
                            ? DRY_OOM_HINT_RESERVE
                            : DRY_OOM_HINT_EXPANDABLE;
    std::string text(text_max, '\0');
    size_t length = dry_pool_format_oom(&why, index_, process_bytes(index_), hint,
                                        text.data(), text.size());
    text.resize(std::min(text_max - 1, length));
    TORCH_CHECK_WITH(OutOfMemoryError, false, text);
}

void
Device::on_out_of_memory(torch_cuda::OutOfMemoryObserver observer)
{
    std::lock_guard<std::mutex> lock(observers_mutex_);
    observers_.push_back(std::move(observer));
}

void
Device::on_rejection(RejectionObserver observer)
{
    std::lock_guard<std::mutex> lock(observers_mutex_);
    rejection_observers_.push_back(std::move(observer));
}

void
Device::enable_peer(DeviceIndex peer)
{
    check(dry_pool_enable_peer(pool_, peer), "access of another device");
}

// --- limits and figures ------------------------------------------------------------------------

void
Device::set_conf(const std::string &conf)
{
    struct dry_error error = {};
    enum dry_status status = dry_pool_set_conf(pool_, conf.c_str(), &error);
    TORCH_CHECK(status == DRY_OK, "drystone: settings of cuda:", int(index_), ": ",
                error.text);
}

void
Device::set_fraction(double fraction)
{
    check(dry_pool_set_fraction(pool_, fraction), "memory fraction");
    fraction_ = fraction;
}

void
Device::empty_cache(MempoolId_t id)
{
    shares_.sweep(pool_);
    auto pools = fed_pools();
    pools.push_back(pool_);
    for (struct dry_pool *pool : pools) {
        if (id == MempoolId_t{0, 0})
            check(dry_pool_empty_cache(pool), "empty_cache");
        else
            check(dry_pool_empty_private(pool, pool_id(id)), "empty_cache");
    }
    drop_idle_fed();
}

// Return the larger of the largest free block and `limit` bytes of new memory. 0 as `limit` means
// all of the device's free memory.
size_t
Device::largest_free(size_t limit)
{
    uint64_t block = 0;
    check(dry_pool_get_largest_free(pool_, &block), "largest free block");
    if (limit == 0) {
        struct dry_pool_explanation why = DRY_INIT(struct dry_pool_explanation);
        check(dry_pool_explain(pool_, 1, 0, &why), "free memory");
        limit = why.free_bytes;
    }
    return std::max<size_t>(limit, block);
}

Stats
Device::stats()
{
    Stats stats;
    for (struct dry_pool *pool : fed_pools())
        add_stats(&stats, pool);
    add_stats(&stats, pool_);
    return stats;
}

void
Device::reset_accumulated()
{
    dry_pool_reset_accumulated(pool_);
    for (struct dry_pool *pool : fed_pools())
        dry_pool_reset_accumulated(pool);
}

void
Device::reset_peaks()
{
    dry_pool_reset_peaks(pool_);
    for (struct dry_pool *pool : fed_pools())
        dry_pool_reset_peaks(pool);
}

} // namespace shim
