/* SPDX-License-Identifier: Apache-2.0 */

/* What doctor finds on machines we know, and that nothing of a machine can make it fail. */
#include "support/cmocka.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/doctor.h>
#include <drystone/pages.h>

#include "base/bits.h"
#include "host/doctor/doctor_inside.h"
#include "host/doctor/doctor_text.h"
#include "support/failing_memory.h"
#include "support/machine.h"

#define TEXT(s) (s), sizeof(s) - 1

/* --- texts -------------------------------------------------------------------------------- */

static void
limits_are_read(void **state)
{
    (void)state;
    static const char text[] = "Limit    Soft Limit   Hard Limit  Units\n"
                               "Max open files  1024   unlimited  files\n"
                               "Max locked memory  x   1  bytes\n";
    uint64_t soft = 5, hard = 5;
    assert_true(dryi_text_limit(TEXT(text), "Max open files", &soft, &hard));
    assert_true(soft == 1024 && hard == UINT64_MAX);
    assert_false(dryi_text_limit(TEXT(text), "Max locked memory", &soft, &hard));
    assert_false(dryi_text_limit(TEXT(text), "Max open", &soft, &hard));
    assert_false(dryi_text_limit(TEXT("Max open files"), "Max open files", &soft, &hard));
    assert_true(soft == 1024 && hard == UINT64_MAX);
}

static void
free_pieces_are_summed_by_node(void **state)
{
    (void)state;
    static const char text[] = "Node 0, zone DMA 1 0 1\nNode 1, zone Normal 9 9 9\n"
                               "Node 0, zone Normal 3 2 1\n";
    uint64_t free = 0, large = 0;
    assert_true(dryi_text_buddies(TEXT(text), 0, 2, &free, &large));
    assert_true(free == 1 + 4 + 3 + 4 + 4 && large == 8);
    assert_true(dryi_text_buddies(TEXT(text), 1, 1, &free, &large));
    assert_true(free == 63 && large == 54);
    free = 7;
    assert_false(dryi_text_buddies(TEXT(text), 2, 1, &free, &large));
    assert_false(dryi_text_buddies(TEXT("Node 0, zone N 1 x"), 0, 1, &free, &large));
    assert_true(free == 7);
    static const char huge[] = "Node 0, zone N 99999999999999999999 9999999999999999999";
    assert_true(dryi_text_buddies(TEXT(huge), 0, 1, &free, &large));
    assert_true(free == UINT64_MAX && large == UINT64_MAX);
}

static void
blocks_are_summed_by_node_and_kind(void **state)
{
    (void)state;
    static const char text[] =
        "Pages per block:  512\n"
        "Node    0, zone   Normal, type    Unmovable      9      9\n"
        "Number of blocks type     Unmovable      Movable  Reclaimable   Isolate\n"
        "Node 0, zone      DMA            1            2            0         0\n"
        "Node 0, zone   Normal           60           30            8         1\n"
        "Node 1, zone   Normal            1           99            0         x\n"
        "Number of mixed blocks    Unmovable      Movable  Reclaimable   Isolate\n"
        "Node 0, zone   Normal          500          500          500       500\n";
    struct dryi_blocks b = {7, 7, 7};
    assert_true(dryi_text_blocks(TEXT(text), 0, &b));
    assert_true(b.unmovable == 61 && b.reclaimable == 8 && b.all == 102);
    assert_false(dryi_text_blocks(TEXT(text), 1, &b));
    assert_false(dryi_text_blocks(TEXT(text), 2, &b));
    assert_false(dryi_text_blocks(TEXT("Node 0, zone N 1 2"), 0, &b));
    assert_true(b.unmovable == 61 && b.reclaimable == 8 && b.all == 102);
}

static void
windows_of_memory_are_measured(void **state)
{
    (void)state;
    static const char text[] =
        "0x00000000fb000000 0x00000000fbffffff 0x0000000000040200\n"
        "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
        "0x000000e000000000 0x000000e00fffffff 0x000000000014220c\n"
        "0x000000f000000000 0x000000f001ffffff 0x000000000014220c\n"
        "0x000000000000e000 0x000000000000e07f\n";
    uint64_t bytes = 7;
    assert_true(dryi_text_window(TEXT(text), &bytes));
    assert_true(bytes == 256 * DRYI_MIB);
    assert_true(dryi_text_window(TEXT("0x0 0xffffffffffffffff 0x2200"), &bytes));
    assert_true(bytes == UINT64_MAX);
    assert_false(dryi_text_window(TEXT("0x9 0x1 0x2200"), &bytes));
    assert_false(dryi_text_window(TEXT("0x1000 0x1fff 0x200"), &bytes));
    assert_true(bytes == UINT64_MAX);
}

static void
mapped_files_are_found_by_name(void **state)
{
    (void)state;
    static const char text[] =
        "7f00-7f01 rw-p 00000000 00:00 0 \n"
        "7f01-7f02 r-xp 00000000 fd:00 12 /opt/libtorch/lib/libc10.so\n"
        "7f02-7f03 r-xp 00000000 fd:00 13        /opt/a b/libtorch_cpu.so\n"
        "7f03-7f04 rw-p 00000000 00:00 0         [libjemalloc]\n"
        "libtcmalloc\n";
    struct dryi_doctor_piece path = {NULL, 7};
    assert_true(dryi_text_mapped(TEXT(text), "libtorch", &path));
    assert_true(dryi_doctor_piece_is(path, "/opt/a b/libtorch_cpu.so"));
    path.length = 7;
    assert_false(dryi_text_mapped(TEXT(text), "libjemalloc", &path));
    assert_false(dryi_text_mapped(TEXT(text), "libtcmalloc", &path));
    assert_false(dryi_text_mapped(TEXT(text), "lib/", &path));
    assert_int_equal(path.length, 7);
}

static void
mounts_have_sizes(void **state)
{
    (void)state;
    static const char text[] = "1 2 0:3 / /dev/shm rw - tmpfs shm rw,size=64M,mode=1777\n"
                               "1 2 0:3 / /dev rw - devtmpfs dev rw,size=9k\n"
                               "1 2 0:3 / /run rw shared:1 - tmpfs tmpfs rw\n";
    uint64_t bytes = 5;
    assert_true(dryi_text_mount_size(TEXT(text), "/dev/shm", &bytes));
    assert_true(bytes == 64 * DRYI_MIB);
    assert_true(dryi_text_mount_size(TEXT(text), "/run", &bytes));
    assert_true(bytes == UINT64_MAX);
    bytes = 5;
    assert_false(dryi_text_mount_size(TEXT(text), "/dev", &bytes));
    assert_false(dryi_text_mount_size(TEXT("1 2 0:3 / /run rw - tmpfs"), "/run", &bytes));
    assert_true(bytes == 5);
}

static void
versions_are_read(void **state)
{
    (void)state;
    uint32_t major = 0, minor = 0;
    uint64_t driver = 0, part = 0;
    assert_true(dryi_text_release(TEXT("6.12.9-amd64\n"), &major, &minor));
    assert_true(major == 6 && minor == 12);
    assert_false(dryi_text_release(TEXT("6\n"), &major, &minor));
    assert_false(dryi_text_release(TEXT("v6.1\n"), &major, &minor));
    assert_false(dryi_text_release(TEXT("99999999999.1\n"), &major, &minor));
    static const char text[] = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  "
                               "580.65.06  Release\nGCC version:  gcc 13.3.0\n";
    assert_true(dryi_text_driver(TEXT(text), &driver, &part));
    assert_true(driver == 580 && part == 65);
    assert_false(dryi_text_driver(TEXT("GCC version: 13.3.0\n"), &driver, &part));
}

