/* SPDX-License-Identifier: Apache-2.0 */

/* Nodes, CPUs and GPUs of machines that are folders of files. */
#include "support/cmocka.h"
#include "support/failing_memory.h"
#include "support/tree.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <drystone/topology.h>

#include "base/bits.h"
#include "host/facts/topology.h"
#include "host/facts/topology_text.h"

#define TEXT(s) (s), sizeof(s) - 1
#define NODE "/sys/devices/system/node"
#define CPU "/sys/devices/system/cpu"
#define PCI "/sys/bus/pci/devices"

static void
add_node(const struct tree *t, int node, const char *cpus, const char *distances)
{
    char path[96], text[160];
    snprintf(path, sizeof path, NODE "/node%d/cpulist", node);
    tree_add(t, path, cpus);
    snprintf(path, sizeof path, NODE "/node%d/distance", node);
    tree_add(t, path, distances);
    snprintf(path, sizeof path, NODE "/node%d/meminfo", node);
    snprintf(text, sizeof text, "Node %d MemTotal: %d kB\nNode %d MemFree: 7 kB\n", node,
             1024 * (node + 1), node);
    tree_add(t, path, text);
}

static void
add_gpu(const struct tree *t, const char *name, const char *ids[3], const char *node)
{
    static const char *const files[] = {"class", "vendor", "device"};
    char path[128];
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, PCI "/%s/%s", name, files[i]);
        tree_add(t, path, ids[i]);
    }
    snprintf(path, sizeof path, PCI "/%s/numa_node", name);
    tree_add(t, path, node);
}

static const char *nvidia[] = {"0x030200\n", "0x10de\n", "0x2330\n"};

/*
 * Two nodes of two cores with two threads each, and a node of memory alone; five GPUs, one
 * of which knows its CPUs but not its node; a display that is no GPU.
 */
static void
make_server(const struct tree *t)
{
    static const char *accelerator[] = {"0x120000\n", "0x1002\n", "0x74a1\n"};
    static const char *display[] = {"0x030000\n", "0x1a03\n", "0x2000\n"};
    static const char *audio[] = {"0x040300\n", "0x10de\n", "0x1aef\n"};
    char path[96], text[16];
    tree_add(t, NODE "/online", "0-1,4\n");
    tree_add(t, NODE "/has_memory", "0-1,4\n");
    add_node(t, 0, "0-1,4-5\n", "10 21 17\n");
    add_node(t, 1, "2-3,6-7\n", "21 10 28\n");
    add_node(t, 4, "\n", "17 28 10\n");
    tree_add(t, CPU "/online", "0-7\n");
    for (int i = 0; i < 8; i++) {
        snprintf(path, sizeof path, CPU "/cpu%d/topology/%s", i,
                 i == 3 ? "core_cpus_list" : "thread_siblings_list");
        snprintf(text, sizeof text, "%d,%d\n", i & 3, (i & 3) + 4);
        tree_add(t, path, text);
    }
    tree_add(t, "/proc/self/status",
             "Cpus_allowed_list:\t0,2-4,6-7\nMems_allowed_list:\t0-1\n");
    add_gpu(t, "0000:d1:00.0", nvidia, "1\n");
    add_gpu(t, "0000:17:00.0", nvidia, "0\n");
    add_gpu(t, "0001:01:00.0", accelerator, "-1\n");
    tree_add(t, PCI "/0001:01:00.0/local_cpulist", "2-3,6-7\n");
    add_gpu(t, "10000:01:00.0", nvidia, "0\n");
    add_gpu(t, "0000:d2:00.0", nvidia, "9\n");
    add_gpu(t, "0000:03:00.0", display, "0\n");
    add_gpu(t, "0000:17:00.1", audio, "0\n");
}

static struct dry_topology *
read_tree(const struct tree *t)
{
    struct dry_topology_options options;
    struct dry_topology *topology;
    struct dry_error err;
    dry_topology_options_init(&options);
    options.root = t->root;
    assert_int_equal(dry_topology_create(&options, &topology, &err), DRY_OK);
    return topology;
}

