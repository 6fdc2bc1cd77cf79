/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The topology of a machine: arrays of nodes and CPUs sorted by number, GPUs sorted by
 * PCI address, and a table of distances between nodes. Missing files leave their fields
 * unknown. Reading costs a few small files for each node, CPU and GPU.
 */
#include "host/facts/topology.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "host/facts/fact_text.h"
#include "host/facts/facts_read.h"
#include "host/facts/topology_gpu.h"
#include "host/facts/topology_text.h"

#define NODES "/sys/devices/system/node"
#define CPUS "/sys/devices/system/cpu"

_Static_assert(DRY_TOPOLOGY_NODES_MAX == DRY_PAGES_NODES_MAX, "one set for both");
_Static_assert(DRY_TOPOLOGY_CPUS_MAX == DRYI_KERNEL_CPUS_MAX, "one set for both");

struct dry_topology {
    struct dry_memory memory;
    struct dry_topology_view view;
    struct dry_topology_node *nodes;
    struct dry_topology_cpu *cpus;
    struct dry_topology_gpu *gpus;
    uint8_t *distances; /* [from * node_count + to], by index; 0: not known */
};

static bool
cpus_have(const struct dryi_cpus *cpus, uint32_t cpu)
{
    return cpus->words[cpu / 64] >> cpu % 64 & 1;
}

static size_t
count_bits(const uint64_t *words, size_t word_count)
{
    size_t count = 0;
    for (size_t i = 0; i < word_count; i++)
        count += (size_t)__builtin_popcountll(words[i]);
    return count;
}

/* --- nodes -------------------------------------------------------------------------------- */

static void
read_memory(const struct dryi_facts *facts, bool knows_nodes,
            struct dry_topology_node *node)
{
    struct dryi_fact_file file;
    node->total_bytes = node->free_bytes = DRY_TOPOLOGY_NOT_KNOWN;
    bool is_read = knows_nodes ? dryi_facts_read(facts, &file, NODES "/node%d/meminfo",
                                                 (int)node->node)
                               : dryi_facts_read(facts, &file, "/proc/meminfo");
    if (!is_read)
        return;
    (void)dryi_fact_keyed(file.text, file.length, "MemTotal", &node->total_bytes);
    (void)dryi_fact_keyed(file.text, file.length, "MemFree", &node->free_bytes);
}

/* Read distances in the kernel's order: online nodes by number. */
static void
read_distances(const struct dryi_facts *facts, struct dry_topology *t)
{
    size_t count = t->view.node_count;
    for (size_t i = 0; i < count; i++) {
        struct dryi_fact_file file;
        if (dryi_facts_read(facts, &file, NODES "/node%d/distance",
                            (int)t->nodes[i].node))
            (void)dryi_topology_distances(file.text, file.length,
                                          &t->distances[i * count], count);
    }
}

/* List the online nodes, with or without memory. False: not known. */
static bool
list_nodes(const struct dryi_facts *facts, const struct dry_pages_nodes *with_memory,
           struct dry_pages_nodes *online)
{
    struct dryi_fact_file file;
    if (!dryi_facts_read(facts, &file, NODES "/online") ||
        !dryi_fact_list(file.text, file.length, online->words, DRY_PAGES_NODES_MAX))
        *online = *with_memory;
    return !dryi_nodes_are_none(online);
}

