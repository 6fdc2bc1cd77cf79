/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes as lines to `drystone mcp`. A request is answered once, with its id, by a result
 * or an error; nothing else is, but for what is refused. Arguments of calls are read, not
 * run: whatever they hold, the command line has the command's name first, options with
 * their values, and no file. Then all bytes are a long answer: its pages, joined, are the
 * answer again, and none is longer than asked for.
 */
#include "support/fuzz.h"

#include <string.h>

#include "mcp/mcp_arguments.h"
#include "mcp/mcp_message.h"
#include "mcp/mcp_page.h"
#include "mcp/mcp_serve.h"

static void
check_response(const json_t *response, const struct mcp_message *m)
{
    const json_t *id = json_object_get(response, "id");
    bool has_result = json_object_get(response, "result") != NULL;
    bool has_error = json_object_get(response, "error") != NULL;
    fuzz_require(has_result != has_error);
    fuzz_require(m->id ? json_equal(id, m->id) : json_is_null(id));
    char *line = json_dumps(response, JSON_COMPACT);
    fuzz_require(line && strlen(line) <= MCP_ANSWER_BYTES && !strchr(line, '\n'));
    free(line);
}

static void
check_arguments(const struct mcp_tool *tool, json_t *given,
                const struct mcp_folders *folders)
{
    struct mcp_arguments a;
    bool is_read = mcp_arguments_read(tool, given, folders, &a);
    fuzz_require(is_read || a.reason[0]);
    for (int i = 1; is_read && i < a.argc; i++)
        fuzz_require(strncmp(a.argv[i], "--", 2) == 0);
    fuzz_require(a.argv[a.argc] == NULL);
    mcp_arguments_finish(&a);
}

/* A call would start a command for every input. */
static bool
is_call(const struct mcp_message *m)
{
    return m->method && strcmp(m->method, "tools/call") == 0;
}

static void
check_line(struct mcp_server *server, const char *line, size_t length)
{
    struct mcp_message m;
    enum mcp_kind kind = mcp_message_read(line, length, &m);
    fuzz_require(kind != MCP_REFUSED || (m.code && m.reason));
    const char *name = json_string_value(json_object_get(m.params, "name"));
    const struct mcp_tool *tool = is_call(&m) && name ? mcp_tool_find(name) : NULL;
    json_t *given = json_object_get(m.params, "arguments");
    if (tool && json_is_object(given))
        check_arguments(tool, given, &server->folders);
    if (kind != MCP_REQUEST || !is_call(&m)) {
        json_t *response = mcp_serve_line(server, line, length);
        fuzz_require((response != NULL) == (kind == MCP_REQUEST || kind == MCP_REFUSED));
        if (response)
            check_response(response, &m);
        json_decref(response);
    }
    json_decref(m.root);
}

static size_t
measure_json(const char *text, size_t length)
{
    json_t *string = json_stringn_nocheck(text, length);
    char *dumped = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
    size_t n = dumped ? strlen(dumped) - 2 : 0;
    free(dumped);
    json_decref(string);
    return n;
}

static void
check_pages(const char *text, size_t length, size_t budget)
{
    struct mcp_page page = {0};
    size_t end = 0;
    do {
        fuzz_require(
            !mcp_page_find(text, length, end ? page.cursor : NULL, budget, &page));
        fuzz_require(page.begin == end && page.end <= length);
        fuzz_require(page.end > page.begin || length == 0);
        end = page.end;
        json_t *made = mcp_page_make(text, length, &page);
        fuzz_require(made != NULL);
        json_decref(made);
        size_t cost = measure_json(text + page.begin, page.end - page.begin);
        fuzz_require(cost <= budget || page.end - page.begin <= 4);
    } while (!page.is_last);
    fuzz_require(end == length);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mcp_server server = {.limits = {0}};
    const char *text = (const char *)data;
    for (size_t at = 0; at < size;) {
        const char *feed = memchr(text + at, '\n', size - at);
        size_t length = feed ? (size_t)(feed - text) - at : size - at;
        if (length <= MCP_LINE_BYTES_MAX)
            check_line(&server, text + at, length);
        at += length + 1;
    }
    if (size > 0 && size <= 4096)
        check_pages(text, size, 32 + data[0]);
    return 0;
}
