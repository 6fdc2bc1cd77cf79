/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_CHILD_H
#define TOOL_CHILD_H

/*
 * Work in a child of this process, for what it prints: another command, or an answer that
 * takes long. The child writes into files in memory, so nobody has to read meanwhile. Its
 * memory goes with it, and a file that brings it down takes nothing else along.
 *
 *     struct child child;
 *     struct child_output output;
 *     if (child_begin(&child, &work) && child_is_over(&child, true) &&
 *         child_end(&child, &output))
 *         use(output.text), free(output.text);
 *
 * Threads    The process has one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/command.h"

/* The kernel holds them; 0: there is none. */
struct child_limits {
    uint64_t memory_bytes; /* that the child may take beside what this process has */
    uint64_t output_bytes;
    unsigned seconds;
};

struct child_work {
    int (*print)(void *self); /* in the child: prints, and returns an exit_code */
    void *self;
    const char *input; /* the file for standard input; NULL: nothing */
    struct child_limits limits;
};

struct child {
    pid_t pid;
    int out, err; /* files in memory */
    int status;   /* as waitpid() has it, once it is over */
};

struct child_output {
    char *
        text; /* standard output, then standard error, and a zero; the caller's to free */
    size_t length, error_length; /* of both, and of the second */
    int code;                    /* EXIT_MACHINE if it did not come to its end */
    const char *reason;          /* why it did not; NULL: it did */
};

/*
 * Begin the work. False: it could not be started, and there is nothing to end. Requires that
 * what was printed before is flushed.
 */
bool child_begin(struct child *child, const struct child_work *work);
/* Tell whether it is over; with `does_wait`, once it is. */
bool child_is_over(struct child *child, bool does_wait);
/* End it before its time, with the children that it began. child_end() is still due. */
void child_stop(struct child *child);
/* End one that is over. False: no memory for the text. */
bool child_end(struct child *child, struct child_output *output);

/* A command as work: for `print` and `self`. */
struct child_command {
    const struct command *command;
    int argc;
    char **argv; /* argv[0] .. argv[argc - 1] */
};
int child_print_command(void *child_command);

#endif
