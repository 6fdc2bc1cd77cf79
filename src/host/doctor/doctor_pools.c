/* SPDX-License-Identifier: Apache-2.0 */

/* Findings on the current pools of huge pages; doctor_needs.c computes what a need
   requires. */
#include <stdio.h>

#include "base/bits.h"
#include "host/doctor/doctor_inside.h"
#include "host/doctor/doctor_text.h"
#include "host/facts/facts_read.h"

#define VMEMMAP "/proc/sys/vm/hugetlb_optimize_vmemmap"

static const struct dryi_check check_sizes = {
    DRY_DOCTOR_POOLS, "pools", "sizes of huge pages that have a pool",
    "pages of a pool are set aside and never swapped or split; containers hide pools, "
    "and kernels without hugetlbfs have none"};
static const struct dryi_check check_pool = {
    DRY_DOCTOR_POOLS, "pool", "a pool of huge pages",
    "a pool promises pages by its sum and hands them out by node: a program that binds "
    "its memory finds a node dry while another has pages"};
static const struct dryi_check check_vmemmap = {
    DRY_DOCTOR_POOLS, "pool-vmemmap", "the kernel's own records of huge pages",
    "a record of 64 bytes for each base page is 2 GiB for 128 GiB; for pages of a pool "
    "the kernel can do with an eighth of it. It matters for pages added afterwards"};

static void
check_that_there_are_pools(struct dry_doctor *d)
{
    char text[DRYI_BYTES_TEXT];
    dryi_doctor_begin(d, &check_sizes);
    if (d->pool_count == 0) {
        dryi_doctor_is(d, "none that this process can see");
        dryi_doctor_should_be(d, "at least one, of %s pages",
                              dryi_doctor_bytes(d->machine.huge_page_bytes
                                                    ? d->machine.huge_page_bytes
                                                    : 2 * DRYI_MIB,
                                                text));
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_fix(d, "# on the host: a kernel with hugetlbfs, and /sys/kernel/mm "
                           "mounted into the container");
    }
    for (size_t i = d->pool_count; i-- > 0;)
        dryi_doctor_is(d, "%s%s", dryi_doctor_bytes(d->pools[i], text),
                       d->pools[i] == d->default_pool ? " (the default)" : "");
    dryi_doctor_end(d);
}

/* Report each node's pages; recommend pages on all nodes with CPUs if only some have any. */
static void
judge_nodes(struct dry_doctor *d, uint64_t page_bytes)
{
    size_t with = 0, without = 0;
    for (int32_t node = 0; node < DRY_PAGES_NODES_MAX; node++) {
        struct dryi_pool_facts p;
        if (!dryi_nodes_have(&d->nodes, node) ||
            !dryi_facts_pool(&d->facts, page_bytes, node, &p))
            continue;
        if (with + without < 16)
            dryi_doctor_is(d, "node %d: %llu, %llu free", (int)node,
                           (unsigned long long)p.total, (unsigned long long)p.free);
        if (p.total)
            with++;
        else if (dryi_nodes_have(&d->cpu_nodes, node))
            without++;
    }
    if (with == 0 || without == 0)
        return;
    dryi_doctor_needs_root(d);
    dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
    dryi_doctor_should_be(d, "pages on each node whose CPUs or GPUs are used");
    dryi_doctor_fix(
        d,
        "# echo N > "
        "/sys/devices/system/node/nodeK/hugepages/hugepages-%llukB/nr_hugepages",
        (unsigned long long)(page_bytes / 1024));
}

static void
judge_idle(struct dry_doctor *d, uint64_t page_bytes, const struct dryi_pool_facts *p)
{
    uint64_t memory = d->machine.memory_bytes;
    if (d->options.need_count || memory == 0 || p->total == 0 || p->free != p->total ||
        p->total <= memory / 4 / page_bytes)
        return;
    dryi_doctor_needs_root(d);
    dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
    dryi_doctor_should_be(d, "in use, or smaller: nobody else can have this memory");
    dryi_doctor_fix(d, "echo 0 > /sys/kernel/mm/hugepages/hugepages-%llukB/nr_hugepages",
                    (unsigned long long)(page_bytes / 1024));
    dryi_doctor_undo(
        d, "echo %llu > /sys/kernel/mm/hugepages/hugepages-%llukB/nr_hugepages",
        (unsigned long long)p->total, (unsigned long long)(page_bytes / 1024));
}

