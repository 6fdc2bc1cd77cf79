/* SPDX-License-Identifier: Apache-2.0 */

/* Findings on free memory in blocks of a huge page's size, and on the kernel's
   compaction. */
#include <stdio.h>

#include "base/bits.h"
#include "host/doctor/doctor_inside.h"
#include "host/doctor/doctor_text.h"
#include "host/facts/fact_text.h"
#include "host/facts/facts_read.h"

#define VM "/proc/sys/vm/"
#define BLOCKS "/proc/pagetypeinfo"
/* Counters with fewer events do not support a verdict. */
#define EVENTS_MIN 1000
/* Limit of the nodes named in a text for people; all nodes are examined. */
#define NAMED_MAX 16

static const struct dryi_check check_pieces = {
    DRY_DOCTOR_FRAGMENTATION, "fragmentation", "free memory in huge pieces",
    "huge pages are made of free memory in one piece; copies of files read before lie in "
    "between and have to be moved or dropped first"};
static const struct dryi_check check_proactive = {
    DRY_DOCTOR_FRAGMENTATION, "compaction-proactiveness", "compaction ahead of need",
    "without it memory is put together only when somebody waits for a huge page"};
static const struct dryi_check check_threshold = {
    DRY_DOCTOR_FRAGMENTATION, "extfrag-threshold", "compaction before reclaim",
    "above this index of 1000 the kernel moves pages to make a large piece; below it "
    "drops copies of files instead, which helps less"};
static const struct dryi_check check_faults = {
    DRY_DOCTOR_FRAGMENTATION, "thp-faults", "huge pages given at a fault, since boot",
    "each that was not given is 512 small faults, and memory that stays in small pages"};
static const struct dryi_check check_compaction = {
    DRY_DOCTOR_FRAGMENTATION, "compaction", "compaction that somebody waited for",
    "a search that fails is time lost for nothing, in the program's own call"};
static const struct dryi_check check_pool_growth = {
    DRY_DOCTOR_FRAGMENTATION, "pool-growth", "pages found for pools, since boot",
    "a pool that grows while the machine is in use does not find its pages; at boot it "
    "does"};

/* Return log2 of the base pages in a huge page. */
static unsigned
huge_order(const struct dry_doctor *d)
{
    uint64_t huge =
        d->machine.huge_page_bytes ? d->machine.huge_page_bytes : d->default_pool;
    uint64_t base = d->machine.base_page_bytes;
    if (base == 0 || huge <= base || !dryi_is_power_of_two(base))
        return 9;
    return dryi_log2_floor(huge / base);
}

static void
judge_pieces(struct dry_doctor *d, int32_t node, const struct dryi_fact_file *file,
             bool is_named)
{
    uint64_t free, large, base = d->machine.base_page_bytes;
    char all[DRYI_BYTES_TEXT], part[DRYI_BYTES_TEXT];
    base = base ? base : 4096;
    if (!dryi_text_buddies(file->text, file->length, node, huge_order(d), &free,
                           &large) ||
        free > UINT64_MAX / base / 100)
        return;
    uint64_t percent = dryi_doctor_percent(large, free);
    bool is_bad = percent < 25 && free * base >= DRYI_GIB;
    if (is_named || (is_bad && dryi_doctor_is_good(d)))
        dryi_doctor_is(d, "node %d: %s of %s (%llu %%)", (int)node,
                       dryi_doctor_bytes(large * base, part),
                       dryi_doctor_bytes(free * base, all), (unsigned long long)percent);
    if (is_bad)
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
}

/* Judge a node's unmovable blocks, which contain pages of the kernel. True: they are the
   majority. */
static bool
judge_blocks(struct dry_doctor *d, int32_t node, const struct dryi_fact_file *file,
             bool is_named)
{
    struct dryi_blocks b;
    if (!dryi_text_blocks(file->text, file->length, node, &b))
        return false;
    uint64_t stuck = dryi_add_saturating(b.unmovable, b.reclaimable);
    bool are_most = stuck > b.all / 2;
    if (is_named || are_most)
        dryi_doctor_is(d,
                       "node %d: of %llu block%s %llu hold%s unmovable pages, %llu "
                       "reclaimable ones",
                       (int)node, (unsigned long long)b.all, b.all == 1 ? "" : "s",
                       (unsigned long long)b.unmovable, b.unmovable == 1 ? "s" : "",
                       (unsigned long long)b.reclaimable);
    if (are_most)
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
    return are_most;
}

/* Report which blocks compaction can move; only root may read that. True: most are
   unmovable. */
static bool
check_blocks(struct dry_doctor *d)
{
    struct dryi_fact_file file;
    bool are_most = false;
    size_t named = 0;
    if (!dryi_facts_read_from(&d->facts, &file, BLOCKS, "Number of blocks type")) {
        dryi_doctor_is(d, "which blocks hold unmovable pages is not known: " BLOCKS
                          " is for root");
        return false;
    }
    for (int32_t node = 0; node < DRY_PAGES_NODES_MAX; node++)
        if (dryi_nodes_have(&d->nodes, node) &&
            judge_blocks(d, node, &file, named++ < NAMED_MAX))
            are_most = true;
    return are_most;
}

/* Recommend compaction, which moves only movable blocks; the others stay until a
   reboot. */
