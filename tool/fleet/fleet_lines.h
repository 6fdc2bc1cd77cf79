/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FLEET_LINES_H
#define TOOL_FLEET_LINES_H

/*
 * Match the lines of all rows: a place is a line of source that is the same for every
 * rank.
 *
 * A line is matched by its file, function and number. Leading folders of a file are
 * ignored if only one longer path ends in the same way. A host may run an edited source;
 * a rank then holds a function at other lines than most ranks do. If no line agrees, but
 * their number does, and their bytes do within 1/8, the lines are matched in order.
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
    const char **names; /* names of the places; owned by the rows */
    size_t row_count;
    size_t *begins;          /* row_count + 1 indices into `held` */
    struct fleet_held *held; /* ordered by row, then by place */
};

/*
 * Match the lines of `rows`; NULL is a row without lines. Returns false if memory ran
 * out. Call fleet_lines_finish() in any case. Cost: O(lines log lines), plus O(n^2) for n
 * <= 256 functions of one name in files of one name.
 */
bool fleet_lines_match(struct fleet_lines *lines, const struct fleet_row *const *rows,
                       size_t row_count);
void fleet_lines_finish(struct fleet_lines *lines);

/* Return what a row holds, by place; *count is the number of places. */
const struct fleet_held *fleet_lines_get(const struct fleet_lines *lines, size_t row,
                                         size_t *count);

#endif
