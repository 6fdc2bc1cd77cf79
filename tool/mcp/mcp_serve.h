/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_MCP_SERVE_H
#define TOOL_MCP_SERVE_H

/*
 * The server's responses, one per request. In the protocol's revision 2026-07-28, every
 * request names its revision in params._meta. Clients of 2025-11-25 or 2025-06-18 send
 * `initialize` first. No other state is kept between requests.
 */

#include <jansson.h>

#include "base/child.h"
#include "mcp/mcp_folders.h"

struct mcp_server {
    struct mcp_folders folders;
    struct child_limits limits; /* per call */
    bool is_initialized;        /* a client of an older revision sent `initialize` */
};

/* Answer one line, given without its line feed. Returns the response, owned by the
   caller; NULL: the line needs no response. */
json_t *mcp_serve_line(struct mcp_server *server, const char *text, size_t length);

/* Refuse a line that is too long. Consumes `id`, which may be NULL. */
json_t *mcp_serve_too_long(json_t *id);

#endif
