/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_SEARCH_H
#define DRYI_SEARCH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Binary search in arrays of structs. Items have `size` bytes and are sorted by a key that is
   `offset` bytes into each. */

/* Return the number of items with a uint32_t key below `key`: the index of
   the first item >= key. */
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

/* Return the number of items with a uint64_t key <= `key`: the index of the
   first item above `key`. */
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
