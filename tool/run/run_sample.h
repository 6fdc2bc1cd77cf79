/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_RUN_SAMPLE_H
#define TOOL_RUN_SAMPLE_H

/*
 * A sample of a running program from /proc. It is that of the process which holds most
 * memory, for a script's interpreter is often a grandchild.
 */

#include <sys/types.h>

#include "run/run_plan.h"

struct run_sample {
    pid_t process;
    uint64_t resident_bytes;
    bool knows_cpus, knows_maps, knows_pages, knows_nodes, knows_variables;
    struct dry_topology_cpus cpus;    /* of all its threads together */
    size_t thread_count, stray_count; /* looked at; not within the plan's CPUs */
    unsigned mallocs;   /* bit k: a library of enum run_malloc k is mapped */
    bool has_allocator; /* PyTorch's seam of ours is mapped */
    uint64_t anonymous_bytes, huge_bytes;
    int is_thp_enabled; /* 0, 1; -1: not known */
    /* Anonymous memory, by node. */
    uint64_t node_bytes[DRY_TOPOLOGY_NODES_MAX];
    bool has_variable[RUN_SETTINGS_MAX]; /* as the plan sets it */
};

/* False: the program has ended, or may not be looked at. Cost: the kernel walks its pages. */
bool run_sample_read(struct run_sample *sample, pid_t program,
                     const struct run_plan *plan);

#endif
