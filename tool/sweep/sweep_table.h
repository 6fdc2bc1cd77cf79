/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_SWEEP_TABLE_H
#define TOOL_SWEEP_TABLE_H

/*
 * The last sweep of a store as two tables, for whoever has questions in SQL:
 *
 *     sweep(rank, conf, one column a key of the grid, state, is_front, fits, runs_on_bytes,
 *           reserved_peak_bytes, driver_time_ns, driver_calls, num_alloc_retries, worst_file)
 *     sweep_file(rank, file, fits, runs_on_bytes, ... as above)
 *
 * `state` is "recorded", "whole", "pruned" or "refused"; `conf` and a key's column are NULL
 * for what was recorded, and a key's column where it is left away.
 */

#include "sweep/sweep.h"

/* Write both tables in place of those of the sweep before. An exit_code. */
int sweep_table_write(const struct sweep *sweep);

#endif
