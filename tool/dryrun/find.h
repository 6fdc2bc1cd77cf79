/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FIND_H
#define TOOL_FIND_H

/*
 * The search for the largest whole number with which a program fits.
 *
 *     struct find find = find_begin(1, 65536);
 *     while ((number = find_next(&find, room)) != 0)
 *         find_note(&find, number, fits, reserved);
 *     find.low                         fits; 0: not even the first did
 *
 * Memory is nearly a straight line in a batch or a length. So the next number is where the
 * line through the last two that fitted meets the room; a bisection follows wherever the line
 * does not lead. Cost: two runs more than a perfect line would need, else O(log high).
 */

#include <stdbool.h>
#include <stdint.h>

struct find {
    uint64_t first, last; /* the bounds that were asked for */
    uint64_t low, high;   /* the largest that fits, the smallest that does not; 0: none */
    uint64_t low_bytes;   /* what `low` reserved */
    uint64_t below, below_bytes; /* the one that fitted before it; 0: none */
    bool was_line, bisects;
};

/* Requires 0 < first <= last. */
struct find find_begin(uint64_t first, uint64_t last);
/* Return the number to try next, with `room` bytes on the card; 0: the search is done. */
uint64_t find_next(struct find *find, uint64_t room);
void find_note(struct find *find, uint64_t number, bool fits, uint64_t reserved);

#endif
