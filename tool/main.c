/* SPDX-License-Identifier: Apache-2.0 */
/* The `drystone` command: finds and runs the command named by its first argument. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <drystone/drystone.h>

#include "base/command.h"
#include "base/report.h"

static const struct command *const commands[] = {
    &command_info, &command_explain,  &command_top,     &command_steps,
    &command_diff, &command_fleet,    &command_replay,  &command_sweep,
    &command_view, &command_live,     &command_dry_run, &command_fit,
    &command_plan, &command_estimate, &command_export,  &command_anonymize,
    &command_run,  &command_pages,    &command_demo,    &command_mcp,
};
/* clang-tidy reports the size of a pointer in sizeof *commands as a mistake. */
#define COMMAND_COUNT (sizeof commands / sizeof(const struct command *))

static void
print_help(FILE *out)
{
    fprintf(out, "usage: drystone COMMAND [options] [FILE...]\n\n"
                 "Make the memory of deep-learning programs fit.\n\n"
                 "commands:\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fprintf(out, "  %-10s %s\n\n", "help", "what a command does: drystone help COMMAND");
    fprintf(out, "  --version  the version of this program\n\n"
                 "Exit status: 0 fine; 1 something was found; 2 wrong command line;\n"
                 "3 unreadable or refused input; 4 the machine refused.\n");
}

static const struct command *
find_command(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
}

/* Commands of older releases. */
static const struct {
    const char *name, *now;
} renamed[] = {
    {"recommend", "sweep"},
    {"frag", "top --free"},
    {"doctor", "pages"},
    {"serve", "view"},
    {"report", "view -o OUT"},
    {"tui", "view --terminal"},
    {"exporter", "live --listen ADDRESS"},
};

static int
report_unknown(const char *name)
{
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++) {
        if (strcmp(renamed[i].name, name) == 0)
            return report_failure(NULL, NULL, EXIT_USAGE, "%s is now %s", name,
                                  renamed[i].now);
    }
    struct suggestion s = {.word = name};
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        suggestion_consider(&s, commands[i]->name);
    suggestion_consider(&s, "help");
    report_failure(NULL, NULL, EXIT_USAGE, "there is no command '%s'%s%s%s", name,
                   s.best ? "; did you mean '" : "", s.best ? s.best : "",
                   s.best ? "'?" : "");
    fprintf(stderr, "try: drystone --help\n");
    return EXIT_USAGE;
}

static int
run_help(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stdout);
        return EXIT_FINE;
    }
    const struct command *command = find_command(argv[1]);
    if (!command)
        return report_unknown(argv[1]);
    options_print_help(command, stdout);
    return EXIT_FINE;
}

static int
run(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : NULL;
    if (!word) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        print_help(stdout);
        return EXIT_FINE;
    }
    if (strcmp(word, "--version") == 0) {
        printf("drystone %s\n", dry_version());
        return EXIT_FINE;
    }
    if (strcmp(word, "help") == 0)
        return run_help(argc - 1, argv + 1);
    const struct command *command = find_command(word);
    return command ? command->run(argc - 1, argv + 1) : report_unknown(word);
}

int
main(int argc, char **argv)
{
    int code = run(argc, argv);
    /* Flush here: a full disk or a closed pipe may show only now. */
    if (fflush(stdout) != 0 || ferror(stdout))
        return report_failure(NULL, NULL, EXIT_MACHINE,
                              "cannot write standard output: %s",
                              errno ? strerror(errno) : "it failed earlier");
    return code;
}
