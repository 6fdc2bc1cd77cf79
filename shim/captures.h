// SPDX-License-Identifier: Apache-2.0
// The graphs that streams are captured into, as numbers, and when they are gone.
//
// A captured copy has no end that an event could tell: each run of the graph does the copy again.
// So a graph is asked, as a user object of the driver's, to say when nobody can run it any more
// and its last run is over. The driver says so on a thread of its own, where no call of CUDA is
// allowed; the numbers are kept until somebody fetches them.
//
// A driver before 11.3 has no user objects. A graph of such a driver never ends here.
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
    // Find the number of the graph that a stream is captured into; 0: the stream is not captured.
    uint64_t number_of(cudaStream_t stream);
    bool
    has_ended() const
    {
        return has_ended_.load(std::memory_order_relaxed);
    }
    // Fetch the numbers of graphs that are gone since the last call.
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
    std::mutex mutex_;                               // of what follows
    std::map<unsigned long long, uint64_t> numbers_; // by the driver's id of a capture
    uint64_t last_ = 0;
    std::vector<uint64_t> ended_;
    std::atomic<bool> has_ended_{false};
};

} // namespace shim
