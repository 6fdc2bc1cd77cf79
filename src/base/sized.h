/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_SIZED_H
#define DRYI_SIZED_H

/*
 * Structs of the caller whose first member is `size_t struct_size`, by the rules of
 * <drystone/status.h>. The caller may have been built with an older or a newer header, so no byte
 * beyond its struct_size is read or written. `known_bytes` is the struct's size in this library.
 */

#include <stddef.h>

#include <drystone/status.h>

/* Initialise a caller's options of `to_bytes` bytes: copy the defaults, and zero the members that
   this library does not know. */
void dryi_sized_init(void *to, size_t to_bytes, const void *defaults, size_t known_bytes);

/*
 * Read a caller's options into `to`, which holds the defaults. Members that the caller's struct
 * lacks keep their defaults; `from` NULL keeps all. Errors: ARGUMENT (no struct_size), UNSUPPORTED
 * (a larger struct sets a member that this library lacks).
 */
DRY_CHECK_RESULT enum dry_status dryi_sized_take(void *to, size_t known_bytes,
                                                 const void *from, struct dry_error *err);

/* Copy a result into the caller's `to`, at most its struct_size bytes. Bytes of `to` after
   `known_bytes` stay unchanged. Errors: ARGUMENT (no struct_size; nothing was written). */
enum dry_status dryi_sized_give(void *to, const void *from, size_t known_bytes);

#endif
