/* SPDX-License-Identifier: Apache-2.0 */
/* See mcp_message.h. */
#include "mcp/mcp_message.h"

#include <stdbool.h>
#include <string.h>

#define MEMBER_BYTES_MAX 1024 /* longer members are ignored */

/* --- ids of lines that are not JSON or too long ------------------------------------------- */

/* Scan a broken line for its id. Only brackets and quotes are tracked, to find the
   members of the outermost object. jansson parses each member as an object of its own. */
struct id_scan {
    size_t depth; /* nesting depth of objects and lists */
    bool is_text, is_escaped;
    char member[MEMBER_BYTES_MAX]; /* the member's text, without bracketed contents */
    size_t used;
    json_t *id; /* the last one found */
    size_t count;
};

static bool
is_id(const json_t *id)
{
    return json_is_integer(id) ||
           (json_is_string(id) && json_string_length(id) <= MCP_ID_BYTES_MAX);
}

static void
keep(struct id_scan *s, char c)
{
    if (s->depth == 1 && s->used < sizeof s->member)
        s->member[s->used++] = c;
}

static void
begin_member(struct id_scan *s)
{
    s->used = 0;
    keep(s, '{');
}

static void
end_member(struct id_scan *s)
{
    keep(s, '}');
    bool is_kept = s->used < sizeof s->member;
    json_t *member = is_kept ? json_loadb(s->member, s->used, 0, NULL) : NULL;
    json_t *id = json_object_get(member, "id");
    if (id) {
        json_decref(s->id);
        s->id = json_incref(id);
        s->count++;
    }
    json_decref(member);
    begin_member(s);
}

static void
scan_text(struct id_scan *s, char c)
{
    keep(s, c);
    s->is_text = s->is_escaped || c != '"';
    s->is_escaped = !s->is_escaped && c == '\\';
}

static void
scan_byte(struct id_scan *s, char c)
{
    switch (c) {
    case '{':
    case '[':
        keep(s, c);
        if (s->depth++ == 0)
            begin_member(s);
        break;
    case '}':
    case ']':
        if (s->depth == 1)
            end_member(s);
        s->depth -= s->depth > 0;
        keep(s, c);
        break;
    case ',':
        if (s->depth == 1)
            end_member(s);
        break;
    default:
        s->is_text = c == '"';
        keep(s, c);
    }
}

static void
scan(struct id_scan *s, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (s->is_text)
            scan_text(s, bytes[i]);
        else
            scan_byte(s, bytes[i]);
    }
}

/* Return the id, owned by the caller; NULL: none that can be used, or several. */
static json_t *
end_scan(struct id_scan *s)
{
    if (s->count == 1 && is_id(s->id))
        return s->id;
    json_decref(s->id);
    return NULL;
}

/* --- lines ------------------------------------------------------------------------------- */

enum mcp_line
mcp_line_read(FILE *in, char *text, size_t *length, json_t **id)
{
    bool is_too_long = false;
    int c;
    *length = 0;
    struct id_scan s = {0};
    while ((c = getc(in)) != EOF && c != '\n') {
        if (*length == MCP_LINE_BYTES_MAX) {
            scan(&s, text, *length);
            is_too_long = true;
            *length = 0;
        }
        text[(*length)++] = (char)c;
    }
    if (is_too_long)
        scan(&s, text, *length);
    *id = end_scan(&s);
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

/* Refuse a line that is not JSON, with its id if one is found: clients match errors to
   requests by id. */
static enum mcp_kind
refuse_broken(struct mcp_message *m, const char *text, size_t length)
{
    struct id_scan s = {0};
    scan(&s, text, length);
    m->id = m->root = end_scan(&s);
    return refuse(m, MCP_PARSE_ERROR,
                  "a line is one JSON object in UTF-8, with integers of 64 bits");
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
    *m = (struct mcp_message){0};
    m->root = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    if (!m->root)
        return refuse_broken(m, text, length);
    if (json_is_array(m->root))
        return refuse(m, MCP_INVALID_REQUEST, "the protocol has no batches");
    return read_object(m);
}