static enum dry_status
read_nodes(const struct dryi_facts *facts, struct dry_topology *t, struct dry_error *err)
{
    struct dry_pages_nodes existing = {{0}}, allowed = {{0}}, online = {{0}};
    bool knows_memory = dryi_facts_nodes(facts, &existing, &allowed);
    bool knows = list_nodes(facts, &existing, &online);
    if (!knows)
        dryi_nodes_add(&online, 0);
    size_t count = count_bits(online.words, DRY_PAGES_NODES_MAX / 64);
    t->nodes = dryi_memory_zalloc(&t->memory, count, sizeof *t->nodes);
    if (!t->nodes)
        return dryi_fail_memory(err, "nodes");
    t->view.node_count = count;
    t->view.knows_nodes = knows;
    t->distances = dryi_memory_zalloc(&t->memory, count * count, sizeof *t->distances);
    if (!t->distances)
        return dryi_fail_memory(err, "distances");
    struct dry_topology_node *n = t->nodes;
    for (int32_t i = 0; i < DRY_PAGES_NODES_MAX; i++) {
        if (!dryi_nodes_have(&online, i))
            continue;
        n->node = i;
        read_memory(facts, knows, n);
        n->has_memory =
            knows_memory ? dryi_nodes_have(&existing, i) : n->total_bytes != 0;
        n->is_allowed = n->has_memory && (!knows_memory || dryi_nodes_have(&allowed, i));
        n++;
    }
    if (knows)
        read_distances(facts, t);
    return DRY_OK;
}

/* --- CPUs --------------------------------------------------------------------------------- */

struct cpu_sets {
    struct dryi_cpus online, allowed;
};

static bool
read_allowed(const struct dryi_facts *facts, struct dryi_cpus *allowed)
{
    const struct dryi_kernel *k = facts->kernel;
    if (*facts->root == '\0')
        return k->get_cpus(k->self, allowed) == 0;
    return dryi_facts_status_list(facts, "Cpus_allowed_list:", allowed->words,
                                  DRYI_KERNEL_CPUS_MAX);
}

static void
read_sets(const struct dryi_facts *facts, struct cpu_sets *sets)
{
    struct dryi_fact_file file;
    bool knows_online =
        dryi_facts_read(facts, &file, CPUS "/online") &&
        dryi_fact_list(file.text, file.length, sets->online.words, DRYI_KERNEL_CPUS_MAX);
    bool knows_allowed = read_allowed(facts, &sets->allowed);
    if (!knows_online)
        sets->online = sets->allowed;
    if (!knows_allowed)
        sets->allowed = sets->online;
}

/* Return the lowest CPU that shares a core with this one, if the list contains this
   one. */
static uint32_t
read_core(const struct dryi_facts *facts, uint32_t cpu)
{
    static const char *const names[] = {"thread_siblings_list", "core_cpus_list"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct dryi_fact_file file;
        struct dryi_cpus siblings = {{0}};
        if (!dryi_facts_read(facts, &file, CPUS "/cpu%u/topology/%s", cpu, names[i]) ||
            !dryi_fact_list(file.text, file.length, siblings.words,
                            DRYI_KERNEL_CPUS_MAX) ||
            !cpus_have(&siblings, cpu))
            continue;
        for (uint32_t first = 0; first < cpu; first++)
            if (cpus_have(&siblings, first))
                return first;
        return cpu;
    }
    return cpu;
}

/* Count CPUs and cores by node. A core counts at its first allowed CPU. */
static void
count_cpus(struct dry_topology *t)
{
    struct dryi_cpus cores = {{0}};
    for (size_t i = 0, n = 0; i < t->view.cpu_count; i++) {
        const struct dry_topology_cpu *cpu = &t->cpus[i];
        bool is_core = cpu->is_allowed && !cpus_have(&cores, cpu->core);
        if (cpu->is_allowed)
            cores.words[cpu->core / 64] |= UINT64_C(1) << cpu->core % 64;
        t->view.allowed_cpu_count += (uint32_t)cpu->is_allowed;
        t->view.allowed_core_count += is_core;
        for (n = 0; n < t->view.node_count && t->nodes[n].node != cpu->node;)
            n++;
        if (n == t->view.node_count)
            continue;
        t->nodes[n].cpu_count++;
        t->nodes[n].allowed_cpu_count += (uint32_t)cpu->is_allowed;
        t->nodes[n].allowed_core_count += is_core;
    }
}

