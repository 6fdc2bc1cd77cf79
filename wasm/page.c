/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine of drystone.html: what the page's worker calls, see viewer/src/engine/engine.ts.
 *
 * An instance either shows files, by page_open() and page_answer(), or runs one command, by
 * page_run(). A command has an instance of its own, as it has a process elsewhere. So what it leaves
 * behind, and a hostile file that stops it, harm no other answer.
 */
#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "view/answers.h"
#include "view/view.h"

#define EXPORT(name) __attribute__((export_name(#name)))

int page_run(int argc, char **argv);
int page_open(const char *const *paths, size_t count);
enum view_status page_answer(const char *key, struct answer *answer);
void *page_allocate(size_t bytes);
void page_release(void *memory);

/* Supplied by the worker: run a command in an instance of its own. Its output goes to memory from
   page_allocate(). Returns the exit_code, or -1 if the instance stopped. */
__attribute__((import_module("page"), import_name("command"))) int page_command(
    int argc, char **argv, struct answer *output);

/* Instances have no other place for state between two calls. */
static struct view view;

EXPORT(page_allocate) void *page_allocate(size_t bytes)
{
    return malloc(bytes);
}

/* Free what page_allocate() or page_answer() gave. */
EXPORT(page_release) void page_release(void *memory)
{
    free(memory);
}

EXPORT(page_run) int page_run(int argc, char **argv)
{
    int code = EXIT_USAGE;
    for (size_t i = 0; i < VIEW_COMMANDS; i++) {
        if (strcmp(view_commands[i]->name, argv[0]) == 0)
            code = view_commands[i]->run(argc, argv);
    }
    return fflush(stdout) == 0 ? code : EXIT_MACHINE;
}

EXPORT(page_open) int page_open(const char *const *paths, size_t count)
{
    return view_open(&view, "view", paths, count);
}

EXPORT(page_answer) enum view_status page_answer(const char *key, struct answer *answer)
{
    return view_answer(&view, key, answer);
}

bool
answer_command(const struct command *command, const char *path, bool is_json,
               struct answer *answer)
{
    char json[] = "--json", end[] = "--";
    char *name = strdup(command->name), *file = strdup(path);
    char *with[] = {name, json, end, file, NULL}, *without[] = {name, end, file, NULL};
    int code = -1;
    if (name && file)
        code = page_command(is_json ? 4 : 3, is_json ? with : without, answer);
    free(name);
    free(file);
    answer->is_json = answer->length > 0 && answer->bytes[0] == '{';
    return code >= 0 && code <= EXIT_FOUND && answer->length > 0;
}
