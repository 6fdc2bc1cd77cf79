/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_SWEEP_H
#define TOOL_SWEEP_H

/*
 * A sweep: recorded programs replayed under every combination of a grid of settings.
 *
 * A row is a combination, or the recorded settings, which are each file's own. Its figures
 * are those of its files; the largest of each stands for the row, and the worst file is the
 * one that needs the largest device. A part is the first 1/2^n of a file's events.
 *
 * Traces and replays are read once and shared by all threads: dry_replay_run() changes
 * nothing in them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/replay.h>

#include "sweep/sweep_grid.h"

#define SWEEP_NO_DEVICE UINT64_MAX /* none is large enough */
#define SWEEP_ROUNDS_MAX 6

/* The figures of one run, or of a row. */
struct sweep_figures {
    uint64_t device_bytes; /* the smallest on which it runs, or SWEEP_NO_DEVICE */
    uint64_t reserved_bytes;
    uint64_t driver_time_ns, driver_calls, retries;
    bool fits; /* on the device of the run */
};

struct sweep_file {
    const char *path;
    struct dry_trace *trace;
    struct dry_replay *replay;
    size_t first_event, event_count; /* of the device */
    uint64_t stamp; /* of its bytes: their number, and when they changed */
};

struct sweep_row {
    size_t combination; /* or SWEEP_RECORDED */
    char *conf;         /* NULL: what was recorded */
    struct sweep_figures *files;
    struct sweep_figures all;
    size_t worst_file;
    char *refused;   /* why the allocator refuses the settings; NULL: it takes them */
    unsigned pruned; /* the round, counted from 1, that was its last; 0: it ran whole */
    bool is_front;   /* no other row is as good in each figure of the rank */
};
#define SWEEP_RECORDED SIZE_MAX

/* A round of a search with a budget. */
struct sweep_round {
    unsigned halvings; /* the part: 1/2^halvings of the events */
    size_t tried, kept;
};

struct sweep {
    struct sweep_grid grid;
    struct sweep_file *files;
    size_t file_count;
    struct sweep_row *rows; /* combination_count of them, and the recorded settings */
    size_t row_count;
    struct sweep_round rounds[SWEEP_ROUNDS_MAX];
    size_t round_count;
    const char *place, *compat, *store;
    uint64_t capacity_bytes; /* 0: what the record shows */
    int64_t device;
    int64_t threads; /* 0: as many as there are cores */
    size_t budget;   /* combinations that run whole at most; 0: all */
    const char *part;
    bool does_merge;   /* both as in work/work.h */
    bool is_elsewhere; /* another process reports */
    bool is_job;       /* of MPI */
};

static inline bool
sweep_row_is_recorded(const struct sweep_row *row)
{
    return row->combination == SWEEP_RECORDED;
}

#endif