static void
command_lines_ask_for_pools(void **state)
{
    (void)state;
    static const char text[] =
        "quiet hugepages=7 hugepagesz=1G hugepages=0:2,1:3 "
        "hugepagesz=2M hugepages=512 init_on_alloc=1 init_on_alloc=0";
    uint64_t pages = 0;
    struct dryi_doctor_piece value;
    assert_true(dryi_text_boot_pool(TEXT(text), DRYI_GIB, 2 * DRYI_MIB, &pages));
    assert_int_equal(pages, 5);
    assert_true(dryi_text_boot_pool(TEXT(text), 2 * DRYI_MIB, 2 * DRYI_MIB, &pages));
    assert_int_equal(pages, 512);
    assert_true(dryi_text_boot_pool(TEXT("hugepages=9"), DRYI_MIB, DRYI_MIB, &pages));
    assert_int_equal(pages, 9);
    assert_false(dryi_text_boot_pool(TEXT("hugepages=x"), DRYI_MIB, DRYI_MIB, &pages));
    assert_false(dryi_text_boot_pool(TEXT("hugepages=9"), DRYI_GIB, DRYI_MIB, &pages));
    assert_true(dryi_text_boot_option(TEXT(text), "init_on_alloc", &value));
    assert_true(dryi_doctor_piece_is(value, "0"));
    assert_false(dryi_text_boot_option(TEXT(text), "init", &value));
}

static void
settings_are_split(void **state)
{
    (void)state;
    static const char text[] = ",a:1,b,list:[1:2,3:4],,c:";
    static const char *const wanted[][2] = {
        {"a", "1"}, {"b", ""}, {"list", "[1:2,3:4]"}, {"c", ""}};
    struct dryi_doctor_setting s;
    size_t at = 0, count = 0;
    while (dryi_text_setting((struct dryi_doctor_piece){TEXT(text)}, ',', ':', &at, &s)) {
        assert_true(count < 4);
        assert_true(dryi_doctor_piece_is(s.key, wanted[count][0]));
        assert_true(dryi_doctor_piece_is(s.value, wanted[count][1]));
        count++;
    }
    assert_int_equal(count, 4);
}

static void
jemalloc_tells_its_release(void **state)
{
    (void)state;
    static const char library[] = "\177ELF..\0"
                                  "1.5.3.0-0-x\0"
                                  "5.3.0-0-g54eaed1d\0";
    for (size_t step = 1; step < sizeof library; step++) {
        struct dryi_jemalloc j = {.is_known = false};
        for (size_t at = 0; at < sizeof library; at += step)
            dryi_jemalloc_feed(&j, library + at,
                               at + step < sizeof library ? step : sizeof library - at);
        assert_true(j.is_known && j.major == 5 && j.minor == 3 && j.patch == 0);
    }
    struct dryi_jemalloc none = {.is_known = false};
    dryi_jemalloc_feed(&none, TEXT("x5.3.0-0-g5\0 5.3-0-g\0"));
    assert_false(none.is_known);
}

static void
sizes_are_written(void **state)
{
    (void)state;
    char text[DRYI_BYTES_TEXT];
    assert_string_equal(dryi_doctor_bytes(0, text), "0 B");
    assert_string_equal(dryi_doctor_bytes(1023, text), "1023 B");
    assert_string_equal(dryi_doctor_bytes(2 * DRYI_MIB, text), "2 MiB");
    assert_string_equal(dryi_doctor_bytes(3 * DRYI_GIB / 2, text), "1.50 GiB");
    assert_string_equal(dryi_doctor_bytes(UINT64_MAX, text), "15.99 EiB");
    assert_int_equal(dryi_doctor_percent(UINT64_MAX, UINT64_MAX), 100);
    assert_int_equal(dryi_doctor_percent(1, 0), 0);
}

/* --- machines ----------------------------------------------------------------------------- */

static struct dry_doctor *
examine(const struct dry_doctor_options *options)
{
    struct dry_doctor *doctor = NULL;
    struct dry_error err;
    assert_int_equal(dry_doctor_create(options, &doctor, &err), DRY_OK);
    return doctor;
}

/* The finding of this id, which must be there. */
static struct dry_doctor_finding
get(const struct dry_doctor *doctor, const char *id)
{
    struct dry_doctor_finding f = DRY_INIT(struct dry_doctor_finding);
    f.id = "";
    for (size_t i = 0; i < dry_doctor_get_finding_count(doctor); i++) {
        dry_doctor_get_finding(doctor, i, &f);
        if (strcmp(f.id, id) == 0)
            break;
    }
    assert_string_equal(f.id, id);
    return f;
}

static void
machines_show_what_they_lack(void **state)
{
    (void)state;
    static const struct {
        const char *machine, *id;
        enum dry_doctor_verdict verdict;
    } cases[] = {
        {"one-node", "thp-enabled", DRY_DOCTOR_GOOD},
        {"one-node", "fragmentation", DRY_DOCTOR_GOOD},
        {"one-node", "cuda-driver", DRY_DOCTOR_NOT_KNOWN},
        {"two-nodes", "pool-2048kb", DRY_DOCTOR_GOOD},
        {"two-nodes", "fragmentation", DRY_DOCTOR_GOOD},
        {"two-nodes", "numa-balancing", DRY_DOCTOR_COULD_BE_BETTER},
        {"eight-nodes", "pool-2048kb", DRY_DOCTOR_COULD_BE_BETTER},
        {"eight-nodes", "numa-misses", DRY_DOCTOR_COULD_BE_BETTER},
        {"eight-nodes", "thp-defrag", DRY_DOCTOR_COULD_BE_BETTER},
        {"eight-nodes", "zone-reclaim", DRY_DOCTOR_COULD_BE_BETTER},
        {"cxl", "numa-no-cpus", DRY_DOCTOR_COULD_BE_BETTER},
        {"cxl", "kernel-pin", DRY_DOCTOR_COULD_BE_BETTER},
        {"cxl", "init-on-alloc", DRY_DOCTOR_COULD_BE_BETTER},
        {"container", "pools", DRY_DOCTOR_COULD_BE_BETTER},
        {"container", "shm", DRY_DOCTOR_WRONG},
        {"container", "thp-process", DRY_DOCTOR_WRONG},
        {"container", "cgroup-high", DRY_DOCTOR_COULD_BE_BETTER},
        {"container", "numa-nodes", DRY_DOCTOR_NOT_KNOWN},
        {"container", "kernel-version", DRY_DOCTOR_COULD_BE_BETTER},
        {"arm64-64k", "thp-enabled", DRY_DOCTOR_COULD_BE_BETTER},
        {"arm64-64k", "thp-sizes", DRY_DOCTOR_COULD_BE_BETTER},
        {"gpu-r580", "kernel-pin", DRY_DOCTOR_WRONG},
        {"gpu-r580", "cuda-driver", DRY_DOCTOR_COULD_BE_BETTER},
        {"gpu-r580", "gpu-node", DRY_DOCTOR_COULD_BE_BETTER},
        {"gpu-r580", "gpu-bar", DRY_DOCTOR_COULD_BE_BETTER},
        {"gpu-r580", "iommu", DRY_DOCTOR_COULD_BE_BETTER},
        {"gpu-r580", "pool-2048kb", DRY_DOCTOR_WRONG},
        {"thp-never", "thp-enabled", DRY_DOCTOR_WRONG},
        {"thp-never", "thp-size", DRY_DOCTOR_WRONG},
        {"thp-never", "fragmentation", DRY_DOCTOR_COULD_BE_BETTER},
        {"thp-never", "overcommit", DRY_DOCTOR_WRONG},
        {"thp-never", "address-space", DRY_DOCTOR_WRONG},
        {"thp-never", "cgroup-hugetlb-2048kb", DRY_DOCTOR_WRONG},
        {"thp-never", "compaction", DRY_DOCTOR_COULD_BE_BETTER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tree tree;
        struct dry_doctor_options options;
        struct dry_doctor_finding f = DRY_INIT(struct dry_doctor_finding);
        machine_unpack(&tree, cases[i].machine);
        dry_doctor_options_init(&options);
        options.root = tree.root;
        struct dry_doctor *doctor = examine(&options);
        f = get(doctor, cases[i].id);
        if (f.verdict != cases[i].verdict)
            fail_msg("%s: %s is %s", cases[i].machine, cases[i].id,
                     dry_doctor_verdict_name(f.verdict));
        dry_doctor_destroy(doctor);
        tree_finish(&tree);
    }
}

/* What holds for each finding, whatever it is of. */
static void
check_finding(const struct dry_doctor *doctor, const struct dry_doctor_finding *f)
{
    assert_true(strlen(f->id) > 0);
    assert_int_equal(strspn(f->id, "abcdefghijklmnopqrstuvwxyz0123456789-"),
                     strlen(f->id));
    assert_non_null(dry_doctor_topic_name(f->topic));
    assert_true(strlen(f->title) > 0 && strlen(f->why) > 0 && strlen(f->is) > 0);
    bool is_bad = f->verdict >= DRY_DOCTOR_COULD_BE_BETTER;
    if (is_bad && strlen(f->should_be) == 0)
        fail_msg("%s: what should it be?", f->id);
    if (!is_bad && f->change_count)
        fail_msg("%s: nothing need be changed", f->id);
    for (size_t i = 0; i < f->change_count; i++) {
        struct dry_doctor_change c = DRY_INIT(struct dry_doctor_change);
        dry_doctor_get_change(doctor, f->first_change + i, &c);
        assert_true(dry_doctor_may_write(c.path, c.old_value));
        assert_true(dry_doctor_may_write(c.path, c.new_value));
        assert_string_not_equal(c.old_value, c.new_value);
        assert_true(f->needs_root && strlen(f->fix) && strlen(f->undo) &&
                    strlen(f->persist));
        assert_null(strchr(c.path, ' '));
    }
}

static void
check_doctor(const struct dry_doctor *doctor)
{
    size_t count = dry_doctor_get_finding_count(doctor);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        struct dry_doctor_finding f = DRY_INIT(struct dry_doctor_finding);
        struct dry_doctor_finding other = DRY_INIT(struct dry_doctor_finding);
        dry_doctor_get_finding(doctor, i, &f);
        check_finding(doctor, &f);
        for (size_t j = 0; j < i; j++) {
            dry_doctor_get_finding(doctor, j, &other);
            assert_string_not_equal(f.id, other.id);
        }
    }
}

