/* SPDX-License-Identifier: Apache-2.0 */

/* Findings on NUMA: the nodes, those this process may use, and the kernel's page
   migration. */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "host/doctor/doctor_inside.h"
#include "host/facts/fact_text.h"
#include "host/facts/facts_read.h"

#define NODES "/sys/devices/system/node"
#define BALANCING "/proc/sys/kernel/numa_balancing"
#define RECLAIM "/proc/sys/vm/zone_reclaim_mode"
/* Limit of the nodes named in a text for people; further nodes are counted. */
#define NAMED_MAX 16
#define WAYS_MAX 64

static const struct dryi_check check_nodes = {
    DRY_DOCTOR_NUMA, "numa-nodes", "nodes of memory",
    "memory of another node is slower, and a copy to a GPU from there takes up to three "
    "times as long"};
static const struct dryi_check check_no_cpus = {
    DRY_DOCTOR_NUMA, "numa-no-cpus", "nodes without CPUs",
    "memory behind CXL or of a GPU is slower and gets pages when the others are full; "
    "page-locked memory that ends up there stays there"};
static const struct dryi_check check_allowed = {
    DRY_DOCTOR_NUMA, "numa-allowed", "nodes and CPUs this process may use",
    "a group that may run beside one node and take memory from another only is slow "
    "whatever the program does"};
static const struct dryi_check check_balancing = {
    DRY_DOCTOR_NUMA, "numa-balancing", "pages that follow their threads",
    "the kernel takes pages away for a moment to see who uses them; page-locked ones "
    "cannot move, so that the faults are for nothing"};
static const struct dryi_check check_tiering = {
    DRY_DOCTOR_NUMA, "numa-balancing", "pages that follow their threads",
    "with memory of two speeds, 2 keeps the pages in use in the fast one; 1 only looks "
    "for the nearer node"};
static const struct dryi_check check_reclaim = {
    DRY_DOCTOR_NUMA, "zone-reclaim", "reclaim before another node is asked",
    "reading data fills the node with copies of files; with this on, whoever wants "
    "memory there waits for them to be dropped while other nodes are free"};
static const struct dryi_check check_misses = {
    DRY_DOCTOR_NUMA, "numa-misses", "pages that came from another node, since boot",
    "a node was full, or too much in pieces, when a program wanted its memory"};
static const struct dryi_check check_policy = {
    DRY_DOCTOR_NUMA, "mempolicy", "calls that place memory",
    "the default seccomp profile of container runtimes forbids mbind and set_mempolicy "
    "to who lacks CAP_SYS_NICE; the kernel itself does not. Without them only the CPU "
    "that touches first decides where memory lies"};

static bool
has_many_nodes(const struct dry_doctor *d)
{
    return d->machine.node_count > 1;
}

/* Report the largest distance, among the first WAYS_MAX nodes, which exceeds the sockets
   of any machine. */
static void
say_distances(struct dry_doctor *d)
{
    size_t count = d->view->node_count < WAYS_MAX ? d->view->node_count : WAYS_MAX;
    uint32_t farthest = 0;
    int32_t from = 0, to = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            int32_t a = d->view->nodes[i].node, b = d->view->nodes[j].node;
            uint32_t distance = dry_topology_get_distance(d->topology, a, b);
            if (i != j && distance > farthest)
                farthest = distance, from = a, to = b;
        }
    }
    if (farthest)
        dryi_doctor_is(d, "the longest way is from %d to %d, %u (10: the node itself)",
                       (int)from, (int)to, farthest);
}

