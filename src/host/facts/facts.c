/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Facts about memory: pools of huge pages, transparent huge pages, nodes and available
 * memory. Each call reads its files again (facts_read.h) and validates each number. The
 * kernel's Documentation/admin-guide/mm describes the files: hugetlbpage, transhuge,
 * numa_memory_policy.
 */
#include "host/facts/facts.h"

#include <string.h>

#include "base/bits.h"
#include "host/facts/fact_text.h"
#include "host/facts/facts_read.h"

#define POOLS "/sys/kernel/mm/hugepages"
#define NODES "/sys/devices/system/node"
/* Upper bounds that no machine exceeds. They limit the rounding and the loops that use a
   size from a file. */
#define THP_BYTES_MAX DRYI_GIB
#define POOL_BYTES_MAX (UINT64_C(1) << 40)
#define WEIGHTS "/sys/kernel/mm/mempolicy/weighted_interleave"
#define WEIGHT_MAX 255 /* the kernel stores weights as bytes */
#define THP "/sys/kernel/mm/transparent_hugepage"

bool
dryi_nodes_have(const struct dry_pages_nodes *nodes, int64_t node)
{
    return node >= 0 && node < DRY_PAGES_NODES_MAX &&
           nodes->words[node / 64] >> node % 64 & 1;
}

void
dryi_nodes_add(struct dry_pages_nodes *nodes, int32_t node)
{
    nodes->words[node / 64] |= UINT64_C(1) << node % 64;
}

bool
dryi_nodes_are_none(const struct dry_pages_nodes *nodes)
{
    for (size_t i = 0; i < DRY_PAGES_NODES_MAX / 64; i++)
        if (nodes->words[i])
            return false;
    return true;
}

struct sizes {
    uint64_t bytes[DRYI_FACTS_POOLS_MAX];
    size_t count;
};

/* Insert a pool's size, largest first. */
static int
take_size(void *to, const char *name)
{
    struct sizes *s = to;
    uint64_t bytes;
    if (!dryi_fact_pool_name(name, strlen(name), &bytes) || bytes > POOL_BYTES_MAX)
        return 0;
    if (s->count == DRYI_FACTS_POOLS_MAX)
        return 1;
    size_t i = s->count++;
    for (; i > 0 && s->bytes[i - 1] < bytes; i--)
        s->bytes[i] = s->bytes[i - 1];
    s->bytes[i] = bytes;
    return 0;
}

size_t
dryi_facts_pool_sizes(const struct dryi_facts *facts,
                      uint64_t sizes[DRYI_FACTS_POOLS_MAX])
{
    const struct dryi_kernel *k = facts->kernel;
    struct sizes found = {.count = 0};
    char path[256];
    size_t root_length = strlen(facts->root);
    if (root_length + sizeof POOLS > sizeof path)
        return 0;
    memcpy(path, facts->root, root_length);
    memcpy(path + root_length, POOLS, sizeof POOLS);
    if (k->list(k->self, path, take_size, &found) != 0)
        return 0;
    memcpy(sizes, found.bytes, sizeof found.bytes);
    return found.count;
}

uint64_t
dryi_facts_default_pool(const struct dryi_facts *facts)
{
    struct dryi_fact_file file;
    uint64_t bytes;
    if (!dryi_facts_read(facts, &file, "/proc/meminfo") ||
        !dryi_fact_keyed(file.text, file.length, "Hugepagesize", &bytes) ||
        !dryi_is_power_of_two(bytes) || bytes > POOL_BYTES_MAX)
        return 0;
    return bytes;
}

static bool
read_node_pool(const struct dryi_facts *facts, uint64_t page_bytes, int32_t node,
               struct dryi_pool_facts *pool)
{
    unsigned long long kib = page_bytes / 1024;
    struct dryi_pool_facts p = {0};
    if (!dryi_facts_read_number(facts, &p.total,
                                NODES "/node%d/hugepages/hugepages-%llukB/nr_hugepages",
                                node, kib) ||
        !dryi_facts_read_number(facts, &p.free,
                                NODES "/node%d/hugepages/hugepages-%llukB/free_hugepages",
                                node, kib))
        return false;
    *pool = p;
    return true;
}

