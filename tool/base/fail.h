/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FAIL_H
#define TOOL_FAIL_H

/* Failures of the tool's own readers, in the library's form (struct dry_error). */

#include <stdint.h>

#include <drystone/status.h>

/*
 * Write one line into `err` and return `status`, as the library's functions do. Control
 * characters in `format`'s arguments become '?', because they come from files and could
 * move a cursor. `offset` may be DRY_NO_OFFSET, `err` NULL.
 */
__attribute__((format(printf, 4, 5))) enum dry_status fail_at(struct dry_error *err,
                                                              enum dry_status status,
                                                              uint64_t offset,
                                                              const char *format, ...);
/* Fail with DRY_ERR_MEMORY; `text` says what there is no memory for. */
enum dry_status fail_memory(struct dry_error *err, const char *text);

#endif
