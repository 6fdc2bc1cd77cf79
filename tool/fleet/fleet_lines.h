/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FLEET_LINES_H
#define TOOL_FLEET_LINES_H

/*
 * The lines of all rows, matched: a place is a line of source, the same for every rank.
 *
 * A line is matched by its file, its function and its number. Folders in front of a file do
 * not matter if only one longer path ends alike. A host may have an edited source: a rank
 * then holds a function at other lines than most ranks do. If no line is the same, but they
 * are as many and hold as much within an eighth, then they are matched in order.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fleet/fleet_row.h"

/* The bytes and allocations of a row at a place. */
struct fleet_held {
    uint32_t place;
    uint64_t bytes, count;
};

struct fleet_lines {
    size_t place_count;
    const char **names; /* of the places; they belong to the rows */
    size_t row_count;
    size_t *begins;          /* row_count + 1 of them: where a row begins in `held` */
    struct fleet_held *held; /* by row, then by place */
};

/*
 * Match the lines of `rows`; a NULL has none. False: no memory. fleet_lines_finish() is due
 * in any case. O(lines log lines), and O(n^2) for n functions of one name in files of one
 * name, 256 at most.
 */
bool fleet_lines_match(struct fleet_lines *lines, const struct fleet_row *const *rows,
                       size_t row_count);
void fleet_lines_finish(struct fleet_lines *lines);

/* Return what a row holds, and how many places. */
const struct fleet_held *fleet_lines_of(const struct fleet_lines *lines, size_t row,
                                        size_t *count);

#endif
