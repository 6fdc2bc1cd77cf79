/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_GROW_H
#define TOOL_GROW_H

#include <stddef.h>
#include <stdlib.h>

/*
 * Make space for one more item of `size` bytes behind `count`. Returns the array, which
 * may have moved and is twice as large when it was full. NULL: memory ran out, and the
 * old array stays valid.
 */
static inline void *
grow(void *items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return items;
    size_t more = *capacity ? *capacity * 2 : 16;
    void *moved = realloc(items, more * size);
    if (moved)
        *capacity = more;
    return moved;
}

#endif
