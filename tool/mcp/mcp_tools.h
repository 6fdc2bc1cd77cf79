/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_MCP_TOOLS_H
#define TOOL_MCP_TOOLS_H

/*
 * The tools that assistants see: the reading commands, each with those of its options that
 * change what is read. Types, bounds and descriptions come from the command's own table
 * of options, so that the two cannot differ.
 */

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "base/command.h"

#define MCP_OPTIONS_MAX 8

/* The files that a tool takes. */
enum mcp_input {
    MCP_NO_FILE,
    MCP_ONE_FILE, /* "file" */
    MCP_FILES,    /* "files": one or more */
    MCP_LOG,      /* "text", or "file" as standard input */
};

struct mcp_tool {
    const char *name, *about;
    const struct command *command; /* NULL: the server's own list of files */
    enum mcp_input input;
    const char *options[MCP_OPTIONS_MAX]; /* of the command, without dashes */
    const char *json_rows;                /* --rows of an answer in JSON; NULL: none */
};

/* NULL: there is no such tool. */
const struct mcp_tool *mcp_tool_find(const char *name);

/* The option `name` of the tool's command; NULL: it has none. */
const struct option_spec *mcp_tool_option(const struct mcp_tool *tool, const char *name);

/* The list for tools/list, an array; NULL: there was no memory. */
json_t *mcp_tools_describe(void);

#endif
