/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_WORK_H
#define TOOL_WORK_H

/*
 * Work that many hands do: tasks in any order, by all cores, by the ranks of an MPI job, or by
 * processes that the environment numbers. A task's result is a text, JSON as a rule, and
 * depends on the task alone. All texts come back in the order of tasks. So a report that is
 * made of them is the same to the byte, whoever did which.
 *
 * A store is a SQLite file with the results so far. A task that the store has is not done
 * again, so work goes on where it was cut off. A result that is broken is done again, and replaced.
 *
 * A part is one share of the tasks, by a process that knows nothing of the others. Its
 * results are in the file STORE.part-K-of-N, which is complete or absent.
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
        [WORK_KEY_BYTES]; /* the task's name, the same in every run: a path, settings */
    uint64_t stamp;       /* differs when the result may: of the file's size and time */
    uint64_t weight;      /* bytes to read, events to replay: the heaviest go first */
};

struct work {
    const char *name; /* the command's: a store of another one is refused */
    size_t count;
    void *self;
    /* Describe task `i`. Called by one thread. Keys of two tasks differ. */
    void (*describe)(void *self, size_t i, struct work_task *task);
    /*
     * Do task `i`. Several threads call this at once. Return the result, which is the
     * caller's to free; NULL: there was no memory. A fault of the task's own input belongs
     * into the result.
     */
    char *(*run)(void *self, size_t i);
    /* Tell whether a text of the store is such a result. */
    bool (*is_whole)(const char *text);
};

struct work_options {
    int64_t threads;   /* 0: as many as this process may use cores */
    const char *store; /* a SQLite file, which is made if there is none; NULL: none */
    const char *part;  /* "K/N", K from 0; "auto", "auto/N": K of the environment; NULL */
    bool does_merge;   /* first take in STORE.part-K-of-N, all that there are */
    bool is_local;     /* by this process alone, whoever started it: later, small work */
};

/* The texts of --part and --merge, which two commands have; both need --store. */
#define WORK_PART_HELP                                                                   \
    "do part K of N, from 0, into a store of its own and print nothing; auto: as the "   \
    "environment of a numbered task says, auto/N where it does not tell how many"
#define WORK_MERGE_HELP "first take in all parts beside the store"
#define WORK_WANTS_STORE "of work with a --store"
#define WORK_NO_PART "of the process that comes after all parts"

struct work_results {
    size_t count;
    char **texts;      /* count of them */
    size_t done;       /* those that were not in the store */
    bool is_elsewhere; /* another process reports: this one was one of many hands */
    /* An MPI job: to its launcher a rank that ends with EXIT_FOUND has crashed. */
    bool is_job;
};

/*
 * Do what is not in the store. An exit_code; what failed is said on standard error. Results
 * reach the store at least every second. A process that was started as one of several by
 * mpirun, srun or torchrun is refused without a part, unless the tool is built with MPI.
 * work_results_drop() is allowed in any case.
 */
int work_run(const struct work *work, const struct work_options *options,
             struct work_results *results);
void work_results_drop(struct work_results *results);

#endif
