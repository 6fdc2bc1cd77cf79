/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_OUTPUT_H
#define TOOL_OUTPUT_H

/*
 * A file that a command writes, as the library's sink.
 *
 * A file appears whole or not at all. Its part has no name while it is written, so that
 * nothing is left of a process that is killed, and takes its place at the end, if nothing
 * failed. Where a file system has no such files, and for those who write by name, the part
 * lies beside its place ("OUT.part-PID"). Signals that would end the process then wait until
 * the part is gone: output_is_interrupted() tells that one does. Anything that is no plain
 * file (a pipe, a device) is written directly.
 */

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include <drystone/trace.h>

struct output {
    const char *command, *path;
    char *target;  /* what is replaced at the end: `path`, or what it links to */
    char *part;    /* NULL: written directly */
    bool has_name; /* the part is there under its name */
    bool holds_signals;
    sigset_t before; /* the signals that were blocked then */
    FILE *file;      /* a part may be read back, too */
};

/*
 * Tell whether both are names of one file: a typing error must not cost a recording.
 * `input` may be "-", standard input.
 */
bool output_is_input(const char *path, const char *input);

/* `path` "-" is standard output. An exit_code; what failed is on standard error. */
int output_open(struct output *out, const char *command, const char *path);
/* The same for those who write files by name: the part has one, output_part_path(). */
int output_open_named(struct output *out, const char *command, const char *path);
/*
 * Return the name of the file that has the bytes until output_close(); NULL: written
 * directly, or it has no name.
 */
const char *output_part_path(const struct output *out);
/*
 * Tell whether a signal waits to end the process. The sink then fails by itself; those who
 * write by name ask now and then, and stop.
 */
bool output_is_interrupted(const struct output *out);
/* The sink is valid until output_close(). */
struct dry_sink output_sink(struct output *out);
/*
 * The end of the writing, whose status and error these are. An exit_code; a failure of the
 * system is this machine's, as a full disk is: EXIT_MACHINE. A signal that waits ends the
 * process here.
 */
int output_close(struct output *out, enum dry_status status, const struct dry_error *err);
/* The end instead of output_close(), of what failed elsewhere: nothing takes its place, and
   nothing is said. */
void output_discard(struct output *out);

#endif
