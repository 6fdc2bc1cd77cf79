/* SPDX-License-Identifier: Apache-2.0 */

/* STRICT has one rung. PREFER goes down in page size: smaller pools, transparent pages,
   base pages. ANY adds after each rung the same rung with other nodes allowed. */
#include "host/pages/pages_inside.h"

struct ladder {
    const struct dryi_pages_order *order;
    struct dryi_rung *rungs;
    size_t count;
};

static void
add_one(struct ladder *l, enum dry_pages_kind kind, uint64_t page_bytes, bool may_spill)
{
    if (l->count < DRY_PAGES_ATTEMPTS_MAX)
        l->rungs[l->count++] = (struct dryi_rung){kind, page_bytes, may_spill};
}

static void
add(struct ladder *l, enum dry_pages_kind kind, uint64_t page_bytes)
{
    const struct dryi_pages_order *o = l->order;
    add_one(l, kind, page_bytes, false);
    if (o->options.policy == DRY_PAGES_ANY && o->where != DRY_PAGES_ANYWHERE &&
        !o->is_everywhere)
        add_one(l, kind, page_bytes, true);
}

/* Add the requested pool, even if the machine lacks it, then the machine's smaller pools.
   Returns the requested page size. */
static uint64_t
add_pools(struct ladder *l)
{
    const struct dryi_pages_order *o = l->order;
    uint64_t sizes[DRYI_FACTS_POOLS_MAX], asked = o->options.page_bytes;
    size_t count = dryi_facts_pool_sizes(&o->facts, sizes);
    if (asked == 0)
        asked = dryi_facts_default_pool(&o->facts);
    add(l, DRY_PAGES_POOL, asked);
    /* At most 5, so that transparent and base pages fit into the ladder. */
    for (size_t i = 0, used = 0; i < count && used < 5; i++) {
        if (sizes[i] >= asked || o->options.policy == DRY_PAGES_STRICT ||
            sizes[i] <= o->base_bytes)
            continue;
        add(l, DRY_PAGES_POOL, sizes[i]);
        used++;
    }
    return asked;
}

size_t
dryi_pages_ladder(const struct dryi_pages_order *order,
                  struct dryi_rung rungs[DRY_PAGES_ATTEMPTS_MAX])
{
    struct ladder l = {.order = order, .rungs = rungs};
    enum dry_pages_kind kind = order->options.kind;
    /* Without transparent huge pages the rung gets the base page size, and its attempt
       then fails for that reason. */
    uint64_t huge = order->thp.huge_bytes ? order->thp.huge_bytes : order->base_bytes;
    uint64_t asked = kind == DRY_PAGES_POOL ? add_pools(&l) : huge;
    bool is_strict = order->options.policy == DRY_PAGES_STRICT;
    if (kind == DRY_PAGES_TRANSPARENT ||
        (kind == DRY_PAGES_POOL && !is_strict && (huge <= asked || asked == 0)))
        add(&l, DRY_PAGES_TRANSPARENT, huge);
    if (kind == DRY_PAGES_BASE || !is_strict)
        add(&l, DRY_PAGES_BASE, order->base_bytes);
    return l.count;
}
