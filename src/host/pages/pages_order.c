/* SPDX-License-Identifier: Apache-2.0 */

/* Validates the options of one region, reads the machine's facts, and chooses the nodes
   once for all rungs of the ladder. */
#include "base/bits.h"
#include "base/fail.h"
#include "base/sized.h"
#include "host/pages/pages_inside.h"

/* So that the sum of a size, an alignment and an address cannot overflow. */
#define BYTES_MAX (UINT64_C(1) << 46)
#define PAGE_BYTES_MAX (UINT64_C(1) << 40)

void
dry_pages_options_init_sized(struct dry_pages_options *options, size_t struct_size)
{
    const struct dry_pages_options defaults = {
        .kind = DRY_PAGES_TRANSPARENT,
        .keep_free_bytes = 64 * DRYI_MIB,
    };
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

static bool
has_impossible_choice(const struct dry_pages_options *o)
{
    return (unsigned)o->kind > DRY_PAGES_POOL ||
           (unsigned)o->where > DRY_PAGES_WEIGHTED ||
           (unsigned)o->policy > DRY_PAGES_ANY || (unsigned)o->fork > DRY_PAGES_SHARED;
}

static enum dry_status
check_options(const struct dry_pages_options *o, uint64_t base_bytes,
              struct dry_error *err)
{
    if (o->bytes == 0 || o->bytes > BYTES_MAX)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "bytes %llu: 1 to %llu are expected",
                         (unsigned long long)o->bytes, (unsigned long long)BYTES_MAX);
    if (has_impossible_choice(o))
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "kind %d, where %d, policy %d, fork %d: one is not known",
                         (int)o->kind, (int)o->where, (int)o->policy, (int)o->fork);
    if (o->page_bytes &&
        (o->kind != DRY_PAGES_POOL || !dryi_is_power_of_two(o->page_bytes) ||
         o->page_bytes <= base_bytes || o->page_bytes > PAGE_BYTES_MAX))
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "page_bytes %llu: for a pool, a power of two above %llu; else 0",
                         (unsigned long long)o->page_bytes,
                         (unsigned long long)base_bytes);
    if (o->where == DRY_PAGES_ON_NODE && (o->node < 0 || o->node >= DRY_PAGES_NODES_MAX))
        return dryi_fail(err, DRY_ERR_ARGUMENT, "node %d: 0 to %d are expected", o->node,
                         DRY_PAGES_NODES_MAX - 1);
    return DRY_OK;
}

static bool
is_part_of(const struct dry_pages_nodes *part, const struct dry_pages_nodes *whole)
{
    for (size_t i = 0; i < DRY_PAGES_NODES_MAX / 64; i++)
        if (part->words[i] & ~whole->words[i])
            return false;
    return true;
}

static bool
is_one_node(const struct dry_pages_nodes *nodes)
{
    int count = 0;
    for (size_t i = 0; i < DRY_PAGES_NODES_MAX / 64; i++)
        count += __builtin_popcountll(nodes->words[i]);
    return count == 1;
}

/* Choose the nodes: remove missing and forbidden ones; the policy decides whether the
   rest suffices. */
static void
choose_nodes(struct dryi_pages_order *o)
{
    struct dry_pages_nodes existing = {{1}}, allowed = {{1}};
    o->where = o->options.where;
    if (o->where == DRY_PAGES_ANYWHERE)
        return;
    /* A machine without NUMA information has node 0. */
    dryi_facts_nodes(&o->facts, &existing, &allowed);
    if (o->where == DRY_PAGES_ON_NODE)
        dryi_nodes_add(&o->nodes, o->options.node);
    else
        o->nodes = dryi_nodes_are_none(&o->options.nodes) ? allowed : o->options.nodes;
    if (!is_part_of(&o->nodes, &existing))
        o->node_reason = DRY_PAGES_NO_SUCH_NODE;
    else if (!is_part_of(&o->nodes, &allowed))
        o->node_reason = DRY_PAGES_NO_PERMISSION;
    for (size_t i = 0; i < DRY_PAGES_NODES_MAX / 64; i++)
        o->nodes.words[i] &= allowed.words[i];
    if (dryi_nodes_are_none(&o->nodes) && o->options.policy == DRY_PAGES_ANY)
        o->where = DRY_PAGES_ANYWHERE;
    o->is_everywhere = is_one_node(&allowed) && is_part_of(&allowed, &o->nodes);
}

enum dry_status
dryi_pages_order_init(struct dryi_pages_order *order,
                      const struct dry_pages_options *options,
                      const struct dryi_kernel *kernel, struct dry_error *err)
{
    *order = (struct dryi_pages_order){.facts = {.kernel = kernel}};
    dry_pages_options_init(&order->options);
    enum dry_status status =
        dryi_sized_take(&order->options, sizeof order->options, options, err);
    if (status != DRY_OK)
        return status;
    order->base_bytes = kernel->page_bytes(kernel->self);
    if (!dryi_is_power_of_two(order->base_bytes) || order->base_bytes > PAGE_BYTES_MAX)
        return dryi_fail(err, DRY_ERR_SYSTEM,
                         "the kernel does not say how large a page is");
    status = check_options(&order->options, order->base_bytes, err);
    if (status != DRY_OK)
        return status;
    order->facts.root = order->options.root ? order->options.root : "";
    dryi_facts_thp(&order->facts, &order->thp);
    choose_nodes(order);
    return DRY_OK;
}
