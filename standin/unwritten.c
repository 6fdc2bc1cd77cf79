/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that are not implemented: each returns 0 and is counted by its name.
 *
 * The launcher builds a library with such a function for each symbol that a program's libraries
 * need and the stand-in lacks. Each calls drystone_standin_unwritten() with its record. A record
 * is linked into a list at its first call, so that the report at exit names what was called.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "setup.h"
#include "standin.h"

/* The launcher lays records out like this, 24 bytes each. */
struct unwritten {
    const char *name;
    uint64_t calls;
    struct unwritten *next;
};

static struct unwritten *called;

EXPORT uint64_t
drystone_standin_unwritten(struct unwritten *function)
{
    if (__atomic_fetch_add(&function->calls, 1, __ATOMIC_RELAXED) == 0) {
        standin_lock();
        function->next = called;
        called = function;
        standin_unlock();
    }
    return 0;
}

static struct unwritten *
create(const char *name)
{
    struct unwritten *function = calloc(1, sizeof *function);
    char *copy = strdup(name);
    if (!function || !copy) {
        free(function);
        free(copy);
        return NULL;
    }
    function->name = copy;
    return function;
}

void
standin_note_name(const char *name)
{
    struct unwritten *function = NULL;
    standin_lock();
    for (struct unwritten *f = called; f && !function; f = f->next)
        function = strcmp(f->name, name) == 0 ? f : NULL;
    standin_unlock();
    if (!function)
        function = create(name);
    if (function)
        drystone_standin_unwritten(function);
}

/*
 * Write one line for each function: calls, a space, its name. Without calls no file is
 * written. The hook calls this where a process exits without its destructors.
 */
EXPORT void __attribute__((destructor)) drystone_standin_report(void)
{
    const char *path = standin_setup()->report;
    char name[4200];
    if (!*path || !called)
        return;
    snprintf(name, sizeof name, "%s.%ld", path, (long)getpid());
    FILE *out = fopen(name, "w");
    if (!out)
        return;
    for (const struct unwritten *f = called; f; f = f->next)
        fprintf(out, "%llu %s\n", (unsigned long long)f->calls, f->name);
    fclose(out);
}