static void
read_cpu_nodes(const struct dryi_facts *facts, struct dry_topology *t)
{
    for (size_t n = 0; n < t->view.node_count; n++) {
        struct dryi_cpus cpus = {{0}};
        if (t->view.knows_nodes && !dryi_facts_node_cpus(facts, t->nodes[n].node, &cpus))
            continue;
        for (size_t i = 0; i < t->view.cpu_count; i++)
            if (!t->view.knows_nodes || cpus_have(&cpus, t->cpus[i].cpu))
                t->cpus[i].node = t->nodes[n].node;
    }
}

static enum dry_status
read_cpus(const struct dryi_facts *facts, struct dry_topology *t, struct dry_error *err)
{
    struct cpu_sets sets = {.online = {{0}}};
    read_sets(facts, &sets);
    size_t count = count_bits(sets.online.words, DRYI_KERNEL_CPUS_MAX / 64);
    if (count == 0)
        return DRY_OK;
    t->cpus = dryi_memory_zalloc(&t->memory, count, sizeof *t->cpus);
    if (!t->cpus)
        return dryi_fail_memory(err, "CPUs");
    t->view.cpu_count = count;
    struct dry_topology_cpu *c = t->cpus;
    for (uint32_t i = 0; i < DRYI_KERNEL_CPUS_MAX; i++) {
        if (!cpus_have(&sets.online, i))
            continue;
        *c++ = (struct dry_topology_cpu){
            .cpu = i,
            .core = read_core(facts, i),
            .node = DRY_TOPOLOGY_NO_NODE,
            .is_allowed = cpus_have(&sets.allowed, i),
        };
    }
    read_cpu_nodes(facts, t);
    count_cpus(t);
    return DRY_OK;
}

/* --- GPUs --------------------------------------------------------------------------------- */

/* Return the only node that has all local CPUs of a GPU. If these are all CPUs of the
   machine, the node is not known. */
static int32_t
node_of_cpus(const struct dry_topology *t, const struct dry_topology_gpu *gpu)
{
    int32_t node = DRY_TOPOLOGY_NO_NODE;
    bool lacks_some = t->view.node_count == 1;
    for (size_t i = 0; i < t->view.cpu_count; i++) {
        const struct dry_topology_cpu *cpu = &t->cpus[i];
        if (!(gpu->cpus.words[cpu->cpu / 64] >> cpu->cpu % 64 & 1)) {
            lacks_some = true;
            continue;
        }
        if (cpu->node == DRY_TOPOLOGY_NO_NODE ||
            (node != DRY_TOPOLOGY_NO_NODE && node != cpu->node))
            return DRY_TOPOLOGY_NO_NODE;
        node = cpu->node;
    }
    return lacks_some ? node : DRY_TOPOLOGY_NO_NODE;
}

static void
place_gpus(struct dry_topology *t)
{
    for (size_t i = 0; i < t->view.gpu_count; i++) {
        struct dry_topology_gpu *gpu = &t->gpus[i];
        if (gpu->node != DRY_TOPOLOGY_NO_NODE && !dry_topology_find_node(t, gpu->node))
            gpu->node = DRY_TOPOLOGY_NO_NODE;
        if (gpu->node == DRY_TOPOLOGY_NO_NODE && gpu->knows_cpus)
            gpu->node = node_of_cpus(t, gpu);
    }
}

static enum dry_status
read_gpus(const struct dryi_facts *facts, struct dry_topology *t, struct dry_error *err)
{
    struct dryi_topology_gpus *found = dryi_memory_zalloc(&t->memory, 1, sizeof *found);
    if (!found)
        return dryi_fail_memory(err, "GPUs");
    found->facts = facts;
    dryi_topology_find_gpus(found);
    enum dry_status status = DRY_OK;
    if (found->count) {
        t->gpus = dryi_memory_zalloc(&t->memory, found->count, sizeof *t->gpus);
        if (!t->gpus)
            status = dryi_fail_memory(err, "GPUs");
        else
            memcpy(t->gpus, found->gpus, found->count * sizeof *t->gpus);
        t->view.gpu_count = t->gpus ? found->count : 0;
    }
    dryi_memory_free(&t->memory, found, 1, sizeof *found);
    if (status == DRY_OK)
        place_gpus(t);
    return status;
}

