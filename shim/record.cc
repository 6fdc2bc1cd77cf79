// SPDX-License-Identifier: Apache-2.0
// A device's history, snapshot and trackers, as PyTorch's structs.
#include <algorithm>

#include "device.h"

namespace shim
{

namespace
{

using Action = TraceEntry::Action;

// Actions with the names that _record_memory_history(skip_actions=...) uses.
struct Known {
    enum dry_action action;
    Action torch;
    const char *name;
};
const Known known[] = {
    {DRY_ACTION_ALLOC, Action::ALLOC, "alloc"},
    {DRY_ACTION_FREE_REQUESTED, Action::FREE_REQUESTED, "free_requested"},
    {DRY_ACTION_FREE_COMPLETED, Action::FREE_COMPLETED, "free_completed"},
    {DRY_ACTION_SEGMENT_ALLOC, Action::SEGMENT_ALLOC, "segment_alloc"},
    {DRY_ACTION_SEGMENT_FREE, Action::SEGMENT_FREE, "segment_free"},
    {DRY_ACTION_SEGMENT_MAP, Action::SEGMENT_MAP, "segment_map"},
    {DRY_ACTION_SEGMENT_UNMAP, Action::SEGMENT_UNMAP, "segment_unmap"},
    {DRY_ACTION_SNAPSHOT, Action::SNAPSHOT, "snapshot"},
    {DRY_ACTION_OOM, Action::OOM, "oom"},
};

const Known *
find_action(enum dry_action action)
{
    for (const Known &one : known) {
        if (one.action == action)
            return &one;
    }
    return nullptr;
}

void
add_block(SegmentInfo *segment, const struct dry_pool_part &part, Gathered gathered)
{
    BlockInfo block;
    block.size = part.size;
    block.requested_size = part.requested;
    block.allocated = part.is_active;
    block.active = part.is_active || part.is_pending;
    block.context_when_allocated = std::move(gathered);
    if (block.allocated)
        segment->allocated_size += block.size;
    if (block.active) {
        segment->active_size += block.size;
        segment->requested_size += block.requested_size;
    }
    segment->blocks.push_back(std::move(block));
}

// The state of a walk over segments.
struct Walk {
    Contexts *contexts;
    DeviceIndex device;
    MempoolId_t id;
    std::vector<SegmentInfo> *segments;
};

enum dry_status
visit_segment(void *self, const struct dry_pool_segment *from,
              const struct dry_pool_part *parts, size_t count)
{
    auto *walk = static_cast<Walk *>(self);
    MempoolId_t owner = {from->pool.a, from->pool.b};
    if (walk->id != MempoolId_t{0, 0} && walk->id != owner)
        return DRY_OK;
    SegmentInfo segment;
    segment.device = walk->device;
    segment.address = from->address;
    segment.total_size = from->size;
    segment.stream = reinterpret_cast<cudaStream_t>(static_cast<uintptr_t>(from->stream));
    segment.is_large = from->is_large;
    segment.is_expandable = from->is_expandable;
    segment.owner_private_pool_id = owner;
    segment.context_when_allocated = walk->contexts->find(from->context).gathered;
    for (size_t i = 0; i < count; i++)
        add_block(&segment, parts[i], walk->contexts->find(parts[i].context).gathered);
    walk->segments->push_back(std::move(segment));
    return DRY_OK;
}

} // namespace

Notes &
notes()
{
    static thread_local Notes ours;
    return ours;
}

// --- history ---------------------------------------------------------------------------------

// Called by the pool without its lock. Exceptions must not pass through the pool.
uint32_t
Device::gather(void *self)
{
    auto *device = static_cast<Device *>(self);
    try {
        Context context;
        if (torch_cuda::CreateContextFn ask = device->gather_.load())
            context.gathered = ask();
        if (!notes().compile.empty())
            context.compile = notes().compile.back();
        context.metadata = notes().metadata;
        if (!context.gathered && notes().compile.empty() && context.metadata.empty())
            return DRY_NONE;
        return device->contexts_.keep(std::move(context));
    } catch (const std::exception &) {
        return DRY_NONE;
    }
}

void
Device::release(void *self, uint32_t context)
{
    static_cast<Device *>(self)->contexts_.drop(context);
}

void
Device::set_history(const History &history)
{
    std::lock_guard<std::mutex> lock(history_mutex_);
    history_ = history;
    when_ = history.is_on ? history.when : RecordContext::NEVER;
    gather_ =
        history.is_on && history.when >= RecordContext::STATE ? history.gather : nullptr;
    keep_history(pool_);
    for (struct dry_pool *pool : fed_pools())
        keep_history(pool);
}

void
Device::keep_history(struct dry_pool *pool)
{
    struct dry_pool_history_options options;
    dry_pool_history_options_init(&options);
    options.entries = std::max<size_t>(history_.entries, 1);
    options.get_context = gather;
    options.release_context = release;
    options.context_self = this;
    options.frees = history_.when >= RecordContext::ALL;
    options.keep = !history_.clear;
    check(dry_pool_record_history(pool, history_.is_on ? &options : nullptr), "history");
}

TraceEntry
Device::make_entry(const struct dry_pool_event &event, c10::approx_time_t time)
{
    Context context = contexts_.find(event.context);
    if (when_ < RecordContext::ALLOC)
        context.gathered = nullptr;
    return TraceEntry(
        find_action(event.action)->torch, index_, event.address, event.size,
        reinterpret_cast<cudaStream_t>(static_cast<uintptr_t>(event.stream)),
        MempoolId_t{event.pool.a, event.pool.b}, time, std::move(context.gathered),
        std::move(context.compile)
#if DRY_TORCH >= 210
            ,
        std::move(context.metadata)
#endif
    );
}

std::vector<TraceEntry>
Device::trace()
{
    struct Visit {
        Device *device;
        std::vector<TraceEntry> entries;
    } visit{this, {}};
    std::lock_guard<std::mutex> lock(history_mutex_);
    auto add = [](void *self, const struct dry_pool_event *event) {
        auto *to = static_cast<Visit *>(self);
        const Known *action = find_action(event->action);
        const auto &skipped = to->device->history_.skipped;
        if (!action || std::count(skipped.begin(), skipped.end(), action->name) > 0)
            return DRY_OK;
        to->entries.push_back(to->device->make_entry(*event, 0));
        to->entries.back().time_.t_ = static_cast<time_t>(event->time_us);
        return DRY_OK;
    };
    check(dry_pool_walk_history(pool_, add, &visit), "history");
    auto fed = fed_pools();
    for (struct dry_pool *pool : fed)
        check(dry_pool_walk_history(pool, add, &visit), "history");
    if (!fed.empty()) {
        auto is_before = [](const TraceEntry &a, const TraceEntry &b) {
            return a.time_.t_ < b.time_.t_;
        };
        std::stable_sort(visit.entries.begin(), visit.entries.end(), is_before);
    }
    return std::move(visit.entries);
}

void
Device::add_segments(MempoolId_t id, std::vector<SegmentInfo> *segments)
{
    Walk walk{&contexts_, index_, id, segments};
    check(dry_pool_walk(pool_, visit_segment, &walk), "snapshot");
    for (struct dry_pool *pool : fed_pools())
        check(dry_pool_walk(pool, visit_segment, &walk), "snapshot");
    check(dry_pool_note_snapshot(pool_), "snapshot");
}

Gathered
Device::find_context(const void *address)
{
    struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
    return find(address, &block) ? contexts_.find(block.context).gathered : nullptr;
}

// --- trackers ----------------------------------------------------------------------------------

// Called by the pool with its lock held, as PyTorch calls trackers.
void
Device::tell(void *self, const struct dry_pool_event *event)
{
    auto *device = static_cast<Device *>(self);
    if (!find_action(event->action))
        return;
    try {
        TraceEntry entry = device->make_entry(*event, c10::getApproximateTime());
        for (const auto &tracker : device->trackers_)
            tracker(entry);
    } catch (const std::exception &error) {
        TORCH_WARN("drystone: a tracker of allocations failed: ", error.what());
    }
}

void
Device::listen(const std::vector<torch_cuda::AllocatorTraceTracker> &trackers)
{
    std::lock_guard<std::mutex> lock(history_mutex_);
    check(dry_pool_set_observer(pool_, nullptr, nullptr), "tracker");
    for (struct dry_pool *pool : fed_pools())
        check(dry_pool_set_observer(pool, nullptr, nullptr), "tracker");
    trackers_ = trackers;
    listen_to(pool_);
    for (struct dry_pool *pool : fed_pools())
        listen_to(pool);
}

void
Device::listen_to(struct dry_pool *pool)
{
    if (!trackers_.empty())
        check(dry_pool_set_observer(pool, tell, this), "tracker");
}

} // namespace shim
