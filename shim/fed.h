// SPDX-License-Identifier: Apache-2.0
// A private pool whose segments come from the program's allocator: MemPool(allocator).
//
// NCCL's memory for symmetric buffers comes in this way, and memory that a serving engine maps and
// unmaps itself. The pool has placement torch. Its device gets memory from the allocator, and
// everything else from the GPU. The allocator is called with the pool's lock held.
#pragma once

#include <drystone/device.h>
#include <drystone/pool.h>

#include "release.h"

namespace shim
{

class FedPool
{
  public:
    // `gpu` must outlive the pool; `compat` is that of struct dry_pool_options.
    FedPool(struct dry_device gpu, DeviceIndex index, MempoolId_t id, Custom allocator,
            const char *compat);
    ~FedPool();
    FedPool(const FedPool &) = delete;
    FedPool &operator=(const FedPool &) = delete;

    struct dry_pool *
    pool() const
    {
        return pool_;
    }
    MempoolId_t
    id() const
    {
        return id_;
    }
    bool is_empty() const;
    // Release the private pool after its last user. Its memory returns as blocks are freed.
    void end();

    unsigned users = 1; // reference count, as PyTorch counts users

  private:
    static const struct dry_device_ops ops;
    static FedPool *
    of(void *self)
    {
        return static_cast<FedPool *>(self);
    }
    static void get_traits(void *self, struct dry_device_traits *traits);
    static enum dry_status take(void *self, uint64_t size, uint64_t *address);
    static void give_back(void *self, uint64_t address, uint64_t size);

    const struct dry_device gpu_;
    const MempoolId_t id_;
    const Custom allocator_;
    struct dry_pool *pool_ = nullptr;
};

} // namespace shim
