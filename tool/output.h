/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_OUTPUT_H
#define TOOL_OUTPUT_H

/* A file that a command writes, as the library's sink. */

#include <stdio.h>

#include <drystone/trace.h>

struct output {
    const char *command, *path;
    FILE *file;
};

/* `path` "-" is standard output. An exit_code; what failed is on standard error. */
int output_open(struct output *out, const char *command, const char *path);
/* The sink is valid until output_close(). */
struct dry_sink output_sink(struct output *out);
/* The end of the writing, whose status and error these are. An exit_code. */
int output_close(struct output *out, enum dry_status status, const struct dry_error *err);

#endif
