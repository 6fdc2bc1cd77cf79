// SPDX-License-Identifier: Apache-2.0
// Numbers the graphs that streams are captured into, and reports when they are gone.
//
// No event marks the end of a captured copy: each run of the graph copies again. So each graph gets
// a user object of the driver, which is destroyed when the graph cannot run again and its last run
// is over. The driver destroys it on a thread of its own, where CUDA calls are forbidden. So the
// numbers are kept until take_ended() fetches them.
//
// Drivers before 11.3 have no user objects: their graphs never end here.
//
// Threads  Any thread may call.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include <cuda_runtime_api.h>

namespace shim
{

class Captures
{
  public:
    Captures();
    // Return the number of the graph that a stream is captured into; 0: the stream is not captured.
    uint64_t get_number(cudaStream_t stream);
    bool
    has_ended() const
    {
        return has_ended_.load(std::memory_order_relaxed);
    }
    // Fetch the numbers of graphs that ended since the last call.
    std::vector<uint64_t> take_ended();

  private:
    struct Watch;
    struct Driver {
        int (*get_info)(cudaStream_t, int *, unsigned long long *, void **,
                        const void ***, size_t *) = nullptr;
        int (*create)(void **, void *, void (*)(void *), unsigned, unsigned) = nullptr;
        int (*release)(void *, unsigned) = nullptr;
        int (*retain)(void *, void *, unsigned, unsigned) = nullptr;
    };

    void watch(void *graph, unsigned long long id, uint64_t number);
    static void end(void *self);

    Driver driver_;
    std::mutex mutex_;                               // guards the members below
    std::map<unsigned long long, uint64_t> numbers_; // indexed by the driver's capture id
    uint64_t last_ = 0;
    std::vector<uint64_t> ended_;
    std::atomic<bool> has_ended_{false};
};

} // namespace shim
