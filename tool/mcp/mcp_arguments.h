/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_MCP_ARGUMENTS_H
#define TOOL_MCP_ARGUMENTS_H

/* Turn the arguments of a tool call into a command line. Values become "--name=VALUE" and
   files absolute paths, so neither can inject an option. */

#include <stddef.h>

#include <jansson.h>

#include "mcp/mcp_folders.h"
#include "mcp/mcp_tools.h"

#define MCP_ANSWER_BYTES 10000
#define MCP_ANSWER_BYTES_MIN 2000
#define MCP_ANSWER_BYTES_MAX 1000000
#define MCP_ARGUMENTS_MAX 64
#define MCP_REASON_BYTES 240

struct mcp_arguments {
    char *argv[MCP_ARGUMENTS_MAX + 1]; /* NULL-terminated */
    int argc;
    char *input;        /* path for standard input; NULL: none */
    const char *cursor; /* points into the call's JSON; NULL: the first page */
    size_t answer_bytes;
    bool is_json;
    char reason[MCP_REASON_BYTES]; /* why the call was refused */
};

/*
 * Read the arguments of a call; `given` may be NULL. Returns false, with a reason, if the
 * tool does not accept them. Call mcp_arguments_finish() in any case. `given` must
 * outlive *a.
 */
bool mcp_arguments_read(const struct mcp_tool *tool, json_t *given,
                        const struct mcp_folders *folders, struct mcp_arguments *a);
void mcp_arguments_finish(struct mcp_arguments *a);

#endif