static void
nodes_have_memory_cpus_and_distances(void **state)
{
    (void)state;
    struct tree t;
    tree_init(&t);
    make_server(&t);
    struct dry_topology *topology = read_tree(&t);
    const struct dry_topology_view *v = dry_topology_get_view(topology);
    assert_true(v->knows_nodes);
    assert_int_equal(v->node_count, 3);
    const struct dry_topology_node *n = &v->nodes[1];
    assert_int_equal(n->node, 1);
    assert_int_equal(n->total_bytes, 2 * DRYI_MIB);
    assert_int_equal(n->free_bytes, 7 * DRYI_KIB);
    assert_int_equal(n->cpu_count, 4);
    assert_int_equal(n->allowed_cpu_count, 4);
    assert_int_equal(n->allowed_core_count, 2);
    assert_true(n->has_memory && n->is_allowed);
    /* CPUs 0 and 4 are one core. */
    assert_int_equal(v->nodes[0].allowed_cpu_count, 2);
    assert_int_equal(v->nodes[0].allowed_core_count, 1);
    n = dry_topology_find_node(topology, 4);
    assert_non_null(n);
    assert_int_equal(n->cpu_count, 0);
    assert_true(n->has_memory && !n->is_allowed);
    assert_null(dry_topology_find_node(topology, 2));
    assert_int_equal(dry_topology_get_distance(topology, 0, 4), 17);
    assert_int_equal(dry_topology_get_distance(topology, 1, 4), 28);
    assert_int_equal(dry_topology_get_distance(topology, 1, 2), 0);
    dry_topology_destroy(topology);
    tree_finish(&t);
}

static void
cpus_know_core_node_and_permission(void **state)
{
    (void)state;
    struct tree t;
    tree_init(&t);
    make_server(&t);
    struct dry_topology *topology = read_tree(&t);
    const struct dry_topology_view *v = dry_topology_get_view(topology);
    assert_int_equal(v->cpu_count, 8);
    assert_int_equal(v->allowed_cpu_count, 6);
    assert_int_equal(v->allowed_core_count, 3);
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(v->cpus[i].cpu, i);
        assert_int_equal(v->cpus[i].core, i == 3 ? 3 : i & 3);
        assert_int_equal(v->cpus[i].node, (i & 3) / 2);
        assert_int_equal(v->cpus[i].is_allowed, i != 1 && i != 5);
    }
    dry_topology_destroy(topology);
    tree_finish(&t);
}

static void
gpus_are_by_address_and_know_their_node(void **state)
{
    (void)state;
    struct tree t;
    tree_init(&t);
    make_server(&t);
    struct dry_topology *topology = read_tree(&t);
    const struct dry_topology_view *v = dry_topology_get_view(topology);
    assert_int_equal(v->gpu_count, 5);
    assert_string_equal(v->gpus[0].address, "0000:17:00.0");
    assert_string_equal(v->gpus[1].address, "0000:d1:00.0");
    assert_string_equal(v->gpus[2].address, "0000:d2:00.0");
    assert_string_equal(v->gpus[3].address, "0001:01:00.0");
    assert_string_equal(v->gpus[4].address, "10000:01:00.0");
    assert_int_equal(v->gpus[0].node, 0);
    assert_int_equal(v->gpus[1].node, 1);
    assert_int_equal(v->gpus[2].node, DRY_TOPOLOGY_NO_NODE); /* there is no node 9 */
    assert_int_equal(v->gpus[3].node, 1);                    /* by its CPUs */
    assert_int_equal(v->gpus[0].device, 0x2330);
    assert_int_equal(v->gpus[3].vendor, DRY_TOPOLOGY_AMD);
    assert_true(v->gpus[3].knows_cpus && !v->gpus[0].knows_cpus);
    dry_topology_destroy(topology);
    tree_finish(&t);
}

static void
of_too_many_gpus_the_last_are_left_out(void **state)
{
    (void)state;
    struct tree t;
    tree_init(&t);
    char name[32];
    for (int i = 0; i < DRY_TOPOLOGY_GPUS_MAX + 8; i++) {
        snprintf(name, sizeof name, "0000:%02x:00.0", 0xff - i);
        add_gpu(&t, name, nvidia, "0\n");
    }
    struct dry_topology *topology = read_tree(&t);
    const struct dry_topology_view *v = dry_topology_get_view(topology);
    assert_int_equal(v->gpu_count, DRY_TOPOLOGY_GPUS_MAX);
    for (size_t i = 0; i < v->gpu_count; i++) {
        snprintf(name, sizeof name, "0000:%02zx:00.0",
                 0x100 - (DRY_TOPOLOGY_GPUS_MAX + 8) + i);
        assert_string_equal(v->gpus[i].address, name);
    }
    dry_topology_destroy(topology);
    tree_finish(&t);
}

