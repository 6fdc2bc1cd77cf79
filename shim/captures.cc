// SPDX-License-Identifier: Apache-2.0
#include "captures.h"

#include <dlfcn.h>

#include <memory>

namespace shim
{

namespace
{

// Numbers of the driver's interface.
constexpr unsigned no_destructor_sync = 1;
constexpr unsigned moves = 1; // our reference becomes the graph's

template <class Function>
void
look_up(void *library, const char *name, Function *function)
{
    *function = reinterpret_cast<Function>(dlsym(library, name));
}

} // namespace

// The data of a graph's user object.
struct Captures::Watch {
    Captures *captures;
    unsigned long long id;
    uint64_t number;
};

Captures::Captures()
{
    // Versioned names stay in every later driver, whatever its headers call them.
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!library)
        return;
    look_up(library, "cuStreamGetCaptureInfo_v2", &driver_.get_info);
    look_up(library, "cuUserObjectCreate", &driver_.create);
    look_up(library, "cuUserObjectRelease", &driver_.release);
    look_up(library, "cuGraphRetainUserObject", &driver_.retain);
}

uint64_t
Captures::get_number(cudaStream_t stream)
{
    int status = 0;
    unsigned long long id = 0;
    void *graph = nullptr;
    if (!stream || !driver_.get_info) // a default stream is never captured
        return 0;
    if (driver_.get_info(stream, &status, &id, &graph, nullptr, nullptr) != 0 || !status)
        return 0;
    std::unique_lock<std::mutex> lock(mutex_);
    uint64_t &number = numbers_[id];
    if (number)
        return number;
    uint64_t fresh = number = ++last_;
    lock.unlock();
    watch(graph, id, fresh);
    return fresh;
}

// Get notified when the graph ends. If the driver refuses, the graph's blocks stay held.
void
Captures::watch(void *graph, unsigned long long id, uint64_t number)
{
    if (!graph || !driver_.create || !driver_.release || !driver_.retain)
        return;
    auto watch = std::make_unique<Watch>(Watch{this, id, number});
    void *object = nullptr;
    if (driver_.create(&object, watch.get(), end, 1, no_destructor_sync) != 0)
        return;
    Watch *owned = watch.release(); // the user object now owns it
    if (driver_.retain(graph, object, 1, moves) == 0)
        return;
    owned->number = 0;
    driver_.release(object, 1);
}

void
Captures::end(void *self)
{
    std::unique_ptr<Watch> watch(static_cast<Watch *>(self));
    if (!watch->number)
        return;
    Captures *captures = watch->captures;
    std::lock_guard<std::mutex> lock(captures->mutex_);
    captures->numbers_.erase(watch->id);
    captures->ended_.push_back(watch->number);
    captures->has_ended_.store(true, std::memory_order_relaxed);
}

std::vector<uint64_t>
Captures::take_ended()
{
    std::vector<uint64_t> ended;
    std::lock_guard<std::mutex> lock(mutex_);
    ended.swap(ended_);
    has_ended_.store(false, std::memory_order_relaxed);
    return ended;
}

} // namespace shim
