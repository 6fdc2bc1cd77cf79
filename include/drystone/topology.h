/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_TOPOLOGY_H
#define DRY_TOPOLOGY_H

/*
 * The neighbourhoods of a machine: nodes of memory, the CPUs and GPUs beside them, and which of
 * these this process may use.
 *
 *     status = dry_topology_create(NULL, &topology, &err);
 *     const struct dry_topology_view *view = dry_topology_get_view(topology);
 *     for (size_t i = 0; i < view->gpu_count; i++)
 *         view->gpus[i].node                   where its data should lie
 *     dry_topology_destroy(topology);
 *
 * All of it is read from /sys and /proc, or from another machine's under a root. These files
 * are checked as any input is, and numbers beyond the limits below are left out. A fact that
 * cannot be read is "not known", a value of its own: containers hide much.
 *
 * Ownership  dry_topology_create() and dry_topology_destroy(). The view and all in it belong to
 *            the object.
 * Errors     MEMORY, and ARGUMENT for broken options. Nothing else fails.
 * Threads    A topology does not change; any number of threads may read it.
 * Units      Bytes; distances as ACPI's SLIT has them, 10 being the node itself.
 * Cost       Create reads a few small files for each node and CPU and one for each PCI device:
 *            some ms, more on machines of hundreds of CPUs.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>
#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DRY_TOPOLOGY_NODES_MAX 1024 /* as the kernel's largest configurations */
#define DRY_TOPOLOGY_CPUS_MAX 4096
#define DRY_TOPOLOGY_GPUS_MAX 64

#define DRY_TOPOLOGY_NO_NODE (-1)
#define DRY_TOPOLOGY_NOT_KNOWN UINT64_MAX

struct dry_topology_cpus {
    uint64_t words[DRY_TOPOLOGY_CPUS_MAX / 64]; /* CPU n: bit n % 64 of word n / 64 */
};

struct dry_topology_node {
    int32_t node;                     /* its number */
    bool has_memory;                  /* false: CPUs alone */
    bool is_allowed;                  /* this process may take memory of it */
    uint64_t total_bytes, free_bytes; /* or NOT_KNOWN */
    /* The CPUs that are online; 0: memory alone, such as CXL's or some GPUs'. */
    uint32_t cpu_count;
    /* The CPUs among them that this process may run on, and the cores that have one. */
    uint32_t allowed_cpu_count, allowed_core_count;
};

struct dry_topology_cpu {
    uint32_t cpu; /* its number */
    /* The least number of the CPUs that share its core: the same for hyperthreads. */
    uint32_t core;
    int32_t node; /* or NO_NODE */
    bool is_allowed;
};

/* The numbers of all of these are fixed for ever; new ones are only appended. */
enum dry_topology_vendor {
    DRY_TOPOLOGY_NVIDIA = 0,
    DRY_TOPOLOGY_AMD = 1,
};

struct dry_topology_gpu {
    char address[24]; /* of PCI: "0000:17:00.0" */
    enum dry_topology_vendor vendor;
    uint32_t device; /* PCI's number of the model */
    /*
     * Its numa_node. If the firmware does not tell (-1, as in many virtual machines), this is
     * the node that has all the CPUs said to be near, if there is one.
     */
    int32_t node;
    bool knows_cpus;
    struct dry_topology_cpus cpus; /* said to be near */
};

struct dry_topology_view {
    /* The nodes by number. A kernel without nodes has node 0, which has it all. */
    const struct dry_topology_node *nodes;
    size_t node_count;
    bool knows_nodes; /* false: the kernel has none or hides them */
    /* The CPUs that are online, by number. */
    const struct dry_topology_cpu *cpus;
    size_t cpu_count;
    uint32_t allowed_cpu_count, allowed_core_count;
    /*
     * The CPU time that this process's control groups grant, in thousandths of a CPU: 2500 is
     * two and a half. 0: no limit is known.
     */
    uint64_t cpu_limit;
    /*
     * NVIDIA's and AMD's GPUs, by PCI address. This is the order of nvidia-smi. It is CUDA's
     * own, too, with CUDA_DEVICE_ORDER=PCI_BUS_ID or if all are of one model. Variables that
     * hide GPUs are not looked at.
     */
    const struct dry_topology_gpu *gpus;
    size_t gpu_count;
};

struct dry_topology_options {
    size_t struct_size; /* set by dry_topology_options_init() */
    const struct dry_memory *memory;
    /*
     * A prefix of /sys and /proc; NULL: "", this machine. Under the root of another machine,
     * its /proc/self/status says what the process may use.
     */
    const char *root;
};

struct dry_topology;

DRY_API void dry_topology_options_init_sized(struct dry_topology_options *options,
                                             size_t struct_size);
#define dry_topology_options_init(options)                                               \
    dry_topology_options_init_sized(options, sizeof *(options))

/*
 * Read a topology. `options` NULL: this machine. On this machine the CPUs that may be used are
 * those of the calling thread (sched_getaffinity), which control groups have narrowed already.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_topology_create(
    const struct dry_topology_options *options, struct dry_topology **topology,
    struct dry_error *err);

/* End a topology; NULL is fine. */
DRY_API void dry_topology_destroy(struct dry_topology *topology);

DRY_API const struct dry_topology_view *dry_topology_get_view(
    const struct dry_topology *topology);

/* The node with the number `node`; NULL: none has it. */
DRY_API const struct dry_topology_node *dry_topology_find_node(
    const struct dry_topology *topology, int32_t node);

/* The distance from the CPUs of node `from` to the memory of node `to`; 0: not known. */
DRY_API uint32_t dry_topology_get_distance(const struct dry_topology *topology,
                                           int32_t from, int32_t to);

#ifdef __cplusplus
}
#endif

#endif
