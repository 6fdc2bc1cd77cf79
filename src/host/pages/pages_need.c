/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Computes the pages that an order's first rung needs, those that its pool lacks, and the
 * command that adds them. If pages go to nodes, the pool is counted by node. Pages that
 * the pool can add on demand count for no node.
 */
#include <stdio.h>

#include "base/bits.h"
#include "base/sized.h"
#include "host/pages/pages_inside.h"

static uint64_t
less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* Surplus pages are allocated at mmap(), before the memory policy is set, so they count
   for no node. */
static void
measure_part(const struct dryi_facts *facts, uint64_t page_bytes,
             struct dry_pages_part *part)
{
    struct dryi_pool_facts p;
    bool is_anywhere = part->node < 0;
    part->is_known =
        page_bytes != 0 &&
        dryi_facts_pool(facts, page_bytes, is_anywhere ? DRYI_ALL_NODES : part->node, &p);
    if (part->is_known) {
        part->total_count = p.total;
        part->free_count = less(p.free, p.reserved);
        part->growth_count = is_anywhere ? less(p.overcommit, p.surplus) : 0;
    }
    part->missing_count =
        less(part->page_count, dryi_add_saturating(part->free_count, part->growth_count));
}

/* Free pages on a node may be reserved, so the pool as a whole may lack more than the sum
   over nodes. */
static void
add_promised(const struct dryi_facts *facts, struct dry_pages_need *need)
{
    struct dry_pages_part all = {.node = -1, .page_count = need->page_count};
    measure_part(facts, need->page_bytes, &all);
    uint64_t more = less(all.missing_count, need->missing_count);
    if (!all.is_known || need->part_count == 0)
        return;
    need->parts[0].missing_count += more;
    need->missing_count += more;
}

static uint64_t
get_weight(const struct dryi_pages_order *order, int32_t node)
{
    if (!dryi_nodes_have(&order->nodes, node))
        return 0;
    return order->where == DRY_PAGES_WEIGHTED ? dryi_facts_weight(&order->facts, node)
                                              : 1;
}

/* Divide the pages over the nodes by weight. The remainder goes to the first nodes, each
   up to its weight. */
static void
divide(const struct dryi_pages_order *order, struct dry_pages_need *need)
{
    uint64_t sum = 0;
    for (int32_t node = 0; node < DRY_PAGES_NODES_MAX; node++)
        sum += get_weight(order, node);
    uint64_t left = sum ? need->page_count % sum : 0;
    for (int32_t node = 0; node < DRY_PAGES_NODES_MAX; node++) {
        uint64_t weight = get_weight(order, node);
        if (weight == 0)
            continue;
        uint64_t more = left < weight ? left : weight;
        if (need->part_count < DRY_PAGES_SHARES_MAX)
            need->parts[need->part_count++].node = node;
        need->parts[need->part_count - 1].page_count +=
            need->page_count / sum * weight + more;
        left -= more;
    }
}

void
dryi_pages_need(const struct dryi_pages_order *order, struct dry_pages_need *need)
{
    struct dryi_rung rungs[DRY_PAGES_ATTEMPTS_MAX];
    dryi_pages_ladder(order, rungs);
    uint64_t page = rungs[0].page_bytes, step = page ? page : order->base_bytes;
    *need = (struct dry_pages_need){
        .struct_size = sizeof *need,
        .kind = rungs[0].kind,
        .page_bytes = page,
        .bytes = dryi_round_up(order->options.bytes, step),
    };
    need->page_count = need->bytes / step;
    if (need->kind != DRY_PAGES_POOL)
        return;
    if (order->where == DRY_PAGES_INTERLEAVED || order->where == DRY_PAGES_WEIGHTED)
        divide(order, need);
    if (need->part_count == 0)
        need->parts[need->part_count++] = (struct dry_pages_part){
            .node = order->where == DRY_PAGES_ON_NODE ? order->options.node : -1,
            .page_count = need->page_count};
    for (size_t i = 0; i < need->part_count; i++) {
        measure_part(&order->facts, page, &need->parts[i]);
        need->missing_count =
            dryi_add_saturating(need->missing_count, need->parts[i].missing_count);
    }
    add_promised(&order->facts, need);
}

enum dry_status
dry_pages_read_need(const struct dry_pages_options *options, struct dry_pages_need *need,
                    struct dry_error *err)
{
    struct dryi_kernel kernel;
    struct dryi_pages_order order;
    struct dry_pages_need all;
    dryi_kernel_init(&kernel);
    enum dry_status status = dryi_pages_order_init(&order, options, &kernel, err);
    if (status != DRY_OK)
        return status;
    dryi_pages_need(&order, &all);
    return dryi_sized_give(need, &all, sizeof all);
}

size_t
dry_pages_need_command(const struct dry_pages_need *need, size_t part, char *text,
                       size_t capacity)
{
    char folder[64] = "kernel/mm";
    struct dry_pages_need all = DRY_INIT(struct dry_pages_need);
    if (capacity)
        *text = '\0';
    if (dryi_sized_take(&all, sizeof all, need, NULL) != DRY_OK || part >= all.part_count)
        return 0;
    const struct dry_pages_part *p = &all.parts[part];
    if (p->missing_count == 0 || !p->is_known)
        return 0;
    if (p->node >= 0)
        snprintf(folder, sizeof folder, "devices/system/node/node%d", p->node);
    int length = snprintf(
        text, capacity, "echo %llu >/sys/%s/hugepages/hugepages-%llukB/nr_hugepages",
        (unsigned long long)dryi_add_saturating(p->total_count, p->missing_count), folder,
        (unsigned long long)all.page_bytes / 1024);
    return length < 0 ? 0 : (size_t)length;
}
