/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The memory that control groups leave. For a controller, each group from this process's
 * up to the mount is read, and the smallest value counts. Inactive page cache counts as
 * free. Sources: cgroups(7), and the kernel's cgroup-v1/memory, cgroup-v1/hugetlb and
 * cgroup-v2.
 */
#include <stdio.h>

#include "base/bits.h"
#include "host/facts/cgroup_text.h"
#include "host/facts/fact_text.h"
#include "host/facts/facts.h"
#include "host/facts/facts_read.h"
#include "host/facts/topology_text.h"

/* Version 1 writes "no limit" as the largest multiple of the page size. */
#define NO_LIMIT (UINT64_C(1) << 62)

/* File names of a limit, by version. */
struct limit {
    char max[2][64], used[2][64];
    const char *reclaimable[2]; /* key in memory.stat of reclaimable bytes within `used`;
                                   or NULL */
};

static bool
find_group(const struct dryi_facts *facts, const char *controller,
           struct dryi_cgroup *group)
{
    struct dryi_fact_file groups, mounts;
    /* Mounts are read for this process, because the paths are opened here; another
       process may have different mounts. */
    struct dryi_facts own = *facts;
    own.process = 0;
    return dryi_facts_read(facts, &groups, "/proc/self/cgroup") &&
           dryi_facts_read_lines(&own, &mounts, "/proc/self/mountinfo", " - cgroup") &&
           dryi_cgroup_find(groups.text, groups.length, mounts.text, mounts.length,
                            controller, group);
}

static uint64_t
get_reclaimable(const struct dryi_facts *facts, const struct dryi_cgroup *group,
                const char *field)
{
    struct dryi_fact_file file;
    uint64_t bytes;
    if (field && dryi_facts_read(facts, &file, "%s/memory.stat", group->path) &&
        dryi_fact_field(file.text, file.length, field, &bytes))
        return bytes;
    return 0;
}

static uint64_t
find_free(const struct dryi_facts *facts, const struct dryi_cgroup *group,
          const struct limit *limit)
{
    int v = group->version - 1;
    uint64_t max, used;
    if (!dryi_facts_read_number(facts, &max, "%s/%s", group->path, limit->max[v]) ||
        !dryi_facts_read_number(facts, &used, "%s/%s", group->path, limit->used[v]) ||
        max >= NO_LIMIT)
        return UINT64_MAX;
    uint64_t reclaimable = get_reclaimable(facts, group, limit->reclaimable[v]);
    used -= reclaimable < used ? reclaimable : used;
    return max > used ? max - used : 0;
}

/* Return the least value of the group and its ancestors. */
static uint64_t
find_least_free(const struct dryi_facts *facts, const char *controller,
                const struct limit *limit)
{
    struct dryi_cgroup group;
    if (!find_group(facts, controller, &group))
        return UINT64_MAX;
    uint64_t least = UINT64_MAX;
    do {
        uint64_t free_bytes = find_free(facts, &group, limit);
        if (free_bytes < least)
            least = free_bytes;
    } while (dryi_cgroup_up(&group));
    return least;
}

uint64_t
dryi_facts_cgroup_least(const struct dryi_facts *facts, const char *controller,
                        const char *const names[2])
{
    struct dryi_cgroup group;
    uint64_t least = UINT64_MAX, number;
    if (!find_group(facts, controller, &group) || !names[group.version - 1])
        return UINT64_MAX;
    do {
        if (dryi_facts_read_number(facts, &number, "%s/%s", group.path,
                                   names[group.version - 1]) &&
            number < NO_LIMIT && number < least)
            least = number;
    } while (dryi_cgroup_up(&group));
    return least;
}

uint64_t
dryi_facts_cgroup_free_bytes(const struct dryi_facts *facts)
{
    static const struct limit limit = {
        .max = {"memory.limit_in_bytes", "memory.max"},
        .used = {"memory.usage_in_bytes", "memory.current"},
        .reclaimable = {"total_inactive_file", "inactive_file"},
    };
    return find_least_free(facts, "memory", &limit);
}

uint64_t
dryi_facts_cgroup_free_pool_bytes(const struct dryi_facts *facts, uint64_t page_bytes,
                                  bool of_reserved)
{
    unsigned long long number = page_bytes / 1024;
    const char *unit = "KB";
    if (page_bytes >= DRYI_GIB)
        number = page_bytes / DRYI_GIB, unit = "GB";
    else if (page_bytes >= DRYI_MIB)
        number = page_bytes / DRYI_MIB, unit = "MB";
    const char *what = of_reserved ? "rsvd." : "";
    struct limit limit = {.reclaimable = {NULL, NULL}};
    snprintf(limit.max[0], sizeof limit.max[0], "hugetlb.%llu%s.%slimit_in_bytes", number,
             unit, what);
    snprintf(limit.used[0], sizeof limit.used[0], "hugetlb.%llu%s.%susage_in_bytes",
             number, unit, what);
    snprintf(limit.max[1], sizeof limit.max[1], "hugetlb.%llu%s.%smax", number, unit,
             what);
    snprintf(limit.used[1], sizeof limit.used[1], "hugetlb.%llu%s.%scurrent", number,
             unit, what);
    return find_least_free(facts, "hugetlb", &limit);
}

static uint64_t
get_cpus(const struct dryi_facts *facts, const struct dryi_cgroup *group)
{
    struct dryi_fact_file quota, period;
    uint64_t limit;
    if (group->version == 2)
        return dryi_facts_read(facts, &quota, "%s/cpu.max", group->path) &&
                       dryi_topology_cpu_max(quota.text, quota.length, &limit)
                   ? limit
                   : 0;
    return dryi_facts_read(facts, &quota, "%s/cpu.cfs_quota_us", group->path) &&
                   dryi_facts_read(facts, &period, "%s/cpu.cfs_period_us", group->path) &&
                   dryi_topology_cpu_quota(quota.text, quota.length, period.text,
                                           period.length, &limit)
               ? limit
               : 0;
}

uint64_t
dryi_facts_cgroup_cpus(const struct dryi_facts *facts)
{
    struct dryi_cgroup group;
    uint64_t least = 0;
    if (!find_group(facts, "cpu", &group))
        return 0;
    do {
        uint64_t limit = get_cpus(facts, &group);
        if (limit && (least == 0 || limit < least))
            least = limit;
    } while (dryi_cgroup_up(&group));
    return least;
}
