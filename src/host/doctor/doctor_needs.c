/* SPDX-License-Identifier: Apache-2.0 */

/* Findings on huge pages: how many the program needs, how many are missing, and whether
   they are available. */
#include <inttypes.h>
#include <stdio.h>

#include "base/bits.h"
#include "base/memory.h"
#include "host/doctor/doctor_inside.h"
#include "host/doctor/doctor_text.h"
#include "host/facts/fact_text.h"
#include "host/facts/facts_read.h"

#define NODES "/sys/devices/system/node"
#define POOLS "/sys/kernel/mm/hugepages"
#define KEEP_BYTES_MIN (4 * DRYI_GIB)
#define PATH_BYTES 160

static const struct dryi_check check_need = {
    DRY_DOCTOR_POOLS, "pool-need", "huge pages for what was asked for",
    "a mapping that the pool cannot fill is refused, or kills the program when it is "
    "touched; made early, before memory is in pieces, they are always found"};
static const struct dryi_check check_demote = {
    DRY_DOCTOR_POOLS, "pool-demote", "larger pages that could be split",
    "free pages of a larger pool can be made into pages of the smaller one, without any "
    "search for memory in one piece. There is no way back"};

/* --- rows --------------------------------------------------------------------------------- */

static bool
read_meminfo(const struct dry_doctor *d, int32_t node, struct dryi_fact_file *file)
{
    return node == DRY_DOCTOR_ANY_NODE
               ? dryi_facts_read(&d->facts, file, "/proc/meminfo")
               : dryi_facts_read(&d->facts, file, NODES "/node%d/meminfo", (int)node);
}

/* Return min(control groups' free memory, available - max(10 %, 4 GiB)). */
static uint64_t
get_budget(const struct dry_doctor *d, int32_t node)
{
    struct dryi_fact_file file;
    uint64_t total = 0;
    uint64_t available = dryi_facts_available_bytes(&d->facts, node);
    uint64_t free_bytes = dryi_facts_cgroup_free_bytes(&d->facts);
    if (available == UINT64_MAX)
        return free_bytes;
    if (read_meminfo(d, node, &file))
        dryi_fact_keyed(file.text, file.length, "MemTotal", &total);
    uint64_t keep = total / 10 > KEEP_BYTES_MIN ? total / 10 : KEEP_BYTES_MIN;
    uint64_t left = available > keep ? available - keep : 0;
    return left < free_bytes ? left : free_bytes;
}