static void
findings_are_whole_on_all_machines(void **state)
{
    (void)state;
    static const struct dry_doctor_variable variables[] = {
        {"LD_PRELOAD", "/nowhere/libjemalloc.so.2 libtcmalloc.so"},
        {"MALLOC_CONF", "thp:always,foo:1,narenas"},
        {"GLIBC_TUNABLES", "glibc.malloc.nothing=1"},
        {"PYTORCH_ALLOC_CONF", "pinned_use_background_threads:yes"},
        {"OMP_NUM_THREADS", "1000"},
    };
    static const uint64_t needs[] = {UINT64_C(4) << 30, 1};
    for (size_t m = 0; m < MACHINE_COUNT; m++) {
        struct tree tree;
        machine_unpack(&tree, machine_names[m]);
        for (int purpose = 0; purpose < DRY_DOCTOR_PURPOSE_COUNT; purpose++) {
            for (int32_t node = -1; node < 3; node++) {
                struct dry_doctor_options options;
                dry_doctor_options_init(&options);
                options.root = tree.root;
                options.purpose = (enum dry_doctor_purpose)purpose;
                options.node = node;
                options.needs_bytes = needs;
                options.need_count = node == 2 ? 0 : 2;
                options.variables = node == 0 ? variables : NULL;
                options.variable_count = node == 0 ? 5 : 0;
                struct dry_doctor *doctor = examine(&options);
                check_doctor(doctor);
                dry_doctor_destroy(doctor);
            }
        }
        tree_finish(&tree);
    }
}

static void
pages_know_all_machines(void **state)
{
    (void)state;
    static const struct {
        const char *machine;
        uint64_t huge_bytes;
        size_t pools;
        uint64_t total; /* of the smallest pool */
    } cases[MACHINE_COUNT] = {
        {"one-node", 2 * DRYI_MIB, 2, 0},       {"two-nodes", 2 * DRYI_MIB, 2, 256},
        {"eight-nodes", 2 * DRYI_MIB, 2, 4096}, {"cxl", 2 * DRYI_MIB, 1, 0},
        {"container", 2 * DRYI_MIB, 0, 0},      {"arm64-64k", 512 * DRYI_MIB, 3, 0},
        {"gpu-r580", 2 * DRYI_MIB, 2, 81920},   {"thp-never", 2 * DRYI_MIB, 1, 16},
    };
    for (size_t m = 0; m < MACHINE_COUNT; m++) {
        struct tree tree;
        struct dry_pages_size sizes[DRY_PAGES_SIZES_MAX];
        machine_unpack(&tree, cases[m].machine);
        size_t count = dry_pages_read_sizes(tree.root, -1, sizes);
        assert_int_equal(count, 2 + cases[m].pools);
        assert_int_equal(sizes[1].kind, DRY_PAGES_TRANSPARENT);
        assert_int_equal(sizes[0].kind, DRY_PAGES_BASE);
        assert_int_equal(sizes[0].page_bytes,
                         cases[m].huge_bytes == 512 * DRYI_MIB ? 65536 : 4096);
        assert_true(sizes[1].page_bytes == cases[m].huge_bytes);
        assert_int_equal(sizes[1].is_off, strcmp(cases[m].machine, "thp-never") == 0);
        if (cases[m].pools)
            assert_int_equal(sizes[2].total_count, cases[m].total);
        tree_finish(&tree);
    }
}

/* variable, finding -> verdict, on one-node for this purpose */
static void
variables_are_judged(void **state)
{
    (void)state;
    static const char thp[] = "THP_MEM_ALLOC_ENABLE", pinned[] = "PYTORCH_ALLOC_CONF";
    static const struct {
        const char *name, *value, *id;
        enum dry_doctor_purpose purpose;
        enum dry_doctor_verdict verdict;
    } cases[] = {
        {pinned,
         "pinned_use_cuda_host_register:True, pinned_num_register_threads: 8,"
         "expandable_segments:True",
         "pytorch-pinned", DRY_DOCTOR_TRAINING, DRY_DOCTOR_GOOD},
        {pinned, "pinned_use_cuda_host_register:true", "pytorch-pinned",
         DRY_DOCTOR_TRAINING, DRY_DOCTOR_WRONG},
        {pinned, "pinned_num_register_threads:256", "pytorch-pinned", DRY_DOCTOR_TRAINING,
         DRY_DOCTOR_WRONG},
        {pinned, "", "pytorch-pinned", DRY_DOCTOR_TRAINING, DRY_DOCTOR_COULD_BE_BETTER},
        {thp, "1", "pytorch-thp", DRY_DOCTOR_CPU, DRY_DOCTOR_GOOD},
        {thp, "1", "thp-enabled", DRY_DOCTOR_CPU, DRY_DOCTOR_GOOD},
        {thp, "0", "thp-enabled", DRY_DOCTOR_CPU, DRY_DOCTOR_COULD_BE_BETTER},
        {thp, "0", "thp-enabled", DRY_DOCTOR_TRAINING, DRY_DOCTOR_GOOD},
        {"OMP_NUM_THREADS", "2", "omp-threads", DRY_DOCTOR_CPU, DRY_DOCTOR_GOOD},
        {"OMP_NUM_THREADS", "3", "omp-threads", DRY_DOCTOR_CPU,
         DRY_DOCTOR_COULD_BE_BETTER},
        {"OMP_NUM_THREADS", "all", "omp-threads", DRY_DOCTOR_CPU, DRY_DOCTOR_WRONG},
        {"LD_PRELOAD", "a.so:/x/libtcmalloc.so.4", "malloc", DRY_DOCTOR_CPU,
         DRY_DOCTOR_GOOD},
        {"LD_PRELOAD", "/x/liba.so", "malloc", DRY_DOCTOR_CPU,
         DRY_DOCTOR_COULD_BE_BETTER},
        {"LD_PRELOAD", "/x/libjemalloc.so", "malloc-conf", DRY_DOCTOR_CPU,
         DRY_DOCTOR_COULD_BE_BETTER},
        {"MALLOC_CONF", "narenas:4", "malloc-conf", DRY_DOCTOR_CPU,
         DRY_DOCTOR_COULD_BE_BETTER},
        {"MALLOC_CONF", "narena:4", "malloc-conf", DRY_DOCTOR_CPU, DRY_DOCTOR_WRONG},
        {"GLIBC_TUNABLES", "glibc.malloc.hugetlb=1:glibc.rtld.nns=3", "glibc-tunables",
         DRY_DOCTOR_CPU, DRY_DOCTOR_GOOD},
        {"GLIBC_TUNABLES", "glibc.malloc.hugetlb", "glibc-tunables", DRY_DOCTOR_CPU,
         DRY_DOCTOR_WRONG},
        {"GLIBC_TUNABLES",
         "glibc.malloc.mmap_threshold=1000000000:glibc.malloc.trim_threshold=1000000000",
         "malloc", DRY_DOCTOR_CPU, DRY_DOCTOR_GOOD},
    };
    struct tree tree;
    machine_unpack(&tree, "one-node");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dry_doctor_variable variable = {cases[i].name, cases[i].value};
        struct dry_doctor_options options;
        dry_doctor_options_init(&options);
        options.root = tree.root;
        options.purpose = cases[i].purpose;
        options.variables = &variable;
        options.variable_count = 1;
        struct dry_doctor *doctor = examine(&options);
        struct dry_doctor_finding f = get(doctor, cases[i].id);
        if (f.verdict != cases[i].verdict)
            fail_msg("%s=%s: %s is %s", variable.name, variable.value, f.id,
                     dry_doctor_verdict_name(f.verdict));
        dry_doctor_destroy(doctor);
    }
    tree_finish(&tree);
}

