// SPDX-License-Identifier: Apache-2.0
// Blocks for other processes, as torch.multiprocessing sends them.
//
// PyTorch sends bytes of ours and an offset, and asks the other process for an address. Memory of
// cudaMalloc travels as the driver's own handle. Pages travel as the descriptors that this process
// keeps open for them: the other process copies these (pidfd_getfd, Linux 5.6), which wants the
// rights to trace this one.
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

class Device; // whose pool is meant: it throws what a status says

// Descriptors that are closed with this.
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
    // The bytes and the offset for a block in use of the pool.
    torch_cuda::ShareableHandle share(const Device &device, struct dry_pool *pool,
                                      void *address);
    // Close what is kept for blocks that are no longer in use.
    void sweep(struct dry_pool *pool);
    // The address of what bytes of another process stand for, until the last user lets go.
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
