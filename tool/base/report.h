/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_REPORT_H
#define TOOL_REPORT_H

/*
 * Failures, said once, on standard error:
 *
 *     drystone: COMMAND: FILE: byte N: what is wrong and what was expected
 *
 * Each function returns the exit code, so that `return report_error(...)` ends a command.
 * `file` may be NULL. Whatever is hostile in names and texts is made printable.
 */

#include <stdarg.h>

#include <drystone/status.h>

#include "base/command.h"

/* A failure of the library; the code follows from its status. */
int report_error(const char *command, const char *file, const struct dry_error *err);

/* The tool's own finding, with the code to end with. */
__attribute__((format(printf, 4, 5))) int report_failure(const char *command,
                                                         const char *file,
                                                         enum exit_code code,
                                                         const char *format, ...);

/* A wrong command line: the text and where help is; EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int report_usage(const char *command,
                                                       const char *format, ...);
__attribute__((format(printf, 2, 0))) int report_usage_args(const char *command,
                                                            const char *format,
                                                            va_list args);

#endif
