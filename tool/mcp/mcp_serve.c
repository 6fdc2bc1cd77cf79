/* SPDX-License-Identifier: Apache-2.0 */

/*
 * See mcp_serve.h. A method returns a result or sets an error; one function wraps either
 * into a response. A failed tool returns a result with isError, because assistants do not
 * see protocol errors.
 *
 * Source: the specification of 2026-07-28, basic/versioning and server/tools.
 */
#include "mcp/mcp_serve.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/drystone.h>

#include "base/json_out.h"
#include "mcp/mcp_arguments.h"
#include "mcp/mcp_message.h"
#include "mcp/mcp_page.h"
#include "mcp/mcp_tools.h"

#define META_VERSION "io.modelcontextprotocol/protocolVersion"
#define META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define META_SERVER "io.modelcontextprotocol/serverInfo"
#define NEWEST "2026-07-28"
#define NEWEST_OF_OLD "2025-11-25"
#define OLD "2025-06-18"
#define ENVELOPE_BYTES 640 /* bytes of an answer around the page, including the id */

static const char instructions[] =
    "Drystone reads recordings of GPU memory (PyTorch memory snapshots, plain traces) "
    "and "
    "logs. Begin with info and explain; explain_message takes an error text. top and "
    "steps show who, where and when. sweep names a setting, and replay proves "
    "one. Sizes are binary: 1 GiB is 2^30 bytes.";

struct call {
    struct mcp_server *server;
    const struct mcp_message *m;
    bool is_modern; /* revision 2026-07-28 */
    int code;       /* error code; 0: no error */
    const char *reason;
    json_t *data; /* data of the error; NULL: none */
};

static json_t *
fail(struct call *c, int code, const char *reason)
{
    c->code = code;
    c->reason = reason;
    return NULL;
}

/* --- envelopes ---------------------------------------------------------------------------- */

static json_t *
make_error(json_t *id, int code, const char *reason, json_t *data)
{
    json_t *error =
        json_pack("{s:i, s:s, s:o*}", "code", code, "message", reason, "data", data);
    return json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id ? id : json_null(),
                     "error", error);
}

static json_t *
make_server_info(void)
{
    return json_pack("{s:s, s:s}", "name", "drystone", "version", DRY_VERSION);
}

/* Wrap a result, which is consumed. The modern revision adds a type and server name. */
static json_t *
make_response(const struct call *c, json_t *result)
{
    if (c->is_modern &&
        (json_object_set_new(result, "resultType", json_string("complete")) != 0 ||
         json_object_set_new(result, "_meta",
                             json_pack("{s:o}", META_SERVER, make_server_info())) != 0)) {
        json_decref(result);
        return NULL;
    }
    return json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", c->m->id, "result",
                     result);
}

/* --- what the server is ------------------------------------------------------------------- */

static json_t *
list_versions(void)
{
    return json_pack("[s, s, s]", NEWEST, NEWEST_OF_OLD, OLD);
}

/* Answer server/discover. Clients may cache the answer for an hour: it changes with the
   program's version only. */
static json_t *
discover(struct call *c)
{
    if (!c->is_modern)
        return fail(c, MCP_METHOD_NOT_FOUND, "server/discover is of " NEWEST);
    return json_pack("{s:o, s:{s:{}}, s:s, s:i, s:s}", "supportedVersions",
                     list_versions(), "capabilities", "tools", "instructions",
                     instructions, "ttlMs", 3600000, "cacheScope", "private");
}

static json_t *
initialize(struct call *c)
{
    const char *wanted =
        json_string_value(json_object_get(c->m->params, "protocolVersion"));
    if (!wanted)
        return fail(c, MCP_INVALID_PARAMS, "protocolVersion: expected a string");
    c->server->is_initialized = true;
    return json_pack("{s:s, s:{s:{}}, s:o, s:s}", "protocolVersion",
                     strcmp(wanted, OLD) == 0 ? OLD : NEWEST_OF_OLD, "capabilities",
                     "tools", "serverInfo", make_server_info(), "instructions",
                     instructions);
}

static json_t *
ping(struct call *c)
{
    return c->is_modern ? fail(c, MCP_METHOD_NOT_FOUND, "ping is not of " NEWEST)
                        : json_object();
}

static json_t *
list_tools(struct call *c)
{
    if (json_object_get(c->m->params, "cursor"))
        return fail(c, MCP_INVALID_PARAMS, "cursor: the list has one page");
    json_t *list = json_pack("{s:o}", "tools", mcp_tools_describe());
    if (c->is_modern &&
        (json_object_set_new(list, "ttlMs", json_integer(3600000)) != 0 ||
         json_object_set_new(list, "cacheScope", json_string("private")) != 0)) {
        json_decref(list);
        return NULL;
    }
    return list;
}

/* --- calls of tools ----------------------------------------------------------------------- */

/* Wrap a text, which is consumed, as a tool's content. */
static json_t *
make_content(json_t *text, bool is_error)
{
    return json_pack("{s:[{s:s, s:o}], s:b}", "content", "type", "text", "text", text,
                     "isError", is_error);
}

static json_t *
make_refusal(const char *reason)
{
    return make_content(json_string(reason), true);
}

