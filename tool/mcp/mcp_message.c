/* SPDX-License-Identifier: Apache-2.0 */
/* The idea stands in mcp_message.h. */
#include "mcp/mcp_message.h"

#include <stdbool.h>
#include <string.h>

enum mcp_line
mcp_line_read(FILE *in, char *text, size_t *length)
{
    bool is_too_long = false;
    int c;
    *length = 0;
    while ((c = getc(in)) != EOF && c != '\n') {
        if (*length == MCP_LINE_BYTES_MAX)
            is_too_long = true;
        else
            text[(*length)++] = (char)c;
    }
    if (c == EOF)
        return MCP_LINE_END;
    return is_too_long ? MCP_LINE_TOO_LONG : MCP_LINE_READ;
}

static enum mcp_kind
refuse(struct mcp_message *m, int code, const char *reason)
{
    m->code = code;
    m->reason = reason;
    return MCP_REFUSED;
}

static bool
is_id(const json_t *id)
{
    return json_is_integer(id) ||
           (json_is_string(id) && json_string_length(id) <= MCP_ID_BYTES_MAX);
}

static enum mcp_kind
read_object(struct mcp_message *m)
{
    const char *version = json_string_value(json_object_get(m->root, "jsonrpc"));
    json_t *id = json_object_get(m->root, "id");
    bool is_response = json_object_get(m->root, "result") != NULL ||
                       json_object_get(m->root, "error") != NULL;
    m->id = is_id(id) ? id : NULL;
    m->method = json_string_value(json_object_get(m->root, "method"));
    m->params = json_object_get(m->root, "params");
    if (!version || strcmp(version, "2.0") != 0)
        return refuse(m, MCP_INVALID_REQUEST, "jsonrpc: expected \"2.0\"");
    if (!m->method && is_response)
        return MCP_RESPONSE;
    if (id && !m->id)
        return refuse(m, MCP_INVALID_REQUEST,
                      "id: expected an integer or a string of at most 128 bytes");
    if (!m->method)
        return refuse(m, MCP_INVALID_REQUEST, "method: expected a string");
    if (m->params && !json_is_object(m->params))
        return id ? refuse(m, MCP_INVALID_PARAMS, "params: expected an object")
                  : MCP_NOTIFICATION;
    return id ? MCP_REQUEST : MCP_NOTIFICATION;
}

enum mcp_kind
mcp_message_read(const char *text, size_t length, struct mcp_message *m)
{
    json_error_t error;
    *m = (struct mcp_message){0};
    m->root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!m->root)
        return refuse(m, MCP_PARSE_ERROR, "a line is one JSON object in UTF-8");
    if (json_is_array(m->root))
        return refuse(m, MCP_INVALID_REQUEST, "the protocol has no batches");
    return read_object(m);
}
