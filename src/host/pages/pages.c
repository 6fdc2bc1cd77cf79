/* SPDX-License-Identifier: Apache-2.0 */

/* The life of a region, from the first rung of the ladder that succeeds, and queries. See
   pages_inside.h for how a region is made. */
#include <drystone/pages.h>

#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "host/pages/pages_inside.h"

/* Return whether the nodes alone make every attempt fail. */
static bool
nodes_are_vain(const struct dryi_pages_order *o)
{
    return o->node_reason != DRY_PAGES_REASON_NONE &&
           (o->options.policy == DRY_PAGES_STRICT ||
            (o->options.policy == DRY_PAGES_PREFER && dryi_nodes_are_none(&o->nodes)));
}

static struct dry_pages_attempt
get_attempt(const struct dryi_pages_try *t, bool is_granted)
{
    enum dry_pages_reason node_reason =
        t->node_reason != DRY_PAGES_REASON_NONE ? t->node_reason : t->order->node_reason;
    return (struct dry_pages_attempt){
        .kind = t->rung.kind,
        .page_bytes = t->rung.page_bytes,
        .may_spill = t->rung.may_spill,
        .is_granted = is_granted,
        .reason = t->reason,
        .node_reason = node_reason,
        .os_errno = t->os_errno,
    };
}

/* Try the rungs in order until one succeeds or the caller cancels. */
static bool
climb_down(const struct dryi_pages_order *order, struct dryi_pages_try *t,
           struct dry_pages_report *report)
{
    struct dryi_rung rungs[DRY_PAGES_ATTEMPTS_MAX];
    size_t count = dryi_pages_ladder(order, rungs);
    for (size_t i = 0; i < count; i++) {
        *t = (struct dryi_pages_try){.order = order, .rung = rungs[i]};
        bool is_vain = nodes_are_vain(order);
        if (is_vain)
            t->reason = order->node_reason;
        bool is_granted = !is_vain && dryi_pages_try_run(t);
        report->attempts[report->count++] = get_attempt(t, is_granted);
        if (is_granted)
            return true;
        if (is_vain || t->reason == DRY_PAGES_CANCELLED)
            return false;
    }
    return false;
}

/* Add to err the pages that a pool lacks and the command that adds them, if the whole
   command fits. */
static void
describe_need(const struct dryi_pages_order *order, struct dry_error *err)
{
    struct dry_pages_need need;
    char command[160], more[sizeof err->text];
    size_t part = 0, length = strlen(err->text);
    dryi_pages_need(order, &need);
    while (part < need.part_count && need.parts[part].missing_count == 0)
        part++;
    if (part == need.part_count ||
        dry_pages_need_command(&need, part, command, sizeof command) == 0)
        return;
    int more_length = snprintf(more, sizeof more, "; %llu needed, %llu missing: %s",
                               (unsigned long long)need.page_count,
                               (unsigned long long)need.missing_count, command);
    if (more_length > 0 && (size_t)more_length < sizeof err->text - length)
        memcpy(err->text + length, more, (size_t)more_length + 1);
}

static enum dry_status
fail_with(const struct dryi_pages_order *order, const struct dry_pages_report *report,
          struct dry_error *err)
{
    const struct dry_pages_attempt *last = &report->attempts[report->count - 1];
    const struct dry_pages_attempt *a =
        last->reason == DRY_PAGES_CANCELLED ? last : &report->attempts[0];
    enum dry_status status =
        dryi_fail(err, dryi_pages_reason_status(a->reason), "%s pages of %llu bytes: %s",
                  dry_pages_kind_name(a->kind), (unsigned long long)a->page_bytes,
                  dry_pages_reason_text(a->reason));
    if (!err)
        return status;
    err->os_errno = a->os_errno;
    if (a->kind == DRY_PAGES_POOL &&
        (a->reason == DRY_PAGES_NO_POOL || a->reason == DRY_PAGES_NODE_DRY))
        describe_need(order, err);
    return status;
}

static void
take_over(struct dry_pages *pages, const struct dryi_pages_try *t,
          const struct dry_pages_report *report)
{
    const struct dryi_pages_order *o = t->order;
    pages->outer_address = t->outer_address;
    pages->outer_bytes = t->outer_bytes;
    pages->nodes = o->nodes;
    pages->owner = pages->kernel.process_id(pages->kernel.self);
    pages->info = (struct dry_pages_info){
        .address = (void *)(uintptr_t)t->address,
        .bytes = t->bytes,
        .requested_bytes = o->options.bytes,
        .kind = t->rung.kind,
        .page_bytes = t->rung.page_bytes,
        .base_page_bytes = o->base_bytes,
        .where = t->is_even ? DRY_PAGES_INTERLEAVED : o->where,
        .fork = o->options.fork,
        .huge_bytes = t->huge_bytes,
        .elsewhere_bytes = t->elsewhere_bytes,
        .thread_count = t->thread_count,
        .populate_ns = t->populate_ns,
        .report = *report,
    };
}

