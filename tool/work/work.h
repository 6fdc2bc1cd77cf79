/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_WORK_H
#define TOOL_WORK_H

/*
 * Run tasks in any order, on all cores, on the ranks of an MPI job, or in processes that
 * a launcher numbers. A result is a text, usually JSON, and depends on its task alone.
 * All texts are returned in the order of tasks. A report made of them is therefore always
 * the same, byte for byte.
 *
 * A store is a SQLite file of results. Tasks with a stored result are not run again, so
 * interrupted work can be continued. A broken result is computed again and replaced.
 *
 * A part is a share of the tasks for a process that does not communicate. Its results are
 * in the file STORE.part-K-of-N, which exists only when it is complete.
 *
 *     struct work work = {.name = "fleet", .count = n, .describe = ..., .run = ..., .self = f};
 *     struct work_results results;
 *     int code = work_run(&work, &options, &results);
 *     if (code == EXIT_FINE && !results.is_elsewhere)
 *         report(results.texts);
 *     work_results_drop(&results);
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORK_KEY_BYTES 4096
#define WORK_THREADS_MAX 1024

struct work_task {
    char key
        [WORK_KEY_BYTES]; /* unique name of the task, equal in every run: a path, settings */
    uint64_t stamp;       /* changes when the result may: from file size and time */
    uint64_t weight;      /* bytes to read or events to replay; heaviest first */
};

struct work {
    const char *name; /* name of the command; stores of other commands are refused */
    size_t count;
    void *self;
    /* Describe task `i`. Called by one thread. Each task needs a different key. */
    void (*describe)(void *self, size_t i, struct work_task *task);
    /*
     * Do task `i` and return its result, which the caller frees; NULL if memory ran out.
     * Several threads call this at once. A fault in the task's own input is part of the
     * result.
     */
    char *(*run)(void *self, size_t i);
    /* Return true if a stored text is a valid result. */
    bool (*is_whole)(const char *text);
};

struct work_options {
    int64_t threads;   /* 0: the cores that this process may use */
    const char *store; /* SQLite file, created if missing; NULL: no store */
    const char *part;  /* "K/N", K from 0; "auto", "auto/N": by launcher; NULL */
    bool does_merge;   /* merge all STORE.part-K-of-N before running */
    bool is_local;     /* run in this process only, even in a job: small follow-up work */
};

/* Help for --part and --merge, which two commands have. Both options need --store. */
#define WORK_PART_HELP                                                                   \
    "do part K of N, from 0, into a store of its own and print nothing; auto: as the "   \
    "environment of a numbered task says, auto/N where it does not tell how many"
#define WORK_MERGE_HELP "first take in all parts beside the store"
#define WORK_WANTS_STORE "for work with a --store"
#define WORK_NO_PART "for the process that comes after all parts"

struct work_results {
    size_t count;
    char **texts;      /* `count` of them, in order of tasks */
    size_t done;       /* how many were not in the store */
    bool is_elsewhere; /* another process reports: this is an MPI rank or a part */
    /* Run under MPI. Launchers report a rank that ends with EXIT_FOUND as crashed. */
    bool is_job;
};

/*
 * Run the tasks that are not in the store. Returns an exit_code, after printing a
 * failure. Results are written to the store at least every second. A process started as
 * one of several by mpirun, srun or torchrun is refused without a part, unless the tool
 * is built with MPI. work_results_drop() may be called in any case.
 */
int work_run(const struct work *work, const struct work_options *options,
             struct work_results *results);
void work_results_drop(struct work_results *results);

#endif
