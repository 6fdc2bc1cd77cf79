/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_COMMAND_H
#define TOOL_COMMAND_H

/*
 * A command of the tool: one struct, defined in cmd_NAME.c, listed in main.c.
 *
 *     static const struct option_spec specs[] = {
 *         {"capacity", 'c', "SIZE", OPTION_SIZE, offsetof(struct values, capacity),
 *          .help = "the device's memory"},
 *         ...
 *     };
 *     const struct command command_replay = {
 *         .name = "replay", .summary = "...", .usage = "[options] FILE",
 *         .examples = "drystone replay run.pickle --conf expandable_segments:True\n",
 *         .options = specs, .option_count = sizeof specs / sizeof *specs, .run = run,
 *     };
 *
 * Every command also understands --help and -h.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/options.h"

/* The process's exit status. */
enum exit_code {
    EXIT_FINE = 0,
    EXIT_FOUND = 1,   /* the command ran and found a problem: an OOM, a failed check */
    EXIT_USAGE = 2,   /* the command line is wrong */
    EXIT_INPUT = 3,   /* unreadable or refused input */
    EXIT_MACHINE = 4, /* a resource of this machine ran out: memory, disk space */
    EXIT_INTERRUPTED = 130, /* interrupted by the user: 128 + SIGINT, as in shells */
};

struct command {
    const char *name;
    const char *summary;  /* one line without a full stop */
    const char *usage;    /* the arguments after the command's name: "[options] FILE" */
    const char *about;    /* text for --help after the summary; NULL: none */
    const char *examples; /* one example per line; NULL: none */
    const struct option_spec *options;
    size_t option_count;
    bool stops_at_operand; /* leave the words after the first operand unparsed: another
                              program's arguments */
    int (*run)(int argc, char **argv); /* argv[0]: the command's name; an exit_code */
};

extern const struct command command_anonymize;
extern const struct command command_demo;
extern const struct command command_diff;
extern const struct command command_dry_run;
extern const struct command command_estimate;
extern const struct command command_explain;
extern const struct command command_export;
extern const struct command command_fit;
extern const struct command command_fleet;
extern const struct command command_info;
extern const struct command command_live;
extern const struct command command_mcp;
extern const struct command command_pages;
extern const struct command command_plan;
extern const struct command command_replay;
extern const struct command command_run;
extern const struct command command_steps;
extern const struct command command_sweep;
extern const struct command command_top;
extern const struct command command_view;

#endif
