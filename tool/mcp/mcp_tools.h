/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_MCP_TOOLS_H
#define TOOL_MCP_TOOLS_H

/*
 * The tools offered to assistants: the commands that read, each with the options that
 * affect what is read. Types, bounds and descriptions come from the commands' option
 * tables, so the two cannot diverge.
 */

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "base/command.h"

#define MCP_OPTIONS_MAX 8

/* The input of a tool, and its arguments. */
enum mcp_input {
    MCP_NO_FILE,
    MCP_ONE_FILE, /* "file" */
    MCP_FILES,    /* "files": one or more */
    MCP_LOG,      /* "text", or "file" as standard input */
};

struct mcp_tool {
    const char *name, *about;
    const struct command *command; /* NULL: list_files, which the server implements */
    enum mcp_input input;
    const char *options[MCP_OPTIONS_MAX]; /* names without dashes */
    const char *json_rows;                /* --rows of an answer in JSON; NULL: none */
};

/* Return a tool by name; NULL: no such tool. */
const struct mcp_tool *mcp_tool_find(const char *name);

/* Return an option of the tool's command; NULL: no such option. */
const struct option_spec *mcp_tool_option(const struct mcp_tool *tool, const char *name);

/* Return the array of tools for tools/list; NULL: memory ran out. */
json_t *mcp_tools_describe(void);

#endif
