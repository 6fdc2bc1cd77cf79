/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/fail.h"
#include "host/pages_inside.h"

#define PAGES_AT_ONCE 512

int
dryi_pages_walk_nodes(const struct dryi_pages_places *places, uint64_t count,
                      void (*take)(void *to, int node), void *to)
{
    const struct dryi_kernel *k = places->kernel;
    uint64_t addresses[PAGES_AT_ONCE];
    int nodes[PAGES_AT_ONCE];
    for (uint64_t done = 0; done < count;) {
        size_t n = count - done < PAGES_AT_ONCE ? (size_t)(count - done) : PAGES_AT_ONCE;
        for (size_t i = 0; i < n; i++)
            addresses[i] = places->address + (done + i) * places->step;
        int result = k->query_nodes(k->self, n, addresses, nodes);
        if (result < 0)
            return result;
        for (size_t i = 0; i < n; i++)
            take(to, nodes[i] < 0 || nodes[i] >= DRY_PAGES_NODES_MAX ? -1 : nodes[i]);
        done += n;
    }
    return 0;
}

struct elsewhere {
    const struct dry_pages_nodes *nodes;
    uint64_t count, unknown;
};

static void
take_elsewhere(void *to, int node)
{
    struct elsewhere *e = to;
    e->unknown += node < 0;
    e->count += node >= 0 && !dryi_nodes_have(e->nodes, node);
}

bool
dryi_pages_count_elsewhere(const struct dryi_pages_places *places, uint64_t count,
                           const struct dry_pages_nodes *nodes, uint64_t *bytes)
{
    struct elsewhere e = {.nodes = nodes};
    if (dryi_pages_walk_nodes(places, count, take_elsewhere, &e) < 0)
        return false;
    *bytes = e.count * places->step;
    return e.unknown == 0;
}

bool
dryi_pages_count_huge(const struct dryi_facts *facts, uint64_t address, uint64_t bytes,
                      uint64_t *huge_bytes)
{
    const struct dryi_kernel *k = facts->kernel;
    uint64_t huge;
    if (k->count_huge(k->self, address, bytes, &huge) == 0 && huge <= bytes) {
        *huge_bytes = huge;
        return true;
    }
    return dryi_facts_huge_bytes(facts, address, bytes, huge_bytes);
}

static struct dryi_pages_places
places_of(const struct dry_pages *pages)
{
    const struct dry_pages_info *info = &pages->info;
    return (struct dryi_pages_places){
        .kernel = &pages->kernel,
        .address = (uintptr_t)info->address,
        .step = info->kind == DRY_PAGES_POOL ? info->page_bytes : info->base_page_bytes,
    };
}

static enum dry_status
check_owner(const struct dry_pages *pages, struct dry_error *err)
{
    if (pages->kernel.process_id(pages->kernel.self) == pages->owner)
        return DRY_OK;
    return dryi_fail(err, DRY_ERR_UNSUPPORTED,
                     "these pages are of the process before the fork");
}

struct histogram {
    struct dry_pages_proof *proof;
    const struct dry_pages_nodes *nodes;
    uint64_t step;
    bool has_place; /* some place was asked for */
};

/* Shares stay in the order of nodes; one too many is counted as nobody's. */
static void
take_share(void *to, int node)
{
    struct histogram *h = to;
    struct dry_pages_proof *p = h->proof;
    if (node < 0)
        return;
    p->populated_bytes += h->step;
    if (h->has_place && !dryi_nodes_have(h->nodes, node))
        p->elsewhere_bytes += h->step;
    size_t i = 0;
    while (i < p->share_count && p->shares[i].node < node)
        i++;
    if (i == p->share_count || p->shares[i].node != node) {
        if (p->share_count == DRY_PAGES_SHARES_MAX)
            return;
        memmove(&p->shares[i + 1], &p->shares[i],
                (p->share_count - i) * sizeof p->shares[0]);
        p->shares[i] = (struct dry_pages_share){.node = node};
        p->share_count++;
    }
    p->shares[i].bytes += h->step;
}

enum dry_status
dry_pages_prove(const struct dry_pages *pages, struct dry_pages_proof *proof,
                struct dry_error *err)
{
    enum dry_status status = check_owner(pages, err);
    if (status != DRY_OK)
        return status;
    const struct dry_pages_info *info = &pages->info;
    struct dry_pages_proof p = {.bytes = info->bytes};
    struct dryi_pages_places places = places_of(pages);
    struct histogram h = {.proof = &p,
                          .nodes = &pages->nodes,
                          .step = places.step,
                          .has_place = !dryi_nodes_are_none(&pages->nodes)};
    p.knows_nodes =
        dryi_pages_walk_nodes(&places, info->bytes / places.step, take_share, &h) == 0;
    if (!p.knows_nodes)
        p = (struct dry_pages_proof){.bytes = info->bytes};
    struct dryi_facts facts = {.kernel = &pages->kernel, .root = ""};
    p.knows_huge =
        dryi_pages_count_huge(&facts, places.address, info->bytes, &p.huge_bytes);
    *proof = p;
    return DRY_OK;
}

static void
take_node(void *to, int node)
{
    int32_t **next = to;
    *(*next)++ = node;
}

enum dry_status
dry_pages_query_nodes(const struct dry_pages *pages, uint64_t first, size_t count,
                      int32_t *nodes, struct dry_error *err)
{
    enum dry_status status = check_owner(pages, err);
    if (status != DRY_OK)
        return status;
    struct dryi_pages_places places = places_of(pages);
    uint64_t page_count = pages->info.bytes / places.step;
    if (first > page_count || count > page_count - first)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "pages %llu to %llu: the region has %llu",
                         (unsigned long long)first, (unsigned long long)first + count,
                         (unsigned long long)page_count);
    places.address += first * places.step;
    int32_t *next = nodes;
    int result = dryi_pages_walk_nodes(&places, count, take_node, &next);
    if (result < 0) {
        status = dryi_fail(err, DRY_ERR_UNSUPPORTED,
                           "the kernel does not tell where pages lie (move_pages)");
        if (err)
            err->os_errno = -result;
    }
    return status;
}
