/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_SWEEP_RUN_H
#define TOOL_SWEEP_RUN_H

/*
 * The runs of a sweep. A task (work/work.h) is one row, one file and one part.
 *
 * Settings are first checked by the allocator's own parser, in a run without events,
 * under the rules of each file. Refused combinations are not run. A value whose every
 * combination is refused is an error of the user.
 *
 * With a budget, the search uses successive halving. All combinations run on a part of
 * the events, the better half on a part twice as long, until the budget is reached. The
 * remaining rows and the recorded settings run in full.
 */

#include "sweep/sweep.h"

/*
 * Make the rows of the grid, run and rank them, and mark the front. Requires that the
 * files are read. Returns an exit_code; failures are printed. If `is_elsewhere` is set
 * afterwards, another process reports the results.
 */
int sweep_run(struct sweep *sweep);

/* Return the number of rows that were refused, or pruned. */
size_t sweep_count_refused(const struct sweep *sweep);
size_t sweep_count_pruned(const struct sweep *sweep);

#endif
