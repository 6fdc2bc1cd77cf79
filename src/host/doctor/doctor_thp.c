/* SPDX-License-Identifier: Apache-2.0 */

/* Findings on transparent huge pages: whether the kernel uses them, when, in which sizes,
   and for which processes. */
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "host/doctor/doctor_inside.h"
#include "host/doctor/doctor_text.h"
#include "host/facts/fact_text.h"
#include "host/facts/facts_read.h"

#define THP "/sys/kernel/mm/transparent_hugepage"
#define WORD_BYTES 32
/* With 64 KiB base pages huge pages have 512 MiB, which is too large for typical
   requests. */
#define HUGE_USEFUL_MAX (64 * DRYI_MIB)

static const struct dryi_check check_enabled = {
    DRY_DOCTOR_THP, "thp-enabled", "transparent huge pages",
    "with them random access to large tensors is about twice as fast, giving memory back "
    "20 times, and pinning needs fewer, larger steps"};
static const struct dryi_check check_huge_size = {
    DRY_DOCTOR_THP, "thp-size", "transparent pages of the full size",
    "each size has a switch of its own since Linux 6.8, and the one of the full size "
    "decides whatever stands in \"enabled\""};
static const struct dryi_check check_sizes = {
    DRY_DOCTOR_THP, "thp-sizes", "transparent pages of smaller sizes",
    "where the full size is too large to be found or filled, sizes between are the only "
    "large pages there are"};
static const struct dryi_check check_defrag = {
    DRY_DOCTOR_THP, "thp-defrag", "what a fault does when no huge page is free",
    "who asked for huge pages should get them at once, at the price of looking for them; "
    "who did not should not wait. That is \"defer+madvise\""};
static const struct dryi_check check_shmem = {
    DRY_DOCTOR_THP, "thp-shmem", "transparent huge pages of shared memory",
    "tensors that DataLoader's workers send and regions that survive a fork are shared "
    "memory; where it is never huge, they are of base pages whatever they ask for"};
static const struct dryi_check check_khugepaged = {
    DRY_DOCTOR_THP, "thp-khugepaged", "making huge pages of what is there already",
    "memory that was filled while no huge page was to be had is put together later; "
    "without searching (defrag 0) that succeeds only where memory happens to be in one "
    "piece"};
static const struct dryi_check check_process = {
    DRY_DOCTOR_THP, "thp-process", "transparent huge pages of this process",
    "a launcher can switch them off for all it starts (prctl PR_SET_THP_DISABLE), and "
    "then no setting of the machine helps"};

/* Read the chosen word of a file; false: not readable, or none. */
static bool
read_choice(const struct dry_doctor *d, const char *path, char word[WORD_BYTES])
{
    struct dryi_fact_file file;
    struct dryi_doctor_piece chosen;
    if (!dryi_facts_read(&d->facts, &file, "%s", path) ||
        !dryi_text_chosen(file.text, file.length, &chosen) || chosen.length >= WORD_BYTES)
        return false;
    memcpy(word, chosen.bytes, chosen.length);
    word[chosen.length] = '\0';
    return true;
}

static bool
is_one_of(const char *word, const char *const *values)
{
    for (; *values; values++)
        if (strcmp(word, *values) == 0)
            return true;
    return false;
}

static bool
is_on_for_pytorch(const struct dry_doctor *d)
{
    const char *value = dryi_doctor_variable(d, "THP_MEM_ALLOC_ENABLE");
    return value && strcmp(value, "1") == 0;
}

/* Return the recommended setting. plain malloc does not advise, so on the CPU "always" is
   needed to cover tensors. */
static const char *
wanted_for(const struct dry_doctor *d, const char *now)
{
    bool is_too_large = d->machine.huge_page_bytes > HUGE_USEFUL_MAX;
    if (strcmp(now, "never") == 0)
        return "madvise";
    if (strcmp(now, "always") == 0)
        return is_too_large ? "madvise" : now;
    if (d->options.purpose == DRY_DOCTOR_CPU && !is_too_large && !is_on_for_pytorch(d))
        return "always";
    return now;
}

static void
check_if_enabled(struct dry_doctor *d)
{
    char now[WORD_BYTES], text[DRYI_BYTES_TEXT];
    if (!read_choice(d, THP "/enabled", now)) {
        dryi_doctor_not_known(d, &check_enabled, THP "/enabled");
        return;
    }
    const char *wanted = wanted_for(d, now);
    dryi_doctor_begin(d, &check_enabled);
    dryi_doctor_is(d, "%s, of %s", now,
                   d->machine.huge_page_bytes
                       ? dryi_doctor_bytes(d->machine.huge_page_bytes, text)
                       : "an unknown size");
    if (strcmp(now, wanted) != 0) {
        dryi_doctor_judge(d, strcmp(now, "never") == 0 ? DRY_DOCTOR_WRONG
                                                       : DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "%s", wanted);
        dryi_doctor_write(d, THP "/enabled", now, wanted);
        if (strcmp(wanted, "always") == 0)
            dryi_doctor_because(d, "tensors are made by malloc, which asks for no huge "
                                   "pages: \"madvise\" helps only programs that do. Else "
                                   "set THP_MEM_ALLOC_ENABLE=1 for PyTorch");
        if (d->machine.huge_page_bytes > HUGE_USEFUL_MAX)
            dryi_doctor_because(d,
                                "every mapping would take pages of %s, nearly all of it "
                                "unused",
                                dryi_doctor_bytes(d->machine.huge_page_bytes, text));
    }
    dryi_doctor_end(d);
}

static void
make_size_path(char path[128], uint64_t bytes)
{
    snprintf(path, 128, THP "/hugepages-%llukB/enabled",
             (unsigned long long)(bytes / 1024));
}

