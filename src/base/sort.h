/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_SORT_H
#define DRYI_SORT_H

/*
 * Stable radix sort by 64-bit keys, from the lowest byte up. Bytes that are equal in all keys are
 * skipped; addresses differ in few bytes.
 *
 * Cost: one pass to count, then one pass per byte that varies. Unlike glibc's qsort(), the
 * sort allocates no memory.
 */

#include <stddef.h>
#include <stdint.h>

struct dryi_sort_item {
    uint64_t key;
    uint32_t value;
};

/* Compare items by the uint64_t that each begins with, for qsort(). */
int dryi_compare_leading(const void *a, const void *b);

/* Sort in place. `scratch` has room for `count` items; its contents afterwards are undefined. */
void dryi_sort_items(struct dryi_sort_item *items, struct dryi_sort_item *scratch,
                     size_t count);

#endif
