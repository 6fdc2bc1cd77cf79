/* SPDX-License-Identifier: Apache-2.0 */
/* The idea stands in aside.h. */
#include "view/aside.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/command.h"

/* The signals of the parent are not the child's: a handler of its own would only set a flag. */
static _Noreturn void
run_child(int (*print)(void *self), void *self, int to)
{
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    setpgid(0, 0);
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    if (nothing < 0 || dup2(nothing, STDERR_FILENO) < 0 || dup2(to, STDOUT_FILENO) < 0)
        _exit(EXIT_MACHINE);
    int code = print(self);
    if (fflush(stdout) != 0)
        code = EXIT_MACHINE;
    _exit(code);
}

bool
aside_begin(struct aside *aside, int (*print)(void *self), void *self)
{
    *aside = (struct aside){.output = tmpfile()};
    if (!aside->output)
        return false;
    fflush(stdout);
    aside->child = fork();
    if (aside->child == 0)
        run_child(print, self, fileno(aside->output));
    if (aside->child < 0)
        fclose(aside->output);
    else
        setpgid(aside->child, aside->child); /* the child does, too: one is the first */
    return aside->child > 0;
}

bool
aside_is_over(struct aside *aside, bool does_wait)
{
    pid_t ended;
    do
        ended = waitpid(aside->child, &aside->status, does_wait ? 0 : WNOHANG);
    while (ended < 0 && errno == EINTR);
    return ended != 0;
}

void
aside_stop(struct aside *aside)
{
    kill(-aside->child, SIGTERM);
    aside_is_over(aside, true);
}

static bool
read_back(FILE *file, struct answer *answer)
{
    if (fseek(file, 0, SEEK_END) != 0)
        return false;
    long length = ftell(file);
    if (length <= 0 || fseek(file, 0, SEEK_SET) != 0)
        return false;
    unsigned char *bytes = malloc((size_t)length);
    if (!bytes)
        return false;
    if (fread(bytes, 1, (size_t)length, file) != (size_t)length) {
        free(bytes);
        return false;
    }
    answer->bytes = bytes;
    answer->length = (size_t)length;
    answer->is_json = bytes[0] == '{';
    return true;
}

bool
aside_end(struct aside *aside, struct answer *answer)
{
    int code = WIFEXITED(aside->status) ? WEXITSTATUS(aside->status) : EXIT_MACHINE;
    bool is_fine =
        (code == EXIT_FINE || code == EXIT_FOUND) && read_back(aside->output, answer);
    fclose(aside->output);
    return is_fine;
}

static const struct command *
find_command(const char *name)
{
    static const struct command *const known[] = {&command_explain, &command_info,
                                                  &command_steps, &command_recommend};
    for (size_t i = 0; i < sizeof known / sizeof(const struct command *); i++)
        if (strcmp(known[i]->name, name) == 0)
            return known[i];
    return NULL;
}

int
aside_print_command(void *self)
{
    const struct aside_command *asked = self;
    const struct command *command = find_command(asked->name);
    char json[] = "--json", end[] = "--";
    char *name = strdup(asked->name), *path = strdup(asked->path);
    char *with[] = {name, json, end, path, NULL}, *without[] = {name, end, path, NULL};
    int code = EXIT_MACHINE;
    if (command && name && path)
        code = asked->is_json ? command->run(4, with) : command->run(3, without);
    free(name);
    free(path);
    return code;
}