static void
jemalloc_is_asked_for_its_release(void **state)
{
    (void)state;
    static const struct dry_doctor_variable variable = {"LD_PRELOAD",
                                                        "/lib/libjemalloc.so.2"};
    struct tree tree;
    struct dry_doctor_options options;
    machine_unpack(&tree, "one-node");
    dry_doctor_options_init(&options);
    options.root = tree.root;
    options.variables = &variable;
    options.variable_count = 1;
    struct dry_doctor *doctor = examine(&options);
    assert_int_equal(get(doctor, "jemalloc-version").verdict, DRY_DOCTOR_NOT_KNOWN);
    dry_doctor_destroy(doctor);
    char path[128];
    tree_add(&tree, "/lib/libjemalloc.so.2", "x");
    snprintf(path, sizeof path, "%s/lib/libjemalloc.so.2", tree.root);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    static const char library[] = "ELF\0"
                                  "5.3.0-0-g54eaed1d8b56b1aa528be3bdd1877e59c56fa90c";
    assert_int_equal(fwrite(library, sizeof library, 1, file), 1);
    assert_int_equal(fclose(file), 0);
    doctor = examine(&options);
    struct dry_doctor_finding f = get(doctor, "jemalloc-version");
    assert_int_equal(f.verdict, DRY_DOCTOR_COULD_BE_BETTER);
    assert_string_equal(f.is, "5.3.0");
    dry_doctor_destroy(doctor);
    tree_finish(&tree);
}

/* --- a process ---------------------------------------------------------------------------- */

#define PROCESS 4321