/* Remove the indentation of JSON, a third of its bytes. Other text is unchanged. */
static void
make_compact(struct child_output *o)
{
    json_error_t error;
    char *text = json_out_dump(json_loads(o->text, 0, &error),
                               JSON_COMPACT | JSON_REAL_PRECISION(15));
    if (!text)
        return;
    free(o->text);
    o->text = text;
    o->length = strlen(text);
}

static json_t *
make_answer(const struct mcp_arguments *a, const struct child_output *o)
{
    struct mcp_page page;
    bool is_error = o->code != EXIT_FINE && o->code != EXIT_FOUND;
    const char *reason = mcp_page_find(o->text, o->length, a->cursor,
                                       a->answer_bytes - ENVELOPE_BYTES, &page);
    if (reason)
        return make_refusal(reason);
    return make_content(mcp_page_make(o->text, o->length, &page), is_error);
}

static json_t *
run_tool(struct call *c, const struct mcp_tool *tool, struct mcp_arguments *a)
{
    struct child_output o = {.code = EXIT_FINE};
    struct child_command command = {tool->command, a->argc, a->argv};
    struct child_work work = {child_print_command, &command, a->input, c->server->limits};
    if (!tool->command)
        o.text = mcp_folders_list(&c->server->folders, &o.length);
    else if (!child_run(&work, &o))
        return fail(c, MCP_INTERNAL_ERROR, "the command could not be started");
    if (!o.text)
        return NULL;
    if (a->is_json && o.code <= EXIT_FOUND)
        make_compact(&o);
    json_t *answer = o.reason ? make_refusal(o.reason) : make_answer(a, &o);
    free(o.text);
    return answer;
}

static json_t *
call_tool(struct call *c)
{
    const char *name = json_string_value(json_object_get(c->m->params, "name"));
    json_t *given = json_object_get(c->m->params, "arguments");
    const struct mcp_tool *tool = name ? mcp_tool_find(name) : NULL;
    if (!tool)
        return fail(c, MCP_INVALID_PARAMS, "name: there is no such tool");
    if (given && !json_is_object(given))
        return fail(c, MCP_INVALID_PARAMS, "arguments: expected an object");
    struct mcp_arguments a;
    json_t *answer = mcp_arguments_read(tool, given, &c->server->folders, &a)
                         ? run_tool(c, tool, &a)
                         : make_refusal(a.reason);
    mcp_arguments_finish(&a);
    return answer;
}

/* --- requests ----------------------------------------------------------------------------- */

/* Determine a request's revision and set is_modern. True: the revision is supported. */
static bool
check_version(struct call *c)
{
    const json_t *meta = json_object_get(c->m->params, "_meta");
    const json_t *version = json_object_get(meta, META_VERSION);
    if (strcmp(c->m->method, "initialize") == 0)
        return true;
    if (!version && (c->server->is_initialized || strcmp(c->m->method, "ping") == 0))
        return true;
    c->is_modern = true;
    if (!json_is_string(version) ||
        !json_is_object(json_object_get(meta, META_CAPABILITIES))) {
        fail(c, MCP_INVALID_PARAMS,
             "params._meta: expected " META_VERSION " and " META_CAPABILITIES
             ", or initialize before it");
        return false;
    }
    if (strcmp(json_string_value(version), NEWEST) == 0)
        return true;
    fail(c, MCP_UNSUPPORTED_VERSION, "Unsupported protocol version");
    c->data =
        json_pack("{s:o, s:s%}", "supported", list_versions(), "requested",
                  json_string_value(version), strnlen(json_string_value(version), 64));
    return false;
}

static json_t *
answer_request(struct call *c)
{
    static const struct {
        const char *name;
        json_t *(*answer)(struct call *c);
    } methods[] = {
        {"initialize", initialize}, {"server/discover", discover}, {"ping", ping},
        {"tools/list", list_tools}, {"tools/call", call_tool},
    };
    if (!check_version(c))
        return NULL;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (strcmp(methods[i].name, c->m->method) == 0)
            return methods[i].answer(c);
    }
    return fail(c, MCP_METHOD_NOT_FOUND, "there is no such method");
}

static json_t *
serve_request(struct mcp_server *server, const struct mcp_message *m)
{
    struct call c = {.server = server, .m = m};
    json_t *result = answer_request(&c);
    if (c.code)
        return make_error(m->id, c.code, c.reason, c.data);
    json_t *response = result ? make_response(&c, result) : NULL;
    return response ? response : make_error(m->id, MCP_INTERNAL_ERROR, "no memory", NULL);
}

json_t *
mcp_serve_line(struct mcp_server *server, const char *text, size_t length)
{
    struct mcp_message m;
    json_t *response = NULL;
    enum mcp_kind kind = mcp_message_read(text, length, &m);
    if (kind == MCP_REFUSED)
        response = make_error(m.id, m.code, m.reason, NULL);
    else if (kind == MCP_REQUEST)
        response = serve_request(server, &m);
    json_decref(m.root);
    return response;
}

json_t *
mcp_serve_too_long(json_t *id)
{
    json_t *response =
        make_error(id, MCP_INVALID_REQUEST, "a line has at most 1 MiB", NULL);
    json_decref(id);
    return response;
}
