/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_ROBUST_H
#define TOOL_ROBUST_H

/*
 * The middle of some numbers and how far they lie apart, which a few wild ones do not move.
 *
 * The median is the lower one of an even number, so that it is one of the numbers. The MAD is
 * the median distance from the median. 1.4826 MAD estimates the standard deviation of normal
 * numbers (Hampel, 1974). A number is far if it lies more than `factor` of these from the
 * median; Iglewicz and Hoaglin (1993) take 3.5 for one look at one sample.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct robust {
    uint64_t median, mad;
};

/* Find both of `count` values, which are overwritten; 0 and 0 of none. */
struct robust robust_find(uint64_t *values, size_t count);

/* Return the distance of two values. */
uint64_t robust_distance(uint64_t a, uint64_t b);

/*
 * Tell whether `value` lies farther from the median than `factor` deviations, than
 * `percent` of the median, and than `least`.
 */
bool robust_is_far(const struct robust *robust, uint64_t value, double factor,
                   unsigned percent, uint64_t least);

#endif
