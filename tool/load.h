/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_LOAD_H
#define TOOL_LOAD_H

/* From a path to a trace, with progress and with the failure said. */

#include <drystone/trace.h>

#include "input.h"

/*
 * Read `path` ("-" is standard input) for `command`. Returns an exit_code: EXIT_FINE and
 * *trace is the caller's to destroy, or another one and the reason is on standard error.
 * `about`, if not NULL, tells of the file.
 */
int load_trace(const char *command, const char *path, struct dry_trace **trace,
               struct input_description *about);

#endif
