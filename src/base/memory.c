/* SPDX-License-Identifier: Apache-2.0 */

/* Allocate through the caller's hooks. Products of count and size are checked for overflow. Free
   and grow pass the old size, so a hook needs no record of sizes. */

#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void *
resize_with_malloc(void *self, void *old, size_t old_bytes, size_t new_bytes)
{
    (void)self;
    (void)old_bytes;
    if (new_bytes == 0) {
        free(old);
        return NULL;
    }
    return realloc(old, new_bytes);
}

struct dry_memory
dryi_memory_or_default(const struct dry_memory *memory)
{
    return memory ? *memory : (struct dry_memory){.resize = resize_with_malloc};
}

void *
dryi_memory_zalloc(const struct dry_memory *memory, size_t count, size_t element_bytes)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, element_bytes, &bytes) || bytes == 0)
        return NULL;
    void *block = memory->resize(memory->self, NULL, 0, bytes);
    if (block)
        memset(block, 0, bytes);
    return block;
}

void
dryi_memory_free(const struct dry_memory *memory, void *old, size_t count,
                 size_t element_bytes)
{
    if (old)
        memory->resize(memory->self, old, count * element_bytes, 0);
}

bool
dryi_memory_grow(const struct dry_memory *memory, void *array, size_t *capacity,
                 size_t needed, size_t element_bytes)
{
    if (needed <= *capacity)
        return true;
    size_t wanted = *capacity + *capacity / 2;
    if (wanted < 16)
        wanted = 16;
    if (wanted < needed)
        wanted = needed;
    size_t bytes;
    if (__builtin_mul_overflow(wanted, element_bytes, &bytes) || bytes > PTRDIFF_MAX)
        return false;
    void *old;
    memcpy(&old, array, sizeof old); /* `array` may point to any pointer type: memcpy()
                                        avoids breaking strict aliasing */
    void *grown = memory->resize(memory->self, old, *capacity * element_bytes, bytes);
    if (!grown)
        return false;
    memcpy(array, &grown, sizeof grown);
    *capacity = wanted;
    return true;
}
