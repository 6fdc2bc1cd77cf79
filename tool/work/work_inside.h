/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_WORK_INSIDE_H
#define TOOL_WORK_INSIDE_H

/* A run of work, for the files of this wing. */

#include "base/progress.h"
#include "work/crew.h"
#include "work/part.h"
#include "work/store.h"
#include "work/work.h"

/* A task that is to be done. */
struct due {
    size_t task;
    uint64_t weight;
};

struct run {
    const struct work *work;
    const struct work_options *options;
    struct store *store; /* NULL: none */
    struct work_results *results;
    struct due *due; /* the heaviest first */
    size_t due_count;
    uint64_t weight, weight_done; /* of what is due */
    struct work_task described;   /* the one that is looked at */
    struct progress progress;
};

/* Cores that this process may use, at least 1. */
unsigned work_count_cores(void);
int work_report_memory(const struct work *work);
/* List all tasks in r->due, the heaviest first. */
void work_list(struct run *r);
/* Take from r->due those that the store has. An exit_code. */
int work_find_stored(struct run *r);
/* Open the store, take in parts if that is asked for, and find what is due. An exit_code. */
int work_open_here(struct run *r);
/* Keep a result, whose text is the run's from now on. An exit_code. */
int work_keep(struct run *r, const struct crew_result *result);

/* Take in the parts beside the store, and name those that are missing. An exit_code. */
int parts_merge(struct run *r);
/* Do one part into a store of its own. An exit_code. */
int parts_run(struct run *r);
/* Do what is due by threads. An exit_code. */
int work_run_due(struct run *r);

#ifdef HAVE_MPI
/* The same, as one rank of an MPI job. Rank 0 alone has the store and all results. */
int work_run_mpi(struct run *r);
#endif

#endif
