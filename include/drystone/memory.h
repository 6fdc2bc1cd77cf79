/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_MEMORY_H
#define DRY_MEMORY_H

/*
 * The source of the memory for the library's own records.
 *
 * Every object that owns memory takes a `const struct dry_memory *` when it is created, and
 * copies it. NULL means the C library's malloc.
 *
 * Ownership  `self` must outlive the object.
 * Errors     NULL from `resize` (for new_bytes > 0) is an ordinary DRY_ERR_MEMORY.
 * Threads    `resize` is called only from inside calls on the object it was given to.
 */

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_memory {
    /*
     * Take, give back or resize a block; the first min(old, new) bytes are kept. With `old`
     * NULL memory is taken; with `new_bytes` 0 it is given back, and the result is NULL. On
     * failure the old block is left as it was. Alignment: at least max_align_t.
     */
    void *(*resize)(void *self, void *old, size_t old_bytes, size_t new_bytes);
    void *self;
};

#ifdef __cplusplus
}
#endif

#endif
