/* SPDX-License-Identifier: Apache-2.0 */
/* The idea and its sources are in robust.h. Cost: O(count log count). */
#include "fleet/robust.h"

#include <stdlib.h>

#define DEVIATION 1.4826 /* standard deviation / MAD of normal numbers */

static int
compare_values(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

uint64_t
robust_distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static uint64_t
find_median(uint64_t *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_values);
    return values[(count - 1) / 2];
}

struct robust
robust_find(uint64_t *values, size_t count)
{
    struct robust r = {0, 0};
    if (count == 0)
        return r;
    r.median = find_median(values, count);
    for (size_t i = 0; i < count; i++)
        values[i] = robust_distance(values[i], r.median);
    r.mad = find_median(values, count);
    return r;
}

bool
robust_is_far(const struct robust *r, uint64_t value, double factor, unsigned percent,
              uint64_t least)
{
    uint64_t distance = robust_distance(value, r->median);
    return distance > least && (double)distance > factor * DEVIATION * (double)r->mad &&
           (double)distance * 100 > (double)percent * (double)r->median;
}
