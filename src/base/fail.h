/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_FAIL_H
#define DRYI_FAIL_H

#include <stdint.h>

#include <drystone/status.h>

/*
 * Fill in an error where it is found, and return its status:
 *
 *     return dryi_fail(err, DRY_ERR_FORMAT, "opcode %u at depth %u", op, depth);
 *
 * `err` may be NULL. Bytes of hostile text (control characters, broken UTF-8) become '?', so that
 * the line may go to a terminal.
 */
__attribute__((format(printf, 3, 4))) enum dry_status dryi_fail(struct dry_error *err,
                                                                enum dry_status status,
                                                                const char *format, ...);

/* Like dryi_fail(), and record the byte offset in the input where the error is. */
__attribute__((format(printf, 4, 5))) enum dry_status dryi_fail_at(struct dry_error *err,
                                                                   enum dry_status status,
                                                                   uint64_t offset,
                                                                   const char *format,
                                                                   ...);

/* Fail with "no memory for NOUN". All failed allocations use this text. */
enum dry_status dryi_fail_memory(struct dry_error *err, const char *noun);

#endif
