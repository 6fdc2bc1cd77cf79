/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_TOPOLOGY_H
#define DRY_TOPOLOGY_H

/*
 * The NUMA topology of a machine: memory nodes, their CPUs and GPUs, and which of these
 * this process may use.
 *
 *     status = dry_topology_create(NULL, &topology, &err);
 *     const struct dry_topology_view *view = dry_topology_get_view(topology);
 *     for (size_t i = 0; i < view->gpu_count; i++)
 *         view->gpus[i].node                   the node for its data
 *     dry_topology_destroy(topology);
 *
 * All facts are read from /sys and /proc, or from another machine's under a root. These
 * files are validated like any input, and numbers beyond the limits below are left out. A
 * fact that cannot be read, as in many containers, has a value for "not known".
 *
 * Ownership  dry_topology_create() and dry_topology_destroy(). The view and its arrays
 *            belong to the object.
 * Errors     MEMORY, and ARGUMENT for invalid options.
 * Threads    A topology does not change; any number of threads may read it.
 * Units      Bytes; distances as in ACPI's SLIT, 10 for the node itself.
 * Cost       Create reads a few small files for each node and CPU and one for each PCI
 *            device: some ms, more on machines of hundreds of CPUs.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>
#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DRY_TOPOLOGY_NODES_MAX 1024 /* the kernel's largest configuration */
#define DRY_TOPOLOGY_CPUS_MAX 4096
#define DRY_TOPOLOGY_GPUS_MAX 64

#define DRY_TOPOLOGY_NO_NODE (-1)
#define DRY_TOPOLOGY_NOT_KNOWN UINT64_MAX

struct dry_topology_cpus {
    uint64_t words[DRY_TOPOLOGY_CPUS_MAX / 64]; /* CPU n: bit n % 64 of word n / 64 */
};

struct dry_topology_node {
    int32_t node;                     /* its number in the kernel */
    bool has_memory;                  /* false: the node has CPUs only */
    bool is_allowed;                  /* this process may allocate its memory */
    uint64_t total_bytes, free_bytes; /* NOT_KNOWN if unreadable */
    /* Online CPUs; 0: the node has memory only, such as CXL's or some GPUs'. */
    uint32_t cpu_count;
    /* CPUs of the node that this process may run on, and the cores that contain them. */
    uint32_t allowed_cpu_count, allowed_core_count;
};

struct dry_topology_cpu {
    uint32_t cpu; /* its number in the kernel */
    /* The lowest number of the CPUs that share its core: equal for hyperthreads. */
    uint32_t core;
    int32_t node; /* its node, or NO_NODE */
    bool is_allowed;
};

/* The numbers of all enums here never change; new ones are appended. */
enum dry_topology_vendor {
    DRY_TOPOLOGY_NVIDIA = 0,
    DRY_TOPOLOGY_AMD = 1,
};

struct dry_topology_gpu {
    char address[24]; /* PCI address: "0000:17:00.0" */
    enum dry_topology_vendor vendor;
    uint32_t device; /* PCI device id of the model */
    /* Its numa_node. If the firmware reports none (-1, as in many virtual machines), the
       node that contains all of its local CPUs, or NO_NODE. */
    int32_t node;
    bool knows_cpus;
    struct dry_topology_cpus cpus; /* local CPUs according to the firmware */
};

struct dry_topology_view {
    /* The nodes, sorted by number. A kernel without NUMA has node 0 with all memory and
       CPUs. */
    const struct dry_topology_node *nodes;
    size_t node_count;
    bool knows_nodes; /* false: the kernel has no NUMA or hides it */
    /* The online CPUs, sorted by number. */
    const struct dry_topology_cpu *cpus;
    size_t cpu_count;
    uint32_t allowed_cpu_count, allowed_core_count;
    /* The CPU time that this process's control groups grant, in thousandths of a CPU:
       2500 is 2.5 CPUs. 0: no limit is known. */
    uint64_t cpu_limit;
    /*
     * NVIDIA's and AMD's GPUs by PCI address, which is nvidia-smi's order. CUDA uses the
     * same order with CUDA_DEVICE_ORDER=PCI_BUS_ID, or if all GPUs are of one model.
     * Variables that hide GPUs are ignored.
     */
    const struct dry_topology_gpu *gpus;
    size_t gpu_count;
};

struct dry_topology_options {
    size_t struct_size; /* set by dry_topology_options_init() */
    const struct dry_memory *memory;
    /* A prefix of /sys and /proc; NULL: "", this machine. For the root of another
       machine, its /proc/self/status decides what the process may use. */
    const char *root;
};

struct dry_topology;

DRY_API void dry_topology_options_init_sized(struct dry_topology_options *options,
                                             size_t struct_size);
#define dry_topology_options_init(options)                                               \
    dry_topology_options_init_sized(options, sizeof *(options))

/*
 * Read a topology. `options` NULL: this machine. On this machine the allowed CPUs are
 * those of the calling thread (sched_getaffinity), already restricted by control groups.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_topology_create(
    const struct dry_topology_options *options, struct dry_topology **topology,
    struct dry_error *err);

/* End a topology; NULL is fine. */
DRY_API void dry_topology_destroy(struct dry_topology *topology);

DRY_API const struct dry_topology_view *dry_topology_get_view(
    const struct dry_topology *topology);

/* Return the node with the number `node`; NULL: no such node. */
DRY_API const struct dry_topology_node *dry_topology_find_node(
    const struct dry_topology *topology, int32_t node);

/* Return the distance from the CPUs of node `from` to the memory of node `to`; 0: not
   known. */
DRY_API uint32_t dry_topology_get_distance(const struct dry_topology *topology,
                                           int32_t from, int32_t to);

#ifdef __cplusplus
}
#endif

#endif
