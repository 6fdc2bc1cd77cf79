/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_LOAD_H
#define TOOL_LOAD_H

/* Read a trace from a path and make its replay, with progress. Failures are printed. */

#include <stdint.h>

#include <drystone/replay.h>
#include <drystone/status.h>
#include <drystone/trace.h>

#include "base/progress.h"
#include "record/input.h"

/*
 * Read `path` ("-" is standard input) for `command`. Returns EXIT_FINE, and the caller
 * owns *trace. Otherwise the reason is on standard error. `about` describes the file,
 * unless NULL.
 */
int load_trace(const char *command, const char *path, struct dry_trace **trace,
               struct input_description *about);

/*
 * Read `path` without printing. Several threads may call this. Takes at most
 * `memory_bytes_max`, and no more than is plausible for the file's size. The error text
 * names the offset of a failure. The caller owns *trace; *content describes the file's
 * bytes.
 */
DRY_CHECK_RESULT enum dry_status load_trace_quietly(const char *path,
                                                    uint64_t memory_bytes_max,
                                                    struct dry_trace **trace,
                                                    struct input_content *content,
                                                    struct dry_error *err);

/* Return the memory for all traces together: 3/4 of the machine or container. */
uint64_t load_memory_bytes(void);

/* Report that --device names no device, and list the devices. Returns EXIT_USAGE. */
int load_report_no_device(const char *command, const char *path,
                          const struct dry_trace *trace, int64_t device);

/* The options of load_replay(). */
struct load_replay {
    const char *command, *path;
    int64_t device;            /* LOAD_BUSIEST_DEVICE without --device */
    const char *compat;        /* NULL or "auto": the release that fits the record */
    struct progress *progress; /* receives the replay's progress; may be NULL */
};
#define LOAD_BUSIEST_DEVICE INT64_MIN

/* Make the replay of a trace, which must outlive it. Returns as load_trace() does. */
int load_replay(const struct load_replay *wanted, const struct dry_trace *trace,
                struct dry_replay **replay);

#endif
