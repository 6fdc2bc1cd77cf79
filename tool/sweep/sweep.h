/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_SWEEP_H
#define TOOL_SWEEP_H

/*
 * A sweep: recorded programs replayed under every combination of a grid of settings.
 *
 * A row is a combination, or the recorded settings, which differ between files. A row has
 * figures per file, and the maximum of each over its files. Its worst file is the one
 * that needs the largest device. A part is the first 1/2^n of a file's events.
 *
 * All threads share the traces and replays: dry_replay_run() does not modify them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/replay.h>

#include "sweep/sweep_grid.h"

#define SWEEP_NO_DEVICE UINT64_MAX /* no device is large enough */
#define SWEEP_ROUNDS_MAX 6

/* The figures of one run, or the maxima of a row. */
struct sweep_figures {
    uint64_t device_bytes; /* smallest device that suffices, or SWEEP_NO_DEVICE */
    uint64_t reserved_bytes;
    uint64_t driver_time_ns, driver_calls, retries;
    bool fits; /* the run's device suffices */
};
extern const struct dry_fields sweep_fields;

struct sweep_file {
    const char *path;
    struct dry_trace *trace;
    struct dry_replay *replay;
    size_t first_event, event_count; /* events of the device */
    uint64_t stamp; /* hash of the contents, or size and time, and of our version */
};

struct sweep_row {
    size_t combination; /* index, or SWEEP_RECORDED */
    char *conf;         /* NULL: the recorded settings */
    struct sweep_figures *files;
    struct sweep_figures all;
    size_t worst_file;
    char *refused;   /* why the allocator refuses the settings; NULL: accepted */
    unsigned pruned; /* last round of the row, counted from 1; 0: it ran in full */
    bool is_front;   /* part of the Pareto front of the ranked figures */
};
#define SWEEP_RECORDED SIZE_MAX

/* A round of successive halving, for a search with a budget. */
struct sweep_round {
    unsigned halvings; /* the round's part: 1/2^halvings of the events */
    size_t tried, kept;
};

struct sweep {
    struct sweep_grid grid;
    struct sweep_file *files;
    size_t file_count;
    struct sweep_row *rows; /* grid.combination_count rows, and the recorded settings */
    size_t row_count;
    struct sweep_round rounds[SWEEP_ROUNDS_MAX];
    size_t round_count;
    const char *place, *compat, *store;
    uint64_t capacity_bytes; /* 0: as recorded */
    int64_t device;
    int64_t threads; /* 0: one per core */
    size_t budget;   /* combinations to run in full at most; 0: all */
    const char *part;
    bool does_merge;   /* does_merge and part: see work/work.h */
    bool is_elsewhere; /* another process reports the results */
    bool is_job;       /* the process is part of an MPI job */
};

static inline bool
sweep_row_is_recorded(const struct sweep_row *row)
{
    return row->combination == SWEEP_RECORDED;
}

#endif
