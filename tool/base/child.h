/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_CHILD_H
#define TOOL_CHILD_H

/*
 * Run work in a child process and collect what it prints: another command, or an answer
 * that takes long. The child writes into memory files, so the parent need not read while
 * it runs. Its memory goes with it, and a hostile file that crashes the child does not
 * crash the parent.
 *
 *     struct child_output output;
 *     if (child_run(&work, &output))
 *         use(output.text), free(output.text);
 *
 * Threads    The calling process is single-threaded.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/command.h"

/* Limits of a child, which the kernel enforces; 0: no limit. */
struct child_limits {
    uint64_t memory_bytes; /* address space beyond what the parent has mapped */
    uint64_t output_bytes;
    unsigned seconds;
};

struct child_work {
    int (*print)(void *self); /* runs in the child; returns an exit_code */
    void *self;
    const char *input; /* file for the child's standard input; NULL: empty */
    struct child_limits limits;
};

struct child {
    pid_t pid;
    int out, err; /* memfds for standard output and standard error */
    int status;   /* result of waitpid(); valid once child_is_over() is true */
};

struct child_output {
    char *
        text; /* standard output, then standard error, then a zero; the caller frees it */
    size_t length, error_length; /* bytes of both streams, and of standard error alone */
    int code;                    /* the exit code; EXIT_MACHINE after a signal */
    const char *reason;          /* the signal that ended the child; NULL: it exited */
};

/*
 * Start the work in a child. Returns false if the child could not be started; child_end()
 * is not called then. Requires that the parent's streams are flushed, or the child prints
 * their buffers again.
 */
bool child_begin(struct child *child, const struct child_work *work);
/* Tell whether the child has ended; with `does_wait`, wait for its end first. */
bool child_is_over(struct child *child, bool does_wait);
/* Send the child SIGTERM and wait for its end. Children that it began with child_begin()
   are killed with it. Call child_end() afterwards. */
void child_stop(struct child *child);
/* Collect the output of a child that is over, and close its files. Returns false, without
   a text, if memory ran out. */
bool child_end(struct child *child, struct child_output *output);
/* The three above in one: begin, wait, collect. Returns false, without a text, if the child
   could not be started or memory ran out. */
bool child_run(const struct child_work *work, struct child_output *output);

/* A command to run as work: `print` is child_print_command(), `self` this struct. */
struct child_command {
    const struct command *command;
    int argc;
    char **argv; /* argc entries; argv[0] is the command's name */
};
int child_print_command(void *child_command);

#endif
