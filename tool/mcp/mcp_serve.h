/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_MCP_SERVE_H
#define TOOL_MCP_SERVE_H

/*
 * Answers of the server, one a request. In the protocol's revision 2026-07-28 every
 * request says in params._meta which revision it is of. Clients that know only 2025-11-25
 * or 2025-06-18 send an `initialize` first. Nothing else is kept from request to request.
 */

#include <jansson.h>

#include "base/child.h"
#include "mcp/mcp_folders.h"

struct mcp_server {
    struct mcp_folders folders;
    struct child_limits limits; /* of one call */
    bool is_initialized;        /* a client of an older revision has said so */
};

/*
 * Answer one line, without its line feed. Returns the response, the caller's; NULL: the
 * line asks for none.
 */
json_t *mcp_serve_line(struct mcp_server *server, const char *text, size_t length);

/* Refuse a line that is too long to be read. Takes `id`, which may be NULL. */
json_t *mcp_serve_too_long(json_t *id);

#endif
