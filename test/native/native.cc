// SPDX-License-Identifier: Apache-2.0
// See native.h. Releases differ in where things are; what is asked for with `requires` is not
// in all of them.
#include "native.h"

#include <cstdlib>
#include <string>
#include <vector>

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#if __has_include(<c10/cuda/PeerToPeerAccess.h>)
#include <c10/cuda/PeerToPeerAccess.h>
#define HAS_PEER_ACCESS
#endif

// Exported, but in no header of the wheel.
namespace c10::cuda::_internal
{
__attribute__((weak)) void setHasPrimaryContext(bool (*)(c10::DeviceIndex));
}

namespace
{

namespace allocator = c10::cuda::CUDACachingAllocator;

std::string last_text;

bool
has_context(c10::DeviceIndex)
{
    return true;
}

template <class Stat>
void
copy(dry_stat *to, const Stat &from)
{
    *to = {from.current, from.peak, from.allocated, from.freed};
}

template <class Array>
void
copy_all(dry_stat_array *to, const Array &from)
{
    copy(&to->all, from[0]);
    copy(&to->small_pool, from[1]);
    copy(&to->large_pool, from[2]);
}

template <class Stats>
void
copy_stats(dry_stats *to, const Stats &from)
{
    copy_all(&to->allocation, from.allocation);
    copy_all(&to->segment, from.segment);
    copy_all(&to->active, from.active);
    copy_all(&to->inactive_split, from.inactive_split);
    copy_all(&to->allocated_bytes, from.allocated_bytes);
    copy_all(&to->reserved_bytes, from.reserved_bytes);
    copy_all(&to->active_bytes, from.active_bytes);
    copy_all(&to->inactive_split_bytes, from.inactive_split_bytes);
    if constexpr (requires { from.requested_bytes; })
        copy_all(&to->requested_bytes, from.requested_bytes);
    copy(&to->oversize_allocations, from.oversize_allocations);
    copy(&to->oversize_segments, from.oversize_segments);
    to->max_split_size = from.max_split_size;
    to->num_alloc_retries = from.num_alloc_retries;
    to->num_ooms = from.num_ooms;
    if constexpr (requires { from.num_oom_rejections; })
        to->num_oom_rejections = from.num_oom_rejections;
    if constexpr (requires { from.num_device_alloc; }) {
        to->num_device_alloc = from.num_device_alloc;
        to->num_device_free = from.num_device_free;
    }
    if constexpr (requires { from.num_sync_all_streams; })
        to->num_sync_all_streams = from.num_sync_all_streams;
}

template <class Segment>
dry_pool_segment
segment_of(const Segment &from)
{
    dry_pool_segment segment{};
    segment.address = static_cast<uint64_t>(from.address);
    segment.size = from.total_size;
    segment.stream = reinterpret_cast<uintptr_t>(from.stream);
    segment.pool = {from.owner_private_pool_id.first, from.owner_private_pool_id.second};
    segment.is_large = from.is_large;
    segment.is_expandable = from.is_expandable;
    return segment;
}

template <class Native, class Id>
void
make_pool(Native *native, Id id)
{
    if constexpr (requires { native->createOrIncrefPool(0, id); }) {
        native->createOrIncrefPool(0, id);
    } else if constexpr (requires { native->ensureExistsAndIncrefPool(0, id); }) {
        native->ensureExistsAndIncrefPool(0, id);
    } else {
        native->beginAllocateToPool(0, id, [](cudaStream_t) { return true; });
        native->endAllocateToPool(0, id);
    }
}

template <class Native>
unsigned
open_pool(Native *native, std::pair<uint64_t, uint64_t> number, unsigned flags)
{
    c10::cuda::MempoolId_t id{number.first, number.second};
    unsigned known = 0;
    make_pool(native, id);
    if (flags & DRY_POOL_USE_ON_OOM) {
        known |= DRY_POOL_USE_ON_OOM;
        if constexpr (requires { native->setUseOnOOM(0, id, true); })
            native->setUseOnOOM(0, id, true);
        else if constexpr (requires { native->setUseOnOOM(0, id); })
            native->setUseOnOOM(0, id);
        else
            known &= ~DRY_POOL_USE_ON_OOM;
    }
    if (flags & DRY_POOL_NO_SPLIT) {
        if constexpr (requires { native->setNoSplit(0, id); }) {
            native->setNoSplit(0, id);
            known |= DRY_POOL_NO_SPLIT;
        }
    }
    return known;
}

} // namespace