static void
check_all_nodes(struct dry_doctor *d)
{
    char text[DRYI_BYTES_TEXT];
    dryi_doctor_begin(d, &check_nodes);
    if (!d->view->knows_nodes) {
        dryi_doctor_judge(d, DRY_DOCTOR_NOT_KNOWN);
        dryi_doctor_is(d, NODES " cannot be read");
    }
    for (size_t i = 0; d->view->knows_nodes && i < d->view->node_count; i++) {
        const struct dry_topology_node *n = &d->view->nodes[i];
        if (i < NAMED_MAX && n->total_bytes != DRY_TOPOLOGY_NOT_KNOWN)
            dryi_doctor_is(d, "node %d: %s, %u CPUs", (int)n->node,
                           dryi_doctor_bytes(n->total_bytes, text), n->cpu_count);
    }
    if (has_many_nodes(d))
        say_distances(d);
    dryi_doctor_end(d);
}

static size_t
count_slow_nodes(const struct dry_doctor *d)
{
    size_t count = 0;
    for (size_t i = 0; i < d->view->node_count; i++)
        count += d->view->nodes[i].has_memory && d->view->nodes[i].cpu_count == 0;
    return d->view->knows_nodes ? count : 0;
}

static void
check_slow_nodes(struct dry_doctor *d)
{
    char text[DRYI_BYTES_TEXT];
    size_t named = 0;
    if (count_slow_nodes(d) == 0)
        return;
    dryi_doctor_begin(d, &check_no_cpus);
    for (size_t i = 0; i < d->view->node_count; i++) {
        const struct dry_topology_node *n = &d->view->nodes[i];
        if (!n->has_memory || n->cpu_count || named++ == NAMED_MAX)
            continue;
        dryi_doctor_is(d, "node %d has %s", (int)n->node,
                       n->total_bytes == DRY_TOPOLOGY_NOT_KNOWN
                           ? "memory"
                           : dryi_doctor_bytes(n->total_bytes, text));
        if (n->is_allowed)
            dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
    }
    if (!dryi_doctor_is_good(d))
        dryi_doctor_should_be(d, "programs bound to nodes with CPUs");
    dryi_doctor_end(d);
}

static void
check_permission(struct dry_doctor *d)
{
    const struct dry_topology_view *v = d->view;
    if (!v->knows_nodes)
        return;
    size_t nodes = 0, near = 0;
    for (size_t i = 0; i < v->node_count; i++) {
        nodes += v->nodes[i].is_allowed;
        near += v->nodes[i].is_allowed && v->nodes[i].allowed_cpu_count;
    }
    dryi_doctor_begin(d, &check_allowed);
    dryi_doctor_is(d, "%zu of %zu node%s, %u of %zu CPU%s", nodes, v->node_count,
                   v->node_count == 1 ? "" : "s", v->allowed_cpu_count, v->cpu_count,
                   v->cpu_count == 1 ? "" : "s");
    if (v->cpu_limit)
        dryi_doctor_is(d, "the time of %llu.%llu CPUs",
                       (unsigned long long)(v->cpu_limit / 1000),
                       (unsigned long long)(v->cpu_limit % 1000 / 100));
    if (nodes && v->allowed_cpu_count && near == 0) {
        dryi_doctor_judge(d, DRY_DOCTOR_WRONG);
        dryi_doctor_should_be(d, "CPUs beside the memory");
        dryi_doctor_fix(d, "# set cpuset.cpus and cpuset.mems of the group to one node");
    }
    dryi_doctor_end(d);
}

static void
check_following(struct dry_doctor *d)
{
    uint64_t now;
    if (!has_many_nodes(d) || !dryi_facts_read_number(&d->facts, &now, BALANCING))
        return;
    bool is_tiered = count_slow_nodes(d) > 0;
    if (is_tiered && dryi_doctor_kernel_is_before(d, 5, 18))
        return; /* mode 2 exists since Linux 5.18 */
    uint64_t wanted = is_tiered ? 2 : 0;
    dryi_doctor_begin(d, is_tiered ? &check_tiering : &check_balancing);
    dryi_doctor_is(d, "%llu", (unsigned long long)now);
    if (is_tiered ? now == 1 : now != 0) {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "%llu%s", (unsigned long long)wanted,
                              is_tiered ? "" : ", for programs that are bound to nodes");
        dryi_doctor_write_number(d, BALANCING, now, wanted);
    }
    dryi_doctor_end(d);
}

