/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_SIZED_H
#define DRYI_SIZED_H

/*
 * Structs of a caller's whose first member is `size_t struct_size`, by the rules of
 * <drystone/status.h>. The caller may have been built with an older header or a newer one: no
 * byte beyond its struct_size is read or written. `known_bytes` is the struct's size here.
 */

#include <stddef.h>

#include <drystone/status.h>

/* Begin a caller's options: `to`, of `to_bytes` bytes, gets the defaults, and zeros behind them. */
void dryi_sized_init(void *to, size_t to_bytes, const void *defaults, size_t known_bytes);

/*
 * Take over a caller's options. `to` holds the defaults; members that a smaller struct lacks keep
 * them. `from` NULL: the defaults. Errors: ARGUMENT (no struct_size), UNSUPPORTED (a larger
 * struct sets a member that this library lacks).
 */
DRY_CHECK_RESULT enum dry_status dryi_sized_take(void *to, size_t known_bytes,
                                                 const void *from, struct dry_error *err);

/*
 * Hand out a result: copy as much of `from` as the caller's `to` has room for. A larger `to` keeps
 * the rest of its bytes. ARGUMENT: there is no struct_size, and nothing was written.
 */
enum dry_status dryi_sized_give(void *to, const void *from, size_t known_bytes);

#endif
