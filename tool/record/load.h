/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_LOAD_H
#define TOOL_LOAD_H

/*
 * The way from a path to a trace and its replay, with progress and with the failure said.
 */

#include <stdint.h>

#include <drystone/replay.h>
#include <drystone/status.h>
#include <drystone/trace.h>

#include "base/progress.h"
#include "record/input.h"

/*
 * Read `path` ("-" is standard input) for `command`. Returns an exit_code: EXIT_FINE and
 * *trace is the caller's to destroy, or another one and the reason is on standard error.
 * `about`, if not NULL, tells of the file.
 */
int load_trace(const char *command, const char *path, struct dry_trace **trace,
               struct input_description *about);

/*
 * Read `path` without a word, for those who keep what failed: several threads may. Takes
 * `memory_bytes_max` at most, and no more than a file of its size may. An offset of the failure
 * stands in its text. The results are *trace and *content, what the file's bytes are.
 */
DRY_CHECK_RESULT enum dry_status load_trace_quietly(const char *path,
                                                    uint64_t memory_bytes_max,
                                                    struct dry_trace **trace,
                                                    struct input_content *content,
                                                    struct dry_error *err);

/* Return the memory that traces may take together: three quarters of what there is. */
uint64_t load_memory_bytes(void);

/* --device named none that the trace has: says which there are. Returns EXIT_USAGE. */
int load_report_no_device(const char *command, const char *path,
                          const struct dry_trace *trace, int64_t device);

/* Which replay of a trace is wanted. */
struct load_replay {
    const char *command, *path;
    int64_t device;            /* LOAD_BUSIEST_DEVICE, the default of --device */
    const char *compat;        /* NULL and "auto": the release that fits the record */
    struct progress *progress; /* the replay goes on to report to it; NULL: none */
};
#define LOAD_BUSIEST_DEVICE INT64_MIN

/*
 * Make the replay of a trace, which must outlive *replay. Returns as load_trace() does.
 */
int load_replay(const struct load_replay *wanted, const struct dry_trace *trace,
                struct dry_replay **replay);

#endif