bool
dryi_facts_pool(const struct dryi_facts *facts, uint64_t page_bytes, int32_t node,
                struct dryi_pool_facts *pool)
{
    if (node != DRYI_ALL_NODES)
        return read_node_pool(facts, page_bytes, node, pool);
    struct dryi_pool_facts p;
    const struct {
        const char *name;
        uint64_t *number;
    } files[] = {{"nr_hugepages", &p.total},
                 {"free_hugepages", &p.free},
                 {"resv_hugepages", &p.reserved},
                 {"surplus_hugepages", &p.surplus},
                 {"nr_overcommit_hugepages", &p.overcommit}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (!dryi_facts_read_number(facts, files[i].number, POOLS "/hugepages-%llukB/%s",
                                    (unsigned long long)(page_bytes / 1024),
                                    files[i].name))
            return false;
    *pool = p;
    return true;
}

static bool
is_chosen(const struct dryi_facts *facts, const char *path, const char *word)
{
    struct dryi_fact_file file;
    return dryi_facts_read(facts, &file, "%s", path) &&
           dryi_fact_is_chosen(file.text, file.length, word);
}

/*
 * Return whether this size of transparent huge pages is off. "inherit", or a missing
 * file, means the global setting. Sizes have files since Linux 6.8, and for shared memory
 * since 6.11.
 */
static bool
is_size_off(const struct dryi_facts *facts, uint64_t huge_bytes, const char *name,
            bool is_off_for_all)
{
    struct dryi_fact_file file;
    if (!dryi_facts_read(facts, &file, THP "/hugepages-%llukB/%s",
                         (unsigned long long)(huge_bytes / 1024), name) ||
        dryi_fact_is_chosen(file.text, file.length, "inherit"))
        return is_off_for_all;
    return dryi_fact_is_chosen(file.text, file.length, "never");
}

void
dryi_facts_thp(const struct dryi_facts *facts, struct dryi_thp_facts *thp)
{
    const struct dryi_kernel *k = facts->kernel;
    uint64_t bytes;
    *thp = (struct dryi_thp_facts){0};
    if (dryi_facts_read_number(facts, &bytes, THP "/hpage_pmd_size") &&
        dryi_is_power_of_two(bytes) && bytes > k->page_bytes(k->self) &&
        bytes <= THP_BYTES_MAX)
        thp->huge_bytes = bytes;
    bool is_off = thp->huge_bytes == 0 || k->is_thp_disabled(k->self) == 1;
    thp->is_off = is_off || is_size_off(facts, thp->huge_bytes, "enabled",
                                        is_chosen(facts, THP "/enabled", "never"));
    /* Shared memory has separate switches; "deny" overrides those of sizes. */
    thp->is_off_for_shared = is_off || is_chosen(facts, THP "/shmem_enabled", "deny") ||
                             is_size_off(facts, thp->huge_bytes, "shmem_enabled",
                                         is_chosen(facts, THP "/shmem_enabled", "never"));
}

static bool
read_nodes(const struct dryi_facts *facts, const char *path,
           struct dry_pages_nodes *nodes)
{
    struct dryi_fact_file file;
    return dryi_facts_read(facts, &file, "%s", path) &&
           dryi_fact_list(file.text, file.length, nodes->words, DRY_PAGES_NODES_MAX);
}

bool
dryi_facts_status_list(const struct dryi_facts *facts, const char *key, uint64_t *words,
                       size_t bit_max)
{
    struct dryi_fact_file file;
    if (!dryi_facts_read_lines(facts, &file, "/proc/self/status", key))
        return false;
    size_t at = 0, length, key_length = strlen(key);
    const char *line;
    if (!dryi_fact_line(file.text, file.length, &at, &line, &length) ||
        length <= key_length || memcmp(line, key, key_length) != 0)
        return false;
    at = key_length;
    while (at < length && (line[at] == '\t' || line[at] == ' '))
        at++;
    return dryi_fact_list(line + at, length - at, words, bit_max);
}

/* Compute the base page: a huge page has as many base pages as a base page has 8-byte
   entries. */
static uint64_t
base_of_huge(uint64_t huge_bytes)
{
    for (uint64_t base = 4096; base <= 65536; base *= 4)
        if (base / 8 * base == huge_bytes)
            return base;
    return 0;
}

uint64_t
dryi_facts_base_bytes(const struct dryi_facts *facts)
{
    struct dryi_thp_facts thp;
    if (!*facts->root)
        return facts->kernel->page_bytes(facts->kernel->self);
    dryi_facts_thp(facts, &thp);
    return base_of_huge(thp.huge_bytes ? thp.huge_bytes : dryi_facts_default_pool(facts));
}

bool
dryi_facts_nodes(const struct dryi_facts *facts, struct dry_pages_nodes *existing,
                 struct dry_pages_nodes *allowed)
{
    if (!read_nodes(facts, NODES "/has_memory", existing) &&
        !read_nodes(facts, NODES "/online", existing))
        return false;
    if (!dryi_facts_status_list(facts, "Mems_allowed_list:", allowed->words,
                                DRY_PAGES_NODES_MAX))
        *allowed = *existing;
    for (size_t i = 0; i < DRY_PAGES_NODES_MAX / 64; i++)
        allowed->words[i] &= existing->words[i];
    return true;
}

bool
dryi_facts_node_cpus(const struct dryi_facts *facts, int32_t node, struct dryi_cpus *cpus)
{
    struct dryi_fact_file file;
    return dryi_facts_read(facts, &file, NODES "/node%d/cpulist", node) &&
           dryi_fact_list(file.text, file.length, cpus->words, DRYI_KERNEL_CPUS_MAX);
}

uint64_t
dryi_facts_weight(const struct dryi_facts *facts, int32_t node)
{
    uint64_t weight;
    return dryi_facts_read_number(facts, &weight, WEIGHTS "/node%d", node) &&
                   weight > 0 && weight <= WEIGHT_MAX
               ? weight
               : 1;
}

/* Return free memory plus page cache that can be reclaimed. The kernel keeps some of the
   cache. */
static bool
sum_node(const struct dryi_fact_file *file, uint64_t *bytes)
{
    static const char *const halves[] = {"Active(file)", "SReclaimable"};
    uint64_t sum, more;
    if (!dryi_fact_keyed(file->text, file->length, "MemFree", &sum))
        return false;
    if (dryi_fact_keyed(file->text, file->length, "Inactive(file)", &more))
        sum = dryi_add_saturating(sum, more);
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++)
        if (dryi_fact_keyed(file->text, file->length, halves[i], &more))
            sum = dryi_add_saturating(sum, more / 2);
    *bytes = sum;
    return true;
}

uint64_t
dryi_facts_available_bytes(const struct dryi_facts *facts, int32_t node)
{
    struct dryi_fact_file file;
    uint64_t bytes;
    bool knows = node == DRYI_ALL_NODES
                     ? dryi_facts_read(facts, &file, "/proc/meminfo") &&
                           dryi_fact_keyed(file.text, file.length, "MemAvailable", &bytes)
                     : dryi_facts_read(facts, &file, NODES "/node%d/meminfo", node) &&
                           sum_node(&file, &bytes);
    return knows ? bytes : UINT64_MAX;
}
