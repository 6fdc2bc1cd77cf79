// SPDX-License-Identifier: Apache-2.0
#include "fed.h"

#include <c10/util/Exception.h>

namespace shim
{

void
FedPool::get_traits(void *self, struct dry_device_traits *traits)
{
    of(self)->gpu_.ops->get_traits(of(self)->gpu_.self, traits);
    traits->page_bytes = 0; // pages are unsupported: memory comes with its addresses
}

// Exceptions must not pass through the pool: an allocator that throws counts as out of memory.
enum dry_status
FedPool::take(void *self, uint64_t size, uint64_t *address)
{
    void *given = nullptr;
    try {
        given = of(self)->allocator_->raw_alloc(size);
    } catch (const std::exception &) {
        return DRY_ERR_NO_SPACE;
    }
    *address = reinterpret_cast<uintptr_t>(given);
    return given ? DRY_OK : DRY_ERR_NO_SPACE;
}

void
FedPool::give_back(void *self, uint64_t address, uint64_t)
{
    try {
        of(self)->allocator_->raw_delete(
            reinterpret_cast<void *>(static_cast<uintptr_t>(address)));
    } catch (const std::exception &error) {
        TORCH_WARN("drystone: a pool's own allocator took nothing back: ", error.what());
    }
}

// Everything but memory comes from the GPU. Without page_bytes the pool never asks for pages.
const struct dry_device_ops FedPool::ops = {
    .struct_size = sizeof(struct dry_device_ops),
    .get_traits = get_traits,
    .alloc = take,
    .free = give_back,
    .reserve = [](void *, uint64_t, uint64_t *) { return DRY_ERR_UNSUPPORTED; },
    .unreserve = [](void *, uint64_t, uint64_t) {},
    .map = [](void *, uint64_t, uint64_t, uint64_t) { return DRY_ERR_UNSUPPORTED; },
    .unmap = [](void *, uint64_t, uint64_t, uint64_t) {},
    .create_page = [](void *, uint64_t *) { return DRY_ERR_UNSUPPORTED; },
    .release_page = [](void *, uint64_t) {},
    .map_pages = [](void *, uint64_t, const uint64_t *,
                    size_t) { return DRY_ERR_UNSUPPORTED; },
    .unmap_pages = [](void *, uint64_t, size_t) { return DRY_ERR_UNSUPPORTED; },
    .get_info =
        [](void *self, uint64_t *free, uint64_t *total) {
            of(self)->gpu_.ops->get_info(of(self)->gpu_.self, free, total);
        },
    .event_record =
        [](void *self, uint64_t stream, uint64_t *event) {
            return of(self)->gpu_.ops->event_record(of(self)->gpu_.self, stream, event);
        },
    .event_query =
        [](void *self, uint64_t event) {
            return of(self)->gpu_.ops->event_query(of(self)->gpu_.self, event);
        },
    .event_wait =
        [](void *self, uint64_t event) {
            return of(self)->gpu_.ops->event_wait(of(self)->gpu_.self, event);
        },
    .event_destroy =
        [](void *self, uint64_t event) {
            of(self)->gpu_.ops->event_destroy(of(self)->gpu_.self, event);
        },
    .stream_wait =
        [](void *self, uint64_t stream) {
            return of(self)->gpu_.ops->stream_wait(of(self)->gpu_.self, stream);
        },
    .stream_follow =
        [](void *self, uint64_t stream, uint64_t event) {
            return of(self)->gpu_.ops->stream_follow(of(self)->gpu_.self, stream, event);
        },
    .stream_id =
        [](void *self, uint64_t stream) {
            return of(self)->gpu_.ops->stream_id(of(self)->gpu_.self, stream);
        },
    .wait_all =
        [](void *self) { return of(self)->gpu_.ops->wait_all(of(self)->gpu_.self); },
};

FedPool::FedPool(struct dry_device gpu, DeviceIndex index, MempoolId_t id,
                 Custom allocator, const char *compat)
    : gpu_(gpu), id_(id), allocator_(std::move(allocator))
{
    struct dry_error error = {};
    struct dry_pool_options options;
    dry_pool_options_init(&options);
    options.device = {&ops, this};
    options.device_index = index;
    options.placement = DRY_PLACEMENT_TORCH;
    options.compat = compat;
    enum dry_status status = dry_pool_create(&options, &pool_, &error);
    TORCH_CHECK(status == DRY_OK,
                "drystone: a pool with an allocator of its own: ", error.text);
    // PyTorch directs all requests here to private pool `id`.
    status = dry_pool_open_private(pool_, {id_.first, id_.second}, 0);
    if (status == DRY_OK)
        status = dry_pool_begin_private(pool_, {id_.first, id_.second}, nullptr);
    if (status != DRY_OK)
        dry_pool_destroy(pool_);
    TORCH_CHECK(status == DRY_OK, "drystone: a pool with an allocator of its own: ",
                dry_status_text(status));
}

void
FedPool::end()
{
    enum dry_status status = dry_pool_end_private(pool_, {id_.first, id_.second});
    if (status == DRY_OK)
        status = dry_pool_release_private(pool_, {id_.first, id_.second});
    TORCH_CHECK(status == DRY_OK,
                "drystone: the end of a private pool: ", dry_status_text(status));
}

FedPool::~FedPool()
{
    dry_pool_destroy(pool_);
}

bool
FedPool::is_empty() const
{
    struct dry_stats stats;
    dry_pool_get_stats(pool_, &stats);
    return stats.reserved_bytes.all.current == 0;
}

} // namespace shim
