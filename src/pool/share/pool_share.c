/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A pool's memory for others than its device: the device opens it, here is the walk that says
 * where it lies.
 */

#include <drystone/pool.h>

#include "pool/pool_lock.h"

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
