/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_ALIGN_H
#define DRYI_ALIGN_H

#include <stddef.h>
#include <stdint.h>

/*
 * Match the lines of a function between two versions of its source: `lines` against `base`,
 * both strictly ascending. The shift that aligns most lines wins; ties prefer 0, then the
 * smallest shift. After a nonzero shift, lines left over on both sides are paired in order if
 * they are equally many.
 *
 * Writes the index of each line's partner in `base`, or SIZE_MAX, to `partners`. Returns
 * the shift to add to a line for its position in the base. Cost: O(lines + base), since at
 * most 65 shifts are tried.
 */
int64_t dryi_align_lines(const int64_t *base, size_t base_count, const int64_t *lines,
                         size_t line_count, size_t *partners);

#endif
