/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_SERIES_H
#define TOOL_SERIES_H

/*
 * Several runs of a program that differ in one thing, a value or a rank, as rows of a table.
 *
 *     struct series series = {.wish = &wish, .heading = "rank"};
 *     code = series_run(&series, words, "8");           one row more
 *     ... series.rows[series.count - 1].outcome
 *     series_print(&series, snapshot);
 *     series_finish(&series);
 *
 * The program's output is hidden and a line of progress shown. The output of a run that fails
 * for another reason than memory is shown at its end.
 */

#include "dryrun/dry_report.h"

struct series_row {
    char label[160];
    char *snapshot; /* where it lies now; NULL: nowhere */
    enum trial_outcome outcome;
    uint64_t room;                /* what a context and NCCL left */
    uint64_t reserved, allocated; /* bytes at the peaks of the fullest process */
    uint64_t step_count;
    double seconds;
    json_t *json; /* of drystone.dry-run/1, without the schema */
};

struct series {
    const struct launch_wish *wish; /* of every run, but for words and rank */
    const char *output; /* a run's snapshot: its label comes before ".pickle" */
    const char *heading;
    bool
        has_one_snapshot; /* the last run that fits leaves `output`, the others nothing */
    struct series_row *rows;
    size_t count;
};

/* Run `wish` and add a row. Returns an exit_code; a program that fails is a row, too. */
int series_run(struct series *series, const struct launch_wish *wish, const char *label);
/* False: there was no memory. */
bool series_print(const struct series *series, size_t best);
/* Print {"schema": ..., "best": ..., "runs": [...]}; `best` SIZE_MAX: none. */
int series_print_json(const struct series *series, size_t best);
void series_finish(struct series *series);

#endif