static uint64_t
multiply(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Return how much of `bytes` must come from page cache, after all free memory. */
static uint64_t
get_cache(const struct dry_doctor *d, int32_t node, uint64_t bytes)
{
    struct dryi_fact_file file;
    uint64_t free;
    if (!read_meminfo(d, node, &file) ||
        !dryi_fact_keyed(file.text, file.length, "MemFree", &free))
        return 0;
    return bytes > free ? bytes - free : 0;
}

static bool
make_row(const struct dry_doctor *d, uint64_t page_bytes, int32_t node,
         struct dry_doctor_row *row)
{
    struct dryi_pool_facts p;
    if (!dryi_facts_pool(&d->facts, page_bytes, node, &p))
        return false;
    *row = (struct dry_doctor_row){.node = node, .page_bytes = page_bytes};
    row->needed_count = dryi_doctor_needed_pages(d, page_bytes);
    row->total_count = p.total;
    row->free_count = p.free > p.reserved ? p.free - p.reserved : 0;
    row->missing_count =
        row->needed_count > row->free_count ? row->needed_count - row->free_count : 0;
    row->budget_bytes = get_budget(d, node);
    uint64_t missing = multiply(row->missing_count, page_bytes);
    row->fits = missing <= row->budget_bytes;
    row->cache_bytes = row->fits ? get_cache(d, node, missing) : 0;
    return true;
}

static void
add_row(struct dry_doctor *d, uint64_t page_bytes, int32_t node, bool is_recommended)
{
    struct dry_doctor_row row;
    if (d->row_count == DRY_DOCTOR_ROWS_MAX || !make_row(d, page_bytes, node, &row))
        return;
    if (!dryi_memory_grow(&d->memory, (void **)&d->rows, &d->row_capacity,
                          d->row_count + 1, sizeof *d->rows)) {
        d->lacks_memory = true;
        return;
    }
    row.is_recommended = is_recommended;
    d->rows[d->row_count++] = row;
}

static uint64_t
recommended_size(const struct dry_doctor *d)
{
    if (d->options.page_bytes)
        return d->options.page_bytes;
    return d->default_pool ? d->default_pool : 2 * DRYI_MIB;
}

static void
add_rows(struct dry_doctor *d)
{
    int32_t first = d->options.node;
    for (size_t i = d->pool_count; i-- > 0;) {
        bool is_it = d->pools[i] == recommended_size(d);
        add_row(d, d->pools[i], first, is_it);
        for (int32_t node = 0; first == DRY_DOCTOR_ANY_NODE && node < DRY_PAGES_NODES_MAX;
             node++)
            if (d->machine.node_count > 1 && dryi_nodes_have(&d->nodes, node))
                add_row(d, d->pools[i], node, false);
    }
}

/* --- the findings ------------------------------------------------------------------------- */

static const struct dry_doctor_row *
recommended_row(const struct dry_doctor *d)
{
    for (size_t i = 0; i < d->row_count; i++)
        if (d->rows[i].is_recommended)
            return &d->rows[i];
    return NULL;
}

static void
make_path(const struct dry_doctor_row *row, char path[PATH_BYTES])
{
    unsigned long long kib = row->page_bytes / 1024;
    if (row->node == DRY_DOCTOR_ANY_NODE)
        snprintf(path, PATH_BYTES, POOLS "/hugepages-%llukB/nr_hugepages", kib);
    else
        snprintf(path, PATH_BYTES,
                 NODES "/node%d/hugepages/hugepages-%llukB/nr_hugepages", (int)row->node,
                 kib);
}

/* Write a pool as kernel parameters, "hugepagesz=2M hugepages=0:2048". */
static void
say_boot(struct dry_doctor *d, const struct dry_doctor_row *row, bool is_fix)
{
    char words[128], node[16] = "", page[DRYI_BYTES_TEXT];
    uint64_t count = dryi_add_saturating(row->total_count, row->missing_count);
    if (row->node != DRY_DOCTOR_ANY_NODE)
        snprintf(node, sizeof node, "%d:", (int)row->node);
    snprintf(words, sizeof words, "hugepagesz=%s hugepages=%s%" PRIu64,
             dryi_doctor_page(row->page_bytes, page), node, count);
    if (is_fix)
        dryi_doctor_fix_at_boot(d, words);
    else
        dryi_doctor_persist(d, "the kernel's command line, which is surest:\n%s\nor",
                            words);
}

/* Count the pages that free contiguous memory can serve; false: not known. */
static bool
count_whole(const struct dry_doctor *d, const struct dry_doctor_row *row, uint64_t *count)
{
    struct dryi_fact_file file;
    uint64_t base = d->machine.base_page_bytes, sum = 0;
    if (base == 0 || row->page_bytes <= base ||
        !dryi_facts_read(&d->facts, &file, "/proc/buddyinfo"))
        return false;
    unsigned order = dryi_log2_floor(row->page_bytes / base);
    for (int32_t node = 0; node < DRY_PAGES_NODES_MAX; node++) {
        uint64_t free, large;
        bool is_asked = row->node == DRY_DOCTOR_ANY_NODE
                            ? dryi_nodes_have(&d->nodes, node)
                            : row->node == node;
        if (is_asked &&
            dryi_text_buddies(file.text, file.length, node, order, &free, &large))
            sum = dryi_add_saturating(sum, large >> order);
    }
    *count = sum;
    return true;
}

/* If free memory is fragmented, recommend to drop caches and compact before the pool
   grows. */
static void
prepare(struct dry_doctor *d, const struct dry_doctor_row *row)
{
    uint64_t whole;
    if (!count_whole(d, row, &whole) || whole >= row->missing_count)
        return;
    dryi_doctor_is(d, "free memory has %" PRIu64 " in one piece", whole);
    dryi_doctor_fix(d, "sync; echo 1 > /proc/sys/vm/drop_caches\n"
                       "echo 1 > /proc/sys/vm/compact_memory");
}

/* Warn of nodes without CPUs: pages for any node are taken from all nodes with memory in
   turn. */
static void
warn_of_slow_nodes(struct dry_doctor *d, const struct dry_doctor_row *row)
{
    if (row->node != DRY_DOCTOR_ANY_NODE || dryi_nodes_are_none(&d->cpu_nodes))
        return;
    for (int32_t node = 0; node < DRY_PAGES_NODES_MAX; node++) {
        if (!dryi_nodes_have(&d->nodes, node) || dryi_nodes_have(&d->cpu_nodes, node))
            continue;
        dryi_doctor_fix(d,
                        "# node %d has no CPUs and gets a share of them: better ask for "
                        "nodes with CPUs",
                        (int)node);
        return;
    }
}

static void
mend_need(struct dry_doctor *d, const struct dry_doctor_row *row)
{
    char path[PATH_BYTES];
    if (row->page_bytes >= DRYI_GIB) {
        say_boot(d, row, true);
        return;
    }
    make_path(row, path);
    warn_of_slow_nodes(d, row);
    prepare(d, row);
    say_boot(d, row, false);
    dryi_doctor_write_number(d, path, row->total_count,
                             dryi_add_saturating(row->total_count, row->missing_count));
}

static void
judge_row(struct dry_doctor *d, const struct dry_doctor_row *row)
{
    char size[DRYI_BYTES_TEXT], budget[DRYI_BYTES_TEXT], cache[DRYI_BYTES_TEXT];
    char where[32] = "";
    dryi_doctor_bytes(row->page_bytes, size);
    if (row->node != DRY_DOCTOR_ANY_NODE)
        snprintf(where, sizeof where, " on node %d", (int)row->node);
    dryi_doctor_is(d, "%" PRIu64 " page%s of %s %s free%s", row->free_count,
                   row->free_count == 1 ? "" : "s", size,
                   row->free_count == 1 ? "is" : "are", where);
    if (row->missing_count == 0) {
        dryi_doctor_is(d, "%" PRIu64 " %s needed", row->needed_count,
                       row->needed_count == 1 ? "is" : "are");
        return;
    }
    dryi_doctor_is(d, "%" PRIu64 " %s missing", row->missing_count,
                   row->missing_count == 1 ? "is" : "are");
    dryi_doctor_should_be(d, "%" PRIu64 " free", row->needed_count);
    dryi_doctor_judge(d, DRY_DOCTOR_WRONG);
    if (!row->fits) {
        dryi_doctor_is(d, "%s may become huge or pinned",
                       dryi_doctor_bytes(row->budget_bytes, budget));
        dryi_doctor_fix(d, "# need less, or free memory: the missing pages do not fit");
        return;
    }
    if (row->cache_bytes)
        dryi_doctor_is(d, "%s of copies of files will have to go",
                       dryi_doctor_bytes(row->cache_bytes, cache));
    mend_need(d, row);
}

/* Report that there is no such pool or no such node, if no row exists. */
static void
judge_missing_pool(struct dry_doctor *d)
{
    char size[DRYI_BYTES_TEXT];
    uint64_t bytes = recommended_size(d);
    int32_t node = d->options.node;
    dryi_doctor_judge(d, DRY_DOCTOR_WRONG);
    if (node != DRY_DOCTOR_ANY_NODE && d->machine.node_count &&
        !dryi_nodes_have(&d->nodes, node))
        dryi_doctor_is(d, "there is no node %d with memory", (int)node);
    else
        dryi_doctor_is(d, "there is no pool of %s pages", dryi_doctor_bytes(bytes, size));
    uint64_t needed = dryi_doctor_needed_pages(d, bytes);
    dryi_doctor_should_be(d, "%" PRIu64 " page%s of %s", needed, needed == 1 ? "" : "s",
                          dryi_doctor_bytes(bytes, size));
}

static void
judge_node(struct dry_doctor *d)
{
    int32_t node = d->options.node;
    if (node == DRY_DOCTOR_ANY_NODE || !dryi_nodes_have(&d->nodes, node) ||
        dryi_nodes_have(&d->allowed_nodes, node))
        return;
    dryi_doctor_judge(d, DRY_DOCTOR_WRONG);
    dryi_doctor_is(d, "node %d is not for this process", (int)node);
    dryi_doctor_should_be(d, "for it");
    dryi_doctor_fix(d, "# give the cpuset of this group node %d (cpuset.mems)",
                    (int)node);
}

static bool
has_free_pages(const struct dry_doctor *d, uint64_t page_bytes, int32_t node,
               struct dryi_pool_facts *p)
{
    return dryi_facts_pool(&d->facts, page_bytes, node, p) && p->free > p->reserved;
}

/* Recommend splitting pages of a larger pool that has free ones. */
static void
check_splitting(struct dry_doctor *d, const struct dry_doctor_row *row)
{
    for (size_t i = 0; i < d->pool_count; i++) {
        struct dryi_pool_facts p;
        struct dryi_fact_file file;
        uint64_t size = d->pools[i];
        unsigned long long kib = size / 1024;
        uint64_t each = size / row->page_bytes;
        if (size <= row->page_bytes || !has_free_pages(d, size, row->node, &p) ||
            !dryi_facts_read(&d->facts, &file, POOLS "/hugepages-%llukB/demote_size",
                             kib))
            continue;
        uint64_t count = row->missing_count / each + (row->missing_count % each != 0);
        if (count > p.free - p.reserved)
            count = p.free - p.reserved;
        dryi_doctor_begin(d, &check_demote);
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_needs_root(d);
        dryi_doctor_is(d, "%" PRIu64 " page%s of the larger pool %s free",
                       p.free - p.reserved, p.free - p.reserved == 1 ? "" : "s",
                       p.free - p.reserved == 1 ? "is" : "are");
        dryi_doctor_should_be(d, "%" PRIu64 " of them split into %" PRIu64 " each", count,
                              each);
        if (row->node == DRY_DOCTOR_ANY_NODE)
            dryi_doctor_fix(d, "echo %" PRIu64 " > " POOLS "/hugepages-%llukB/demote",
                            count, kib);
        else
            dryi_doctor_fix(d,
                            "echo %" PRIu64 " > " NODES
                            "/node%d/hugepages/hugepages-%llukB/demote",
                            count, (int)row->node, kib);
        dryi_doctor_end(d);
        return;
    }
}

void
dryi_doctor_check_needs(struct dry_doctor *d)
{
    if (d->options.need_count == 0)
        return;
    add_rows(d);
    const struct dry_doctor_row *row = recommended_row(d);
    dryi_doctor_begin(d, &check_need);
    if (row)
        judge_row(d, row);
    else
        judge_missing_pool(d);
    judge_node(d);
    dryi_doctor_end(d);
    if (row && row->missing_count)
        check_splitting(d, row);
}
