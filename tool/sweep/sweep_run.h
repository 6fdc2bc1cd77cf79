/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_SWEEP_RUN_H
#define TOOL_SWEEP_RUN_H

/*
 * The runs of a sweep. A task of its work (work/work.h) is one row, one file and one part.
 *
 * Settings are first held against the allocator's own parser, by a run of no events, under
 * the rules of each file. Combinations that it refuses are no tasks; a value whose every
 * combination is refused is a mistake of the user's.
 *
 * With a budget the search halves: all combinations run on a part of the events, the better
 * half on the part that is twice as long, until as many are left as the budget has. These
 * and the recorded settings run whole.
 */

#include "sweep/sweep.h"

/*
 * Make the rows of the grid, run them, rank them and mark the front. Requires files that
 * are read. Returns an exit_code; what failed is on standard error. If `is_elsewhere` is
 * set then, this process was one of many hands, and there is nothing to report.
 */
int sweep_run(struct sweep *sweep);

/* Return how many rows were refused, or pruned. */
size_t sweep_count_refused(const struct sweep *sweep);
size_t sweep_count_pruned(const struct sweep *sweep);

#endif
