/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_OUTPUT_H
#define TOOL_OUTPUT_H

/*
 * A file that a command writes, as the library's sink.
 *
 * A file appears whole or not at all: it is written beside its place under another name
 * ("OUT.part-PID") and takes its place at the end, if nothing failed. Anything that is no
 * plain file (a pipe, a device) is written directly.
 */

#include <stdbool.h>
#include <stdio.h>

#include <drystone/trace.h>

struct output {
    const char *command, *path;
    char *target; /* what is replaced at the end: `path`, or what it links to */
    char *part;   /* NULL: written directly */
    FILE *file;   /* a part may be read back, too */
};

/*
 * Tell whether both are names of one file: a typing error must not cost a recording.
 * `input` may be "-", standard input.
 */
bool output_is_input(const char *path, const char *input);

/* `path` "-" is standard output. An exit_code; what failed is on standard error. */
int output_open(struct output *out, const char *command, const char *path);
/*
 * Return the name of the file that has the bytes until output_close(), for those who write
 * files by name; NULL: written directly.
 */
const char *output_part_path(const struct output *out);
/* The sink is valid until output_close(). */
struct dry_sink output_sink(struct output *out);
/* The end of the writing, whose status and error these are. An exit_code. */
int output_close(struct output *out, enum dry_status status, const struct dry_error *err);
/* The end instead of output_close(), of what failed elsewhere: nothing takes its place, and
   nothing is said. */
void output_discard(struct output *out);

#endif
