// SPDX-License-Identifier: Apache-2.0
// Shares blocks with other processes, for torch.multiprocessing.
//
// PyTorch sends our bytes and an offset, and asks the other process for an address. Memory of
// cudaMalloc is sent as the driver's handle. Pages are sent as descriptors that this process keeps
// open. The other process copies them (pidfd_getfd, Linux 5.6), which requires the permission to
// trace this process.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <drystone/pool.h>

#include "release.h"

namespace shim
{

class Device; // throws errors for failed calls

// Descriptors that are closed by the destructor.
class Descriptors
{
  public:
    explicit Descriptors(size_t count) : numbers(count, -1)
    {
    }
    ~Descriptors();
    Descriptors(const Descriptors &) = delete;
    Descriptors &operator=(const Descriptors &) = delete;
    std::vector<int> numbers;
};

class Shares
{
  public:
    // Return the bytes and the offset for a block in use of the pool.
    torch_cuda::ShareableHandle share(const Device &device, struct dry_pool *pool,
                                      void *address);
    // Close the descriptors of blocks that are no longer in use.
    void sweep(struct dry_pool *pool);
    // Map another process's memory, and return its address. The last reference unmaps it.
    std::shared_ptr<void> open(const Device &device, struct dry_pool *pool,
                               const std::string &bytes);

  private:
    struct Kept {
        struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
        std::string bytes;
        std::unique_ptr<Descriptors> descriptors;
    };

    std::mutex mutex_;
    std::map<void *, Kept> kept_;
    std::map<std::string, std::weak_ptr<void>> opened_;
};

} // namespace shim
