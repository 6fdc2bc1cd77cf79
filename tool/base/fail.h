/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FAIL_H
#define TOOL_FAIL_H

/* Failures of the tool's own readers, in the library's form. */

#include <stdint.h>

#include <drystone/status.h>

/*
 * Describe a failure and return its status, as the library does: one line, and what came
 * from a file cannot move a cursor. `offset` may be DRY_NO_OFFSET, `err` NULL.
 */
__attribute__((format(printf, 4, 5))) enum dry_status fail_at(struct dry_error *err,
                                                              enum dry_status status,
                                                              uint64_t offset,
                                                              const char *format, ...);

#endif
