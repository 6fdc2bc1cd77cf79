/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_MEMORY_H
#define DRY_MEMORY_H

/*
 * Where the library takes memory for its own records.
 *
 * Every object that owns memory takes a `const struct dry_memory *` when it is created,
 * NULL meaning the C library's malloc. The object copies it; `self` must outlive the object.
 *
 * Threads    `resize` is called only from inside calls on the object it was given to.
 * Errors     NULL from `resize` (for new_bytes > 0) is an ordinary DRY_ERR_MEMORY.
 */

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_memory {
    /*
     * One function does all: old NULL takes memory, new_bytes 0 gives it back (and returns
     * NULL), else the block is resized and its first min(old, new) bytes kept. On failure
     * the old block is left as it was. Alignment: at least max_align_t.
     */
    void *(*resize)(void *self, void *old, size_t old_bytes, size_t new_bytes);
    void *self;
};

#ifdef __cplusplus
}
#endif

#endif
