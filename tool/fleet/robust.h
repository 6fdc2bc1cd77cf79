/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_ROBUST_H
#define TOOL_ROBUST_H

/*
 * Median and spread of numbers, which a few outliers do not move.
 *
 * For an even count, the median is the lower middle value, so it is always one of the
 * numbers. The MAD is the median distance from the median. 1.4826 MAD estimates the
 * standard deviation of normally distributed numbers (Hampel, 1974). A number is far if
 * it is more than `factor` deviations from the median. Iglewicz and Hoaglin (1993)
 * recommend 3.5 for a test of one sample.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct robust {
    uint64_t median, mad;
};

/* Compute both of `count` values, which are overwritten. Returns 0 and 0 for none. */
struct robust robust_find(uint64_t *values, size_t count);

uint64_t robust_distance(uint64_t a, uint64_t b);

/*
 * Return true if `value` is farther from the median than `factor` deviations, `percent`
 * percent of the median, and `least`.
 */
bool robust_is_far(const struct robust *robust, uint64_t value, double factor,
                   unsigned percent, uint64_t least);

#endif
