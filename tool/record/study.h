/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_STUDY_H
#define TOOL_STUDY_H

/*
 * All that a report needs from a path: the trace, and a replay and a timeline of each
 * device. A trace without addresses (plain, RMM, lifetimes) is first run through
 * PyTorch's allocator rules, which gives it addresses; is_simulated is then set.
 */

#include <stdbool.h>

#include <drystone/drystone.h>

#include "base/progress.h"

struct study_device {
    struct dry_replay *replay;
    struct dry_timeline *timeline;
};

struct study {
    const char *command, *path;
    const char *compat;         /* NULL: the release that fits */
    struct dry_trace *trace;    /* the trace read from the file */
    struct dry_trace *recorded; /* simulated from `trace`; NULL if that has addresses */
    const struct dry_trace *subject; /* the trace of the timelines */
    bool is_simulated;
    uint32_t before_count; /* allocations of `recorded` from before `trace` */
    /* The requested devices, without pinned host memory. */
    struct study_device *devices;
    size_t device_count;
    size_t main;              /* index of the busiest device */
    struct progress progress; /* receives the progress of the replays */
};

#define STUDY_EVERY_DEVICE INT64_MIN /* the default of --device */

/*
 * Read `path` for `command`: one device or all. Returns an exit_code, after printing a
 * failure. Call study_close() in any case.
 */
int study_open(struct study *study, const char *command, const char *path,
               int64_t device);
/* The same by the rules of release `compat`; NULL or "auto": the one that fits. */
int study_open_by(struct study *study, const char *command, const char *path,
                  int64_t device, const char *compat);
/* Run a trace without addresses through the rules of PyTorch's allocator. *recorded is
   not set for a trace that has them. */
enum dry_status study_simulate(const struct dry_trace *trace, const char *compat,
                               struct dry_trace **recorded, uint32_t *before_count,
                               struct dry_error *err);
void study_close(struct study *study);

/*
 * Find the moment of `at`: "oom", "peak", "end" or an event of the file. NULL is the OOM,
 * else the peak of active bytes. Returns an exit_code; an error in `at` is printed.
 */
int study_find_moment(const struct study *study, size_t device, const char *at,
                      uint32_t *moment);

#endif
