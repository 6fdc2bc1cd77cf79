/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_REPORT_H
#define TOOL_REPORT_H

/*
 * Error messages on standard error, one per failure:
 *
 *     drystone: COMMAND: FILE: byte N: what is wrong and what was expected
 *
 * Each function returns the exit code, so that `return report_error(...)` ends a command.
 * `file` may be NULL. Control characters and broken UTF-8 in names and texts become '?'.
 */

#include <stdarg.h>

#include <drystone/status.h>

#include "base/command.h"

/* Print a library failure. Returns the exit code that belongs to its status. */
int report_error(const char *command, const char *file, const struct dry_error *err);

/* Print a failure found by the tool itself. Returns `code`. */
__attribute__((format(printf, 4, 5))) int report_failure(const char *command,
                                                         const char *file,
                                                         enum exit_code code,
                                                         const char *format, ...);

/* Print that memory ran out. Returns EXIT_MACHINE. */
int report_memory(const char *command, const char *file);

/* Print a command-line error and where to find help. Returns EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int report_usage(const char *command,
                                                       const char *format, ...);
__attribute__((format(printf, 2, 0))) int report_usage_args(const char *command,
                                                            const char *format,
                                                            va_list args);

#endif
