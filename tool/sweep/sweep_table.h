/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_SWEEP_TABLE_H
#define TOOL_SWEEP_TABLE_H

/*
 * The last sweep of a store as two tables, for queries in SQL:
 *
 *     sweep(rank, conf, one column a key of the grid, state, is_front, fits, runs_on_bytes,
 *           reserved_peak_bytes, driver_time_us, driver_calls, num_alloc_retries, worst_file)
 *     sweep_file(rank, file, fits, runs_on_bytes, ... as above)
 *
 * `state` is "recorded", "whole", "pruned" or "refused". `conf` and the keys' columns are
 * NULL for the recorded settings; a key's column is also NULL if the key is omitted.
 */

#include "sweep/sweep.h"

/* Replace both tables by this sweep's. Returns an exit_code. */
int sweep_table_write(const struct sweep *sweep);

#endif
