/* SPDX-License-Identifier: Apache-2.0 */
/* See run_start.h. */
#include "run/run_start.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void
leave(struct run_setting *s, int error)
{
    s->state = RUN_LEFT;
    snprintf(s->reason, sizeof s->reason, "the system refuses: %s", strerror(error));
}

/* Bind to the plan's CPUs. Uses system calls directly: libc's cpu_set_t ends at 1,024
   CPUs, and libc has no set_mempolicy(). */
static int
bind_cpus(const struct run_plan *plan)
{
    return syscall(SYS_sched_setaffinity, 0, sizeof plan->cpus.words, plan->cpus.words) <
                   0
               ? errno
               : 0;
}

/* Set the memory policy. The kernel expects the number of bits plus one. */
static int
place_memory(const struct run_plan *plan)
{
    return syscall(SYS_set_mempolicy, (int)plan->memory_mode, plan->memory_nodes,
                   (unsigned long)DRY_TOPOLOGY_NODES_MAX + 1) < 0
               ? errno
               : 0;
}

static int
switch_thp(const struct run_plan *plan)
{
    return prctl(PR_SET_THP_DISABLE, (unsigned long)plan->thp_disable, 0, 0, 0) < 0
               ? errno
               : 0;
}

void
run_apply(struct run_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        struct run_setting *s = &plan->settings[i];
        int error = 0;
        if (s->state != RUN_SET)
            continue;
        if (s->what == RUN_WHAT_CPUS && (error = bind_cpus(plan)) != 0)
            plan->binds_cpus = false;
        else if (s->what == RUN_WHAT_MEMORY && (error = place_memory(plan)) != 0)
            plan->memory_mode = RUN_MEMORY_KEEP;
        else if (s->what == RUN_WHAT_THP && (error = switch_thp(plan)) != 0)
            plan->thp_disable = -1;
        if (error)
            leave(s, error);
    }
}

void
run_set_variables(const struct run_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        const struct run_setting *s = &plan->settings[i];
        if (s->what == RUN_WHAT_VARIABLE && s->state == RUN_SET)
            setenv(s->name, s->value, 1);
    }
}

int
run_become(char *const *words)
{
    execvp(words[0], words);
    return errno == ENOENT || errno == ENOTDIR ? RUN_NOT_FOUND : RUN_CANNOT_START;
}
