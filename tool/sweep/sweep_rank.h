/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_SWEEP_RANK_H
#define TOOL_SWEEP_RANK_H

/*
 * The order of rows: those that fit first, then by the smallest device, reserved memory and
 * driver time; what is equal in all stands in the order of the grid, the recorded settings
 * in front. Refused rows are the last, after pruned ones.
 */

#include "sweep/sweep.h"

/* Set the figures that stand for a row of `file_count` files, and its worst file. */
void sweep_row_conclude(struct sweep_row *row, size_t file_count);

/* Put rows in order. */
void sweep_rank(struct sweep_row *rows, size_t count);

/*
 * Mark the Pareto front of ranked rows, of those that ran whole and fit: no other row has at
 * most as much in device, reserved memory and driver time, and less in one. O(count * front).
 */
void sweep_mark_front(struct sweep_row *rows, size_t count);

/* Return how often `count` rows are halved until `budget` are left; 0: they are no more. */
size_t sweep_count_rounds(size_t count, size_t budget);

#endif
