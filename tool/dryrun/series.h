/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_SERIES_H
#define TOOL_SERIES_H

/*
 * Several runs of a program that differ in one value or in the rank, as rows of a table.
 *
 *     struct series series = {.request = &request, .heading = "rank"};
 *     code = series_run(&series, arguments, "8");           one row more
 *     ... series.rows[series.count - 1].outcome
 *     series_print(&series, snapshot);
 *     series_finish(&series);
 *
 * Each run's output is hidden and replaced by a progress line. If a run fails for another
 * reason than memory, the end of its output is shown.
 */

#include "base/writer.h"
#include "dryrun/dry_report.h"

struct series_row {
    char label[160];
    char *snapshot; /* path of the snapshot; NULL: not kept */
    enum trial_outcome outcome;
    bool is_unseen;                      /* a part of the program was not run */
    char condition[DRY_CONDITION_BYTES]; /* what "fits" depends on; "": nothing */
    uint64_t torch_bytes;                /* bytes left after a CUDA context and NCCL */
    uint64_t reserved, allocated;        /* peak bytes of the fullest process */
    bool has_host;                       /* a limit of the host was given */
    uint64_t host;                       /* bytes of the host at the peak; 0: not known */
    bool is_engine;                      /* a serving engine's run */
    uint64_t kv_bytes, kv_tokens, requests; /* of the engine; 0: not told */
    uint64_t step_count;
    double seconds;
    json_t *json; /* a document of drystone.dry-run/1, without "schema" */
};

struct series {
    const struct launch_request
        *request;       /* settings of every run, except for words and rank */
    const char *output; /* path of snapshots; a run's label goes before ".pickle" */
    const char *heading;
    bool has_one_snapshot; /* keep only the last run's that fits, as `output` */
    struct series_row *rows;
    size_t count;
};

/* Run `request` and add a row. A program that fails is a row, too. Returns an exit_code. */
int series_run(struct series *series, const struct launch_request *request,
               const char *label);
/* Print the table. Returns false if memory ran out. */
bool series_print(const struct series *series, size_t best);
/* Print {"schema": ..., "best": ..., "runs": [...]}; `best` SIZE_MAX: none. Returns an
   exit code. */
int series_print_json(const struct series *series, size_t best);
/* Draw memory over the value that varies. Returns false if memory ran out; nothing is written if
   there is no row. */
bool series_write_svg(const struct series *series, struct writer *w);
void series_finish(struct series *series);

#endif
