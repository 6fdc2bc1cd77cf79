/* SPDX-License-Identifier: Apache-2.0 */

/* The forms of /sys and /proc, and facts read from folders of files. */
#include "support/cmocka.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "host/facts/cgroup_text.h"
#include "host/facts/fact_text.h"
#include "host/facts/facts.h"
#include "host/facts/numa_maps_text.h"
#include "host/facts/smaps_text.h"
#include "support/tree.h"

#define TEXT(s) (s), sizeof(s) - 1

static void
numbers_are_whole_lines(void **state)
{
    (void)state;
    uint64_t n = 5;
    assert_true(dryi_fact_number(TEXT("128\n"), &n) && n == 128);
    assert_true(dryi_fact_number(TEXT("0"), &n) && n == 0);
    assert_true(dryi_fact_number(TEXT("max\n"), &n) && n == UINT64_MAX);
    assert_true(dryi_fact_number(TEXT("99999999999999999999999\n"), &n));
    assert_true(n == UINT64_MAX);
    n = 5;
    static const char *const bad[] = {"",   "\n",    "-1\n", "1 \n",
                                      " 1", "1\n\n", "0x10", "max1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(dryi_fact_number(bad[i], strlen(bad[i]), &n));
    assert_int_equal(n, 5);
}

static void
lists_become_sets(void **state)
{
    (void)state;
    uint64_t words[2] = {9, 9};
    assert_true(dryi_fact_list(TEXT("0-3,8,64-70,5000\n"), words, 128));
    assert_true(words[0] == 0x10f && words[1] == 0x7f);
    assert_true(dryi_fact_list(TEXT("\n"), words, 128));
    assert_true(words[0] == 0 && words[1] == 0);
    words[0] = 9;
    static const char *const bad[] = {"3-1", "1,1", "2,1", "1,",  ",1",
                                      "1-",  "-",   "a",   "1 2", "0-5,5"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(dryi_fact_list(bad[i], strlen(bad[i]), words, 128));
    assert_true(words[0] == 9);
}

static void
keyed_numbers_are_bytes(void **state)
{
    (void)state;
    static const char text[] = "MemTotal: 7 kB\nHugePages_Free:   12\n"
                               "Node 1 MemFree:    3 kB\nBad: 1 MB\nNone:\n";
    uint64_t n = 5;
    assert_true(dryi_fact_keyed(TEXT(text), "MemTotal", &n) && n == 7 * DRYI_KIB);
    assert_true(dryi_fact_keyed(TEXT(text), "HugePages_Free", &n) && n == 12);
    assert_true(dryi_fact_keyed(TEXT(text), "MemFree", &n) && n == 3 * DRYI_KIB);
    n = 5;
    assert_false(dryi_fact_keyed(TEXT(text), "Mem", &n));
    assert_false(dryi_fact_keyed(TEXT(text), "Bad", &n));
    assert_false(dryi_fact_keyed(TEXT(text), "None", &n));
    assert_int_equal(n, 5);
    assert_true(dryi_fact_field(TEXT("a 1\nab 2\n"), "ab", &n) && n == 2);
    assert_false(dryi_fact_field(TEXT("abc 2\n"), "ab", &n));
}

static void
choices_and_pools_are_read(void **state)
{
    (void)state;
    assert_true(dryi_fact_is_chosen(TEXT("always [madvise] never\n"), "madvise"));
    assert_false(dryi_fact_is_chosen(TEXT("always [madvise] never\n"), "never"));
    assert_false(dryi_fact_is_chosen(TEXT("always madvise never\n"), "never"));
    assert_false(dryi_fact_is_chosen(TEXT("[never"), "never"));
    uint64_t n = 5;
    assert_true(dryi_fact_pool_name(TEXT("hugepages-1048576kB"), &n) && n == DRYI_GIB);
    n = 5;
    static const char *const bad[] = {"hugepages-kB",
                                      "hugepages-3kB",
                                      "hugepages-0kB",
                                      "hugepages-2048",
                                      "hugepages-2048kBx",
                                      "..",
                                      "hugepages-99999999999999999999kB"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(dryi_fact_pool_name(bad[i], strlen(bad[i]), &n));
    assert_int_equal(n, 5);
}

/* groups, mounts -> the path for "memory" and how long its top is; NULL: none */
static void
groups_are_found_below_their_mounts(void **state)
{
    (void)state;
    static const struct {
        const char *groups, *mounts, *path;
        size_t top_length;
    } cases[] = {
        {"0::/a/b\n", "1 2 0:3 / /cg rw - cgroup2 cgroup2 rw\n", "/cg/a/b", 3},
        {"0::/\n", "1 2 0:3 / /cg rw - cgroup2 cgroup2 rw\n", "/cg", 3},
        {"4:memory:/x\n0::/y\n",
         "1 2 0:3 / /two rw - cgroup2 c rw\n1 2 0:4 / /one rw - cgroup c rw,memory\n",
         "/one/x", 4},
        {"4:cpu:/x\n0::/y\n", "1 2 0:3 / /two rw - cgroup2 c rw\n", "/two/y", 4},
        /* A container sees its own group as the top, whatever the file says. */
        {"0::/docker/1/in\n", "1 2 0:3 /docker/1 /cg rw - cgroup2 c rw\n", "/cg/in", 3},
        {"0::/docker/12\n", "1 2 0:3 /docker/1 /cg rw - cgroup2 c rw\n", "/cg", 3},
        {"0::/../other\n", "1 2 0:3 / /cg rw - cgroup2 c rw\n", "/cg", 3},
        {"0::/a\n", "1 2 0:3 / /cg rw a:1 b:2 - cgroup2 c rw\n", "/cg/a", 3},
        {"4:memory:/x\n", "1 2 0:4 / /one rw - cgroup c rw,cpu\n", NULL, 0},
        {"", "1 2 0:3 / /cg rw - cgroup2 c rw\n", NULL, 0},
        {"0::relative\n", "1 2 0:3 / /cg rw - cgroup2 c rw\n", NULL, 0},
        {"0::/a\n", "1 2 0:3 / /cg rw cgroup2\n", NULL, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dryi_cgroup found;
        bool is_found =
            dryi_cgroup_find(cases[i].groups, strlen(cases[i].groups), cases[i].mounts,
                             strlen(cases[i].mounts), "memory", &found);
        assert_int_equal(is_found, cases[i].path != NULL);
        if (!is_found)
            continue;
        assert_string_equal(found.path, cases[i].path);
        assert_int_equal(found.top_length, cases[i].top_length);
    }
}

static bool
huge_of(const char *text, uint64_t *huge)
{
    struct dryi_smaps smaps;
    dryi_smaps_init(&smaps, 0x10000000, 0x400000);
    dryi_smaps_feed(&smaps, text, strlen(text));
    return dryi_smaps_end(&smaps, huge);
}

#define HALF_1 "10000000-10200000 rw-p 00000000 00:00 0 \n"
#define HALF_2 "10200000-10400000 rw-p 00000000 00:00 0 \n"

static void
smaps_of_a_range_are_summed(void **state)
{
    (void)state;
    uint64_t huge = 5;
    assert_true(huge_of("0f000000-10000000 rw-p 0 0:0 0 \nAnonHugePages: 999 kB\n" HALF_1
                        "AnonHugePages: 2048 kB\nShmemPmdMapped: 0 kB\n" HALF_2
                        "AnonHugePages: 0 kB\n10400000-10500000 ---p 0 0:0 0 \n"
                        "AnonHugePages: 4 kB\n",
                        &huge));
    assert_true(huge == 2 * DRYI_MIB);
    huge = 5;
    /* A part, a neighbour that was merged, an older kernel, nonsense. */
    assert_false(huge_of(HALF_1 "AnonHugePages: 2048 kB\n", &huge));
    assert_false(
        huge_of("0f000000-10400000 rw-p 0 0:0 0 \nAnonHugePages: 0 kB\n", &huge));
    assert_false(huge_of(HALF_1 HALF_2, &huge));
    assert_false(huge_of(HALF_1 HALF_2 "AnonHugePages: 9999999 kB\n", &huge));
    assert_int_equal(huge, 5);
}

static void
add_bytes(void *to, int node, uint64_t bytes)
{
    uint64_t *by_node = to;
    by_node[node & 3] += bytes;
}

static bool
nodes_of(const char *text, uint64_t by_node[4])
{
    struct dryi_numa_maps maps;
    memset(by_node, 0, 4 * sizeof *by_node);
    dryi_numa_maps_init(&maps, 0x10000000, 0x400000, add_bytes, by_node);
    for (size_t i = 0; i < strlen(text); i++)
        dryi_numa_maps_feed(&maps, text + i, 1);
    return dryi_numa_maps_end(&maps);
}

static void
numa_maps_of_a_range_are_summed(void **state)
{
    (void)state;
    uint64_t n[4];
    assert_true(nodes_of(
        "0ffff000 default anon=9 N0=9 kernelpagesize_kB=4\n"
        "10000000 bind:1 anon=5 dirty=5 N0=3 N1=2 kernelpagesize_kB=4\n"
        "10300000 default file=/x\\040(deleted) huge N3=1 kernelpagesize_kB=1024",
        n));
    assert_true(n[0] == 3 * 4096 && n[1] == 2 * 4096 && n[2] == 0 && n[3] == DRYI_MIB);
    /* A reservation without pages is a line too. */
    assert_true(nodes_of("10000000 default kernelpagesize_kB=4\n", n) && n[0] == 0);
    assert_false(nodes_of("20000000 default N0=1 kernelpagesize_kB=4\n", n));
    assert_false(nodes_of("10000000 default N0=1\n", n));
    assert_false(nodes_of("10000000 default N0=9999999 kernelpagesize_kB=4\n", n));
    assert_false(nodes_of("10000000 default N5000=1 kernelpagesize_kB=4\n", n));
    assert_false(nodes_of("10000000 default N0=1 kernelpagesize_kB=0\n", n));
}

#define POOLS "/sys/kernel/mm/hugepages"
#define NODE0 "/sys/devices/system/node/node0"

static void
facts_are_read_below_the_root(void **state)
{
    (void)state;
    struct tree t;
    tree_init(&t);
    tree_add(&t, POOLS "/hugepages-64kB/nr_hugepages", "0\n");
    tree_add(&t, POOLS "/hugepages-1048576kB/nr_hugepages", "1\n");
    tree_add(&t, POOLS "/hugepages-2048kB/nr_hugepages", "10\n");
    tree_add(&t, POOLS "/hugepages-2048kB/free_hugepages", "7\n");
    tree_add(&t, POOLS "/hugepages-2048kB/resv_hugepages", "2\n");
    tree_add(&t, POOLS "/hugepages-2048kB/surplus_hugepages", "1\n");
    tree_add(&t, POOLS "/hugepages-2048kB/nr_overcommit_hugepages", "4\n");
    tree_add(&t, NODE0 "/meminfo",
             "Node 0 MemFree: 1000 kB\nNode 0 Active(file): 200 kB\n"
             "Node 0 Inactive(file): 100 kB\nNode 0 SReclaimable: 20 kB\n");
    tree_add(&t, NODE0 "/cpulist", "0-1,70\n");
    tree_add(&t, "/sys/devices/system/node/online", "0-2\n"); /* older kernels */
    tree_add(&t, "/proc/self/status", "A:\tb\nMems_allowed_list:\t0,2-3\nC:\td\n");

    struct dryi_kernel kernel;
    dryi_kernel_init(&kernel);
    struct dryi_facts facts = {.kernel = &kernel, .root = t.root};
    uint64_t sizes[DRYI_FACTS_POOLS_MAX];
    assert_int_equal(dryi_facts_pool_sizes(&facts, sizes), 3);
    assert_true(sizes[0] == DRYI_GIB && sizes[2] == 64 * DRYI_KIB);
    struct dryi_pool_facts pool;
    assert_true(dryi_facts_pool(&facts, 2 * DRYI_MIB, DRYI_ALL_NODES, &pool));
    assert_true(pool.total == 10 && pool.free == 7 && pool.reserved == 2);
    assert_true(pool.surplus == 1 && pool.overcommit == 4);
    assert_false(dryi_facts_pool(&facts, 2 * DRYI_MIB, 0, &pool));
    assert_int_equal(dryi_facts_default_pool(&facts), 0);
    assert_int_equal(dryi_facts_available_bytes(&facts, 0), 1210 * DRYI_KIB);
    assert_true(dryi_facts_available_bytes(&facts, 1) == UINT64_MAX);
    struct dryi_cpus cpus;
    assert_true(dryi_facts_node_cpus(&facts, 0, &cpus));
    assert_true(cpus.words[0] == 3 && cpus.words[1] == 64);
    struct dry_pages_nodes existing, allowed;
    assert_true(dryi_facts_nodes(&facts, &existing, &allowed));
    assert_true(existing.words[0] == 7 && allowed.words[0] == 5);
    struct dryi_thp_facts thp;
    dryi_facts_thp(&facts, &thp);
    assert_true(thp.is_off && thp.is_off_for_shared && thp.huge_bytes == 0);
    assert_true(dryi_facts_cgroup_free_bytes(&facts) == UINT64_MAX);
    struct dry_pages_size known[DRY_PAGES_SIZES_MAX];
    assert_int_equal(dry_pages_read_sizes(t.root, -1, known), 4);
    assert_int_equal(known[0].kind, DRY_PAGES_BASE);
    assert_true(known[1].page_bytes == 64 * DRYI_KIB && known[3].page_bytes == DRYI_GIB);
    assert_true(known[2].total_count == 10 && known[2].free_count == 5);
    assert_true(known[2].growth_count == 3);
    tree_finish(&t);
    assert_int_equal(dryi_facts_pool_sizes(&facts, sizes), 0);
    assert_false(dryi_facts_nodes(&facts, &existing, &allowed));
}

/* mountinfo of a machine with many containers is long; the lines we want may come last. */
static void
long_files_are_filtered(void **state)
{
    (void)state;
    struct tree t;
    tree_init(&t);
    static char mounts[400000];
    size_t used = 0;
    while (used < 300000)
        used += (size_t)snprintf(mounts + used, sizeof mounts - used,
                                 "100 1 0:50 / /x/%zu rw - overlay o rw\n", used);
    memset(mounts + used, 'y', 20000); /* longer than any line we keep */
    used += 20000;
    snprintf(mounts + used, sizeof mounts - used,
             " - cgroup2\n1 2 0:3 / /cg rw - cgroup2 c rw\n");
    tree_add(&t, "/proc/self/mountinfo", mounts);
    tree_add(&t, "/proc/self/cgroup", "0::/g\n");
    tree_add(&t, "/cg/g/memory.max", "1000\n");
    tree_add(&t, "/cg/g/memory.current", "400\n");
    tree_add(&t, "/cg/memory.max", "2000\n");
    tree_add(&t, "/cg/memory.current", "1900\n");
    struct dryi_kernel kernel;
    dryi_kernel_init(&kernel);
    struct dryi_facts facts = {.kernel = &kernel, .root = t.root};
    assert_int_equal(dryi_facts_cgroup_free_bytes(&facts), 100);
    tree_add(&t, "/cg/memory.max", "max\n");
    assert_int_equal(dryi_facts_cgroup_free_bytes(&facts), 600);
    tree_add(&t, "/cg/g/hugetlb.1GB.max", "3\n");
    tree_add(&t, "/cg/g/hugetlb.1GB.current", "2\n");
    tree_add(&t, "/cg/g/hugetlb.64KB.rsvd.max", "5\n");
    tree_add(&t, "/cg/g/hugetlb.64KB.rsvd.current", "9\n");
    assert_int_equal(dryi_facts_cgroup_free_pool_bytes(&facts, DRYI_GIB, false), 1);
    assert_int_equal(dryi_facts_cgroup_free_pool_bytes(&facts, 64 * DRYI_KIB, true), 0);
    tree_finish(&t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_whole_lines),
        cmocka_unit_test(lists_become_sets),
        cmocka_unit_test(keyed_numbers_are_bytes),
        cmocka_unit_test(choices_and_pools_are_read),
        cmocka_unit_test(groups_are_found_below_their_mounts),
        cmocka_unit_test(smaps_of_a_range_are_summed),
        cmocka_unit_test(numa_maps_of_a_range_are_summed),
        cmocka_unit_test(facts_are_read_below_the_root),
        cmocka_unit_test(long_files_are_filtered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