/* Its variables, a zero behind each. */
static void
write_environment(struct tree *tree, const char *bytes, size_t size)
{
    char path[128];
    tree_add(tree, "/proc/4321/environ", "");
    snprintf(path, sizeof path, "%s/proc/4321/environ", tree->root);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void
add_process(struct tree *tree)
{
    static const char variables[] =
        "OLD\0=\0LD_PRELOAD=/a/libtcmalloc.so.4 /a/libjemalloc.so.2\0"
        "MALLOC_CONF=narenas:1\0PYTORCH_ALLOC_CONF=pinned_foo:1\0LAST";
    write_environment(tree, variables, sizeof variables - 1);
    tree_add(tree, "/proc/4321/limits",
             "Max open files            17      17      files\n"
             "Max locked memory         65536   65536   bytes\n");
    tree_add(tree, "/proc/4321/maps",
             "7f00-7f01 r-xp 00000000 fd:00 12 /a/libjemalloc.so.2\n"
             "7f02-7f03 r-xp 00000000 fd:00 13 /opt/libtorch_cpu.so\n");
}

static struct dry_doctor *
examine_process(const struct tree *tree, const struct dry_doctor_variable *variable)
{
    struct dry_doctor_options options;
    dry_doctor_options_init(&options);
    options.root = tree->root;
    options.process = PROCESS;
    options.variables = variable;
    options.variable_count = variable ? 1 : 0;
    struct dry_doctor *doctor = examine(&options);
    check_doctor(doctor);
    return doctor;
}

static void
a_process_has_its_own_limits_variables_and_malloc(void **state)
{
    (void)state;
    struct tree tree;
    machine_unpack(&tree, "one-node");
    add_process(&tree);
    struct dry_doctor *doctor = examine_process(&tree, NULL);
    assert_string_equal(get(doctor, "malloc").is, "/a/libjemalloc.so.2");
    assert_non_null(strstr(get(doctor, "malloc-conf").is, "narenas:1"));
    assert_non_null(strstr(get(doctor, "open-files").is, "17"));
    assert_int_equal(get(doctor, "pytorch-pinned").verdict, DRY_DOCTOR_WRONG);
    struct dry_doctor_finding f = get(doctor, "torch-loaded");
    assert_int_equal(f.verdict, DRY_DOCTOR_COULD_BE_BETTER);
    assert_non_null(strstr(f.is, "/opt/libtorch_cpu.so is loaded"));
    dry_doctor_destroy(doctor);
    /* What is given comes behind what the process has. */
    static const struct dry_doctor_variable conf = {"MALLOC_CONF", "dirty_decay_ms:-1"};
    doctor = examine_process(&tree, &conf);
    assert_string_equal(get(doctor, "malloc-conf").is, "dirty_decay_ms:-1");
    dry_doctor_destroy(doctor);
    tree_finish(&tree);
}

/* Its group is looked for where groups are mounted for us, not for it. */
static void
a_process_has_its_own_group_and_shared_memory(void **state)
{
    (void)state;
    struct tree tree;
    machine_unpack(&tree, "thp-never");
    add_process(&tree);
    tree_add(&tree, "/proc/4321/cgroup", "0::/job\n");
    tree_add(&tree, "/proc/4321/mountinfo",
             "30 25 0:27 / /dev/shm rw - tmpfs shm rw,size=65536k\n"
             "31 23 0:28 /job /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    tree_add(&tree, "/sys/fs/cgroup/job/memory.max", "4294967296\n");
    tree_add(&tree, "/sys/fs/cgroup/job/memory.current", "1073741824\n");
    struct dry_doctor *doctor = examine_process(&tree, NULL);
    assert_non_null(strstr(get(doctor, "cgroup-memory").is, "3 GiB"));
    assert_int_equal(get(doctor, "shm").verdict, DRY_DOCTOR_WRONG);
    assert_non_null(strstr(get(doctor, "shm").is, "64 MiB"));
    dry_doctor_destroy(doctor);
    tree_finish(&tree);
}

static void
what_is_preloaded_but_not_in_memory_is_told(void **state)
{
    (void)state;
    struct tree tree;
    machine_unpack(&tree, "one-node");
    static const char variables[] = "LD_PRELOAD=/a/libjemalloc.so.2\0";
    write_environment(&tree, variables, sizeof variables - 1);
    struct dry_doctor *doctor = examine_process(&tree, NULL);
    assert_int_equal(get(doctor, "malloc").verdict, DRY_DOCTOR_NOT_KNOWN);
    assert_int_equal(get(doctor, "torch-loaded").verdict, DRY_DOCTOR_NOT_KNOWN);
    dry_doctor_destroy(doctor);
    tree_add(&tree, "/proc/4321/maps", "7f00-7f01 r-xp 00000000 fd:00 1 /bin/cat\n");
    doctor = examine_process(&tree, NULL);
    assert_int_equal(get(doctor, "malloc").verdict, DRY_DOCTOR_WRONG);
    assert_int_equal(get(doctor, "torch-loaded").verdict, DRY_DOCTOR_GOOD);
    dry_doctor_destroy(doctor);
    /* A program without any variables: that is known too. */
    write_environment(&tree, "", 0);
    doctor = examine_process(&tree, NULL);
    assert_non_null(strstr(get(doctor, "malloc").is, "glibc's"));
    dry_doctor_destroy(doctor);
    tree_finish(&tree);
}

/* --- needs -------------------------------------------------------------------------------- */

static struct dry_doctor *
examine_need(const struct tree *tree, uint64_t bytes, int32_t node, uint64_t page_bytes)
{
    struct dry_doctor_options options;
    dry_doctor_options_init(&options);
    options.root = tree->root;
    options.needs_bytes = &bytes;
    options.need_count = 1;
    options.node = node;
    options.page_bytes = page_bytes;
    return examine(&options);
}

static void
four_gib_are_2048_pages(void **state)
{
    (void)state;
    struct tree tree;
    struct dry_doctor_finding f = DRY_INIT(struct dry_doctor_finding);
    struct dry_doctor_change c = DRY_INIT(struct dry_doctor_change);
    struct dry_doctor_row row = DRY_INIT(struct dry_doctor_row);
    machine_unpack(&tree, "one-node");
    struct dry_doctor *doctor = examine_need(&tree, UINT64_C(1) << 32, -1, 0);
    dry_doctor_get_row(doctor, 0, &row);
    assert_true(row.is_recommended && row.needed_count == 2048 &&
                row.missing_count == 2048 && row.fits);
    f = get(doctor, "pool-need");
    assert_true(f.verdict == DRY_DOCTOR_WRONG);
    assert_int_equal(f.change_count, 1);
    dry_doctor_get_change(doctor, f.first_change, &c);
    assert_string_equal(c.path, "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
    assert_string_equal(c.old_value, "0");
    assert_string_equal(c.new_value, "2048");
    dry_doctor_destroy(doctor);
    tree_finish(&tree);
}

static void
budget_keeps_a_tenth_and_4_gib(void **state)
{
    (void)state;
    struct tree tree;
    struct dry_doctor_row row = DRY_INIT(struct dry_doctor_row);
    machine_unpack(&tree, "one-node");
    tree_add(&tree, "/proc/meminfo",
             "MemTotal: 33554432 kB\nMemFree: 1048576 kB\nMemAvailable: 16777216 kB\n"
             "Hugepagesize: 2048 kB\n");
    struct dry_doctor *doctor = examine_need(&tree, UINT64_C(2) << 30, -1, 0);
    dry_doctor_get_row(doctor, 0, &row);
    assert_true(row.budget_bytes == 12 * DRYI_GIB && row.fits);
    assert_true(row.cache_bytes == DRYI_GIB);
    dry_doctor_destroy(doctor);
    tree_add(&tree, "/proc/meminfo",
             "MemTotal: 104857600 kB\nMemFree: 1048576 kB\nMemAvailable: 16777216 kB\n");
    doctor = examine_need(&tree, UINT64_C(7) << 30, -1, 2 * DRYI_MIB);
    dry_doctor_get_row(doctor, 0, &row);
    assert_true(row.budget_bytes == 6 * DRYI_GIB && !row.fits);
    dry_doctor_destroy(doctor);
    tree_finish(&tree);
}

static void
control_groups_narrow_the_budget(void **state)
{
    (void)state;
    struct tree tree;
    struct dry_doctor_row row = DRY_INIT(struct dry_doctor_row);
    machine_unpack(&tree, "thp-never");
    tree_add(&tree, "/sys/fs/cgroup/memory.max", "4294967296\n");
    tree_add(&tree, "/sys/fs/cgroup/memory.current", "1073741824\n");
    struct dry_doctor *doctor = examine_need(&tree, UINT64_C(2) << 30, -1, 0);
    dry_doctor_get_row(doctor, 0, &row);
    assert_true(row.budget_bytes == 3 * DRYI_GIB && row.fits);
    assert_int_equal(get(doctor, "cgroup-memory").verdict, DRY_DOCTOR_GOOD);
    dry_doctor_destroy(doctor);
    doctor = examine_need(&tree, UINT64_C(4) << 30, -1, 0);
    dry_doctor_get_row(doctor, 0, &row);
    assert_true(!row.fits);
    struct dry_doctor_finding f = get(doctor, "pool-need");
    assert_true(f.verdict == DRY_DOCTOR_WRONG && f.change_count == 0);
    assert_int_equal(get(doctor, "cgroup-memory").verdict, DRY_DOCTOR_WRONG);
    dry_doctor_destroy(doctor);
    tree_finish(&tree);
}

static void
promised_pages_are_not_free(void **state)
{
    (void)state;
    struct tree tree;
    struct dry_doctor_row row = DRY_INIT(struct dry_doctor_row);
    machine_unpack(&tree, "two-nodes");
    tree_add(&tree, "/sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages", "100\n");
    struct dry_doctor *doctor = examine_need(&tree, UINT64_C(400) << 20, -1, 0);
    dry_doctor_get_row(doctor, 0, &row);
    assert_true(row.free_count == 156 && row.missing_count == 44);
    /* A page of 1 GiB is free, which would be enough. */
    struct dry_doctor_finding f = get(doctor, "pool-demote");
    assert_string_equal(f.should_be, "1 of them split into 512 each");
    dry_doctor_destroy(doctor);
    tree_finish(&tree);
}

static void
pieces_and_slow_nodes_are_told_before_a_pool_grows(void **state)
{
    (void)state;
    struct tree tree;
    machine_unpack(&tree, "thp-never"); /* has 1 * 512 and 300 * 1024 base pages */
    struct dry_doctor *doctor = examine_need(&tree, UINT64_C(601) << 21, -1, 0);
    assert_null(strstr(get(doctor, "pool-need").fix, "compact_memory"));
    dry_doctor_destroy(doctor);
    doctor = examine_need(&tree, UINT64_C(602) << 21, -1, 0);
    struct dry_doctor_finding f = get(doctor, "pool-need");
    assert_non_null(strstr(f.fix, "compact_memory"));
    assert_non_null(strstr(f.is, "free memory has 601 in one piece"));
    dry_doctor_destroy(doctor);
    tree_finish(&tree);
    machine_unpack(&tree, "cxl");
    doctor = examine_need(&tree, UINT64_C(2) << 30, -1, 0);
    assert_non_null(strstr(get(doctor, "pool-need").fix, "# node 2 has no CPUs"));
    dry_doctor_destroy(doctor);
    doctor = examine_need(&tree, UINT64_C(2) << 30, 1, 0);
    assert_null(strstr(get(doctor, "pool-need").fix, "#"));
    dry_doctor_destroy(doctor);
    tree_finish(&tree);
}

static void
the_kernels_build_is_looked_up(void **state)
{
    (void)state;
    struct tree tree;
    struct dry_doctor_options options;
    machine_unpack(&tree, "one-node");
    dry_doctor_options_init(&options);
    options.root = tree.root;
    struct dry_doctor *doctor = examine(&options);
    assert_int_equal(get(doctor, "init-on-alloc").verdict, DRY_DOCTOR_NOT_KNOWN);
    dry_doctor_destroy(doctor);
    tree_add(&tree, "/boot/config-6.18.44", "CONFIG_INIT_ON_ALLOC_DEFAULT_ON=y\n");
    doctor = examine(&options);
    assert_int_equal(get(doctor, "init-on-alloc").verdict, DRY_DOCTOR_COULD_BE_BETTER);
    dry_doctor_destroy(doctor);
    tree_add(&tree, "/boot/config-6.18.44",
             "# CONFIG_INIT_ON_ALLOC_DEFAULT_ON is not set\n");
    doctor = examine(&options);
    assert_int_equal(get(doctor, "init-on-alloc").verdict, DRY_DOCTOR_GOOD);
    dry_doctor_destroy(doctor);
    tree_finish(&tree);
}

static void
each_region_is_rounded_by_itself(void **state)
{
    (void)state;
    static const uint64_t needs[] = {1, 2 << 20, (2 << 20) + 1, 0};
    struct tree tree;
    struct dry_doctor_options options;
    struct dry_doctor_row row = DRY_INIT(struct dry_doctor_row);
    machine_unpack(&tree, "two-nodes");
    dry_doctor_options_init(&options);
    options.root = tree.root;
    options.needs_bytes = needs;
    options.need_count = 4;
    struct dry_doctor *doctor = examine(&options);
    dry_doctor_get_row(doctor, 0, &row);
    assert_int_equal(row.needed_count, 1 + 1 + 2);
    dry_doctor_destroy(doctor);
    tree_finish(&tree);
}

static void
slow_nodes_want_another_balancing(void **state)
{
    (void)state;
    static const char path[] = "/proc/sys/kernel/numa_balancing";
    struct tree tree;
    struct dry_doctor_options options;
    struct dry_doctor_change c = DRY_INIT(struct dry_doctor_change);
    machine_unpack(&tree, "cxl");
    dry_doctor_options_init(&options);
    options.root = tree.root;
    struct dry_doctor *doctor = examine(&options);
    struct dry_doctor_finding f = get(doctor, "numa-balancing");
    assert_int_equal(f.change_count, 1);
    dry_doctor_get_change(doctor, f.first_change, &c);
    assert_string_equal(c.path, path);
    assert_string_equal(c.new_value, "2");
    dry_doctor_destroy(doctor);
    tree_add(&tree, path, "2\n");
    doctor = examine(&options);
    assert_int_equal(get(doctor, "numa-balancing").verdict, DRY_DOCTOR_GOOD);
    dry_doctor_destroy(doctor);
    tree_finish(&tree);
}

static void
needs_of_a_node_name_the_node(void **state)
{
    (void)state;
    struct tree tree;
    struct dry_doctor_finding f = DRY_INIT(struct dry_doctor_finding);
    struct dry_doctor_change c = DRY_INIT(struct dry_doctor_change);
    machine_unpack(&tree, "gpu-r580");
    struct dry_doctor *doctor = examine_need(&tree, UINT64_C(100) << 30, 1, 0);
    f = get(doctor, "pool-need");
    assert_true(f.change_count == 1);
    dry_doctor_get_change(doctor, f.first_change, &c);
    assert_string_equal(
        c.path, "/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages");
    assert_string_equal(c.new_value, "72160");
    dry_doctor_destroy(doctor);
    doctor = examine_need(&tree, UINT64_C(10) << 30, 0, 0);
    f = get(doctor, "pool-need");
    assert_true(f.verdict == DRY_DOCTOR_GOOD);
    dry_doctor_destroy(doctor);
    doctor = examine_need(&tree, UINT64_C(10) << 30, 7, 0);
    f = get(doctor, "pool-need");
    assert_true(f.verdict == DRY_DOCTOR_WRONG);
    assert_int_equal(f.change_count, 0);
    dry_doctor_destroy(doctor);
    doctor = examine_need(&tree, UINT64_C(10) << 30, 0, DRYI_GIB);
    f = get(doctor, "pool-need");
    assert_true(f.needs_reboot && f.change_count == 0);
    dry_doctor_destroy(doctor);
    tree_finish(&tree);
}

static void
options_are_checked(void **state)
{
    (void)state;
    struct dry_doctor_options options;
    struct dry_doctor *doctor = NULL;
    struct dry_error err;
    uint64_t needs[2] = {UINT64_MAX, 1};
    dry_doctor_options_init(&options);
    options.purpose = (enum dry_doctor_purpose)9;
    assert_int_equal(dry_doctor_create(&options, &doctor, &err), DRY_ERR_ARGUMENT);
    dry_doctor_options_init(&options);
    options.node = -2;
    assert_int_equal(dry_doctor_create(&options, &doctor, &err), DRY_ERR_ARGUMENT);
    dry_doctor_options_init(&options);
    options.page_bytes = 3;
    assert_int_equal(dry_doctor_create(&options, &doctor, &err), DRY_ERR_ARGUMENT);
    dry_doctor_options_init(&options);
    options.need_count = 1;
    assert_int_equal(dry_doctor_create(&options, &doctor, &err), DRY_ERR_ARGUMENT);
    options.needs_bytes = needs;
    assert_int_equal(dry_doctor_create(&options, &doctor, &err), DRY_ERR_LIMIT);
    dry_doctor_options_init(&options);
    options.variable_count = 1;
    assert_int_equal(dry_doctor_create(&options, &doctor, &err), DRY_ERR_ARGUMENT);
    assert_null(doctor);
}

/* --- advice ------------------------------------------------------------------------------- */

#define LIMITS_HEAD "Limit  Soft Limit  Hard Limit  Units\n"

static void
limits_are_raised_for_who_may(void **state)
{
    (void)state;
    struct tree tree;
    struct dry_doctor_options options;
    machine_unpack(&tree, "one-node");
    dry_doctor_options_init(&options);
    options.root = tree.root;
    tree_add(&tree, "/proc/self/limits",
             LIMITS_HEAD "Max open files  1024  1048576  files\n"
                         "Max address space  4096  8192  bytes\n");
    struct dry_doctor *doctor = examine(&options);
    struct dry_doctor_finding f = get(doctor, "open-files");
    assert_string_equal(f.fix, "prlimit --pid $$ --nofile=65536:");
    assert_string_equal(f.undo, "prlimit --pid $$ --nofile=1024:");
    assert_non_null(strstr(f.persist, "\nroot - nofile 65536\n"));
    assert_false(f.needs_root);
    f = get(doctor, "address-space");
    assert_string_equal(f.fix, "prlimit --pid $$ --as=unlimited:unlimited");
    assert_string_equal(f.undo, "prlimit --pid $$ --as=4096:8192");
    assert_true(f.needs_root);
    dry_doctor_destroy(doctor);
    tree_finish(&tree);
}

static void
surplus_can_be_kept_and_given_back(void **state)
{
    (void)state;
    struct tree tree;
    struct dry_doctor_options options;
    machine_unpack(&tree, "two-nodes");
    dry_doctor_options_init(&options);
    options.root = tree.root;
    tree_add(&tree, "/sys/kernel/mm/hugepages/hugepages-2048kB/surplus_hugepages",
             "56\n");
    struct dry_doctor *doctor = examine(&options);
    struct dry_doctor_finding f = get(doctor, "pool-2048kb");
    assert_true(f.verdict == DRY_DOCTOR_COULD_BE_BETTER && f.needs_root);
    assert_non_null(strstr(f.fix, "echo 256 > "));
    assert_non_null(strstr(f.undo, "echo 200 > "));
    dry_doctor_destroy(doctor);
    tree_finish(&tree);
}

static void
free_pages_of_a_pool_are_not_of_the_groups_memory(void **state)
{
    (void)state;
    struct tree tree;
    machine_unpack(&tree, "thp-never");
    tree_add(&tree, "/sys/fs/cgroup/memory.max", "16777216\n");
    tree_add(&tree, "/sys/fs/cgroup/memory.current", "4194304\n");
    tree_add(&tree, "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "16\n");
    /* 16 pages of 2 MiB are free: all of it is served by them. */
    struct dry_doctor *doctor = examine_need(&tree, UINT64_C(32) << 20, -1, 0);
    assert_int_equal(get(doctor, "cgroup-memory").verdict, DRY_DOCTOR_GOOD);
    dry_doctor_destroy(doctor);
    doctor = examine_need(&tree, UINT64_C(48) << 20, -1, 0);
    struct dry_doctor_finding f = get(doctor, "cgroup-memory");
    assert_int_equal(f.verdict, DRY_DOCTOR_WRONG);
    assert_string_equal(f.should_be, "16 MiB more than is used");
    dry_doctor_destroy(doctor);
    tree_finish(&tree);
}

static void
groups_are_asked_for_the_pages_that_are_needed(void **state)
{
    (void)state;
    struct tree tree;
    machine_unpack(&tree, "two-nodes");
    tree_add(&tree, "/proc/self/cgroup", "0::/\n");
    tree_add(&tree, "/proc/self/mountinfo",
             "1 2 0:3 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    static const char *const names[] = {"2MB", "1GB"};
    for (size_t i = 0; i < 2; i++) {
        char path[96];
        snprintf(path, sizeof path, "/sys/fs/cgroup/hugetlb.%s.max", names[i]);
        tree_add(&tree, path, "0\n");
        snprintf(path, sizeof path, "/sys/fs/cgroup/hugetlb.%s.rsvd.max", names[i]);
        tree_add(&tree, path, "0\n");
    }
    struct dry_doctor *doctor = examine_need(&tree, DRYI_GIB, -1, DRYI_GIB);
    assert_int_equal(get(doctor, "cgroup-hugetlb-2048kb").verdict, DRY_DOCTOR_GOOD);
    struct dry_doctor_finding f = get(doctor, "cgroup-hugetlb-1048576kb");
    assert_int_equal(f.verdict, DRY_DOCTOR_WRONG);
    assert_non_null(strstr(f.fix, "hugepages-1Gi of the pod"));
    dry_doctor_destroy(doctor);
    tree_finish(&tree);
}

/* Groups of devices differ: of GPUs the GPU's counts. */
static void
a_gpus_own_translation_is_told(void **state)
{
    (void)state;
    struct tree tree;
    struct dry_doctor_options options;
    machine_unpack(&tree, "gpu-r580");
    dry_doctor_options_init(&options);
    options.root = tree.root;
    tree_add(&tree, "/sys/bus/pci/devices/0000:17:00.0/iommu_group/type", "identity\n");
    struct dry_doctor *doctor = examine(&options);
    assert_int_equal(get(doctor, "iommu").verdict, DRY_DOCTOR_GOOD);
    dry_doctor_destroy(doctor);
    tree_add(&tree, "/sys/bus/pci/devices/0000:17:00.0/iommu_group/type", "DMA-FQ\n");
    tree_add(&tree, "/sys/kernel/iommu_groups/0/type", "identity\n");
    doctor = examine(&options);
    assert_int_equal(get(doctor, "iommu").verdict, DRY_DOCTOR_COULD_BE_BETTER);
    dry_doctor_destroy(doctor);
    tree_finish(&tree);
}

/* What is set already stands in front of what a command adds. */
static void
variables_that_are_set_are_not_replaced(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value, *id, *fix;
    } cases[] = {
        {"X", "", "pytorch-pinned", "export PYTORCH_ALLOC_CONF=pinned_use"},
        {"PYTORCH_ALLOC_CONF", "", "pytorch-pinned", "export PYTORCH_ALLOC_CONF=pinned"},
        {"PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", "pytorch-pinned",
         "export PYTORCH_CUDA_ALLOC_CONF=\"$PYTORCH_CUDA_ALLOC_CONF,pinned_use"},
        {"X", "", "malloc", "export GLIBC_TUNABLES=glibc.malloc.mmap_threshold="},
        {"GLIBC_TUNABLES", "glibc.malloc.hugetlb=1", "malloc",
         "export GLIBC_TUNABLES=\"$GLIBC_TUNABLES:glibc.malloc.mmap_threshold="},
        {"MALLOC_CONF", "narenas:4", "malloc-conf",
         "# start the program with LD_PRELOAD="},
    };
    struct tree tree;
    machine_unpack(&tree, "one-node");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dry_doctor_variable variable = {cases[i].name, cases[i].value};
        struct dry_doctor_options options;
        dry_doctor_options_init(&options);
        options.root = tree.root;
        options.purpose =
            strstr(cases[i].id, "malloc") ? DRY_DOCTOR_CPU : DRY_DOCTOR_TRAINING;
        options.variables = &variable;
        options.variable_count = 1;
        struct dry_doctor *doctor = examine(&options);
        const char *fix = get(doctor, cases[i].id).fix;
        if (!fix || strncmp(fix, cases[i].fix, strlen(cases[i].fix)) != 0)
            fail_msg("%s=%s: %s", variable.name, variable.value, fix ? fix : "nothing");
        dry_doctor_destroy(doctor);
    }
    tree_finish(&tree);
}

/* --- what may be written ------------------------------------------------------------------ */

static void
only_known_files_may_be_written(void **state)
{
    (void)state;
    static const char thp[] = "/sys/kernel/mm/transparent_hugepage/enabled";
    static const char pool[] = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    assert_true(dry_doctor_may_write(thp, "madvise"));
    assert_true(dry_doctor_may_write(pool, "0"));
    assert_true(dry_doctor_may_write("/proc/sys/vm/swappiness", "60"));
    static const char *const bad[][2] = {
        {"/sys/kernel/mm/transparent_hugepage/enabled", "madvise\n"},
        {"/sys/kernel/mm/transparent_hugepage/enabled", ""},
        {"/sys/kernel/mm/transparent_hugepage/enabled", "5"},
        {"/sys/kernel/mm/transparent_hugepage/enabled/", "never"},
        {"/sys/kernel/mm/../mm/transparent_hugepage/enabled", "never"},
        {"/sys/kernel/mm/hugepages/hugepages-kB/nr_hugepages", "1"},
        {"/sys/kernel/mm/hugepages/hugepages-0x2kB/nr_hugepages", "1"},
        {"/sys/kernel/mm/hugepages/hugepages-02kB/nr_hugepages", "1"},
        {"/sys/kernel/mm/hugepages/hugepages-99999999999kB/nr_hugepages", "1"},
        {"/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "-1"},
        {"/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "01"},
        {"/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "1 "},
        {"/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "9999999999999999999"},
        {"/proc/sys/kernel/core_pattern", "0"},
        {"/proc/sys/vm/../kernel/panic", "1"},
        {"/etc/passwd", "0"},
        {"", "0"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (dry_doctor_may_write(bad[i][0], bad[i][1]))
            fail_msg("%s: %s", bad[i][0], bad[i][1]);
}

/* --- torture ------------------------------------------------------------------------------ */

static const uint64_t torture_needs[] = {UINT64_C(3) << 30};

static void
make_torture(struct dry_doctor_options *options, const struct tree *tree)
{
    dry_doctor_options_init(options);
    options->root = tree->root;
    options->needs_bytes = torture_needs;
    options->need_count = 1;
}

static void
every_refused_memory_is_told(void **state)
{
    (void)state;
    struct tree tree;
    machine_unpack(&tree, "two-nodes");
    add_process(&tree);
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_doctor_options options;
        struct dry_doctor *doctor = NULL;
        struct dry_error err;
        make_torture(&options, &tree);
        options.process = PROCESS;
        options.memory = &memory;
        enum dry_status status = dry_doctor_create(&options, &doctor, &err);
        bool failed = fm.failed;
        if (failed)
            assert_int_equal(status, DRY_ERR_MEMORY);
        else
            check_doctor(doctor);
        dry_doctor_destroy(doctor);
        failing_memory_finish(&fm);
        if (!failed)
            break;
        assert_null(doctor);
    }
    tree_finish(&tree);
}

/* The real kernel, whose n-th open, read or listing is refused. */
struct refusing {
    struct dryi_kernel kernel, real;
    size_t left;
    bool has_refused;
    int open_count;
};

static bool
refuses(struct refusing *r)
{
    if (r->left-- != 0)
        return false;
    r->has_refused = true;
    return true;
}

static int
refusing_open(void *self, const char *path)
{
    struct refusing *r = self;
    if (refuses(r))
        return -EACCES;
    int file = r->real.open(r->real.self, path);
    r->open_count += file >= 0;
    return file;
}

static ssize_t
refusing_read(void *self, int file, char *bytes, size_t capacity)
{
    struct refusing *r = self;
    return refuses(r) ? -EIO : r->real.read(r->real.self, file, bytes, capacity);
}

static void
refusing_close(void *self, int file)
{
    struct refusing *r = self;
    r->open_count--;
    r->real.close(r->real.self, file);
}

static int
refusing_list(void *self, const char *path, int (*entry)(void *to, const char *name),
              void *to)
{
    struct refusing *r = self;
    return refuses(r) ? -EACCES : r->real.list(r->real.self, path, entry, to);
}

static uint64_t
refusing_page_bytes(void *self)
{
    (void)self;
    return 4096;
}

static void
refusing_init(struct refusing *r, size_t left)
{
    *r = (struct refusing){.left = left};
    dryi_kernel_init(&r->real);
    r->kernel = r->real;
    r->kernel.open = refusing_open;
    r->kernel.read = refusing_read;
    r->kernel.close = refusing_close;
    r->kernel.list = refusing_list;
    r->kernel.page_bytes = refusing_page_bytes;
    r->kernel.self = r;
}

static void
every_refused_read_is_not_known(void **state)
{
    (void)state;
    struct tree tree;
    machine_unpack(&tree, "gpu-r580");
    for (size_t n = 0;; n++) {
        struct refusing r;
        struct dry_doctor_options options;
        struct dry_doctor *doctor = NULL;
        struct dry_error err;
        refusing_init(&r, n);
        make_torture(&options, &tree);
        assert_int_equal(dryi_doctor_create(&options, &r.kernel, &doctor, &err), DRY_OK);
        check_doctor(doctor);
        dry_doctor_destroy(doctor);
        assert_int_equal(r.open_count, 0);
        if (!r.has_refused)
            break;
    }
    tree_finish(&tree);
}

/* Its environment must be read; all else may be refused. */
static void
processes_that_may_not_be_looked_at_are_told(void **state)
{
    (void)state;
    struct tree tree;
    struct dry_doctor_options options;
    struct dry_doctor *doctor = NULL;
    struct dry_error err;
    machine_unpack(&tree, "one-node");
    make_torture(&options, &tree);
    options.process = PROCESS;
    assert_int_equal(dry_doctor_create(&options, &doctor, &err), DRY_ERR_SYSTEM);
    assert_int_equal(err.os_errno, ENOENT);
    options.process = -1;
    assert_int_equal(dry_doctor_create(&options, &doctor, &err), DRY_ERR_ARGUMENT);
    assert_null(doctor);
    options.process = PROCESS;
    add_process(&tree);
    bool has_refused = true;
    for (size_t n = 0; has_refused; n++) {
        struct refusing r;
        refusing_init(&r, n);
        enum dry_status status = dryi_doctor_create(&options, &r.kernel, &doctor, &err);
        /* The open, a read, and the read of its end. */
        assert_int_equal(status, n < 3 ? DRY_ERR_SYSTEM : DRY_OK);
        if (status == DRY_OK)
            check_doctor(doctor);
        else
            assert_int_equal(err.os_errno, n == 0 ? EACCES : EIO);
        dry_doctor_destroy(doctor);
        doctor = NULL;
        assert_int_equal(r.open_count, 0);
        has_refused = r.has_refused;
    }
    tree_finish(&tree);
}

static void
this_machine_is_examined(void **state)
{
    (void)state;
    struct dry_doctor_options options;
    struct dry_doctor_machine machine = DRY_INIT(struct dry_doctor_machine);
    dry_doctor_options_init(&options);
    struct dry_doctor *doctor = examine(&options);
    check_doctor(doctor);
    dry_doctor_get_machine(doctor, &machine);
    assert_true(machine.base_page_bytes >= 4096);
    dry_doctor_destroy(doctor);
    dry_doctor_destroy(NULL);
}

static void
names_are_stable(void **state)
{
    (void)state;
    assert_string_equal(dry_doctor_purpose_name(DRY_DOCTOR_CPU), "cpu");
    assert_string_equal(dry_doctor_topic_name(DRY_DOCTOR_PYTORCH), "pytorch");
    assert_string_equal(dry_doctor_verdict_name(DRY_DOCTOR_WRONG), "wrong");
    assert_null(dry_doctor_purpose_name((enum dry_doctor_purpose)3));
    assert_null(dry_doctor_topic_name((enum dry_doctor_topic)10));
    assert_null(dry_doctor_verdict_name((enum dry_doctor_verdict)4));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_read),
        cmocka_unit_test(free_pieces_are_summed_by_node),
        cmocka_unit_test(blocks_are_summed_by_node_and_kind),
        cmocka_unit_test(windows_of_memory_are_measured),
        cmocka_unit_test(mapped_files_are_found_by_name),
        cmocka_unit_test(mounts_have_sizes),
        cmocka_unit_test(versions_are_read),
        cmocka_unit_test(command_lines_ask_for_pools),
        cmocka_unit_test(settings_are_split),
        cmocka_unit_test(jemalloc_tells_its_release),
        cmocka_unit_test(sizes_are_written),
        cmocka_unit_test(machines_show_what_they_lack),
        cmocka_unit_test(findings_are_whole_on_all_machines),
        cmocka_unit_test(pages_know_all_machines),
        cmocka_unit_test(variables_are_judged),
        cmocka_unit_test(jemalloc_is_asked_for_its_release),
        cmocka_unit_test(a_process_has_its_own_limits_variables_and_malloc),
        cmocka_unit_test(a_process_has_its_own_group_and_shared_memory),
        cmocka_unit_test(what_is_preloaded_but_not_in_memory_is_told),
        cmocka_unit_test(four_gib_are_2048_pages),
        cmocka_unit_test(budget_keeps_a_tenth_and_4_gib),
        cmocka_unit_test(control_groups_narrow_the_budget),
        cmocka_unit_test(promised_pages_are_not_free),
        cmocka_unit_test(pieces_and_slow_nodes_are_told_before_a_pool_grows),
        cmocka_unit_test(the_kernels_build_is_looked_up),
        cmocka_unit_test(each_region_is_rounded_by_itself),
        cmocka_unit_test(slow_nodes_want_another_balancing),
        cmocka_unit_test(needs_of_a_node_name_the_node),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(limits_are_raised_for_who_may),
        cmocka_unit_test(surplus_can_be_kept_and_given_back),
        cmocka_unit_test(free_pages_of_a_pool_are_not_of_the_groups_memory),
        cmocka_unit_test(groups_are_asked_for_the_pages_that_are_needed),
        cmocka_unit_test(a_gpus_own_translation_is_told),
        cmocka_unit_test(variables_that_are_set_are_not_replaced),
        cmocka_unit_test(only_known_files_may_be_written),
        cmocka_unit_test(every_refused_memory_is_told),
        cmocka_unit_test(every_refused_read_is_not_known),
        cmocka_unit_test(processes_that_may_not_be_looked_at_are_told),
        cmocka_unit_test(this_machine_is_examined),
        cmocka_unit_test(names_are_stable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