static void
check_full_size(struct dry_doctor *d)
{
    char path[128], now[WORD_BYTES];
    make_size_path(path, d->machine.huge_page_bytes);
    if (d->machine.huge_page_bytes == 0 || !read_choice(d, path, now))
        return; /* before Linux 6.8: no such file */
    dryi_doctor_begin(d, &check_huge_size);
    dryi_doctor_is(d, "%s", now);
    if (strcmp(now, "never") == 0) {
        dryi_doctor_judge(d, DRY_DOCTOR_WRONG);
        dryi_doctor_should_be(d, "inherit");
        dryi_doctor_write(d, path, now, "inherit");
    }
    dryi_doctor_end(d);
}

/* 2 MiB pages should be available on advice if huge pages have 512 MiB. */
static void
check_small_sizes(struct dry_doctor *d)
{
    uint64_t base = d->machine.base_page_bytes, huge = d->machine.huge_page_bytes;
    char path[128], now[WORD_BYTES], text[DRYI_BYTES_TEXT];
    bool is_begun = false, has_any = false;
    for (uint64_t bytes = base ? base * 2 : huge; bytes < huge; bytes *= 2) {
        make_size_path(path, bytes);
        if (!read_choice(d, path, now))
            continue;
        if (!is_begun)
            dryi_doctor_begin(d, &check_sizes);
        is_begun = true;
        if (strcmp(now, "never") != 0) {
            has_any = true;
            dryi_doctor_is(d, "%s %s", dryi_doctor_bytes(bytes, text), now);
        }
        if (bytes == 2 * DRYI_MIB && huge > HUGE_USEFUL_MAX &&
            strcmp(now, "never") == 0) {
            dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
            dryi_doctor_should_be(d, "2 MiB for who asks: the full size is %s",
                                  dryi_doctor_bytes(huge, text));
            dryi_doctor_write(d, path, now, "madvise");
        }
    }
    if (is_begun && !has_any)
        dryi_doctor_is(d, "none is on");
    if (is_begun)
        dryi_doctor_end(d);
}

static void
check_the_search(struct dry_doctor *d)
{
    static const char *const good[] = {"defer+madvise", "madvise", NULL};
    char now[WORD_BYTES];
    if (!read_choice(d, THP "/defrag", now)) {
        dryi_doctor_not_known(d, &check_defrag, THP "/defrag");
        return;
    }
    dryi_doctor_begin(d, &check_defrag);
    dryi_doctor_is(d, "%s", now);
    if (!is_one_of(now, good)) {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "defer+madvise");
        dryi_doctor_write(d, THP "/defrag", now, "defer+madvise");
    }
    dryi_doctor_end(d);
}

static void
check_shared(struct dry_doctor *d)
{
    static const char *const off[] = {"never", "deny", NULL};
    char now[WORD_BYTES];
    if (!read_choice(d, THP "/shmem_enabled", now))
        return;
    dryi_doctor_begin(d, &check_shmem);
    dryi_doctor_is(d, "%s", now);
    if (is_one_of(now, off)) {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "advise");
        dryi_doctor_write(d, THP "/shmem_enabled", now, "advise");
    }
    dryi_doctor_end(d);
}

static void
check_the_thread(struct dry_doctor *d)
{
    uint64_t defrag, none, pages, sleep_ms;
    if (!dryi_facts_read_number(&d->facts, &defrag, THP "/khugepaged/defrag"))
        return;
    dryi_doctor_begin(d, &check_khugepaged);
    dryi_doctor_is(d, "it %s memory together", defrag ? "moves" : "does not move");
    if (dryi_facts_read_number(&d->facts, &none, THP "/khugepaged/max_ptes_none"))
        dryi_doctor_is(d, "up to %llu empty page%s in a huge one",
                       (unsigned long long)none, none == 1 ? "" : "s");
    if (dryi_facts_read_number(&d->facts, &pages, THP "/khugepaged/pages_to_scan") &&
        dryi_facts_read_number(&d->facts, &sleep_ms,
                               THP "/khugepaged/scan_sleep_millisecs"))
        dryi_doctor_is(d, "%llu page%s each %llu ms", (unsigned long long)pages,
                       pages == 1 ? "" : "s", (unsigned long long)sleep_ms);
    if (!defrag) {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "on");
        dryi_doctor_write(d, THP "/khugepaged/defrag", "0", "1");
    }
    dryi_doctor_end(d);
}

/* Check this process's own switch, in /proc/self/status since Linux 5.0. */
static void
check_this_process(struct dry_doctor *d)
{
    struct dryi_fact_file file;
    uint64_t is_on = 1;
    bool is_known =
        dryi_facts_read_lines(&d->facts, &file, "/proc/self/status", "THP_enabled:") &&
        dryi_fact_keyed(file.text, file.length, "THP_enabled", &is_on);
    if (d->is_here && d->kernel.is_thp_disabled(d->kernel.self) == 1)
        is_known = true, is_on = 0;
    if (!is_known)
        return;
    dryi_doctor_begin(d, &check_process);
    dryi_doctor_is(d, "%s", is_on ? "as the machine says" : "off for this process");
    if (!is_on) {
        dryi_doctor_judge(d, DRY_DOCTOR_WRONG);
        dryi_doctor_should_be(d, "as the machine says");
        dryi_doctor_fix(
            d, "# start the program by another parent, or have this one not call "
               "prctl(PR_SET_THP_DISABLE, 1)");
    }
    dryi_doctor_end(d);
}

void
dryi_doctor_check_thp(struct dry_doctor *d)
{
    check_if_enabled(d);
    check_full_size(d);
    check_small_sizes(d);
    check_the_search(d);
    check_shared(d);
    check_the_thread(d);
    check_this_process(d);
}
