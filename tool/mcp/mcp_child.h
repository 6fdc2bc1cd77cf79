/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_MCP_CHILD_H
#define TOOL_MCP_CHILD_H

/*
 * A command, run in a child of the server with limits of its own. The server keeps the
 * output. The child's memory goes with it, and a file that brings it down takes nothing
 * else along.
 */

#include <stdint.h>

#include "base/command.h"

/* A command that prints more is ended. */
#define MCP_OUTPUT_BYTES_MAX ((size_t)16 << 20)

struct mcp_limits {
    uint64_t memory_bytes; /* that the child may take beside what the server has */
    unsigned seconds;
};

struct mcp_output {
    char *text; /* standard output, then standard error; the caller's to free */
    size_t length;
    int code;           /* the command's; EXIT_MACHINE if it did not come to its end */
    const char *reason; /* why it did not; NULL: it did */
};

struct mcp_work {
    const struct command *command;
    int argc;
    char **argv;       /* argv[0] .. argv[argc - 1] */
    const char *input; /* the file for standard input; NULL: nothing */
    struct mcp_limits limits;
};

/*
 * Run a command. Returns whether it could be started; *output is set then. Requires that
 * the process has one thread and has written all it had to.
 */
bool mcp_child_run(const struct mcp_work *work, struct mcp_output *output);

#endif