static void
nothing_is_known_of_an_empty_folder(void **state)
{
    (void)state;
    struct tree t;
    tree_init(&t);
    struct dry_topology *topology = read_tree(&t);
    const struct dry_topology_view *v = dry_topology_get_view(topology);
    assert_false(v->knows_nodes);
    assert_int_equal(v->node_count, 1);
    assert_true(v->nodes[0].has_memory && v->nodes[0].is_allowed);
    assert_true(v->nodes[0].total_bytes == DRY_TOPOLOGY_NOT_KNOWN);
    assert_int_equal(v->cpu_count + v->gpu_count + v->cpu_limit, 0);
    assert_int_equal(dry_topology_get_distance(topology, 0, 0), 0);
    dry_topology_destroy(topology);
    tree_finish(&t);
}

static void
without_nodes_all_cpus_are_of_node_0(void **state)
{
    (void)state;
    struct tree t;
    tree_init(&t);
    tree_add(&t, "/proc/meminfo", "MemTotal: 4 kB\nMemFree: 1 kB\n");
    tree_add(&t, "/proc/self/status", "Cpus_allowed_list:\t3,5\n");
    struct dry_topology *topology = read_tree(&t);
    const struct dry_topology_view *v = dry_topology_get_view(topology);
    assert_int_equal(v->nodes[0].total_bytes, 4 * DRYI_KIB);
    assert_int_equal(v->nodes[0].allowed_core_count, 2);
    assert_int_equal(v->cpus[1].cpu, 5);
    assert_int_equal(v->cpus[1].node, 0);
    dry_topology_destroy(topology);
    tree_finish(&t);
}

#define GROUP "/sys/fs/cgroup"

