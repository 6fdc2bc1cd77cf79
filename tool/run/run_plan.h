/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_RUN_PLAN_H
#define TOOL_RUN_PLAN_H

/*
 * The plan of what `drystone run` will set, and why. It is decided from options, the
 * machine and what is set already, and from nothing else, so that the same input always
 * gives the same plan. The plan is carried out by run_start.h, and run_prove.h holds what
 * came of it against the plan.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run/run_machine.h"

enum run_profile {
    RUN_BALANCED,     /* memory comes back after a while */
    RUN_THROUGHPUT,   /* memory never comes back */
    RUN_MANY_WORKERS, /* many processes, each as small as it can be */
};

enum run_thp {
    RUN_THP_AUTO,    /* as the profile */
    RUN_THP_ALWAYS,  /* malloc asks for huge pages */
    RUN_THP_ADVISED, /* PyTorch asks, for its large tensors */
    RUN_THP_NEVER,
    RUN_THP_KEEP,
};

enum run_choice { RUN_CHOOSE_AUTO, RUN_CHOOSE_KEEP, RUN_CHOOSE_ONE };

struct run_options {
    const char *node; /* "auto", "none", "gpu:0" or a number */
    bool interleaves, is_strict;
    enum run_choice malloc_choice;
    enum run_malloc malloc; /* of CHOOSE_ONE */
    enum run_profile profile;
    enum run_thp thp;
    enum run_choice omp_choice;
    uint32_t omp_threads; /* of CHOOSE_ONE */
    bool binds_omp;
    /* NULL: not asked for. `allocator_conf` comes with `allocator` alone. */
    const char *allocator, *allocator_conf, *on_oom;
    bool watches; /* PyTorch's memory is published */
};

enum run_what {
    RUN_WHAT_CPUS,
    RUN_WHAT_MEMORY,
    RUN_WHAT_THP,
    RUN_WHAT_VARIABLE, /* of the environment */
    RUN_WHAT_NOTE,     /* nothing to set */
};
enum run_state {
    RUN_SET,
    RUN_KEPT, /* it was set already */
    RUN_LEFT, /* nothing is set, for the reason given */
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

enum run_memory_mode { /* set_mempolicy(2) */
                       RUN_MEMORY_KEEP = 0,
                       RUN_MEMORY_PREFER = 1,
                       RUN_MEMORY_BIND = 2,
                       RUN_MEMORY_INTERLEAVE = 3,
};

struct run_plan {
    struct run_setting settings[RUN_SETTINGS_MAX];
    size_t count;
    bool binds_cpus;
    struct dry_topology_cpus cpus; /* the program's: those bound to, else those allowed */
    enum run_memory_mode memory_mode;
    uint64_t memory_nodes[DRY_TOPOLOGY_NODES_MAX / 64];
    int32_t node;             /* the chosen one, or DRY_TOPOLOGY_NO_NODE */
    int32_t gpu;              /* by which it was chosen, or -1 */
    int thp_disable;          /* prctl(PR_SET_THP_DISABLE): 0, 1, or -1: keep */
    enum run_thp thp;         /* decided: not AUTO */
    enum run_malloc malloc;   /* that the program will have; NONE: not known */
    bool has_allocator;       /* PyTorch is to get ours */
    bool is_malloc_preloaded; /* by LD_PRELOAD, ours or not */
    char malloc_path[RUN_PATH_MAX];
};

/* Why what was asked for cannot be. */
struct run_refusal {
    int exit_code; /* EXIT_FINE: nothing is refused */
    char text[RUN_REASON_MAX];
};

void run_plan_make(struct run_plan *plan, const struct run_options *options,
                   const struct run_machine *machine, struct run_refusal *refusal);

/*
 * For the parts of a plan. A value that does not fit is cut if it is only shown; what would be set
 * is left out, as is a setting too many.
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

/* "0-3,8". Returns the length. */
size_t run_format_list(const uint64_t *words, size_t word_count, char *text,
                       size_t capacity);

/*
 * GPUs as programs count them: NVIDIA's, or AMD's where there are none of NVIDIA's. NULL: no
 * such GPU.
 */
const struct dry_topology_gpu *run_find_gpu(const struct dry_topology_view *view,
                                            uint64_t number);

#endif
