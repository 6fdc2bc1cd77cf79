/* SPDX-License-Identifier: Apache-2.0 */
/* See mcp_arguments.h. */
#include "mcp/mcp_arguments.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const struct mcp_tool *tool;
    const struct mcp_folders *folders;
    struct mcp_arguments *a;
};

__attribute__((format(printf, 2, 3))) static bool
refuse(struct mcp_arguments *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(a->reason, sizeof a->reason, format, args);
    va_end(args);
    return false;
}

/* Append an allocated word, taking ownership; NULL means that memory ran out. */
static bool
take(struct mcp_arguments *a, char *word)
{
    if (!word)
        return refuse(a, "no memory");
    if (a->argc == MCP_ARGUMENTS_MAX) {
        free(word);
        return refuse(a, "more than %d arguments", MCP_ARGUMENTS_MAX);
    }
    a->argv[a->argc++] = word;
    return true;
}

/* Append "--name=value", or "--name" if the value is NULL. */
static bool
add_option(struct mcp_arguments *a, const char *name, const char *value)
{
    size_t size = strlen(name) + (value ? strlen(value) : 0) + 4;
    char *word = malloc(size);
    if (word)
        snprintf(word, size, "--%s%s%s", name, value ? "=" : "", value ? value : "");
    return take(a, word);
}

/* --- options ------------------------------------------------------------------------------ */

static bool
add_list(struct mcp_arguments *a, const struct option_spec *spec, const json_t *value)
{
    size_t index;
    json_t *item;
    if (!json_is_array(value))
        return refuse(a, "%s: expected a list of strings", spec->name);
    json_array_foreach(value, index, item)
    {
        if (!json_is_string(item))
            return refuse(a, "%s: expected a list of strings", spec->name);
        if (!add_option(a, spec->name, json_string_value(item)))
            return false;
    }
    return true;
}

static bool
add_number(struct mcp_arguments *a, const struct option_spec *spec, const json_t *value)
{
    char number[32];
    snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT "%s",
             json_integer_value(value), spec->kind == OPTION_SIZE ? "B" : "");
    return add_option(a, spec->name, number);
}

static bool
add_value(struct mcp_arguments *a, const struct option_spec *spec, const json_t *value)
{
    switch (spec->kind) {
    case OPTION_FLAG:
        if (!json_is_boolean(value))
            return refuse(a, "%s: expected true or false", spec->name);
        return json_is_false(value) || add_option(a, spec->name, NULL);
    case OPTION_LIST:
        return add_list(a, spec, value);
    case OPTION_INT:
        if (!json_is_integer(value))
            return refuse(a, "%s: expected an integer", spec->name);
        return add_number(a, spec, value);
    case OPTION_STRING:
    case OPTION_SIZE:
        break;
    }
    if (json_is_integer(value))
        return add_number(a, spec, value);
    if (!json_is_string(value))
        return refuse(a, "%s: expected a string", spec->name);
    return add_option(a, spec->name, json_string_value(value));
}

/* Find the option for an argument's key; NULL: the tool does not expose that option. */
static const struct option_spec *
find_option(const struct mcp_tool *tool, const char *key)
{
    for (size_t i = 0; i < MCP_OPTIONS_MAX && tool->options[i]; i++) {
        const char *name = tool->options[i];
        size_t n = 0;
        while (key[n] && (key[n] == name[n] || (key[n] == '_' && name[n] == '-')))
            n++;
        if (!key[n] && !name[n])
            return mcp_tool_option(tool, name);
    }
    return NULL;
}

/* --- what is not of the command ----------------------------------------------------------- */

static bool
read_format(struct mcp_arguments *a, const json_t *value)
{
    const char *text = json_string_value(value);
    if (!text || (strcmp(text, "text") != 0 && strcmp(text, "json") != 0))
        return refuse(a, "format: expected \"text\" or \"json\"");
    a->is_json = text[0] == 'j';
    return true;
}

static bool
read_max_bytes(struct mcp_arguments *a, const json_t *value)
{
    json_int_t bytes = json_integer_value(value);
    if (!json_is_integer(value) || bytes < MCP_ANSWER_BYTES_MIN ||
        bytes > MCP_ANSWER_BYTES_MAX)
        return refuse(a, "max_bytes: expected %d to %d", MCP_ANSWER_BYTES_MIN,
                      MCP_ANSWER_BYTES_MAX);
    a->answer_bytes = (size_t)bytes;
    return true;
}

