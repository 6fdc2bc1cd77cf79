// SPDX-License-Identifier: Apache-2.0
#include "pinned_trace.h"

#if DRY_TORCH >= 214

namespace shim
{

namespace
{

uint64_t
get_number(const void *address)
{
    return reinterpret_cast<uintptr_t>(address);
}

} // namespace

void
HostTrace::record(bool is_on, Gather gather, size_t entries, When when, bool clear)
{
    // Freed after the unlock: freeing stacks may need the interpreter's lock.
    std::map<uint64_t, Gathered> dropped;
    std::lock_guard<std::mutex> lock(mutex_);
    gather_.store(gather);
    when_.store(is_on && gather ? when : When::NEVER);
    if (is_on)
        entries_.setMaxEntries(entries);
    else
        dropped.swap(contexts_);
    is_on_.store(is_on);
    if (clear)
        entries_.clear();
}

// Called without a lock: gathering may need the interpreter's lock.
Gathered
HostTrace::gather(When least)
{
    Gather ask = gather_.load();
    return when_.load() >= least && ask ? ask() : nullptr;
}

void
HostTrace::add(Entry::Action action, uint64_t address, size_t size, Gathered gathered)
{
    if (when_.load() < When::ALLOC)
        gathered = nullptr;
    entries_.insertEntries(Entry(action, -1, address, size, nullptr, MempoolId_t{0, 0},
                                 c10::getApproximateTime(), std::move(gathered)));
}

void
HostTrace::on_alloc(const void *address, size_t size)
{
    Gathered gathered = gather(When::STATE);
    add(Entry::ALLOC, get_number(address), size, gathered);
    std::lock_guard<std::mutex> lock(mutex_);
    if (gathered)
        contexts_[get_number(address)] = std::move(gathered);
}

void
HostTrace::on_free(const void *address, size_t size)
{
    Gathered gathered = gather(When::ALL), former;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        auto found = contexts_.find(get_number(address));
        if (found != contexts_.end()) {
            former = std::move(found->second);
            contexts_.erase(found);
        }
    }
    if (!gathered)
        gathered = std::move(former);
    add(Entry::FREE_REQUESTED, get_number(address), size, gathered);
    add(Entry::FREE_COMPLETED, get_number(address), size, std::move(gathered));
}

std::vector<HostTrace::Entry>
HostTrace::entries()
{
    auto to_ns = clock_.makeConverter();
    std::vector<Entry> found;
    entries_.getEntries(found);
    for (Entry &entry : found)
        entry.time_.t_ = to_ns(entry.time_.approx_t_) / 1000;
    return found;
}

Gathered
HostTrace::find_context(uint64_t address)
{
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = contexts_.find(address);
    return found == contexts_.end() ? nullptr : found->second;
}

} // namespace shim

#endif
