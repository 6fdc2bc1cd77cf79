// SPDX-License-Identifier: Apache-2.0
// The pinned allocator's figures and history, together with the former allocator's.
#include <algorithm>

#include "figures.h"
#include "pinned.h"

namespace shim
{

namespace
{

template <class Duration>
void
add(Duration *to, const struct dry_pinned_time &from)
{
    if (from.count == 0)
        return;
    to->min = to->count ? std::min(to->min, from.min) : from.min;
    to->max = std::max(to->max, from.max);
    to->total += from.total;
    to->count += from.count;
}

// A template, so that members that a release lacks are left out: 2.10 renamed them.
template <class To>
void
add(To *to, const struct dry_pinned_stats &from)
{
    if constexpr (requires { to->active_requests; }) {
        add_figure(&to->active_requests, from.active_requests);
        add_figure(&to->active_bytes, from.active_bytes);
        add_figure(&to->allocations, from.allocations);
        add_figure(&to->allocated_bytes, from.allocated_bytes);
    } else {
        add_figure(&to->allocation, from.active_requests);
        add_figure(&to->allocated_bytes, from.active_bytes);
        add_figure(&to->segment, from.allocations);
        add_figure(&to->reserved_bytes, from.allocated_bytes);
    }
    add(&to->host_alloc_time, from.host_alloc_time);
    add(&to->host_free_time, from.host_free_time);
    to->num_host_alloc += from.num_host_alloc;
    to->num_host_free += from.num_host_free;
}

} // namespace

at::HostStats
Pinned::get_stats()
{
    at::HostStats stats = former_->get_stats();
    struct dry_pinned_stats ours = DRY_INIT(struct dry_pinned_stats);
    if (struct dry_pinned *cache = made()) {
        dry_pinned_get_stats(cache, &ours);
        add(&stats, ours);
    }
    return stats;
}

void
Pinned::reset_accumulated_stats()
{
    if (struct dry_pinned *cache = made())
        dry_pinned_reset_accumulated(cache);
    former_->reset_accumulated_stats();
}

void
Pinned::reset_peak_stats()
{
    if (struct dry_pinned *cache = made())
        dry_pinned_reset_peaks(cache);
    former_->reset_peak_stats();
}

#if DRY_TORCH >= 214

void
Pinned::record_history(bool is_on, HostTrace::Gather gather, size_t entries,
                       HostTrace::When when, bool clear)
{
    trace_.record(is_on, gather, entries, when, clear);
    former_->record_history(is_on, gather, entries, when, clear);
}

// PyTorch's segments have one block each, so each of our blocks is reported as a segment.
std::vector<at::HostSegmentInfo>
Pinned::get_segments()
{
    std::vector<struct dry_pinned_block> blocks;
    auto keep = [](void *self, const struct dry_pinned_block *block) {
        static_cast<std::vector<struct dry_pinned_block> *>(self)->push_back(*block);
    };
    std::vector<at::HostSegmentInfo> segments = former_->get_segments();
    struct dry_pinned *cache = made();
    if (!cache || dry_pinned_walk(cache, keep, &blocks) != DRY_OK)
        return segments;
    for (const struct dry_pinned_block &block : blocks) {
        at::HostSegmentInfo segment;
        segment.address = block.address;
        segment.size = block.bytes;
        segment.allocated = block.state == DRY_PINNED_IN_USE;
        segment.active = block.state != DRY_PINNED_FREE;
        segment.context_when_allocated = trace_.find_context(block.address);
        segments.push_back(std::move(segment));
    }
    return segments;
}

std::vector<HostTrace::Entry>
Pinned::get_traces()
{
    std::vector<HostTrace::Entry> entries = former_->get_traces();
    for (HostTrace::Entry &entry : trace_.entries())
        entries.push_back(std::move(entry));
    std::stable_sort(entries.begin(), entries.end(), [](const auto &a, const auto &b) {
        return a.time_.t_ < b.time_.t_;
    });
    return entries;
}

// Memory that the program registers itself. The former allocator keeps its history.
void
Pinned::record_external_register(void *address, size_t size)
{
    former_->record_external_register(address, size);
}

void
Pinned::record_external_unregister(void *address)
{
    former_->record_external_unregister(address);
}

#endif

} // namespace shim
