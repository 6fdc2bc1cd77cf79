/* SPDX-License-Identifier: Apache-2.0 */

/* The slow path of pool_address.h: search all tables. */

#include "pool/pool_address.h"

struct dryi_pool_found
dryi_pool_seek_further(struct dry_pool *pool, uint64_t address)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    struct dryi_pool_found found = {0};
    for (uint32_t i = 0; i <= pool->caches.count && !found.slot; i++)
        found = dryi_pool_seek_at(pool->caches.all[i], address);
    if (found.slot)
        dryi_pool_note(pool, address, found.cache);
    return found;
}
