/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_OUTPUT_H
#define TOOL_OUTPUT_H

/*
 * A file that a command writes, as the library's sink.
 *
 * The file appears complete or not at all. Its bytes go to a temporary file (the part),
 * which replaces the target at the end if nothing failed. The part has no name until
 * then, so a killed process leaves nothing. If the file system has no nameless files, or
 * the writer needs a path, the part is "OUT.part-PID" next to the target. Signals that
 * would end the process are then blocked until the part is gone; output_is_interrupted()
 * tells that one is pending. A target that is not a regular file (a pipe, a device) is
 * written directly.
 */

#include <stdbool.h>
#include <stdio.h>

#include <drystone/trace.h>

struct output {
    const char *command, *path;
    char *target;  /* the file replaced at the end: `path`, or the target of that link */
    char *part;    /* path of the part; NULL: the target is written directly */
    bool has_name; /* the part exists under its name */
    bool holds_signals;
    unsigned held; /* signals to release, as bits of output.c's list */
    FILE *file;    /* opened for reading too */
};

/* Tell whether two paths are the same file, so that a typing error does not overwrite a
   recording. `input` may be "-", standard input. */
bool output_is_input(const char *path, const char *input);

/* Check that a file can be written, before work that takes minutes. Returns an exit_code. */
int output_check(const char *command, const char *path);
/* Open a file for writing; `path` "-" is standard output. Returns an exit_code; failures
   are printed. */
int output_open(struct output *out, const char *command, const char *path);
/* Open like output_open(), but give the part a name at once, for libraries that write by
   path: output_part_path(). */
int output_open_named(struct output *out, const char *command, const char *path);
/* Return the path of the file being written, valid until output_close(). NULL: the target
   is written directly, or the part has no name. */
const char *output_part_path(const struct output *out);
/* Tell whether a blocked signal is pending. The sink fails by itself then; code that
   writes by path polls and stops. */
bool output_is_interrupted(const struct output *out);
/* Return a sink that writes to the file, valid until output_close(). */
struct dry_sink output_sink(struct output *out);
/*
 * Finish the file: replace the target if `status` is OK. Prints `err` or the system's
 * failure. Returns an exit_code; a failure of the system, such as a full disk, is
 * EXIT_MACHINE. A pending signal ends the process here.
 */
int output_close(struct output *out, enum dry_status status, const struct dry_error *err);
/* Write a whole file: `text`, which is freed, and a newline. NULL: memory ran out. Returns
   an exit_code; failures are printed. */
int output_write_text(const char *command, const char *path, char *text);
/* Remove the part without replacing the target or printing, when another step failed.
   Call it instead of output_close(). */
void output_discard(struct output *out);

#endif