static void
check_zone_reclaim(struct dry_doctor *d)
{
    uint64_t now;
    if (!has_many_nodes(d) || !dryi_facts_read_number(&d->facts, &now, RECLAIM))
        return;
    dryi_doctor_begin(d, &check_reclaim);
    dryi_doctor_is(d, "%llu", (unsigned long long)now);
    if (now) {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "0");
        dryi_doctor_write_number(d, RECLAIM, now, 0);
    }
    dryi_doctor_end(d);
}

static void
judge_misses(struct dry_doctor *d, int32_t node, bool is_named)
{
    struct dryi_fact_file file;
    uint64_t hits, misses;
    if (!dryi_facts_read(&d->facts, &file, NODES "/node%d/numastat", (int)node) ||
        !dryi_fact_field(file.text, file.length, "numa_hit", &hits) ||
        !dryi_fact_field(file.text, file.length, "numa_foreign", &misses))
        return;
    uint64_t sum = dryi_add_saturating(hits, misses);
    uint64_t percent = dryi_doctor_percent(misses, sum);
    bool is_bad = percent >= 5 && misses >= 100000;
    if (is_named || (is_bad && dryi_doctor_is_good(d)))
        dryi_doctor_is(d, "%llu %% of node %d's", (unsigned long long)percent, (int)node);
    if (is_bad)
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
}

static void
check_foreign_pages(struct dry_doctor *d)
{
    if (!has_many_nodes(d))
        return;
    dryi_doctor_begin(d, &check_misses);
    size_t named = 0;
    for (int32_t node = 0; node < DRY_PAGES_NODES_MAX; node++)
        if (dryi_nodes_have(&d->nodes, node))
            judge_misses(d, node, named++ < NAMED_MAX);
    if (!dryi_doctor_is_good(d)) {
        dryi_doctor_should_be(d, "next to none");
        dryi_doctor_needs_root(d);
        dryi_doctor_fix(d, "# before programs start:\n"
                           "sync; echo 1 > /proc/sys/vm/drop_caches");
    }
    dryi_doctor_end(d);
}

/* Test whether mbind() is permitted, with a page that is unmapped at once. */
static void
check_placement(struct dry_doctor *d)
{
    const struct dryi_kernel *k = &d->kernel;
    uint64_t address, none = 0;
    struct dryi_kernel_map what = {.bytes = d->machine.base_page_bytes,
                                   .protection = PROT_READ | PROT_WRITE,
                                   .flags = MAP_PRIVATE | MAP_ANONYMOUS};
    if (!d->is_here || k->map(k->self, &what, &address) != 0)
        return;
    what.address = address;
    int result = k->bind(k->self, &what, DRYI_BIND_DEFAULT, &none, 0);
    k->unmap(k->self, address, what.bytes);
    dryi_doctor_begin(d, &check_policy);
    if (result == 0) {
        dryi_doctor_is(d, "allowed");
    } else if (result == -ENOSYS) {
        dryi_doctor_is(d, "the kernel has none: it was built without NUMA");
    } else {
        dryi_doctor_is(d, "forbidden (errno %d)", -result);
        dryi_doctor_judge(d, has_many_nodes(d) ? DRY_DOCTOR_WRONG
                                               : DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "allowed");
        dryi_doctor_fix(d, "# of a container: docker run --cap-add SYS_NICE ..., or a "
                           "seccomp profile that allows mbind, set_mempolicy, "
                           "get_mempolicy and move_pages");
    }
    dryi_doctor_end(d);
}

void
dryi_doctor_check_numa(struct dry_doctor *d)
{
    check_all_nodes(d);
    check_slow_nodes(d);
    check_permission(d);
    check_following(d);
    check_zone_reclaim(d);
    check_foreign_pages(d);
    check_placement(d);
}