static void
judge_surplus(struct dry_doctor *d, uint64_t page_bytes, const struct dryi_pool_facts *p)
{
    if (p->surplus == 0)
        return;
    dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
    dryi_doctor_should_be(d,
                          "no surplus: such pages go when they are freed, and the next "
                          "program may not find them");
    dryi_doctor_needs_root(d);
    dryi_doctor_fix(
        d, "echo %llu > /sys/kernel/mm/hugepages/hugepages-%llukB/nr_hugepages",
        (unsigned long long)p->total, (unsigned long long)(page_bytes / 1024));
    dryi_doctor_undo(
        d, "echo %llu > /sys/kernel/mm/hugepages/hugepages-%llukB/nr_hugepages",
        (unsigned long long)(p->total > p->surplus ? p->total - p->surplus : 0),
        (unsigned long long)(page_bytes / 1024));
}

/* Compare the pool with the kernel's command line: not all pages requested at boot may
   exist. */
static void
judge_boot(struct dry_doctor *d, uint64_t page_bytes, const struct dryi_pool_facts *p)
{
    struct dryi_fact_file file;
    uint64_t asked;
    if (!dryi_facts_read(&d->facts, &file, "/proc/cmdline") ||
        !dryi_text_boot_pool(file.text, file.length, page_bytes, d->default_pool, &asked))
        return;
    dryi_doctor_is(d, "the command line asks for %llu", (unsigned long long)asked);
    if (asked <= p->total)
        return;
    dryi_doctor_judge(d, DRY_DOCTOR_WRONG);
    dryi_doctor_should_be(d, "%llu: less was found at boot, or somebody gave some back",
                          (unsigned long long)asked);
}

static void
check_one_pool(struct dry_doctor *d, uint64_t page_bytes)
{
    struct dryi_pool_facts p;
    char text[DRYI_BYTES_TEXT];
    dryi_doctor_begin(d, &check_pool);
    dryi_doctor_say(d, DRYI_TEXT_ID, "pool-%llukb",
                    (unsigned long long)(page_bytes / 1024));
    if (!dryi_facts_pool(&d->facts, page_bytes, DRYI_ALL_NODES, &p)) {
        dryi_doctor_judge(d, DRY_DOCTOR_NOT_KNOWN);
        dryi_doctor_is(d, "there is one, but its numbers cannot be read");
        dryi_doctor_end(d);
        return;
    }
    uint64_t bytes =
        p.total > UINT64_MAX / page_bytes ? UINT64_MAX : p.total * page_bytes;
    dryi_doctor_is(
        d,
        "%llu page%s (%s), %llu free, %llu promised, %llu surplus, %llu may be "
        "added",
        (unsigned long long)p.total, p.total == 1 ? "" : "s",
        dryi_doctor_bytes(bytes, text), (unsigned long long)p.free,
        (unsigned long long)p.reserved, (unsigned long long)p.surplus,
        (unsigned long long)p.overcommit);
    judge_boot(d, page_bytes, &p);
    judge_surplus(d, page_bytes, &p);
    judge_idle(d, page_bytes, &p);
    if (d->machine.node_count > 1)
        judge_nodes(d, page_bytes);
    dryi_doctor_end(d);
}

static uint64_t
pool_bytes(const struct dry_doctor *d)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < d->pool_count; i++) {
        struct dryi_pool_facts p;
        if (!dryi_facts_pool(&d->facts, d->pools[i], DRYI_ALL_NODES, &p))
            continue;
        bool fits = p.total <= UINT64_MAX / d->pools[i];
        sum = dryi_add_saturating(sum, fits ? p.total * d->pools[i] : UINT64_MAX);
    }
    return sum;
}

/*
 * Recommend to free page records if it pays: from 64 GiB on, where it frees nearly 1 GiB.
 * With base pages of 64 KiB the records of a 2 MiB page are smaller than a base page, so
 * none can be freed.
 */
static void
check_records(struct dry_doctor *d)
{
    uint64_t is_on;
    char text[DRYI_BYTES_TEXT];
    if (d->pool_count == 0)
        return;
    if (!dryi_facts_read_number(&d->facts, &is_on, VMEMMAP)) {
        dryi_doctor_not_known(d, &check_vmemmap, VMEMMAP);
        return;
    }
    dryi_doctor_begin(d, &check_vmemmap);
    dryi_doctor_is(d, "%s", is_on ? "an eighth, for pages of pools" : "a whole one each");
    uint64_t bytes = pool_bytes(d);
    if (!is_on && bytes >= 64 * DRYI_GIB && d->machine.base_page_bytes == 4096) {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "an eighth: it gives back %s here",
                              dryi_doctor_bytes(bytes / 64 / 8 * 7, text));
        dryi_doctor_write(d, VMEMMAP, "0", "1");
    }
    dryi_doctor_end(d);
}

void
dryi_doctor_check_pools(struct dry_doctor *d)
{
    check_that_there_are_pools(d);
    for (size_t i = d->pool_count; i-- > 0;)
        check_one_pool(d, d->pools[i]);
    check_records(d);
}
