// SPDX-License-Identifier: Apache-2.0
// Pairs of raw_alloc_with_stream() and raw_delete(), through whatever allocator PyTorch has.
#include <ctime>
#include <vector>

#include <c10/cuda/CUDACachingAllocator.h>

namespace
{

double
cpu_seconds()
{
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

} // namespace

// Replace blocks: the i-th pair frees the block in slots[i] and makes one of sizes[i] bytes there.
// All slots are full before and empty afterwards. Returns CPU nanoseconds a pair.
extern "C" __attribute__((visibility("default"))) double
dry_bench_pairs(size_t pairs, const unsigned *slots, const size_t *sizes,
                size_t slot_count)
{
    auto *allocator = c10::cuda::CUDACachingAllocator::get();
    std::vector<void *> kept;
    for (size_t i = 0; i < slot_count; i++)
        kept.push_back(allocator->raw_alloc_with_stream(sizes[i % pairs], nullptr));
    double begin = cpu_seconds();
    for (size_t i = 0; i < pairs; i++) {
        void **slot = &kept[slots[i]];
        allocator->raw_delete(*slot);
        *slot = allocator->raw_alloc_with_stream(sizes[i], nullptr);
    }
    double seconds = cpu_seconds() - begin;
    for (void *block : kept)
        allocator->raw_delete(block);
    return seconds * 1e9 / double(pairs);
}