static void
mend_pieces(struct dry_doctor *d, bool is_stuck)
{
    dryi_doctor_should_be(d, is_stuck ? "a quarter or more, and most blocks movable"
                                      : "a quarter or more");
    dryi_doctor_needs_root(d);
    dryi_doctor_fix(d, "sync; echo 1 > /proc/sys/vm/drop_caches\n"
                       "echo 1 > /proc/sys/vm/compact_memory");
    if (is_stuck)
        dryi_doctor_fix(d, "# compaction cannot move what most blocks hold: ask for the "
                           "pages at boot, hugepagesz=2M hugepages=N on the kernel's "
                           "command line");
}

static void
check_free_pieces(struct dry_doctor *d)
{
    struct dryi_fact_file file;
    if (!dryi_facts_read(&d->facts, &file, "/proc/buddyinfo")) {
        dryi_doctor_not_known(d, &check_pieces, "/proc/buddyinfo");
        return;
    }
    dryi_doctor_begin(d, &check_pieces);
    size_t named = 0;
    for (int32_t node = 0; node < DRY_PAGES_NODES_MAX; node++)
        if (dryi_nodes_have(&d->nodes, node))
            judge_pieces(d, node, &file, named++ < NAMED_MAX);
    bool is_stuck = check_blocks(d);
    if (!dryi_doctor_is_good(d))
        mend_pieces(d, is_stuck);
    dryi_doctor_end(d);
}

static void
check_proactiveness(struct dry_doctor *d)
{
    uint64_t now;
    if (!dryi_facts_read_number(&d->facts, &now, VM "compaction_proactiveness"))
        return; /* before Linux 5.9: no such file */
    dryi_doctor_begin(d, &check_proactive);
    dryi_doctor_is(d, "%llu of 100", (unsigned long long)now);
    if (now == 0) {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "20, the kernel's default");
        dryi_doctor_write_number(d, VM "compaction_proactiveness", now, 20);
    }
    dryi_doctor_end(d);
}

static void
check_index(struct dry_doctor *d)
{
    uint64_t now;
    if (!dryi_facts_read_number(&d->facts, &now, VM "extfrag_threshold"))
        return;
    dryi_doctor_begin(d, &check_threshold);
    dryi_doctor_is(d, "%llu", (unsigned long long)now);
    if (now > 500) {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "500, the kernel's default, or less");
        dryi_doctor_write_number(d, VM "extfrag_threshold", now, 500);
    }
    dryi_doctor_end(d);
}

/* /proc/vmstat exceeds the read buffer, so only the lines with a word are kept. */
static bool
read_events(const struct dry_doctor *d, const char *word, struct dryi_fact_file *file)
{
    return dryi_facts_read_lines(&d->facts, file, "/proc/vmstat", word);
}

static bool
read_event(const struct dryi_fact_file *file, const char *name, uint64_t *count)
{
    return dryi_fact_field(file->text, file->length, name, count);
}

static void
check_given(struct dry_doctor *d)
{
    struct dryi_fact_file file;
    uint64_t given, refused;
    if (!read_events(d, "thp_fault_", &file) ||
        !read_event(&file, "thp_fault_alloc", &given) ||
        !read_event(&file, "thp_fault_fallback", &refused))
        return;
    dryi_doctor_begin(d, &check_faults);
    uint64_t sum = dryi_add_saturating(given, refused);
    dryi_doctor_is(d, "%llu given, %llu refused (%llu %%)", (unsigned long long)given,
                   (unsigned long long)refused,
                   (unsigned long long)dryi_doctor_percent(refused, sum));
    if (sum >= EVENTS_MIN && dryi_doctor_percent(refused, sum) >= 10) {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "less than a tenth refused");
        dryi_doctor_needs_root(d);
        dryi_doctor_fix(d, "echo 1 > /proc/sys/vm/compact_memory");
    }
    dryi_doctor_end(d);
}

static void
check_waiting(struct dry_doctor *d)
{
    struct dryi_fact_file file;
    uint64_t stalls, failures;
    if (!read_events(d, "compact_", &file) ||
        !read_event(&file, "compact_stall", &stalls) ||
        !read_event(&file, "compact_fail", &failures))
        return;
    dryi_doctor_begin(d, &check_compaction);
    dryi_doctor_is(d, "%llu time%s, %llu of them for nothing", (unsigned long long)stalls,
                   stalls == 1 ? "" : "s", (unsigned long long)failures);
    if (stalls >= EVENTS_MIN && failures > stalls / 2) {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "most of them found something");
        dryi_doctor_needs_root(d);
        dryi_doctor_fix(d, "sync; echo 1 > /proc/sys/vm/drop_caches\n"
                           "echo 1 > /proc/sys/vm/compact_memory");
    }
    dryi_doctor_end(d);
}

static void
check_growth(struct dry_doctor *d)
{
    struct dryi_fact_file file;
    uint64_t found, missed;
    if (!read_events(d, "htlb_buddy_alloc_", &file) ||
        !read_event(&file, "htlb_buddy_alloc_success", &found) ||
        !read_event(&file, "htlb_buddy_alloc_fail", &missed))
        return;
    dryi_doctor_begin(d, &check_pool_growth);
    dryi_doctor_is(d, "%llu found, %llu not", (unsigned long long)found,
                   (unsigned long long)missed);
    if (missed > found / 10) {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "found");
        dryi_doctor_fix(d,
                        "# ask for the pages at boot: hugepagesz=2M hugepages=N on the "
                        "kernel's command line");
    }
    dryi_doctor_end(d);
}

void
dryi_doctor_check_fragmentation(struct dry_doctor *d)
{
    check_free_pieces(d);
    check_proactiveness(d);
    check_index(d);
    check_given(d);
    check_waiting(d);
    check_growth(d);
}
