/* SPDX-License-Identifier: Apache-2.0 */

/* Verifies a region: the node of every page by move_pages(), or else by numa_maps, and
   huge bytes by PAGEMAP_SCAN, or else by smaps. Linear in the pages. */
#include <string.h>

#include "base/fail.h"
#include "base/sized.h"
#include "host/pages/pages_inside.h"

#define PAGES_AT_ONCE 512

/* Call `take` with the node of every page, in order, -1 for no page. Returns 0 or a
   negative errno. */
static int
walk_nodes(const struct dryi_pages_places *places,
           void (*take)(void *to, int node, uint64_t bytes), void *to)
{
    const struct dryi_kernel *k = places->kernel;
    uint64_t addresses[PAGES_AT_ONCE], count = places->bytes / places->step;
    int nodes[PAGES_AT_ONCE];
    for (uint64_t done = 0; done < count;) {
        size_t n = count - done < PAGES_AT_ONCE ? (size_t)(count - done) : PAGES_AT_ONCE;
        for (size_t i = 0; i < n; i++)
            addresses[i] = places->address + (done + i) * places->step;
        int result = k->query_nodes(k->self, n, addresses, nodes);
        if (result < 0)
            return result;
        for (size_t i = 0; i < n; i++)
            take(to, nodes[i] < 0 || nodes[i] >= DRY_PAGES_NODES_MAX ? -1 : nodes[i],
                 places->step);
        done += n;
    }
    return 0;
}

/* Add to a node's share, sorted by node. Shares beyond the array count in the sums
   only. */
static void
take_share(void *to, int node, uint64_t bytes)
{
    struct dryi_pages_survey *s = to;
    if (node < 0)
        return;
    s->populated_bytes += bytes;
    if (s->nodes && !dryi_nodes_have(s->nodes, node))
        s->elsewhere_bytes += bytes;
    size_t i = 0;
    while (i < s->share_count && s->shares[i].node < node)
        i++;
    if (i == s->share_count || s->shares[i].node != node) {
        if (s->share_count == DRY_PAGES_SHARES_MAX)
            return;
        memmove(&s->shares[i + 1], &s->shares[i],
                (s->share_count - i) * sizeof s->shares[0]);
        s->shares[i] = (struct dry_pages_share){.node = node};
        s->share_count++;
    }
    s->shares[i].bytes += bytes;
}

bool
dryi_pages_survey_nodes(const struct dryi_pages_places *places,
                        const struct dry_pages_nodes *nodes,
                        struct dryi_pages_survey *survey)
{
    const struct dryi_facts facts = {.kernel = places->kernel, .root = ""};
    *survey = (struct dryi_pages_survey){.nodes = nodes};
    if (walk_nodes(places, take_share, survey) == 0)
        return true;
    *survey = (struct dryi_pages_survey){.nodes = nodes};
    return dryi_facts_node_bytes(&facts, places->address, places->bytes, take_share,
                                 survey) &&
           survey->populated_bytes <= places->bytes;
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
get_places(const struct dry_pages *pages)
{
    const struct dry_pages_info *info = &pages->info;
    return (struct dryi_pages_places){
        .kernel = &pages->kernel,
        .address = (uintptr_t)info->address,
        .bytes = info->bytes,
        .step = info->kind == DRY_PAGES_POOL ? info->page_bytes : info->base_page_bytes,
    };
}

enum dry_status
dryi_pages_check_owner(const struct dry_pages *pages, struct dry_error *err)
{
    if (pages->kernel.process_id(pages->kernel.self) == pages->owner)
        return DRY_OK;
    return dryi_fail(err, DRY_ERR_UNSUPPORTED,
                     "these pages are of the process before the fork");
}

enum dry_status
dry_pages_prove(const struct dry_pages *pages, struct dry_pages_proof *proof,
                struct dry_error *err)
{
    enum dry_status status = dryi_pages_check_owner(pages, err);
    if (status != DRY_OK)
        return status;
    const struct dry_pages_info *info = &pages->info;
    struct dry_pages_proof p = {.bytes = info->bytes};
    struct dryi_pages_places places = get_places(pages);
    bool has_place = !dryi_nodes_are_none(&pages->nodes);
    struct dryi_pages_survey survey;
    if (dryi_pages_survey_nodes(&places, has_place ? &pages->nodes : NULL, &survey)) {
        p.knows_nodes = true;
        p.populated_bytes = survey.populated_bytes;
        p.elsewhere_bytes = survey.elsewhere_bytes;
        p.share_count = survey.share_count;
        memcpy(p.shares, survey.shares, sizeof p.shares);
    }
    struct dryi_facts facts = {.kernel = &pages->kernel, .root = ""};
    p.knows_huge =
        dryi_pages_count_huge(&facts, places.address, info->bytes, &p.huge_bytes);
    return dryi_sized_give(proof, &p, sizeof p);
}

static void
take_node(void *to, int node, uint64_t bytes)
{
    (void)bytes;
    int32_t **next = to;
    *(*next)++ = node;
}

enum dry_status
dry_pages_query_nodes(const struct dry_pages *pages, uint64_t first, size_t count,
                      int32_t *nodes, struct dry_error *err)
{
    enum dry_status status = dryi_pages_check_owner(pages, err);
    if (status != DRY_OK)
        return status;
    struct dryi_pages_places places = get_places(pages);
    uint64_t page_count = pages->info.bytes / places.step;
    if (first > page_count || count > page_count - first)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "pages %llu to %llu: the region has %llu",
                         (unsigned long long)first, (unsigned long long)first + count,
                         (unsigned long long)page_count);
    places.address += first * places.step;
    places.bytes = count * places.step;
    int32_t *next = nodes;
    int result = walk_nodes(&places, take_node, &next);
    if (result < 0) {
        status = dryi_fail(err, DRY_ERR_UNSUPPORTED,
                           "the kernel does not tell where pages lie (move_pages)");
        if (err)
            err->os_errno = -result;
    }
    return status;
}
