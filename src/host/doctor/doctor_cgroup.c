/* SPDX-License-Identifier: Apache-2.0 */

/* Findings on limits of this process's control groups and their ancestors. */
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "host/doctor/doctor_inside.h"
#include "host/facts/fact_text.h"
#include "host/facts/facts_read.h"

#define NONE UINT64_MAX

static const struct dryi_check check_memory = {
    DRY_DOCTOR_CGROUP, "cgroup-memory", "memory of the control group",
    "beyond it the kernel kills a process of the group; page-locked memory and "
    "transparent huge pages count, and so do copies of files, which go first. Pages of "
    "pools have a limit of their own"};
static const struct dryi_check check_high = {
    DRY_DOCTOR_CGROUP, "cgroup-high", "where the group is slowed down",
    "between memory.high and memory.max each allocation waits for reclaim, which cannot "
    "take page-locked memory: the program hardly moves and nothing says why"};
static const struct dryi_check check_swap = {
    DRY_DOCTOR_CGROUP, "cgroup-swap", "swap of the control group",
    "with swap, a group at its limit gets slow where it would else be killed"};
static const struct dryi_check check_pages = {
    DRY_DOCTOR_CGROUP, "cgroup-hugetlb", "pages of a pool for the control group",
    "the limit .max is seen when a page is touched, and kills by a bus error; .rsvd.max "
    "is seen when memory is mapped, and is a refusal that a program can answer"};

static uint64_t
get_least(const struct dry_doctor *d, const char *controller, const char *v1,
          const char *v2)
{
    return dryi_facts_cgroup_least(&d->facts, controller, (const char *const[2]){v1, v2});
}

/*
 * Return the bytes of the needs that free pages of the recommended pool do not serve,
 * because these pages count against another limit. Without a recommended pool, all needs
 * count. UINT64_MAX: above 64 bits.
 */
static uint64_t
needed_bytes(const struct dry_doctor *d)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < d->row_count; i++) {
        const struct dry_doctor_row *row = &d->rows[i];
        uint64_t bytes;
        if (row->is_recommended)
            return __builtin_mul_overflow(row->missing_count, row->page_bytes, &bytes)
                       ? UINT64_MAX
                       : bytes;
    }
    for (size_t i = 0; i < d->options.need_count; i++)
        sum = dryi_add_saturating(sum, d->options.needs_bytes[i]);
    return sum;
}

static void
check_limit(struct dry_doctor *d, uint64_t max)
{
    uint64_t free_bytes = dryi_facts_cgroup_free_bytes(&d->facts), need = needed_bytes(d);
    char text[DRYI_BYTES_TEXT], left[DRYI_BYTES_TEXT];
    dryi_doctor_begin(d, &check_memory);
    if (max == NONE) {
        dryi_doctor_is(d, "no limit");
        dryi_doctor_end(d);
        return;
    }
    dryi_doctor_is(d, "%s", dryi_doctor_bytes(max, text));
    if (free_bytes != NONE)
        dryi_doctor_is(d, "%s of it left", dryi_doctor_bytes(free_bytes, left));
    if (need && need > free_bytes) {
        dryi_doctor_judge(d, DRY_DOCTOR_WRONG);
        dryi_doctor_should_be(d, "%s more than is used", dryi_doctor_bytes(need, text));
    } else if (free_bytes < max / 20) {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "a twentieth left at least");
    }
    if (!dryi_doctor_is_good(d))
        dryi_doctor_fix(d, "# docker run --memory=..., systemd MemoryMax=..., or "
                           "resources.limits.memory of the pod");
    dryi_doctor_end(d);
}

static void
check_slowing(struct dry_doctor *d, uint64_t max)
{
    uint64_t high = get_least(d, "memory", NULL, "memory.high");
    char text[DRYI_BYTES_TEXT];
    if (high == NONE)
        return;
    dryi_doctor_begin(d, &check_high);
    dryi_doctor_is(d, "%s", dryi_doctor_bytes(high, text));
    if (high < max) {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "no limit, or that of memory.max");
        dryi_doctor_fix(d, "# as root: systemctl set-property UNIT MemoryHigh=infinity");
    }
    dryi_doctor_end(d);
}

