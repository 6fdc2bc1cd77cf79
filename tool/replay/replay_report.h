/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_REPLAY_REPORT_H
#define TOOL_REPLAY_REPORT_H

/* The report of replayed runs, as text and JSON, for `replay` and `demo`. */

#include <stdbool.h>

#include <drystone/replay.h>

struct across; /* replay/across.h */

/* A row of the report. */
struct replay_row {
    const char *label; /* shown in the table */
    const char *conf;  /* NULL: recorded settings; for other places, defaults */
    bool is_extra;     /* was not requested, so no condition applies */
    struct dry_run run;
};

struct replay_report {
    const char *file;
    const struct dry_trace_view *view;
    const struct dry_replay *replay;
    const struct replay_row *rows;
    size_t row_count;
    uint64_t capacity_bytes;     /* device of the runs; 0: as the record shows */
    bool finds_capacity;         /* each row includes its smallest possible device */
    bool has_places;             /* some rows are not PyTorch's placement */
    bool wants_steady;           /* each row includes its steady part */
    const struct across *across; /* rows are releases; NULL: rows are settings */
};

/* Print the self-check, the record and the table. Returns false if memory ran out. */
bool replay_report_print(const struct replay_report *report);

/* Print drystone.replay/1. Returns an exit_code. */
int replay_report_print_json(const char *command, const struct replay_report *report);

/* Return EXIT_FOUND if a run ended out of memory or the self-check failed. */
int replay_report_exit_code(const struct replay_report *report);

#endif