static bool
read_cursor(struct mcp_arguments *a, const json_t *value)
{
    a->cursor = json_string_value(value);
    return a->cursor || refuse(a, "cursor: expected a string");
}

/* Tell whether a key names the input, which is read last: files follow the options. */
static bool
is_of_input(const struct mcp_tool *tool, const char *key)
{
    switch (tool->input) {
    case MCP_ONE_FILE:
        return strcmp(key, "file") == 0;
    case MCP_FILES:
        return strcmp(key, "files") == 0;
    case MCP_LOG:
        return strcmp(key, "file") == 0 || strcmp(key, "text") == 0;
    case MCP_NO_FILE:
        break;
    }
    return false;
}

static bool
read_argument(struct reader *r, const char *key, const json_t *value)
{
    const struct option_spec *spec = find_option(r->tool, key);
    if (spec)
        return add_value(r->a, spec, value);
    if (is_of_input(r->tool, key))
        return true;
    if (strcmp(key, "format") == 0 && r->tool->command)
        return read_format(r->a, value);
    if (strcmp(key, "cursor") == 0)
        return read_cursor(r->a, value);
    if (strcmp(key, "max_bytes") == 0)
        return read_max_bytes(r->a, value);
    return refuse(r->a, "%.40s: %s takes no such argument", key, r->tool->name);
}

/* --- files -------------------------------------------------------------------------------- */

static char *
find_file(struct reader *r, const json_t *value)
{
    const char *name = json_string_value(value);
    if (!name) {
        refuse(r->a, "file: expected a string");
        return NULL;
    }
    char *path = mcp_folders_find(r->folders, name);
    if (!path)
        refuse(r->a,
               "%.120s: no such file below the folders that are served; list_files has "
               "them",
               name);
    return path;
}

static bool
read_files(struct reader *r, const json_t *list)
{
    size_t index;
    json_t *item;
    if (!json_is_array(list) || json_array_size(list) == 0)
        return refuse(r->a, "files: expected a list of names");
    json_array_foreach(list, index, item)
    {
        char *path = find_file(r, item);
        if (!path || !take(r->a, path))
            return false;
    }
    return true;
}

/* Read the input of explain_message: a text becomes an option, a log file becomes
   standard input. */
static bool
read_log(struct reader *r, const json_t *given)
{
    const json_t *text = json_object_get(given, "text");
    const json_t *file = json_object_get(given, "file");
    if (!text == !file)
        return refuse(r->a, "expected text, or file");
    if (text)
        return json_is_string(text) ? add_option(r->a, "message", json_string_value(text))
                                    : refuse(r->a, "text: expected a string");
    r->a->input = find_file(r, file);
    return r->a->input && add_option(r->a, "message", "-");
}

static bool
read_input(struct reader *r, const json_t *given)
{
    switch (r->tool->input) {
    case MCP_NO_FILE:
        return true;
    case MCP_FILES:
        return read_files(r, json_object_get(given, "files"));
    case MCP_LOG:
        return read_log(r, given);
    case MCP_ONE_FILE:
        break;
    }
    char *path = find_file(r, json_object_get(given, "file"));
    return path && take(r->a, path);
}

/* --- the whole ---------------------------------------------------------------------------- */

static bool
add_json(struct mcp_arguments *a, const struct mcp_tool *tool, const json_t *given)
{
    bool has_rows = !tool->json_rows || json_object_get(given, "rows");
    return add_option(a, "json", NULL) &&
           (has_rows || add_option(a, "rows", tool->json_rows));
}

bool
mcp_arguments_read(const struct mcp_tool *tool, json_t *given,
                   const struct mcp_folders *folders, struct mcp_arguments *a)
{
    *a = (struct mcp_arguments){.answer_bytes = MCP_ANSWER_BYTES};
    struct reader r = {tool, folders, a};
    if (!take(a, strdup(tool->command ? tool->command->name : tool->name)))
        return false;
    const char *key;
    json_t *value;
    json_object_foreach(given, key, value)
    {
        if (!read_argument(&r, key, value))
            return false;
    }
    return (!a->is_json || add_json(a, tool, given)) && read_input(&r, given);
}

void
mcp_arguments_finish(struct mcp_arguments *a)
{
    for (int i = 0; i < a->argc; i++)
        free(a->argv[i]);
    free(a->input);
}
