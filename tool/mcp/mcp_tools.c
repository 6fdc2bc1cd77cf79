/* SPDX-License-Identifier: Apache-2.0 */
/* See mcp_tools.h. */
#include "mcp/mcp_tools.h"

#include <string.h>

#include "base/json_out.h"

static const struct mcp_tool tools[] = {
    {.name = "list_files",
     .about = "List recordings and logs below the folders that are served, with their "
              "sizes."},
    {.name = "info",
     .about = "What is in a recording, and how far it can be trusted. Ask this first.",
     .command = &command_info,
     .input = MCP_ONE_FILE},
    {.name = "explain",
     .about =
         "The verdict on a recording: why the memory did not fit, with the sums that "
         "prove it; who held it; what to change, by how many bytes.",
     .command = &command_explain,
     .input = MCP_ONE_FILE,
     .options = {"at", "gpu-total", "rows", "device"}},
    {.name = "explain_message",
     .about = "The verdict on an OOM message, given as text or found in a log: "
              "what its numbers prove, and what to do next.",
     .command = &command_explain,
     .input = MCP_LOG},
    {.name = "top",
     .about = "Who holds the memory at one moment, by line of source or by another key. "
              "With free: where memory is reserved and not used, by pool, and what pins "
              "it.",
     .command = &command_top,
     .input = MCP_ONE_FILE,
     .options = {"at", "by", "stacks", "free", "rows", "device"},
     .json_rows = "20"},
    {.name = "steps",
     .about = "Peaks and growth by training step, phases, and what looks like a leak.",
     .command = &command_steps,
     .input = MCP_ONE_FILE,
     .options = {"capacity", "rows", "device"}},
    {.name = "diff",
     .about = "What differs between recordings: runs, ranks or devices, by owner.",
     .command = &command_diff,
     .input = MCP_FILES,
     .options = {"at", "by", "min", "rows", "device"},
     .json_rows = "20"},
    {.name = "replay",
     .about = "What other settings, another allocator or another release would have done "
              "with the same requests, checked against the recording.",
     .command = &command_replay,
     .input = MCP_ONE_FILE,
     .options = {"conf", "place", "capacity", "find-capacity", "compat", "device"}},
    {.name = "sweep",
     .about = "The setting of PyTorch's allocator to use, found by replays, or that none "
              "helps.",
     .command = &command_sweep,
     .input = MCP_ONE_FILE,
     .options = {"goal", "capacity", "without", "compat", "device"}},
};
#define TOOL_COUNT (sizeof tools / sizeof *tools)

const struct mcp_tool *
mcp_tool_find(const char *name)
{
    for (size_t i = 0; i < TOOL_COUNT; i++) {
        if (strcmp(tools[i].name, name) == 0)
            return &tools[i];
    }
    return NULL;
}

const struct option_spec *
mcp_tool_option(const struct mcp_tool *tool, const char *name)
{
    for (size_t i = 0; tool->command && i < tool->command->option_count; i++) {
        if (strcmp(tool->command->options[i].name, name) == 0)
            return &tool->command->options[i];
    }
    return NULL;
}

/* --- schemas ------------------------------------------------------------------------------ */

/* Return the JSON Schema of an option's type. Callers pass the result on into
   json_pack(), where a NULL makes the whole NULL. */
static json_t *
describe_type(const struct option_spec *spec)
{
    switch (spec->kind) {
    case OPTION_FLAG:
        return json_pack("{s:s}", "type", "boolean");
    case OPTION_LIST:
        return json_pack("{s:s, s:{s:s}}", "type", "array", "items", "type", "string");
    case OPTION_INT:
        return json_pack("{s:s}", "type", "integer");
    case OPTION_STRING:
    case OPTION_SIZE:
        break;
    }
    return json_pack("{s:s}", "type", "string");
}

/* Add an option to a schema; "gpu-total" becomes "gpu_total". */
static bool
add_option(json_t *properties, const struct mcp_tool *tool, const char *name)
{
    const struct option_spec *spec = mcp_tool_option(tool, name);
    json_t *type = spec ? describe_type(spec) : NULL;
    char key[32];
    size_t n = strlen(name);
    if (!type || n >= sizeof key)
        return false;
    memcpy(key, name, n + 1);
    for (char *dash = key; (dash = strchr(dash, '-')) != NULL;)
        *dash = '_';
    return json_object_set_new(type, "description", json_string(spec->help)) == 0 &&
           json_object_set_new(properties, key, type) == 0;
}

static bool
add_text(json_t *properties, const char *key, const char *description)
{
    return json_object_set_new(properties, key,
                               json_pack("{s:s, s:s}", "type", "string", "description",
                                         description)) == 0;
}

static bool
add_input(json_t *properties, enum mcp_input input)
{
    switch (input) {
    case MCP_NO_FILE:
        return true;
    case MCP_FILES:
        return json_object_set_new(properties, "files",
                                   json_pack("{s:s, s:{s:s}, s:i}", "type", "array",
                                             "items", "type", "string", "minItems", 1)) ==
               0;
    case MCP_LOG:
        return add_text(properties, "text", "the message itself") &&
               add_text(properties, "file", "or a log that has it");
    case MCP_ONE_FILE:
        break;
    }
    return add_text(properties, "file", "absolute, or below a folder that is served");
}

static bool
add_common(json_t *properties, const struct mcp_tool *tool)
{
    json_t *format =
        json_pack("{s:s, s:[s, s]}", "type", "string", "enum", "text", "json");
    if (tool->command && json_object_set(properties, "format", format) != 0)
        return false;
    json_decref(format);
    return json_object_set_new(properties, "cursor",
                               json_pack("{s:s}", "type", "string")) == 0 &&
           json_object_set_new(properties, "max_bytes",
                               json_pack("{s:s, s:s}", "type", "integer", "description",
                                         "of the answer; default 10000")) == 0;
}

static json_t *
describe_input(const struct mcp_tool *tool)
{
    json_t *properties = json_object();
    bool is_made = properties && add_input(properties, tool->input);
    for (size_t i = 0; is_made && i < MCP_OPTIONS_MAX && tool->options[i]; i++)
        is_made = add_option(properties, tool, tool->options[i]);
    if (!is_made || !add_common(properties, tool)) {
        json_decref(properties);
        return NULL;
    }
    const char *needed = tool->input == MCP_ONE_FILE ? "file"
                         : tool->input == MCP_FILES  ? "files"
                                                     : NULL;
    json_t *schema = json_pack("{s:s, s:o, s:b}", "type", "object", "properties",
                               properties, "additionalProperties", 0);
    if (schema && needed &&
        json_object_set_new(schema, "required", json_pack("[s]", needed)) != 0) {
        json_decref(schema);
        return NULL;
    }
    return schema;
}

json_t *
mcp_tools_describe(void)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < TOOL_COUNT; i++) {
        json_t *tool = json_pack("{s:s, s:s, s:o, s:{s:b, s:b}}", "name", tools[i].name,
                                 "description", tools[i].about, "inputSchema",
                                 describe_input(&tools[i]), "annotations", "readOnlyHint",
                                 1, "openWorldHint", 0);
        list = json_out_append(list, tool);
    }
    return list;
}
