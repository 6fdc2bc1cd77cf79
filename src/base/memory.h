/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_MEMORY_H
#define DRYI_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include <drystone/memory.h>

/*
 * So many bytes between what all threads read and what one of them writes: two lines of the
 * cache, for processors fetch them in pairs. A line that is written elsewhere costs a reader
 * more than all the rest of a call.
 */
#define DRYI_CACHE_LINE_PAD 128

/* The caller's hooks, or malloc's if `memory` is NULL. */
struct dry_memory dryi_memory_or_default(const struct dry_memory *memory);

/* Zeroed memory for `count` elements; NULL when there is none or the product overflows. */
void *dryi_memory_zalloc(const struct dry_memory *memory, size_t count,
                         size_t element_bytes);

/* `old` may be NULL; the size must be the one it was taken with. */
void dryi_memory_free(const struct dry_memory *memory, void *old, size_t count,
                      size_t element_bytes);

/*
 * Make room for `needed` elements in a growable array. Grows by half, so that n appends
 * cost O(n); large arrays grow in place by remapping where the C library can. On failure
 * the array and *capacity are as before.
 *
 *     if (!dryi_memory_grow(m, (void **)&t->rows, &t->capacity, t->count + 1, sizeof *t->rows))
 */
bool dryi_memory_grow(const struct dry_memory *memory, void *array, size_t *capacity,
                      size_t needed, size_t element_bytes);

#endif
