/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_SORT_H
#define DRYI_SORT_H

/*
 * Numbers sorted by 64-bit keys, without comparisons: a radix sort from the lowest byte up,
 * which leaves out the bytes that all keys share (addresses differ in few). Stable.
 *
 * Cost: one pass to count, then one a byte that varies. Unlike qsort() of the C library it
 * takes no memory behind the caller's back.
 */

#include <stddef.h>
#include <stdint.h>

struct dryi_sort_item {
    uint64_t key;
    uint32_t value;
};

/* `scratch` has room for as many items; what it holds afterwards is of no use. */
void dryi_sort_items(struct dryi_sort_item *items, struct dryi_sort_item *scratch,
                     size_t count);

#endif
