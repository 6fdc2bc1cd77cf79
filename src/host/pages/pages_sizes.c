/* SPDX-License-Identifier: Apache-2.0 */
#include <drystone/pages.h>

#include "host/facts/facts.h"

static struct dry_pages_size
size_of_pool(const struct dryi_facts *facts, uint64_t page_bytes, int32_t node)
{
    struct dry_pages_size size = {.kind = DRY_PAGES_POOL, .page_bytes = page_bytes};
    struct dryi_pool_facts p;
    if (!dryi_facts_pool(facts, page_bytes, node, &p))
        return size;
    size.total_count = p.total;
    size.free_count = p.free > p.reserved ? p.free - p.reserved : 0;
    size.growth_count = p.overcommit > p.surplus ? p.overcommit - p.surplus : 0;
    return size;
}

size_t
dry_pages_read_sizes(const char *root, int32_t node,
                     struct dry_pages_size sizes[DRY_PAGES_SIZES_MAX])
{
    struct dryi_kernel kernel;
    struct dryi_thp_facts thp;
    uint64_t pools[DRYI_FACTS_POOLS_MAX];
    dryi_kernel_init(&kernel);
    struct dryi_facts facts = {.kernel = &kernel, .root = root ? root : ""};
    dryi_facts_thp(&facts, &thp);
    size_t count = 0, pool_count = dryi_facts_pool_sizes(&facts, pools);
    uint64_t base = dryi_facts_base_bytes(&facts);
    sizes[count++] = (struct dry_pages_size){
        .kind = DRY_PAGES_BASE,
        .page_bytes = base ? base : kernel.page_bytes(kernel.self)};
    if (thp.huge_bytes)
        sizes[count++] = (struct dry_pages_size){.kind = DRY_PAGES_TRANSPARENT,
                                                 .page_bytes = thp.huge_bytes,
                                                 .is_off = thp.is_off};
    while (pool_count-- > 0)
        sizes[count++] =
            size_of_pool(&facts, pools[pool_count], node < 0 ? DRYI_ALL_NODES : node);
    return count;
}
