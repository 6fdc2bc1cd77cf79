/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_SWEEP_RANK_H
#define TOOL_SWEEP_RANK_H

/*
 * The order of rows: rows that fit come first, then smaller devices, reserved bytes and
 * driver times. Ties follow the grid, after the recorded settings. Pruned rows and then
 * refused rows are last.
 */

#include "sweep/sweep.h"

/* Set the maxima of a row over its `file_count` files, and its worst file. */
void sweep_row_conclude(struct sweep_row *row, size_t file_count);

/* Sort rows. */
void sweep_rank(struct sweep_row *rows, size_t count);

/*
 * Mark the Pareto front among ranked rows that ran in full and fit. On the front, no
 * other row has at most the same device, reserved memory and driver time, and less of
 * one. O(count * front).
 */
void sweep_mark_front(struct sweep_row *rows, size_t count);

/* Return how many halvings reduce `count` rows to `budget`; 0: there are no more rows
   than that. */
size_t sweep_count_rounds(size_t count, size_t budget);

#endif
