/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone mcp`: serve the commands that only read to AI assistants, by the Model
   Context Protocol. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/json_out.h"
#include "base/report.h"
#include "mcp/mcp_message.h"
#include "mcp/mcp_serve.h"

/* A command that prints more is terminated. */
#define OUTPUT_BYTES_MAX (UINT64_C(16) << 20)

struct values {
    uint64_t memory;
    int64_t seconds;
};

static const struct option_spec specs[] = {
    {"memory", 0, "SIZE", OPTION_SIZE, offsetof(struct values, memory),
     .help = "what a call may take; default 4GiB", .min = 64 << 20},
    {"seconds", 0, "N", OPTION_INT, offsetof(struct values, seconds),
     .help = "how long a call may take; default 300", .min = 1, .max = 86400},
};

static const char about_text[] =
    "Serves info, explain, top, steps, diff, replay and sweep over standard "
    "input and output, a JSON-RPC message a line, until the input ends. Files are read "
    "below the folders given, and nowhere else; nothing is written, and no network is "
    "used. An answer has at most 10,000 bytes and tells how to get its next part.";

/* Write a response as one line and release `response`. NULL: memory ran out. */
static bool
write_response(json_t *response)
{
    static const char no_memory[] =
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32603,\"message\":\"no "
        "memory\"}}\n";
    char *line = json_out_dump(response, JSON_COMPACT);
    bool is_written = line ? fputs(line, stdout) >= 0 && putchar('\n') != EOF
                           : fputs(no_memory, stdout) >= 0;
    free(line);
    return fflush(stdout) == 0 && is_written;
}

static int
serve(struct mcp_server *server, char *line)
{
    size_t length;
    enum mcp_line state;
    json_t *id;
    while ((state = mcp_line_read(stdin, line, &length, &id)) != MCP_LINE_END) {
        bool is_read = state == MCP_LINE_READ;
        json_t *response =
            is_read ? mcp_serve_line(server, line, length) : mcp_serve_too_long(id);
        if ((response || !is_read) && !write_response(response))
            return report_failure("mcp", NULL, EXIT_MACHINE, "cannot answer: %s",
                                  strerror(errno));
    }
    json_decref(id);
    return EXIT_FINE;
}

static int
open_and_serve(const struct values *v, const struct option_list *folders)
{
    struct mcp_server server = {.limits = {.memory_bytes = v->memory,
                                           .output_bytes = OUTPUT_BYTES_MAX,
                                           .seconds = (unsigned)v->seconds}};
    int code = mcp_folders_open(folders->values, folders->count, &server.folders);
    char *line = malloc(MCP_LINE_BYTES_MAX);
    if (code == EXIT_FINE)
        code = line ? serve(&server, line) : report_memory("mcp", NULL);
    free(line);
    mcp_folders_close(&server.folders);
    return code;
}

static int
run(int argc, char **argv)
{
    struct values v = {.memory = UINT64_C(4) << 30, .seconds = 300};
    struct option_list operands = {0};
    int code;
    if (options_parse(&command_mcp, argc, argv, &v, &operands, &code))
        code = operands.count > 0
                   ? open_and_serve(&v, &operands)
                   : report_usage("mcp", "expected the folders whose files may be read");
    options_finish(&command_mcp, &v, &operands);
    return code;
}

const struct command command_mcp = {
    .name = "mcp",
    .summary = "the reading commands for assistants, by the Model Context Protocol",
    .usage = "[options] DIR [DIR...]",
    .about = about_text,
    .examples =
        "drystone mcp recordings\n"
        "drystone mcp --seconds 60 --memory 2GiB /data/snapshots /var/log/train\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .run = run,
};
