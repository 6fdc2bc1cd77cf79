/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_REPLAY_REPORT_H
#define TOOL_REPLAY_REPORT_H

/* Runs of a replay, shown to people and to machines; for `replay` and `demo`. */

#include <stdbool.h>

#include <drystone/replay.h>

struct across; /* replay/across.h */

/* One row: a run and what it is called. */
struct replay_row {
    const char *label; /* of the table */
    const char *conf;  /* NULL: the recorded settings; of other places: the default */
    bool is_extra;     /* shown beside what was asked for: nothing is judged by it */
    struct dry_run run;
};

struct replay_report {
    const char *file;
    const struct dry_trace_view *view;
    const struct dry_replay *replay;
    const struct replay_row *rows;
    size_t row_count;
    uint64_t capacity_bytes;     /* of the device they ran on; 0: what the record shows */
    bool finds_capacity;         /* the rows were asked for the smallest device */
    bool has_places;             /* the rows are not all PyTorch's */
    bool wants_steady;           /* the rows were asked for their steady part */
    const struct across *across; /* the rows are releases; NULL: settings */
};

/* The verdict of the self-check, the record and the table. False: there was no memory. */
bool replay_report_print(const struct replay_report *report);

/* Prints drystone.replay/1; returns an exit code. */
int replay_report_print_json(const char *command, const struct replay_report *report);

/* EXIT_FOUND if a run ended out of memory or a possible check failed. */
int replay_report_exit_code(const struct replay_report *report);

#endif
