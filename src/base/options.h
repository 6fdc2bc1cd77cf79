/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_OPTIONS_H
#define DRYI_OPTIONS_H

#include <stddef.h>

#include <drystone/status.h>

/*
 * Take over a caller's options struct, whose first member is `size_t struct_size`.
 *
 * `to` holds the defaults and has `to_bytes` bytes. A caller built against an older
 * header has a smaller struct: what it lacks keeps its default. A newer one has a larger
 * struct: fields we do not know must be zero, else UNSUPPORTED. `from` NULL: the
 * defaults.
 */
DRY_CHECK_RESULT enum dry_status dryi_options_take(void *to, size_t to_bytes,
                                                   const void *from,
                                                   struct dry_error *err);

#endif
