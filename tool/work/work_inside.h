/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_WORK_INSIDE_H
#define TOOL_WORK_INSIDE_H

/* A run of work, shared by the files of this folder. */

#include "base/progress.h"
#include "work/crew.h"
#include "work/part.h"
#include "work/store.h"
#include "work/work.h"

/* A task that is not in the store. */
struct due {
    size_t task;
    uint64_t weight;
};

struct run {
    const struct work *work;
    const struct work_options *options;
    struct store *store; /* or NULL */
    struct work_results *results;
    struct due *due; /* heaviest first */
    size_t due_count;
    uint64_t weight, weight_done; /* weight: of all due tasks */
    struct work_task described;   /* buffer for work->describe() */
    struct progress progress;
};

/* Return the number of cores that this process may use, at least 1. */
unsigned work_count_cores(void);
int work_report_memory(const struct work *work);
/* List all tasks in r->due, heaviest first. */
void work_list(struct run *r);
/* Remove the tasks from r->due that the store has. Returns an exit_code. */
int work_find_stored(struct run *r);
/* Open the store, merge parts if requested, list the due tasks. Returns an exit_code. */
int work_open_here(struct run *r);
/* Keep a result, whose text the run then owns. Returns an exit_code. */
int work_keep(struct run *r, const struct crew_result *result);

/* Merge all parts of the store, and report missing ones. Returns an exit_code. */
int parts_merge(struct run *r);
/* Do one part into its own store. Returns an exit_code. */
int parts_run(struct run *r);
/* Run the due tasks on threads. Returns an exit_code. */
int work_run_due(struct run *r);

#ifdef HAVE_MPI
/* Run the due tasks as an MPI rank. Only rank 0 has the store and all results. */
int work_run_mpi(struct run *r);
#endif

#endif
