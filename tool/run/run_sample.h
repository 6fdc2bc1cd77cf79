/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_RUN_SAMPLE_H
#define TOOL_RUN_SAMPLE_H

/* A sample of a running program from /proc: of the process that holds the most memory,
   because a script's interpreter is often a grandchild. */

#include <sys/types.h>

#include "run/run_plan.h"

struct run_sample {
    pid_t process;
    uint64_t resident_bytes;
    bool knows_cpus, knows_maps, knows_pages, knows_nodes, knows_variables;
    struct dry_topology_cpus cpus;    /* allowed CPUs, over all threads */
    size_t thread_count, stray_count; /* threads read, threads outside the plan's CPUs */
    unsigned mallocs;   /* bit k: a library of enum run_malloc value k is mapped */
    bool has_allocator; /* the library that connects our allocator to PyTorch is mapped */
    uint64_t anonymous_bytes, huge_bytes;
    int is_thp_enabled; /* 0 or 1; -1: unknown */
    /* Anonymous bytes by node. */
    uint64_t node_bytes[DRY_TOPOLOGY_NODES_MAX];
    bool has_variable[RUN_SETTINGS_MAX]; /* setting i of the plan is set in the program */
};

/* Take a sample. False: the program has ended or may not be inspected. Cost: the kernel
   walks the program's page tables. */
bool run_sample_read(struct run_sample *sample, pid_t program,
                     const struct run_plan *plan);

#endif
