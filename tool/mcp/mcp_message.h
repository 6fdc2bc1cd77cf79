/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_MCP_MESSAGE_H
#define TOOL_MCP_MESSAGE_H

/*
 * A line of the Model Context Protocol: one JSON-RPC message, from untrusted bytes.
 *
 *     request       an object with an id and a method: it is answered
 *     notification  a request without an id: it never is
 *     response      of a request that this server never made: passed over
 *
 * Other lines are refused with JSON-RPC's error codes. The protocol has no batches.
 */

#include <stdio.h>

#include <jansson.h>

/* Longer lines are skipped and refused; a log to explain fits into a line. */
#define MCP_LINE_BYTES_MAX ((size_t)1 << 20)
/* Ids are echoed, so their length counts against the answer's. */
#define MCP_ID_BYTES_MAX 128

/* Error codes: JSON-RPC's, and the protocol's own. */
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
    MCP_LINE_TOO_LONG, /* the whole line was skipped */
    MCP_LINE_END,      /* end of input; an unterminated line is ignored */
};

/* Read the next line into `text`, of MCP_LINE_BYTES_MAX bytes, without its line feed.
   Sets *length. *id is the id of a too long line, else NULL; the caller owns *id. */
enum mcp_line mcp_line_read(FILE *in, char *text, size_t *length, json_t **id);

enum mcp_kind { MCP_REQUEST, MCP_NOTIFICATION, MCP_RESPONSE, MCP_REFUSED };

struct mcp_message {
    json_t *root; /* the caller calls json_decref(); for a broken line the id, or NULL */
    json_t *id;   /* string or integer; NULL: none to reply to */
    const char *method; /* NULL for a response */
    json_t *params;     /* object; NULL: none */
    int code;           /* code of a refusal; `reason` explains */
    const char *reason;
};

/* Parse a message. *m is set in any case. O(length). */
enum mcp_kind mcp_message_read(const char *text, size_t length, struct mcp_message *m);

#endif
