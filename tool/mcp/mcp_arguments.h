/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_MCP_ARGUMENTS_H
#define TOOL_MCP_ARGUMENTS_H

/*
 * The arguments of a tool's call, turned into a command line. Every value becomes
 * "--name=VALUE" and every file an absolute path, so that neither can be an option.
 */

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
    char *argv[MCP_ARGUMENTS_MAX + 1]; /* ends with NULL */
    int argc;
    char *input;        /* the file for standard input; NULL: none */
    const char *cursor; /* of the call's own JSON; NULL: the first page */
    size_t answer_bytes;
    bool is_json;
    char reason[MCP_REASON_BYTES]; /* of a refusal */
};

/*
 * Read the arguments of a call; `given` may be NULL. Returns false and a reason for what
 * the tool does not take. mcp_arguments_finish() is due in either case. The JSON must
 * outlive *a.
 */
bool mcp_arguments_read(const struct mcp_tool *tool, json_t *given,
                        const struct mcp_folders *folders, struct mcp_arguments *a);
void mcp_arguments_finish(struct mcp_arguments *a);

#endif
