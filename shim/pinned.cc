// SPDX-License-Identifier: Apache-2.0
#include "pinned.h"

#include <algorithm>

#include <c10/util/Exception.h>

namespace shim
{

namespace
{

Pinned *the_pinned;

constexpr uint64_t mib = uint64_t(1) << 20;

// Return the cache's number for a stream. The default stream's handle is the same for every GPU.
uint64_t
number_for_cache(const c10::cuda::CUDAStream &stream)
{
    if (!stream.stream())
        return DRY_PINNED_DEFAULT_STREAM(stream.device_index());
    return reinterpret_cast<uintptr_t>(stream.stream());
}

struct dry_pinned_explanation
explain(struct dry_pinned *cache, size_t size)
{
    struct dry_pinned_explanation why = DRY_INIT(struct dry_pinned_explanation);
    if (dry_pinned_explain(cache, std::max<size_t>(size, 1), &why) != DRY_OK)
        why = {}; // more than any machine has: all figures stay 0
    return why;
}

} // namespace

Pinned *
active_pinned()
{
    return the_pinned;
}

void
set_active_pinned(Pinned *pinned)
{
    the_pinned = pinned;
}

Pinned::Pinned(PinnedSettings settings, at::HostAllocator *former)
    : settings_(std::move(settings)), former_(former)
{
}

// --- the cache ---------------------------------------------------------------------------------

struct dry_pinned *
Pinned::cache()
{
    if (struct dry_pinned *ready = made())
        return ready;
    std::lock_guard<std::mutex> lock(open_mutex_);
    if (!made())
        open();
    return made();
}

void
Pinned::open()
{
    struct dry_pinned_options options = settings_.options;
    struct dry_pinned *fresh = nullptr;
    struct dry_error error = {};
    options.device =
        settings_.device >= 0 ? settings_.device : c10::cuda::current_device();
    if (!settings_.library.empty())
        options.library = settings_.library.c_str();
    enum dry_status status = dry_pinned_create(&options, &fresh, &error);
    TORCH_CHECK(status == DRY_OK, "drystone: no pinned memory: ", error.text);
    try {
        pin_ahead(fresh);
    } catch (...) {
        dry_pinned_destroy(fresh);
        throw;
    }
    cache_.store(fresh, std::memory_order_release);
}

// Start pinning ahead, up to the memory available. Warn if that is less than requested.
void
Pinned::pin_ahead(struct dry_pinned *cache)
{
    const struct dry_pinned_options &options = settings_.options;
    bool is_buddy = options.mode == DRY_PINNED_BUDDY;
    uint64_t available = explain(cache, 1).available_bytes;
    TORCH_CHECK(!is_buddy || available >= options.block_bytes,
                "drystone: no pinned memory: a block has ", options.block_bytes / mib,
                " MiB, and the machine has room for ", available / mib, " MiB");
    uint64_t unit = is_buddy ? options.block_bytes : 2 * mib;
    uint64_t ahead = std::min(settings_.ahead_bytes, available - available % unit);
    if (ahead < settings_.ahead_bytes)
        TORCH_WARN(
            "drystone: ", settings_.ahead_bytes / mib,
            " MiB of pinned memory were asked for ahead, and the machine has room for ",
            available / mib, " MiB: ", ahead / mib, " MiB are pinned ahead");
    struct dry_error error = {};
    if (ahead && dry_pinned_warm(cache, ahead, true, &error) != DRY_OK)
        TORCH_WARN("drystone: pinning ahead ended early: ", error.text);
}

// --- blocks ------------------------------------------------------------------------------------

c10::DataPtr
Pinned::allocate(size_t size)
{
    void *address = nullptr;
    if (size > 0) {
        struct dry_pinned *cache = this->cache();
        if (captures_.has_ended())
            release_ended();
        enum dry_status status =
            dry_pinned_alloc(cache, size, DRY_PINNED_NO_STREAM, &address);
        if (status != DRY_OK)
            fail(status, size);
    }
    c10::DataPtr block(address, address, free_block, c10::DeviceType::CPU);
    if (address && scope_count_.load(std::memory_order_relaxed) > 0) {
        // The capture may pass the address to a kernel without calling record_event().
        auto stream = c10::cuda::getCurrentCUDAStream();
        if (uint64_t graph = captures_.get_number(stream.stream()))
            hold(address, graph);
    }
#if DRY_TORCH >= 214
    if (address && trace_.is_on())
        trace_.on_alloc(address, dry_pinned_usable_bytes(made(), address));
#endif
    return block;
}

void
Pinned::fail(enum dry_status status, size_t size)
{
    TORCH_CHECK(status != DRY_ERR_UNSUPPORTED,
                "drystone: a forked child cannot have pinned memory: allocate it in the "
                "parent, or start processes with \"spawn\"");
    TORCH_CHECK(status != DRY_ERR_SYSTEM,
                "drystone: the driver refused to pin memory for ", size, " bytes");
    TORCH_CHECK_WITH(OutOfMemoryError, status != DRY_ERR_ARGUMENT, "drystone: ", size,
                     " bytes of pinned memory are more than 4 TiB");
    struct dry_pinned_explanation why = explain(made(), size);
    TORCH_CHECK_WITH(
        OutOfMemoryError, false, "drystone: no room for ", size,
        " bytes of pinned memory: ", why.pinned_bytes / mib, " MiB are pinned, ",
        why.requested_bytes / mib, " MiB of them in use, ", why.pending_bytes / mib,
        " MiB of these only by streams and graphs; the largest free part is ",
        why.largest_free_bytes, " bytes, and the machine has room for ",
        why.available_bytes / mib, " MiB more");
}

void
Pinned::free_block(void *address)
{
    if (address)
        the_pinned->free(address);
}

// Called by destructors, so it never throws. A forked child's copy is for the parent to free.
void
Pinned::free(void *address)
{
#if DRY_TORCH >= 214
    if (trace_.is_on())
        trace_.on_free(address, dry_pinned_usable_bytes(made(), address));
#endif
    if (dry_pinned_free(made(), address) == DRY_ERR_ARGUMENT) {
        TORCH_WARN_ONCE("drystone: pinned memory was freed that is not in use");
    }
}

c10::DeleterFnPtr
Pinned::raw_deleter() const
{
    return free_block;
}

void
Pinned::copy_data(void *to, const void *from, size_t size) const
{
    default_copy_data(to, from, size);
}

// --- streams -----------------------------------------------------------------------------------

// PyTorch also calls this for pageable memory, whose context can be anything.
bool
Pinned::record_event(void *address, void *context, c10::Stream stream)
{
    if (made()) {
        c10::cuda::CUDAStream cuda(stream);
        if (record(context, cuda) || (address != context && record(address, cuda)))
            return true;
    }
    return former_->record_event(address, context, stream);
}

// Record a use of the block. Returns false if no block of ours in use begins there.
bool
Pinned::record(void *address, const c10::cuda::CUDAStream &stream)
{
    if (!address || !dry_pinned_usable_bytes(made(), address))
        return false;
    if (uint64_t graph = captures_.get_number(stream.stream())) {
        hold(address, graph);
        return true;
    }
    enum dry_status status =
        dry_pinned_record_stream(made(), address, number_for_cache(stream));
    TORCH_CHECK(status != DRY_ERR_MEMORY,
                "drystone: no memory to note a stream's use of pinned memory");
    return status == DRY_OK;
}

// --- captured graphs ---------------------------------------------------------------------------

void
Pinned::hold(void *address, uint64_t graph)
{
    TORCH_CHECK(dry_pinned_hold(made(), address, graph) == DRY_OK,
                "drystone: no memory to hold pinned memory for a graph");
}

// Release the blocks of graphs that ended. The driver reports their end where no CUDA call is
// allowed, so this is done later.
void
Pinned::release_ended()
{
    for (uint64_t graph : captures_.take_ended())
        (void)dry_pinned_release(made(), graph);
}

void
Pinned::begin_allocate_to_pool(MempoolId_t id, StreamFilter)
{
    std::lock_guard<std::mutex> lock(scopes_mutex_);
    TORCH_CHECK(std::count(scopes_.begin(), scopes_.end(), id) == 0,
                "beginAllocateToPool: already recording to mempool_id");
    scopes_.push_back(id);
    pools_[id]++;
    scope_count_++;
}

// Scopes and pools from before this allocator was enabled belong to the former one.
void
Pinned::end_allocate_to_pool(MempoolId_t id)
{
    {
        std::lock_guard<std::mutex> lock(scopes_mutex_);
        auto found = std::find(scopes_.begin(), scopes_.end(), id);
        if (found != scopes_.end()) {
            scopes_.erase(found);
            scope_count_--;
            return;
        }
    }
#if DRY_TORCH >= 211
    former_->end_allocate_to_pool(id);
#endif
}

// Releases no memory: blocks become free when their graphs end (captures.h).
void
Pinned::release_pool(MempoolId_t id)
{
    {
        std::lock_guard<std::mutex> lock(scopes_mutex_);
        auto found = pools_.find(id);
        if (found != pools_.end()) {
            if (--found->second == 0)
                pools_.erase(found);
            return;
        }
    }
#if DRY_TORCH >= 211
    former_->release_pool(id);
#endif
}

// --- clearing ----------------------------------------------------------------------------------

void
Pinned::empty_cache()
{
    if (struct dry_pinned *cache = made()) {
        release_ended();
        TORCH_CHECK(dry_pinned_clear(cache) == DRY_OK,
                    "drystone: a forked child cannot clear its parent's pinned memory");
    }
    former_->empty_cache();
}

} // namespace shim
