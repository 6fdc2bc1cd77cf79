/* SPDX-License-Identifier: Apache-2.0 */

/* LSD radix sort; see sort.h. One pass counts the values of all eight bytes. */

#include "base/sort.h"

#include <stdbool.h>
#include <string.h>

#define BYTES 8u
#define VALUES 256u

int
dryi_compare_leading(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void
count_bytes(const struct dryi_sort_item *items, size_t count,
            size_t counts[BYTES][VALUES])
{
    memset(counts, 0, BYTES * sizeof *counts);
    for (size_t i = 0; i < count; i++) {
        for (unsigned byte = 0; byte < BYTES; byte++)
            counts[byte][items[i].key >> (8 * byte) & 0xff]++;
    }
}

/* Replace counts by their prefix sums: where each byte value's items begin. */
static void
find_places(size_t counts[VALUES])
{
    size_t place = 0;
    for (unsigned i = 0; i < VALUES; i++) {
        size_t count = counts[i];
        counts[i] = place;
        place += count;
    }
}

void
dryi_sort_items(struct dryi_sort_item *items, struct dryi_sort_item *scratch,
                size_t count)
{
    size_t counts[BYTES][VALUES];
    struct dryi_sort_item *from = items, *to = scratch;
    if (count < 2)
        return;
    count_bytes(items, count, counts);
    for (unsigned byte = 0; byte < BYTES; byte++) {
        bool is_shared = counts[byte][items[0].key >> (8 * byte) & 0xff] == count;
        if (is_shared)
            continue;
        find_places(counts[byte]);
        for (size_t i = 0; i < count; i++)
            to[counts[byte][from[i].key >> (8 * byte) & 0xff]++] = from[i];
        struct dryi_sort_item *other = from;
        from = to;
        to = other;
    }
    if (from != items)
        memcpy(items, from, count * sizeof *items);
}
