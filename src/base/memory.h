/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_MEMORY_H
#define DRYI_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include <drystone/memory.h>

/*
 * Bytes of padding between data that all threads read and data that one thread writes. Two lines of
 * 64 bytes, because x86 processors prefetch lines in pairs. A reader whose cache line was written
 * elsewhere loses more time than the rest of its call takes.
 */
#define DRYI_CACHE_LINE_PAD 128

/* Return the caller's hooks, or hooks that use malloc() if `memory` is NULL. */
struct dry_memory dryi_memory_or_default(const struct dry_memory *memory);

/* Allocate zeroed memory for `count` elements. Returns NULL if memory ran out, or if the
   product is 0 or overflows. */
void *dryi_memory_zalloc(const struct dry_memory *memory, size_t count,
                         size_t element_bytes);

/* Free `old`, which may be NULL. Count and size must be those of its allocation. */
void dryi_memory_free(const struct dry_memory *memory, void *old, size_t count,
                      size_t element_bytes);

/*
 * Grow an array to a capacity of at least `needed` elements. Capacity grows by half, so n appends
 * cost O(n). The default hook is realloc(), which can remap large arrays in place. On failure the
 * array and *capacity are unchanged.
 *
 *     if (!dryi_memory_grow(m, (void **)&t->rows, &t->capacity, t->count + 1, sizeof *t->rows))
 */
bool dryi_memory_grow(const struct dry_memory *memory, void *array, size_t *capacity,
                      size_t needed, size_t element_bytes);

#endif
