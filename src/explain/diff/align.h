/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_ALIGN_H
#define DRYI_ALIGN_H

#include <stddef.h>
#include <stdint.h>

/*
 * Match the lines of a function in two versions of its source: `lines` (ascending, no two
 * equal) against `base` (the same). The shift wins that brings most lines together; of
 * equals the smallest, and 0 first. After a shift other than 0, lines that are left over
 * on both sides are paired in order, if they are equally many.
 *
 * Writes for each line the index of its partner in `base`, or SIZE_MAX, to `partners`.
 * Returns the shift: what to add to a line for its place in the base.
 * O(lines + base): at most 65 shifts are tried.
 */
int64_t dryi_align_lines(const int64_t *base, size_t base_count, const int64_t *lines,
                         size_t line_count, size_t *partners);

#endif
