// SPDX-License-Identifier: Apache-2.0
// Private pools and captures of a device, with PyTorch's stream filters.
#include <algorithm>

#include <c10/util/Exception.h>

#include "device.h"

namespace shim
{

namespace
{

bool
covers(void *self, uint64_t stream)
{
    const auto *filter = static_cast<const Filter *>(self);
    try {
        return (*filter)(reinterpret_cast<cudaStream_t>(static_cast<uintptr_t>(stream)));
    } catch (const std::exception &) {
        return false; // exceptions must not pass through the pool
    }
}

} // namespace

bool
Device::is_any_captured(void *self, uint64_t stream)
{
    try {
        return static_cast<Device *>(self)->is_captured(
            reinterpret_cast<cudaStream_t>(static_cast<uintptr_t>(stream)));
    } catch (const std::exception &) {
        return false; // exceptions must not pass through the pool
    }
}

// --- pools with the program's allocator --------------------------------------------------------

// Requires scopes_mutex_.
FedPool *
Device::find_fed(MempoolId_t id)
{
    for (const auto &fed : fed_) {
        if (fed->id() == id)
            return fed.get();
    }
    return nullptr;
}

std::vector<struct dry_pool *>
Device::fed_pools()
{
    std::vector<struct dry_pool *> pools;
    if (!has_fed_)
        return pools;
    std::lock_guard<std::mutex> lock(scopes_mutex_);
    for (const auto &fed : fed_)
        pools.push_back(fed->pool());
    return pools;
}

// Return the pool for a request: of the last scope that covers the stream; before 2.10, of the
// first.
struct dry_pool *
Device::pool_for(cudaStream_t stream)
{
    std::lock_guard<std::mutex> lock(scopes_mutex_);
    for (size_t i = 0; i < scopes_.size(); i++) {
        const auto &scope = scopes_[DRY_TORCH >= 210 ? scopes_.size() - 1 - i : i];
        if (scope->filter(stream))
            return scope->fed ? scope->fed->pool() : pool_;
    }
    return pool_;
}

bool
Device::free_fed(uint64_t address)
{
    for (struct dry_pool *pool : fed_pools()) {
        enum dry_status status = dry_pool_free(pool, address);
        if (status == DRY_OK)
            return true;
        if (status != DRY_ERR_ARGUMENT)
            check(status, "free");
    }
    return false;
}

// Destroy pools without users once their memory has been returned.
void
Device::drop_idle_fed()
{
    std::lock_guard<std::mutex> lock(scopes_mutex_);
    auto is_idle = [](const auto &fed) { return fed->users == 0 && fed->is_empty(); };
    fed_.erase(std::remove_if(fed_.begin(), fed_.end(), is_idle), fed_.end());
    has_fed_ = !fed_.empty();
}

// --- pools ---------------------------------------------------------------------------------------

void
Device::feed(MempoolId_t id, Custom allocator)
{
    auto fed = std::make_unique<FedPool>(dry_cuda_get_device(cuda_), index_, id,
                                         std::move(allocator), compat_.c_str());
    {
        std::lock_guard<std::mutex> lock(history_mutex_);
        keep_history(fed->pool());
        listen_to(fed->pool());
    }
    std::lock_guard<std::mutex> lock(scopes_mutex_);
    fed_.push_back(std::move(fed));
    has_fed_ = true;
}

// Return the pool that has private pool `id`.
struct dry_pool *
Device::find_pool(MempoolId_t id)
{
    std::lock_guard<std::mutex> lock(scopes_mutex_);
    FedPool *fed = find_fed(id);
    return fed ? fed->pool() : pool_;
}

void
Device::open_pool(MempoolId_t id, Custom allocator)
{
    {
        std::lock_guard<std::mutex> lock(scopes_mutex_);
        if (FedPool *fed = find_fed(id)) {
            fed->users++;
            return;
        }
    }
    if (allocator)
        feed(id, std::move(allocator));
    else
        check(dry_pool_open_private(pool_, pool_id(id), 0), "open of a private pool");
}

void
Device::release_pool(MempoolId_t id)
{
    {
        std::lock_guard<std::mutex> lock(scopes_mutex_);
        if (FedPool *fed = find_fed(id)) {
            TORCH_CHECK(fed->users > 0, "release of a private pool without users");
            if (--fed->users == 0)
                fed->end();
            return;
        }
    }
    check(dry_pool_release_private(pool_, pool_id(id)), "release of a private pool");
}

uint64_t
Device::count_users(MempoolId_t id)
{
    uint64_t users = 0;
    {
        std::lock_guard<std::mutex> lock(scopes_mutex_);
        if (FedPool *fed = find_fed(id))
            return fed->users;
    }
    check(dry_pool_count_private_users(pool_, pool_id(id), &users), "users of a pool");
    return users;
}

void
Device::set_flag(MempoolId_t id, unsigned flag, bool is_on)
{
    check(dry_pool_set_private_flags(find_pool(id), pool_id(id), is_on ? flag : 0, flag),
          "flags of a private pool");
}

bool
Device::has_just(MempoolId_t id, const std::unordered_set<void *> &expected)
{
    std::vector<uint64_t> addresses;
    for (void *address : expected)
        addresses.push_back(reinterpret_cast<uintptr_t>(address));
    bool has = false;
    check(dry_pool_private_has(find_pool(id), pool_id(id), addresses.data(),
                               addresses.size(), &has),
          "blocks of a private pool");
    return has;
}

void
Device::begin_pool(MempoolId_t id, Filter filter)
{
    open_pool(id);
    std::lock_guard<std::mutex> lock(scopes_mutex_);
    for (const auto &scope : scopes_)
        TORCH_CHECK(scope->id != id,
                    "beginAllocateToPool: already recording to mempool_id");
    scopes_.push_back(std::make_unique<Scope>(
        Scope{id, std::move(filter), find_fed(id), std::this_thread::get_id()}));
    if (scopes_.back()->fed)
        return;
    struct dry_stream_filter chosen = {covers, &scopes_.back()->filter};
    enum dry_status status = dry_pool_begin_private(pool_, pool_id(id), &chosen);
    if (status == DRY_OK && DRY_TORCH < 213) // later releases call markCaptureBegin()
        status = dry_pool_begin_capture(pool_, &chosen);
    if (status != DRY_OK)
        scopes_.pop_back();
    check(status, "begin of a private pool");
}

void
Device::end_pool(MempoolId_t id)
{
    std::lock_guard<std::mutex> lock(scopes_mutex_);
    auto at = std::find_if(scopes_.rbegin(), scopes_.rend(),
                           [id](const auto &scope) { return scope->id == id; });
    TORCH_CHECK(at != scopes_.rend(),
                "endAllocatePool: not currently recording to mempool_id");
    if (!(*at)->fed) {
        check(dry_pool_end_private(pool_, pool_id(id)), "end of a private pool");
        if (DRY_TORCH < 213)
            check(dry_pool_end_capture(pool_), "end of a capture");
    }
    scopes_.erase(std::next(at).base());
}

// Return whether any capture covers the stream. The pool sees all captures as one.
bool
Device::is_captured(cudaStream_t stream)
{
    std::lock_guard<std::mutex> lock(captures_mutex_);
    return std::any_of(captures_.begin(), captures_.end(),
                       [stream](const Capture &c) { return c.filter(stream); });
}

// Begin a capture, with a copy of its scope's filter: another thread may have begun a later scope,
// and end it first.
void
Device::begin_capture()
{
    std::lock_guard<std::mutex> lock(scopes_mutex_);
    TORCH_CHECK(!scopes_.empty(), "a capture begins outside of a private pool");
    auto self = std::this_thread::get_id();
    auto at = std::find_if(scopes_.rbegin(), scopes_.rend(),
                           [self](const auto &scope) { return scope->thread == self; });
    const Scope &scope = at == scopes_.rend() ? *scopes_.back() : **at;
    bool is_first;
    {
        std::lock_guard<std::mutex> captures(captures_mutex_);
        is_first = captures_.empty();
        captures_.push_back({self, scope.filter});
    }
    struct dry_stream_filter chosen = {is_any_captured, this};
    enum dry_status status = is_first ? dry_pool_begin_capture(pool_, &chosen) : DRY_OK;
    if (status != DRY_OK)
        forget_capture();
    check(status, "begin of a capture");
}

// Forget this thread's last capture. Returns true if no capture is left.
bool
Device::forget_capture()
{
    std::lock_guard<std::mutex> lock(captures_mutex_);
    auto self = std::this_thread::get_id();
    auto at = std::find_if(captures_.rbegin(), captures_.rend(),
                           [self](const Capture &c) { return c.thread == self; });
    TORCH_CHECK(!captures_.empty(), "a capture ends that was not begun");
    captures_.erase(at == captures_.rend() ? captures_.end() - 1 : at.base() - 1);
    return captures_.empty();
}

void
Device::end_capture()
{
    std::lock_guard<std::mutex> lock(scopes_mutex_);
    if (forget_capture())
        check(dry_pool_end_capture(pool_), "end of a capture");
}

// --- checkpoints -----------------------------------------------------------------------------

namespace
{

struct Checkpoint : torch_cuda::AllocatorState {
    ~Checkpoint() override
    {
        dry_pool_checkpoint_destroy(state);
    }
    struct dry_pool_checkpoint *state = nullptr;
};

// Addresses that a restore reports.
struct Delta {
    std::vector<uint64_t> freed, live;
};

} // namespace

std::shared_ptr<torch_cuda::AllocatorState>
Device::checkpoint(MempoolId_t id)
{
    auto made = std::make_shared<Checkpoint>();
    struct dry_error error = {};
    enum dry_status status =
        dry_pool_checkpoint_private(find_pool(id), pool_id(id), &made->state, &error);
    TORCH_CHECK(status == DRY_OK, "drystone: checkpoint of a private pool: ", error.text);
    return made;
}

torch_cuda::CheckpointDelta
Device::restore(const torch_cuda::AllocatorState &state, c10::DeleterFnPtr deleter)
{
    Delta delta;
    struct dry_pool_restore_visitor visitor = {
        [](void *self, uint64_t at) { static_cast<Delta *>(self)->freed.push_back(at); },
        [](void *self, uint64_t at) { static_cast<Delta *>(self)->live.push_back(at); },
        &delta};
    struct dry_error error = {};
    const auto &checkpoint = dynamic_cast<const Checkpoint &>(state);
    enum dry_status status = dry_pool_restore_private(checkpoint.state, &visitor, &error);
    TORCH_CHECK(status == DRY_OK,
                "drystone: a private pool cannot go back: ", error.text);
    torch_cuda::CheckpointDelta result;
    for (uint64_t address : delta.freed)
        result.ptrs_freed.push_back(reinterpret_cast<void *>(address));
    for (uint64_t address : delta.live) {
        void *at = reinterpret_cast<void *>(address);
        result.dataptrs_allocd.emplace_back(at, at, deleter,
                                            c10::Device(c10::DeviceType::CUDA, index_));
    }
    return result;
}

void
Device::walk_expandable(
    const std::function<void(const struct dry_pool_expandable &)> &visit)
{
    auto call = [](void *self, const struct dry_pool_expandable *segment) {
        (*static_cast<decltype(&visit)>(self))(*segment);
        return DRY_OK;
    };
    auto *self = const_cast<void *>(static_cast<const void *>(&visit));
    check(dry_pool_walk_expandable(pool_, call, self), "expandable segments");
}

} // namespace shim
