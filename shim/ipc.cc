// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <cerrno>
#include <cstring>

#include <sys/syscall.h>
#include <unistd.h>

#include <c10/cuda/CUDAFunctions.h>
#include <c10/util/Exception.h>

namespace shim
{

namespace
{

// The head of a handle. The numbers of the descriptors follow, one for each page.
struct Head {
    char magic[8];
    int32_t process;
    struct dry_pool_share share;
};

constexpr char magic[8] = {'D', 'R', 'Y', 'I', 'P', 'C', '0', '1'};
constexpr size_t pages_max = 1 << 16;
constexpr const char *sharing = "sharing a tensor with another process";

std::string
make_bytes(const struct dry_pool_share &share, const std::vector<int> &numbers)
{
    Head head = {};
    std::memcpy(head.magic, magic, sizeof magic);
    head.process = static_cast<int32_t>(getpid());
    head.share = share;
    std::string bytes(reinterpret_cast<const char *>(&head), sizeof head);
    bytes.append(reinterpret_cast<const char *>(numbers.data()),
                 numbers.size() * sizeof numbers[0]);
    return bytes;
}

// Parse the head. The bytes come from another process, so they are checked.
Head
read_head(const std::string &bytes)
{
    Head head;
    TORCH_CHECK(bytes.size() >= sizeof head &&
                    std::memcmp(bytes.data(), magic, sizeof magic) == 0,
                "drystone: the tensor comes from a process without Drystone's allocator: "
                "enable it in both, or in none");
    std::memcpy(&head, bytes.data(), sizeof head);
    size_t count = head.share.page_bytes ? head.share.page_count : 0;
    TORCH_CHECK(count <= pages_max && bytes.size() == sizeof head + count * sizeof(int),
                "drystone: a handle of another process is damaged");
    return head;
}

// Copy the other process's descriptors into this one.
void
copy_descriptors(const Head &head, const std::string &bytes, Descriptors *to)
{
    Descriptors process(1);
    process.numbers[0] = static_cast<int>(syscall(SYS_pidfd_open, head.process, 0));
    TORCH_CHECK(process.numbers[0] >= 0, "drystone: process ", head.process,
                ", which shares a tensor, cannot be opened: ", std::strerror(errno));
    for (size_t i = 0; i < to->numbers.size(); i++) {
        int number;
        std::memcpy(&number, bytes.data() + sizeof head + i * sizeof number,
                    sizeof number);
        to->numbers[i] =
            static_cast<int>(syscall(SYS_pidfd_getfd, process.numbers[0], number, 0));
        TORCH_CHECK(to->numbers[i] >= 0, "drystone: memory of process ", head.process,
                    " cannot be opened: ", std::strerror(errno),
                    " (it must be allowed to trace that process)");
    }
}

} // namespace

Descriptors::~Descriptors()
{
    for (int number : numbers) {
        if (number >= 0)
            close(number);
    }
}

torch_cuda::ShareableHandle
Shares::share(const Device &device, struct dry_pool *pool, void *address)
{
    uint64_t at = reinterpret_cast<uintptr_t>(address);
    struct dry_pool_share share = {};
    enum dry_status status = dry_pool_share(pool, at, &share, nullptr, 0);
    TORCH_CHECK(status != DRY_ERR_UNSUPPORTED,
                "drystone: this driver makes no pages that another process can open: use "
                "placement \"torch\" without expandable segments to share tensors");
    device.check(status, sharing);
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = kept_.find(address);
    if (found != kept_.end())
        return {static_cast<ptrdiff_t>(share.offset), found->second.bytes};
    Kept kept;
    kept.descriptors =
        std::make_unique<Descriptors>(share.page_bytes ? share.page_count : 0);
    auto &numbers = kept.descriptors->numbers;
    if (!numbers.empty())
        device.check(dry_pool_share(pool, at, &share, numbers.data(), numbers.size()),
                     sharing);
    device.check(dry_pool_get_block(pool, at, &kept.block), sharing);
    kept.bytes = make_bytes(share, numbers);
    torch_cuda::ShareableHandle handle = {static_cast<ptrdiff_t>(share.offset),
                                          kept.bytes};
    if (!numbers.empty())
        kept_.emplace(address, std::move(kept));
    return handle;
}

void
Shares::sweep(struct dry_pool *pool)
{
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto at = kept_.begin(); at != kept_.end();) {
        struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
        uint64_t address = reinterpret_cast<uintptr_t>(at->first);
        bool is_in_use = dry_pool_get_block(pool, address, &block) == DRY_OK &&
                         block.address == at->second.block.address &&
                         block.requested == at->second.block.requested;
        at = is_in_use ? std::next(at) : kept_.erase(at);
    }
}

std::shared_ptr<void>
Shares::open(const Device &device, struct dry_pool *pool, const std::string &bytes)
{
    Head head = read_head(bytes);
    std::lock_guard<std::mutex> lock(mutex_);
    if (auto open = opened_[bytes].lock())
        return open;
    Descriptors descriptors(head.share.page_bytes ? head.share.page_count : 0);
    copy_descriptors(head, bytes, &descriptors);
    uint64_t address = 0;
    const int *numbers = head.share.page_bytes ? descriptors.numbers.data() : nullptr;
    device.check(dry_pool_open_shared(pool, &head.share, numbers, &address),
                 "opening a tensor of another process");
    struct dry_pool_share share = head.share;
    std::shared_ptr<void> opened(reinterpret_cast<void *>(address),
                                 [pool, share, address](void *) {
                                     c10::cuda::device_synchronize();
                                     (void)dry_pool_close_shared(pool, &share, address);
                                 });
    opened_[bytes] = opened;
    return opened;
}

} // namespace shim