enum dry_status
dryi_pages_create(const struct dry_pages_options *options,
                  const struct dryi_kernel *kernel, struct dry_pages **pages,
                  struct dry_pages_report *report, struct dry_error *err)
{
    struct dryi_pages_order order;
    struct dry_pages_report own = {0};
    enum dry_status status = dryi_pages_order_init(&order, options, kernel, err);
    if (report)
        *report = own;
    if (status != DRY_OK)
        return status;
    struct dry_memory memory = dryi_memory_or_default(order.options.memory);
    struct dry_pages *p = dryi_memory_zalloc(&memory, 1, sizeof *p);
    if (!p)
        return dryi_fail_memory(err, "a region of pages");
    p->memory = memory;
    p->kernel = *kernel;
    struct dryi_pages_try t;
    bool is_granted = climb_down(&order, &t, &own);
    if (report)
        *report = own;
    if (!is_granted) {
        dryi_memory_free(&memory, p, 1, sizeof *p);
        return fail_with(&order, &own, err);
    }
    take_over(p, &t, &own);
    *pages = p;
    return DRY_OK;
}

enum dry_status
dry_pages_create(const struct dry_pages_options *options, struct dry_pages **pages,
                 struct dry_pages_report *report, struct dry_error *err)
{
    struct dryi_kernel kernel;
    dryi_kernel_init(&kernel);
    return dryi_pages_create(options, &kernel, pages, report, err);
}

void
dry_pages_destroy(struct dry_pages *pages)
{
    if (!pages)
        return;
    struct dry_memory memory = pages->memory;
    /* In a child the addresses may have been reused (DONTFORK leaves a hole). Memory
       inherited by fork is freed when the process exits. */
    if (pages->kernel.process_id(pages->kernel.self) == pages->owner)
        dryi_pages_release(&pages->kernel, pages->outer_address, pages->outer_bytes);
    dryi_memory_free(&memory, pages, 1, sizeof *pages);
}

void
dryi_pages_abandon(struct dry_pages *pages)
{
    struct dry_memory memory = pages->memory;
    dryi_memory_free(&memory, pages, 1, sizeof *pages);
}

enum dry_status
dry_pages_get_info(const struct dry_pages *pages, struct dry_pages_info *info)
{
    return dryi_sized_give(info, &pages->info, sizeof pages->info);
}

/* --- collapsing -------------------------------------------------------------------------- */

enum dry_status
dry_pages_collapse(const struct dry_pages *pages, uint32_t timeout_ms,
                   uint64_t *huge_bytes, struct dry_error *err)
{
    const struct dry_pages_info *info = &pages->info;
    const struct dryi_kernel *k = &pages->kernel;
    const struct dryi_facts facts = {.kernel = k, .root = ""};
    uint64_t address = (uintptr_t)info->address, huge = info->bytes, deadline_ns = 0;
    enum dry_status status = dryi_pages_check_owner(pages, err);
    if (status != DRY_OK)
        return status;
    if (info->kind == DRY_PAGES_BASE)
        return dryi_fail(err, DRY_ERR_UNSUPPORTED, "base pages are to stay base pages");
    if (timeout_ms)
        deadline_ns =
            dryi_add_saturating(k->time_ns(k->self), (uint64_t)timeout_ms * 1000000);
    if (info->kind == DRY_PAGES_TRANSPARENT) {
        int result =
            dryi_pages_collapse(k, address, info->bytes, info->page_bytes, deadline_ns);
        if (result == 0 && !dryi_pages_count_huge(&facts, address, info->bytes, &huge))
            return dryi_fail(err, DRY_ERR_UNSUPPORTED,
                             "the kernel does not tell what is huge");
        if (result < 0) {
            status = dryi_fail(err, DRY_ERR_UNSUPPORTED,
                               "this kernel does not collapse pages (Linux 6.1 does)");
            if (err)
                err->os_errno = -result;
            return status;
        }
    }
    *huge_bytes = huge;
    return DRY_OK;
}

/* --- sizes ------------------------------------------------------------------------------- */

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
