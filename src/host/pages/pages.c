/* SPDX-License-Identifier: Apache-2.0 */
#include <drystone/pages.h>

#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "host/pages/pages_inside.h"

/* So that no sum of a size, an alignment and an address overflows. */
#define BYTES_MAX (UINT64_C(1) << 46)
#define PAGE_BYTES_MAX (UINT64_C(1) << 40)

void
dry_pages_options_init(struct dry_pages_options *options)
{
    *options = (struct dry_pages_options){
        .struct_size = sizeof *options,
        .kind = DRY_PAGES_TRANSPARENT,
        .keep_free_bytes = 64 * DRYI_MIB,
    };
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

/* Nodes that are not there or not for us fall away; then the policy says what is left. */
static void
choose_nodes(struct dryi_pages_order *o)
{
    struct dry_pages_nodes existing = {{1}}, allowed = {{1}};
    o->where = o->options.where;
    if (o->where == DRY_PAGES_ANYWHERE)
        return;
    /* A machine that tells of no nodes has one. */
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

/* Whether the nodes alone make every try vain. */
static bool
nodes_are_vain(const struct dryi_pages_order *o)
{
    return o->node_reason != DRY_PAGES_REASON_NONE &&
           (o->options.policy == DRY_PAGES_STRICT ||
            (o->options.policy == DRY_PAGES_PREFER && dryi_nodes_are_none(&o->nodes)));
}

static struct dry_pages_attempt
attempt_of(const struct dryi_pages_try *t, bool is_granted)
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

/* Down the ladder until one holds, or the caller has enough. */
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
        bool is_granted = !is_vain && dryi_pages_try(t);
        report->attempts[report->count++] = attempt_of(t, is_granted);
        if (is_granted)
            return true;
        if (is_vain || t->reason == DRY_PAGES_CANCELLED)
            return false;
    }
    return false;
}

/* Of a pool, with what would help; half a command would help nobody. */
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
dryi_pages_order_init(struct dryi_pages_order *order,
                      const struct dry_pages_options *options,
                      const struct dryi_kernel *kernel, struct dry_error *err)
{
    *order = (struct dryi_pages_order){.facts = {.kernel = kernel}};
    dry_pages_options_init(&order->options);
    enum dry_status status =
        dryi_options_take(&order->options, sizeof order->options, options, err);
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
    /*
     * In a child the addresses may long be somebody else's (DONTFORK leaves a hole), and what
     * fork left there goes with the process.
     */
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

void
dry_pages_get_info(const struct dry_pages *pages, struct dry_pages_info *info)
{
    *info = pages->info;
}
