/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_SERIES_IN_H
#define TOOL_SERIES_IN_H

/* Runs of a dry run, as `drystone dry-run --json` prints those of --vary, --find or ranks. */

#include <jansson.h>

#define SERIES_RUNS_MAX 1000

/*
 * Read the file at `path` and make what the page shows of it: {"card", "best", "runs": [{"run",
 * "fits", "unseen", "reserved_peak_bytes", "allocated_peak_bytes", "room_bytes", "snapshot"}]}.
 * A snapshot is the file's name without its folder. Returns an exit_code; failures are printed.
 * The caller releases *series.
 */
int series_in_read(const char *command, const char *path, json_t **series);

#endif