static void
the_least_cpu_limit_counts(void **state)
{
    (void)state;
    struct tree t;
    tree_init(&t);
    tree_add(&t, "/proc/self/cgroup", "0::/a/b\n");
    tree_add(&t, "/proc/self/mountinfo",
             "30 23 0:26 / " GROUP " rw - cgroup2 cgroup2 rw\n");
    tree_add(&t, GROUP "/a/b/cpu.max", "max 100000\n");
    tree_add(&t, GROUP "/a/cpu.max", "250000 100000\n");
    tree_add(&t, GROUP "/cpu.max", "900000 100000\n");
    struct dry_topology *topology = read_tree(&t);
    assert_int_equal(dry_topology_get_view(topology)->cpu_limit, 2500);
    dry_topology_destroy(topology);

    tree_add(&t, "/proc/self/cgroup", "3:cpu,cpuacct:/a\n");
    tree_add(&t, "/proc/self/mountinfo",
             "30 23 0:26 / " GROUP "/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
    tree_add(&t, GROUP "/cpu/a/cpu.cfs_quota_us", "50000\n");
    tree_add(&t, GROUP "/cpu/a/cpu.cfs_period_us", "100000\n");
    tree_add(&t, GROUP "/cpu/cpu.cfs_quota_us", "-1\n");
    tree_add(&t, GROUP "/cpu/cpu.cfs_period_us", "100000\n");
    topology = read_tree(&t);
    assert_int_equal(dry_topology_get_view(topology)->cpu_limit, 500);
    dry_topology_destroy(topology);
    tree_finish(&t);
}

static void
forms_are_whole(void **state)
{
    (void)state;
    uint8_t d[3] = {1, 2, 3};
    uint64_t n = 5;
    uint32_t hex = 5;
    int32_t node = 5;
    assert_false(dryi_topology_distances(TEXT("10 20\n"), d, 3));
    assert_false(dryi_topology_distances(TEXT("10 20 30 40\n"), d, 3));
    assert_false(dryi_topology_distances(TEXT("10 20 256\n"), d, 3));
    assert_false(dryi_topology_distances(TEXT("10 0 30\n"), d, 3));
    assert_false(dryi_topology_distances(TEXT("10 max 30\n"), d, 3));
    assert_true(d[0] == 1 && d[1] == 2 && d[2] == 3);
    assert_true(dryi_topology_distances(TEXT("10 20 255\n"), d, 3) && d[2] == 255);
    assert_false(dryi_topology_hex(TEXT("030200\n"), &hex));
    assert_false(dryi_topology_hex(TEXT("0x\n"), &hex));
    assert_false(dryi_topology_hex(TEXT("0x100000000\n"), &hex));
    assert_true(hex == 5 && dryi_topology_hex(TEXT("0x10de\n"), &hex) && hex == 0x10de);
    assert_false(dryi_topology_node(TEXT("-2\n"), &node));
    assert_false(dryi_topology_node(TEXT("max\n"), &node));
    assert_true(node == 5 && dryi_topology_node(TEXT("-1\n"), &node) && node == -1);
    static const char *const names[] = {
        "",  "0000:17:00",    "0000:17:20.0", "0000:17:00.8", "000:17:00.0",
        ".", "0000:17:00.0a", "0000-17:00.0", "0000:G7:00.0", "00000:17:00.0"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_false(dryi_topology_pci(names[i], strlen(names[i]), &n));
    assert_false(dryi_topology_cpu_max(TEXT("0 100000\n"), &n));
    assert_false(dryi_topology_cpu_max(TEXT("100000\n"), &n));
    assert_false(dryi_topology_cpu_max(TEXT("1 0\n"), &n));
    assert_false(dryi_topology_cpu_max(TEXT("1 max\n"), &n));
    assert_int_equal(n, 5);
    assert_true(dryi_topology_cpu_max(TEXT("1 1000000\n"), &n) && n == 1);
}

static void
every_request_for_memory_may_fail(void **state)
{
    (void)state;
    struct tree t;
    tree_init(&t);
    make_server(&t);
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_topology_options options;
        struct dry_topology *topology = NULL;
        struct dry_error err;
        dry_topology_options_init(&options);
        options.root = t.root;
        options.memory = &memory;
        enum dry_status status = dry_topology_create(&options, &topology, &err);
        dry_topology_destroy(topology);
        failing_memory_finish(&fm);
        if (!fm.failed)
            break;
        assert_int_equal(status, DRY_ERR_MEMORY);
        assert_null(topology);
    }
    tree_finish(&t);
}

/* The kernel, each of whose answers about files is refused in turn. */
struct refusing {
    struct dryi_kernel kernel, real;
    size_t left;
    bool has_refused;
    int open_count;
};

static bool
refuses(struct refusing *r)
{
    if (r->left-- > 0)
        return false;
    r->has_refused = true;
    r->left = SIZE_MAX;
    return true;
}

static int
refusing_open(void *self, const char *path)
{
    struct refusing *r = self;
    int file = refuses(r) ? -EACCES : r->real.open(r->real.self, path);
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

static void
what_is_refused_is_not_known(void **state)
{
    (void)state;
    struct tree t;
    tree_init(&t);
    make_server(&t);
    for (size_t n = 0;; n++) {
        struct refusing r = {.left = n};
        dryi_kernel_init(&r.real);
        r.kernel = r.real;
        r.kernel.open = refusing_open;
        r.kernel.read = refusing_read;
        r.kernel.close = refusing_close;
        r.kernel.list = refusing_list;
        r.kernel.self = &r;
        const struct dryi_facts facts = {.kernel = &r.kernel, .root = t.root};
        struct dry_topology *topology;
        struct dry_error err;
        assert_int_equal(dryi_topology_read(&facts, NULL, &topology, &err), DRY_OK);
        const struct dry_topology_view *v = dry_topology_get_view(topology);
        assert_true(v->node_count == 3 && v->cpu_count <= 8 && v->gpu_count <= 5);
        assert_int_equal(r.open_count, 0);
        dry_topology_destroy(topology);
        if (!r.has_refused)
            break;
    }
    tree_finish(&t);
}

static void
this_machine_has_the_cpu_we_run_on(void **state)
{
    (void)state;
    struct dry_topology *topology;
    struct dry_error err;
    assert_int_equal(dry_topology_create(NULL, &topology, &err), DRY_OK);
    const struct dry_topology_view *v = dry_topology_get_view(topology);
    assert_true(v->node_count > 0 && v->cpu_count > 0);
    assert_true(v->allowed_cpu_count > 0 && v->allowed_core_count > 0);
    assert_true(v->allowed_core_count <= v->allowed_cpu_count);
    dry_topology_destroy(topology);
    dry_topology_destroy(NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_have_memory_cpus_and_distances),
        cmocka_unit_test(cpus_know_core_node_and_permission),
        cmocka_unit_test(gpus_are_by_address_and_know_their_node),
        cmocka_unit_test(of_too_many_gpus_the_last_are_left_out),
        cmocka_unit_test(nothing_is_known_of_an_empty_folder),
        cmocka_unit_test(without_nodes_all_cpus_are_of_node_0),
        cmocka_unit_test(the_least_cpu_limit_counts),
        cmocka_unit_test(forms_are_whole),
        cmocka_unit_test(every_request_for_memory_may_fail),
        cmocka_unit_test(what_is_refused_is_not_known),
        cmocka_unit_test(this_machine_has_the_cpu_we_run_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
