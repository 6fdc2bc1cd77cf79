/* SPDX-License-Identifier: Apache-2.0 */
/* See run_package.h. */
#include "run/run_package.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folders that may have the hook, relative to the command's folder. */
static const char *const places[] = {
    "python/drystone/torch/hook", /* build folder */
    "../torch/hook",              /* wheel: the command is in the package's bin/ */
    DRYSTONE_LIBDIR "/drystone/python/drystone/torch/hook", /* meson install */
    "../lib/python3/dist-packages/drystone/torch/hook",     /* Debian package */
};

/* Take the hook if its path fits and has no colon, at which PYTHONPATH would be split. */
static bool
take_hook(struct run_machine *machine, const char *path)
{
    char *real = realpath(path, NULL);
    bool is_fit = real && strlen(real) < sizeof machine->hook && !strchr(real, ':');
    if (is_fit)
        memcpy(machine->hook, real, strlen(real) + 1);
    free(real);
    return is_fit;
}

void
run_package_find(struct run_machine *machine)
{
    char path[RUN_PATH_MAX + 64];
    ssize_t length = readlink("/proc/self/exe", machine->command, RUN_PATH_MAX - 1);
    machine->command[length < 0 ? 0 : length] = '\0';
    const char *slash = strrchr(machine->command, '/');
    if (!slash)
        return;
    int folder = (int)(slash + 1 - machine->command);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%.*s%s", folder, machine->command, places[i]);
        if (take_hook(machine, path))
            return;
    }
}
