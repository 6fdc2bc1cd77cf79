/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FIND_H
#define TOOL_FIND_H

/*
 * Search the largest whole number with which a program fits.
 *
 *     struct find find = find_begin(1, 65536);
 *     while ((number = find_next(&find, torch_bytes)) != 0)
 *         find_note(&find, number, fits, reserved);
 *     find.low                         fits; 0: not even the first did
 *
 * Memory grows almost linearly with a batch size or a length. So the next number is where
 * the line through the last two that fitted reaches the card's memory; otherwise the
 * range is bisected. Cost: two more runs than an exact line needs, at worst O(log last).
 */

#include <stdbool.h>
#include <stdint.h>

struct find {
    uint64_t first, last; /* bounds of the search */
    uint64_t low, high;   /* largest number that fits, smallest that does not; 0: none */
    uint64_t low_bytes;   /* bytes reserved with `low` */
    uint64_t below, below_bytes; /* the largest fitting number before `low`; 0: none */
    bool was_line, bisects;
};

/* Begin a search. Requires 0 < first <= last. */
struct find find_begin(uint64_t first, uint64_t last);
/* Return the next number to try, with `torch_bytes` bytes for PyTorch; 0: the search is done. */
uint64_t find_next(struct find *find, uint64_t torch_bytes);
void find_note(struct find *find, uint64_t number, bool fits, uint64_t reserved);

#endif
