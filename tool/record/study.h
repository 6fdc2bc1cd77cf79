/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_STUDY_H
#define TOOL_STUDY_H

/*
 * The things that reporting commands look at, made from a path: the trace, a replay and a
 * timeline of each device. A trace without addresses (plain, RMM, lifetimes) is first run
 * through PyTorch's rules and recorded, so that it has some; `is_simulated` says so.
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
    const char *compat;              /* NULL: the release that fits */
    struct dry_trace *trace;         /* as read */
    struct dry_trace *recorded;      /* of one without addresses; else NULL */
    const struct dry_trace *subject; /* the one the timelines are of */
    bool is_simulated;
    uint32_t before_count; /* of `recorded`: allocations that were there before `trace` */
    /* The devices asked for; pinned host memory is never among them. */
    struct study_device *devices;
    size_t device_count;
    size_t main;              /* the busiest of them */
    struct progress progress; /* the replays go on to report to it */
};

#define STUDY_EVERY_DEVICE INT64_MIN /* the default of --device */

/*
 * Read `path` for `command`, all devices or one. An exit_code; what failed is on standard
 * error. study_close() is due in any case.
 */
int study_open(struct study *study, const char *command, const char *path,
               int64_t device);
/* The same by the rules of a release; `compat` NULL or "auto": the one that fits. */
int study_open_by(struct study *study, const char *command, const char *path,
                  int64_t device, const char *compat);
void study_close(struct study *study);

/*
 * "oom", "peak", "end" or an event of the file: a moment. `at` NULL: the OOM, else the peak
 * of the active curve. An exit_code; what is wrong with `at` is on standard error.
 */
int study_find_moment(const struct study *study, size_t device, const char *at,
                      uint32_t *moment);

#endif
