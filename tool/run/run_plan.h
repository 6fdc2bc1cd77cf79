/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_RUN_PLAN_H
#define TOOL_RUN_PLAN_H

/*
 * The settings that `drystone run` will make, with reasons. A plan depends only on the
 * options, the machine and the existing settings, so equal inputs give equal plans.
 * run_start.h applies the plan; run_prove.h checks its effect.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run/run_machine.h"

enum run_profile {
    RUN_BALANCED,     /* freed memory returns to the system after a delay */
    RUN_THROUGHPUT,   /* freed memory is never returned */
    RUN_MANY_WORKERS, /* many processes, each with minimal memory */
};

enum run_thp {
    RUN_THP_AUTO,    /* decided by the profile */
    RUN_THP_ALWAYS,  /* malloc requests huge pages */
    RUN_THP_ADVISED, /* PyTorch requests huge pages, for large tensors */
    RUN_THP_NEVER,
    RUN_THP_KEEP,
};

enum run_choice { RUN_CHOOSE_AUTO, RUN_CHOOSE_KEEP, RUN_CHOOSE_ONE };

struct run_options {
    const char *node; /* "auto", "none", "gpu:0" or a node's number */
    bool interleaves, is_strict;
    enum run_choice malloc_choice;
    enum run_malloc malloc; /* valid for RUN_CHOOSE_ONE */
    enum run_profile profile;
    enum run_thp thp;
    enum run_choice omp_choice;
    uint32_t omp_threads; /* valid for RUN_CHOOSE_ONE */
    bool binds_omp;
    /* NULL: not given. `allocator_conf` is ignored without `allocator`. */
    const char *allocator, *allocator_conf, *on_oom;
    bool watches; /* publish PyTorch's memory for `drystone live` */
};

enum run_what {
    RUN_WHAT_CPUS,
    RUN_WHAT_MEMORY,
    RUN_WHAT_THP,
    RUN_WHAT_VARIABLE, /* environment variable */
    RUN_WHAT_NOTE,     /* information only */
};
enum run_state {
    RUN_SET,
    RUN_KEPT, /* was set before; unchanged */
    RUN_LEFT, /* not set; `reason` says why */
};

#define RUN_VALUE_MAX 4096
#define RUN_REASON_MAX 200
#define RUN_SETTINGS_MAX 32

struct run_setting {
    enum run_what what;
    enum run_state state;
    const char *name;
    char value[RUN_VALUE_MAX];
    char reason[RUN_REASON_MAX];
};

enum run_memory_mode { /* values of set_mempolicy(2) */
                       RUN_MEMORY_KEEP = 0,
                       RUN_MEMORY_PREFER = 1,
                       RUN_MEMORY_BIND = 2,
                       RUN_MEMORY_INTERLEAVE = 3,
};

struct run_plan {
    struct run_setting settings[RUN_SETTINGS_MAX];
    size_t count;
    bool binds_cpus;
    struct dry_topology_cpus cpus; /* CPUs the program may use: bound to or allowed */
    enum run_memory_mode memory_mode;
    uint64_t memory_nodes[DRY_TOPOLOGY_NODES_MAX / 64];
    int32_t node;             /* chosen node, or DRY_TOPOLOGY_NO_NODE */
    int32_t gpu;              /* GPU that determined the node, or -1 */
    int thp_disable;          /* argument of prctl(PR_SET_THP_DISABLE); -1: keep */
    enum run_thp thp;         /* decided, never AUTO */
    enum run_malloc malloc;   /* malloc of the program; NONE: unknown */
    bool has_allocator;       /* PyTorch will use our allocator */
    bool is_malloc_preloaded; /* through LD_PRELOAD, by us or by the user */
    char malloc_path[RUN_PATH_MAX];
};

/* Why a requested setting is impossible. */
struct run_refusal {
    int exit_code; /* EXIT_FINE: no refusal */
    char text[RUN_REASON_MAX];
};

void run_plan_make(struct run_plan *plan, const struct run_options *options,
                   const struct run_machine *machine, struct run_refusal *refusal);

/*
 * Add a setting; for the parts of the plan. A value that is too long is truncated if it
 * is shown only; a setting that would be applied is dropped. Settings beyond
 * RUN_SETTINGS_MAX are dropped.
 */
__attribute__((format(printf, 6, 7))) void run_plan_add(
    struct run_plan *plan, enum run_what what, enum run_state state, const char *name,
    const char *value, const char *reason, ...);
void run_plan_malloc(struct run_plan *plan, const struct run_options *options,
                     const struct run_machine *machine, struct run_refusal *refusal);
void run_plan_allocator(struct run_plan *plan, const struct run_options *options,
                        const struct run_machine *machine, struct run_refusal *refusal);
__attribute__((format(printf, 3, 4))) void run_refuse(struct run_refusal *refusal,
                                                      int exit_code, const char *text,
                                                      ...);

/* Format a bit set as a list: "0-3,8". Returns the length. */
size_t run_format_list(const uint64_t *words, size_t word_count, char *text,
                       size_t capacity);

/* Find a GPU by the number programs use: among NVIDIA's, or among AMD's if there are none
   of NVIDIA's. NULL: no such GPU. */
const struct dry_topology_gpu *run_find_gpu(const struct dry_topology_view *view,
                                            uint64_t number);

#endif