enum dry_status
native_start(const char *conf)
{
    // The name of before 2.9, and the one since.
    setenv("PYTORCH_CUDA_ALLOC_CONF", conf, 1);
    setenv("PYTORCH_ALLOC_CONF", conf, 1);
    try {
        if (c10::cuda::_internal::setHasPrimaryContext)
            c10::cuda::_internal::setHasPrimaryContext(has_context);
        allocator::init(1);
#ifdef HAS_PEER_ACCESS
        c10::cuda::detail::init_p2p_access_cache(1);
#endif
        return DRY_OK;
    } catch (const std::exception &error) {
        last_text = error.what();
        return DRY_ERR_ARGUMENT;
    }
}

enum dry_status
native_alloc(uint64_t size, uint64_t stream, uint64_t *address)
{
    try {
        *address = reinterpret_cast<uintptr_t>(allocator::raw_alloc_with_stream(
            size, reinterpret_cast<cudaStream_t>(stream)));
        return DRY_OK;
    } catch (const c10::OutOfMemoryError &error) {
        last_text = error.what_without_backtrace();
        return DRY_ERR_NO_SPACE;
    } catch (const std::exception &error) {
        last_text = error.what();
        return DRY_ERR_SYSTEM;
    }
}

void
native_free(uint64_t address)
{
    allocator::raw_delete(reinterpret_cast<void *>(address));
}

void
native_record_stream(uint64_t address, uint64_t stream)
{
    void *at = reinterpret_cast<void *>(address);
    c10::DataPtr data(at, at, allocator::get()->raw_deleter(),
                      c10::Device(c10::DeviceType::CUDA, 0));
    allocator::recordStream(data, c10::cuda::getStreamFromExternal(
                                      reinterpret_cast<cudaStream_t>(stream), 0));
    data.release_context();
}

void
native_empty_cache(void)
{
    allocator::emptyCache();
}

void
native_set_fraction(double fraction)
{
    allocator::setMemoryFraction(fraction, 0);
}

unsigned
native_open_pool(struct dry_pool_id id, unsigned flags)
{
    return open_pool(allocator::get(), {id.a, id.b}, flags);
}

void
native_begin_pool(struct dry_pool_id id)
{
    allocator::get()->beginAllocateToPool(0, {id.a, id.b},
                                          [](cudaStream_t) { return true; });
}

void
native_end_pool(struct dry_pool_id id)
{
    allocator::get()->endAllocateToPool(0, {id.a, id.b});
}

void
native_release_pool(struct dry_pool_id id)
{
    allocator::get()->releasePool(0, {id.a, id.b});
}

void
native_reset_peaks(void)
{
    allocator::resetPeakStats(0);
}

void
native_get_stats(struct dry_stats *stats)
{
    copy_stats(stats, allocator::getDeviceStats(0));
}

void
native_walk(void (*visit)(void *self, const struct dry_pool_segment *segment,
                          const struct dry_pool_part *parts, size_t count),
            void *self)
{
    auto snapshot = allocator::get()->snapshot();
    for (const auto &from : snapshot.segments) {
        dry_pool_segment segment = segment_of(from);
        std::vector<dry_pool_part> parts;
        uint64_t at = segment.address;
        for (const auto &block : from.blocks) {
            dry_pool_part part{};
            part.address = at;
            part.size = block.size;
            part.requested = block.requested_size;
            part.context = DRY_NONE;
            part.is_active = block.allocated;
            part.is_pending = block.active && !block.allocated;
            parts.push_back(part);
            at += block.size;
        }
        visit(self, &segment, parts.data(), parts.size());
    }
}

const char *
native_last_text(void)
{
    return last_text.c_str();
}
