/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine of drystone.html: what the page's worker calls, see viewer/src/engine/engine.ts.
 *
 * An instance either shows files, by page_open() and page_answer(), or runs one command, by
 * page_run(). A command has an instance of its own, as it has a process elsewhere. So what it leaves
 * behind, and a hostile file that stops it, harm no other answer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view/view.h"

#define EXPORT(name) __attribute__((export_name(#name)))

int page_run(int argc, char **argv);
int page_open(const char *const *paths, size_t count);
enum view_status page_answer(const char *key, struct answer *answer);
void *page_allocate(size_t bytes);
void page_release(void *memory);

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
