/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads a running program: the variables it was started with, its malloc, and whether
 * PyTorch is mapped. Limits and groups need no code here, because /proc/self is replaced
 * by its folder.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "host/doctor/doctor_inside.h"
#include "host/doctor/doctor_text.h"
#include "host/facts/facts_read.h"

#define PATH_BYTES_MAX 2048
/* 8 MiB: Linux limits arguments and variables to 6 MiB (fs/exec.c). */
#define ENVIRONMENT_MAX ((size_t)8 << 20)
#define STEP_BYTES ((size_t)4096)

static enum dry_status
fail_open(const struct dry_doctor *d, int result, struct dry_error *err)
{
    const long long process = (long long)d->options.process;
    errno = result < 0 ? -result : EIO;
    if (result == -ENOENT || result == -ESRCH)
        return dryi_fail(err, DRY_ERR_SYSTEM, "there is no process %lld", process);
    if (result == -EACCES || result == -EPERM)
        return dryi_fail(err, DRY_ERR_SYSTEM,
                         "process %lld: permission refused: its own user and root may "
                         "look at it",
                         process);
    return dryi_fail(err, DRY_ERR_SYSTEM, "process %lld: its environment cannot be read",
                     process);
}

static int
open_environment(const struct dry_doctor *d)
{
    char path[PATH_BYTES_MAX];
    int length = snprintf(path, sizeof path, "%s/proc/%lld/environ", d->facts.root,
                          (long long)d->options.process);
    if (length < 0 || (size_t)length >= sizeof path)
        return -ENAMETOOLONG;
    return d->kernel.open(d->kernel.self, path);
}

/* Read the whole environment, and append a zero byte. */
static enum dry_status
read_environment(struct dry_doctor *d, int file, struct dry_error *err)
{
    struct dryi_process *p = &d->process;
    ssize_t got = 1;
    while (got > 0) {
        if (p->length >= ENVIRONMENT_MAX)
            return dryi_fail(err, DRY_ERR_LIMIT,
                             "process %lld: more than 8 MiB of variables",
                             (long long)d->options.process);
        if (!dryi_memory_grow(&d->memory, (void **)&p->environment, &p->capacity,
                              p->length + STEP_BYTES + 1, 1))
            return dryi_fail_memory(err, "variables");
        got =
            d->kernel.read(d->kernel.self, file, p->environment + p->length, STEP_BYTES);
        if (got < 0 || (size_t)got > STEP_BYTES)
            return fail_open(d, (int)got, err);
        p->length += (size_t)got;
    }
    p->environment[p->length] = '\0';
    return DRY_OK;
}

static bool
add_variable(struct dry_doctor *d, const char *name, const char *value)
{
    struct dryi_process *p = &d->process;
    if (!dryi_memory_grow(&d->memory, (void **)&p->variables, &p->variable_capacity,
                          p->variable_count + 1, sizeof *p->variables))
        return false;
    p->variables[p->variable_count++] = (struct dry_doctor_variable){name, value};
    return true;
}

/* Split the environment into "NAME=VALUE"; entries without '=' are skipped. The caller's
   variables are added last. */
static enum dry_status
split_environment(struct dry_doctor *d, struct dry_error *err)
{
    struct dryi_process *p = &d->process;
    bool fits = true;
    for (size_t at = 0; fits && at < p->length;) {
        char *text = p->environment + at, *equals = strchr(text, '=');
        at += strlen(text) + 1;
        if (!equals)
            continue;
        *equals = '\0';
        fits = add_variable(d, text, equals + 1);
    }
    for (size_t i = 0; fits && i < d->options.variable_count; i++)
        fits =
            add_variable(d, d->options.variables[i].name, d->options.variables[i].value);
    /* An empty environment must differ from an unknown one, so it gets a variable without
       a name. */
    if (!fits || (p->variable_count == 0 && !(add_variable(d, "", ""))))
        return dryi_fail_memory(err, "variables");
    d->options.variables = p->variables;
    d->options.variable_count = p->variable_count;
    return DRY_OK;
}

/* Find the first mapped file whose name begins with `name`; "": none. */
static bool
find_mapped(const struct dry_doctor *d, const char *name, char path[DRYI_MAPPED_MAX])
{
    struct dryi_fact_file file;
    struct dryi_doctor_piece found;
    path[0] = '\0';
    if (!dryi_facts_read_lines(&d->facts, &file, "/proc/self/maps", name))
        return false;
    if (dryi_text_mapped(file.text, file.length, name, &found) &&
        found.length < DRYI_MAPPED_MAX) {
        memcpy(path, found.bytes, found.length);
        path[found.length] = '\0';
    }
    return true;
}

/* Find the mapped malloc; among several, the first in LD_PRELOAD wins. */
static void
find_malloc(struct dry_doctor *d)
{
    static const char *const mallocs[] = {"libjemalloc", "libtcmalloc", "libmimalloc"};
    const char *preload = dryi_doctor_variable(d, "LD_PRELOAD");
    const char *first = NULL;
    for (size_t i = 0; i < sizeof mallocs / sizeof *mallocs; i++) {
        char path[DRYI_MAPPED_MAX];
        const char *named = preload ? strstr(preload, mallocs[i]) : NULL;
        if (!find_mapped(d, mallocs[i], path) || !*path)
            continue;
        if (!*d->process.malloc || (named && (!first || named < first))) {
            memcpy(d->process.malloc, path, sizeof path);
            first = named ? named : first;
        }
    }
}

enum dry_status
dryi_doctor_take_process(struct dry_doctor *d, struct dry_error *err)
{
    if (d->options.process == 0)
        return DRY_OK;
    int file = open_environment(d);
    if (file < 0)
        return fail_open(d, file, err);
    enum dry_status status = read_environment(d, file, err);
    d->kernel.close(d->kernel.self, file);
    if (status == DRY_OK)
        status = split_environment(d, err);
    if (status != DRY_OK)
        return status;
    d->process.knows_files = find_mapped(d, "libtorch", d->process.torch);
    find_malloc(d);
    return DRY_OK;
}

void
dryi_doctor_forget_process(struct dry_doctor *d)
{
    struct dryi_process *p = &d->process;
    dryi_memory_free(&d->memory, p->environment, p->capacity, 1);
    dryi_memory_free(&d->memory, p->variables, p->variable_capacity,
                     sizeof *p->variables);
    *p = (struct dryi_process){.length = 0};
}
