/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_MEMORY_H
#define DRY_MEMORY_H

/*
 * The allocator for the library's own records.
 *
 * Every object that owns memory takes a `const struct dry_memory *` when it is created,
 * and copies it. NULL means the C library's malloc.
 *
 * Ownership  `self` must outlive the object.
 * Errors     If `resize` returns NULL for new_bytes > 0, the caller reports
 *            DRY_ERR_MEMORY.
 * Threads    `resize` is called only during calls on the object that has the allocator.
 */

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_memory {
    /*
     * Allocate, resize or free a block; a resize keeps the first min(old, new) bytes.
     * `old` NULL allocates; `new_bytes` 0 frees and returns NULL. On failure the old
     * block is unchanged. Alignment: at least max_align_t.
     */
    void *(*resize)(void *self, void *old, size_t old_bytes, size_t new_bytes);
    void *self;
};

#ifdef __cplusplus
}
#endif

#endif
