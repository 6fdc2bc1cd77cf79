/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_MCP_MESSAGE_H
#define TOOL_MCP_MESSAGE_H

/*
 * A line of the Model Context Protocol: one JSON-RPC message, read from hostile bytes.
 *
 *     request       an object with an id and a method: it is answered
 *     notification  a request without an id: it never is
 *     response      of a request that this server never made: passed over
 *
 * A line that is none of these is refused by JSON-RPC's codes. The protocol has no batches.
 */

#include <stdio.h>

#include <jansson.h>

/* A longer line is passed over and refused; a log to explain fits. */
#define MCP_LINE_BYTES_MAX ((size_t)1 << 20)
/* An id is sent back, so that its length counts in an answer. */
#define MCP_ID_BYTES_MAX 128

/* Codes of errors: JSON-RPC's, and the protocol's own. */
enum mcp_code {
    MCP_PARSE_ERROR = -32700,
    MCP_INVALID_REQUEST = -32600,
    MCP_METHOD_NOT_FOUND = -32601,
    MCP_INVALID_PARAMS = -32602,
    MCP_INTERNAL_ERROR = -32603,
    MCP_UNSUPPORTED_VERSION = -32022,
};

enum mcp_line {
    MCP_LINE_READ,
    MCP_LINE_TOO_LONG, /* all of it was passed over */
    MCP_LINE_END,      /* of the input; a line without a line feed is none */
};

/*
 * Read the next line into `text`, without its line feed; `text` has MCP_LINE_BYTES_MAX
 * bytes. Sets *length. *id is the caller's: that of a line that is too long, else NULL.
 */
enum mcp_line mcp_line_read(FILE *in, char *text, size_t *length, json_t **id);

enum mcp_kind { MCP_REQUEST, MCP_NOTIFICATION, MCP_RESPONSE, MCP_REFUSED };

struct mcp_message {
    json_t *root; /* the caller's to json_decref(); of a broken line the id, or NULL */
    json_t *id;   /* a string or an integer; NULL: none that can be answered */
    const char *method; /* NULL in a response */
    json_t *params;     /* an object; NULL: none */
    int code;           /* of a refusal, with its reason */
    const char *reason;
};

/* Read a message; *m is set in any case. O(length). */
enum mcp_kind mcp_message_read(const char *text, size_t length, struct mcp_message *m);

#endif
