/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sharing a pool's memory with other devices and processes. The device does the sharing; this file
 * finds the segments.
 *
 * A mapped run begins at a page boundary whatever the page size, so pages of a block are counted
 * from its run's begin.
 */

#include <drystone/pool.h>

#include "base/assert.h"
#include "pool/pool_address.h"
#include "pool/pool_lock.h"
#include "pool/pool_view.h"

/* --- other devices ------------------------------------------------------------------------ */

struct opening {
    const struct dry_device *device;
    int32_t peer;
};

static enum dry_status
open_run(void *visitor, const struct dryi_segment_info *segment,
         const struct dryi_block_info *blocks, size_t count)
{
    (void)blocks;
    (void)count;
    const struct opening *o = visitor;
    if (!segment->is_expandable)
        return DRY_OK;
    return o->device->ops->let_peer(o->device->self, segment->addr, segment->size,
                                    o->peer);
}

enum dry_status
dry_pool_enable_peer(struct dry_pool *pool, int32_t peer)
{
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    struct opening opening = {.device = &pool->device, .peer = peer};
    const struct dry_device_ops *ops = pool->device.ops;
    if (ops->add_peer)
        status = ops->add_peer(pool->device.self, peer);
    if (status == DRY_OK && ops->let_peer)
        status = pool->place.ops->walk(pool->place.self, open_run, &opening);
    dryi_pool_leave(pool);
    return status;
}

/* --- other processes ---------------------------------------------------------------------- */

#define SMALL_PAGE_TORCH (2 * DRYI_MIB)

/* Return the page size of a mapped run, in bytes. */
static uint64_t
get_page(const struct dry_pool *pool, const struct dryi_segment_info *run)
{
    DRYI_ASSERT_SLOW(run->is_expandable);
    struct dry_device_traits traits;
    if (pool->options.placement == DRY_PLACEMENT_TORCH)
        return run->is_large ? pool->torch_conf.large_segment_size : SMALL_PAGE_TORCH;
    pool->device.ops->get_traits(pool->device.self, &traits);
    return traits.page_bytes;
}

static enum dry_status
share_range(const struct dry_pool *pool, const struct dryi_segment_info *run,
            uint64_t address, struct dry_pool_share *share)
{
    const struct dry_device *device = &pool->device;
    struct dry_pool_share s = {.offset = address - run->addr, .size = run->size};
    if (!device->ops->name_range)
        return DRY_ERR_UNSUPPORTED;
    enum dry_status status = device->ops->name_range(device->self, run->addr, &s.name);
    if (status == DRY_OK)
        *share = s;
    return status;
}

static enum dry_status
share_pages(const struct dry_pool *pool, const struct dryi_segment_info *run,
            const struct dryi_block_info *block, struct dry_pool_share *share,
            int *descriptors, size_t capacity)
{
    uint64_t address = block->addr, end = address + block->size;
    DRYI_ASSERT_SLOW(end > address);
    const struct dry_device *device = &pool->device;
    uint64_t page = get_page(pool, run);
    uint64_t first = (address - run->addr) / page;
    uint64_t count = (end - run->addr + page - 1) / page - first;
    uint64_t begin = run->addr + first * page;
    if (!device->ops->export_pages)
        return DRY_ERR_UNSUPPORTED;
    enum dry_status status = DRY_OK;
    if (count <= capacity)
        status = device->ops->export_pages(device->self, begin, (size_t)count, page,
                                           descriptors);
    if (status == DRY_OK)
        *share = (struct dry_pool_share){.offset = address - begin,
                                         .size = count * page,
                                         .page_bytes = page,
                                         .page_count = count};
    return status;
}

static enum dry_status
share_block(struct dry_pool *pool, uint64_t address, struct dry_pool_share *share,
            int *descriptors, size_t capacity)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    dryi_block block = dryi_pool_find(pool, address);
    if (block == DRYI_NO_BLOCK)
        return DRY_ERR_ARGUMENT;
    struct dryi_block_info info;
    pool->place.ops->get_block(pool->place.self, block, &info);
    struct dryi_segment_info run;
    enum dry_status status = dryi_pool_find_segment(pool, address, &run);
    if (status != DRY_OK)
        return status;
    if (!run.is_expandable)
        return share_range(pool, &run, address, share);
    return share_pages(pool, &run, &info, share, descriptors, capacity);
}

enum dry_status
dry_pool_share(struct dry_pool *pool, uint64_t address, struct dry_pool_share *share,
               int *descriptors, size_t capacity)
{
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    status = share_block(pool, address, share, descriptors, capacity);
    dryi_pool_leave(pool);
    return status;
}

/* Validate a share: its numbers come from another process. */
static bool
is_share(const struct dry_pool_share *s)
{
    uint64_t size;
    if (s->page_bytes == 0)
        return s->page_count == 0 && s->offset < s->size;
    return s->page_count > 0 && s->page_count <= SIZE_MAX / sizeof(int) &&
           !__builtin_mul_overflow(s->page_bytes, s->page_count, &size) &&
           size == s->size && s->offset < s->size;
}

enum dry_status
dry_pool_open_shared(struct dry_pool *pool, const struct dry_pool_share *share,
                     const int *descriptors, uint64_t *address)
{
    if (!is_share(share))
        return DRY_ERR_ARGUMENT;
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    const struct dry_device *device = &pool->device;
    status = DRY_ERR_UNSUPPORTED;
    if (share->page_bytes == 0 && device->ops->open_range)
        status = device->ops->open_range(device->self, &share->name, address);
    else if (share->page_bytes > 0 && device->ops->import_pages)
        status = device->ops->import_pages(device->self, descriptors,
                                           (size_t)share->page_count, share->page_bytes,
                                           address);
    dryi_pool_leave(pool);
    return status;
}

enum dry_status
dry_pool_close_shared(struct dry_pool *pool, const struct dry_pool_share *share,
                      uint64_t address)
{
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    const struct dry_device *device = &pool->device;
    if (share->page_bytes > 0) {
        device->ops->unmap(device->self, address, share->size, share->page_bytes);
        device->ops->unreserve(device->self, address, share->size);
    } else if (device->ops->close_range) {
        status = device->ops->close_range(device->self, address);
    } else {
        status = DRY_ERR_UNSUPPORTED;
    }
    dryi_pool_leave(pool);
    return status;
}
