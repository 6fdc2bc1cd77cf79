/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_SEARCH_H
#define DRYI_SEARCH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Items of `size` bytes each, sorted by a number of theirs that lies `offset` bytes into each.
 */

/* How many are below `key`: the index of the first that is not. The number is a uint32_t. */
static inline size_t
dryi_count_below(const void *items, size_t count, size_t size, size_t offset,
                 uint32_t key)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint32_t found;
        memcpy(&found, (const char *)items + middle * size + offset, sizeof found);
        if (found < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* How many are `key` or below: the index of the first above it. The number is a uint64_t. */
static inline size_t
dryi_count_up_to(const void *items, size_t count, size_t size, size_t offset,
                 uint64_t key)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint64_t found;
        memcpy(&found, (const char *)items + middle * size + offset, sizeof found);
        if (found <= key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#endif