static void
check_swapping(struct dry_doctor *d, uint64_t max)
{
    uint64_t swap = get_least(d, "memory", NULL, "memory.swap.max");
    char text[DRYI_BYTES_TEXT];
    if (max == NONE || swap == NONE)
        return;
    dryi_doctor_begin(d, &check_swap);
    dryi_doctor_is(d, "%s", dryi_doctor_bytes(swap, text));
    dryi_doctor_end(d);
}

/* Return the page size for the needs. */
static uint64_t
wanted_size(const struct dry_doctor *d)
{
    return d->options.page_bytes ? d->options.page_bytes : d->default_pool;
}

static void
judge_pool_limits(struct dry_doctor *d, uint64_t page_bytes, uint64_t max, uint64_t rsvd)
{
    uint64_t pages = dryi_doctor_needed_pages(d, page_bytes);
    if (pages && page_bytes == wanted_size(d) &&
        pages > (max < rsvd ? max : rsvd) / page_bytes) {
        dryi_doctor_judge(d, DRY_DOCTOR_WRONG);
        dryi_doctor_should_be(d, "%llu page%s", (unsigned long long)pages,
                              pages == 1 ? "" : "s");
        char page[DRYI_BYTES_TEXT]; /* "2MB" of control groups is "2Mi" in Kubernetes */
        dryi_doctor_fix(d,
                        "# resources.limits.hugepages-%si of the pod, or the group's "
                        "hugetlb limits",
                        dryi_doctor_page(page_bytes, page));
    } else if (max != NONE && rsvd == NONE) {
        dryi_doctor_judge(d, max == 0 ? DRY_DOCTOR_COULD_BE_BETTER : DRY_DOCTOR_WRONG);
        dryi_doctor_should_be(d, ".rsvd.max set to the same");
        dryi_doctor_fix(
            d, "# a container runtime that sets both (runc since 2023), or write "
               "it to the group by hand");
    }
}

static void
check_pool(struct dry_doctor *d, uint64_t page_bytes)
{
    char names[4][64], size[DRYI_BYTES_TEXT], text[DRYI_BYTES_TEXT];
    dryi_doctor_page(page_bytes, size);
    snprintf(names[0], sizeof names[0], "hugetlb.%sB.limit_in_bytes", size);
    snprintf(names[1], sizeof names[1], "hugetlb.%sB.max", size);
    snprintf(names[2], sizeof names[2], "hugetlb.%sB.rsvd.limit_in_bytes", size);
    snprintf(names[3], sizeof names[3], "hugetlb.%sB.rsvd.max", size);
    uint64_t max = get_least(d, "hugetlb", names[0], names[1]);
    uint64_t rsvd = get_least(d, "hugetlb", names[2], names[3]);
    if (max == NONE && rsvd == NONE)
        return;
    dryi_doctor_begin(d, &check_pages);
    dryi_doctor_say(d, DRYI_TEXT_ID, "cgroup-hugetlb-%llukb",
                    (unsigned long long)(page_bytes / 1024));
    dryi_doctor_is(d, ".max %s", max == NONE ? "none" : dryi_doctor_bytes(max, text));
    dryi_doctor_is(d, ".rsvd.max %s",
                   rsvd == NONE ? "none" : dryi_doctor_bytes(rsvd, text));
    judge_pool_limits(d, page_bytes, max, rsvd);
    dryi_doctor_end(d);
}

void
dryi_doctor_check_cgroup(struct dry_doctor *d)
{
    uint64_t max = get_least(d, "memory", "memory.limit_in_bytes", "memory.max");
    check_limit(d, max);
    check_slowing(d, max);
    check_swapping(d, max);
    for (size_t i = d->pool_count; i-- > 0;)
        check_pool(d, d->pools[i]);
}