/* --- the object --------------------------------------------------------------------------- */

static enum dry_status
read_all(const struct dryi_facts *facts, struct dry_topology *t, struct dry_error *err)
{
    enum dry_status status = read_nodes(facts, t, err);
    if (status == DRY_OK)
        status = read_cpus(facts, t, err);
    if (status == DRY_OK)
        status = read_gpus(facts, t, err);
    t->view.cpu_limit = dryi_facts_cgroup_cpus(facts);
    t->view.nodes = t->nodes;
    t->view.cpus = t->cpus;
    t->view.gpus = t->gpus;
    return status;
}

enum dry_status
dryi_topology_read(const struct dryi_facts *facts, const struct dry_memory *memory,
                   struct dry_topology **topology, struct dry_error *err)
{
    struct dry_memory m = dryi_memory_or_default(memory);
    struct dry_topology *t = dryi_memory_zalloc(&m, 1, sizeof *t);
    if (!t)
        return dryi_fail_memory(err, "a topology");
    t->memory = m;
    enum dry_status status = read_all(facts, t, err);
    if (status != DRY_OK) {
        dry_topology_destroy(t);
        return status;
    }
    *topology = t;
    return DRY_OK;
}

void
dry_topology_options_init_sized(struct dry_topology_options *options, size_t struct_size)
{
    const struct dry_topology_options defaults = {0};
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

enum dry_status
dry_topology_create(const struct dry_topology_options *options,
                    struct dry_topology **topology, struct dry_error *err)
{
    struct dry_topology_options o;
    struct dryi_kernel kernel;
    dry_topology_options_init(&o);
    enum dry_status status = dryi_sized_take(&o, sizeof o, options, err);
    if (status != DRY_OK)
        return status;
    dryi_kernel_init(&kernel);
    const struct dryi_facts facts = {.kernel = &kernel, .root = o.root ? o.root : ""};
    return dryi_topology_read(&facts, o.memory, topology, err);
}

void
dry_topology_destroy(struct dry_topology *topology)
{
    if (!topology)
        return;
    struct dry_topology *t = topology;
    const struct dry_memory memory = t->memory;
    size_t nodes = t->view.node_count;
    dryi_memory_free(&memory, t->distances, nodes * nodes, sizeof *t->distances);
    dryi_memory_free(&memory, t->nodes, nodes, sizeof *t->nodes);
    dryi_memory_free(&memory, t->cpus, t->view.cpu_count, sizeof *t->cpus);
    dryi_memory_free(&memory, t->gpus, t->view.gpu_count, sizeof *t->gpus);
    dryi_memory_free(&memory, t, 1, sizeof *t);
}

const struct dry_topology_view *
dry_topology_get_view(const struct dry_topology *topology)
{
    return &topology->view;
}

static size_t
find_index(const struct dry_topology *t, int32_t node)
{
    size_t i = 0;
    while (i < t->view.node_count && t->nodes[i].node != node)
        i++;
    return i;
}

const struct dry_topology_node *
dry_topology_find_node(const struct dry_topology *topology, int32_t node)
{
    size_t i = find_index(topology, node);
    return i < topology->view.node_count ? &topology->nodes[i] : NULL;
}

uint32_t
dry_topology_get_distance(const struct dry_topology *topology, int32_t from, int32_t to)
{
    size_t count = topology->view.node_count;
    size_t row = find_index(topology, from), column = find_index(topology, to);
    return row < count && column < count ? topology->distances[row * count + column] : 0;
}
