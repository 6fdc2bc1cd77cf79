/* SPDX-License-Identifier: Apache-2.0 */
/* See child.h. */
#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- in the child ------------------------------------------------------------------------- */

/* Limit the child's address space to what is mapped already plus `bytes`. An absolute
   limit would fail with sanitizers, which map terabytes at start. */
static void
limit_memory(uint64_t bytes)
{
    char text[64] = "";
    FILE *file = fopen("/proc/self/statm", "re");
    bool is_read = file && fgets(text, sizeof text, file);
    if (file)
        fclose(file);
    uint64_t mapped = strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
    struct rlimit limit = {.rlim_cur = mapped + bytes, .rlim_max = mapped + bytes};
    if (is_read)
        setrlimit(RLIMIT_AS, &limit);
}

static void
take_limits(const struct child_limits *limits)
{
    struct rlimit output = {limits->output_bytes, limits->output_bytes};
    if (limits->output_bytes)
        setrlimit(RLIMIT_FSIZE, &output);
    if (limits->memory_bytes)
        limit_memory(limits->memory_bytes);
    alarm(limits->seconds);
}

/* Run the work and exit. SIGTERM and SIGINT get their default actions back: an inherited
   handler would only set a flag of the parent's instead of ending the child. */
_Noreturn static void
run_in_child(const struct child *child, const struct child_work *work)
{
    int in = open(work->input ? work->input : "/dev/null", O_RDONLY | O_CLOEXEC);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    if (in < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(child->out, STDOUT_FILENO) < 0 ||
        dup2(child->err, STDERR_FILENO) < 0)
        _exit(EXIT_MACHINE);
    __fpurge(stdin); /* drop the input that the parent has buffered but not read */
    take_limits(&work->limits);
    int code = work->print(work->self);
    if (fflush(stdout) != 0)
        code = EXIT_MACHINE;
    _exit(code);
}

int
child_print_command(void *self)
{
    const struct child_command *c = self;
    return c->command->run(c->argc, c->argv);
}

/* --- in the parent ------------------------------------------------------------------------ */

static void
close_files(const struct child *child)
{
    if (child->out >= 0)
        close(child->out);
    if (child->err >= 0)
        close(child->err);
}

bool
child_begin(struct child *child, const struct child_work *work)
{
    *child = (struct child){.pid = -1,
                            .out = memfd_create("output", MFD_CLOEXEC),
                            .err = memfd_create("errors", MFD_CLOEXEC)};
    if (child->out >= 0 && child->err >= 0)
        child->pid = fork();
    if (child->pid == 0)
        run_in_child(child, work);
    if (child->pid < 0)
        close_files(child);
    return child->pid > 0;
}

bool
child_is_over(struct child *child, bool does_wait)
{
    pid_t ended;
    do
        ended = waitpid(child->pid, &child->status, does_wait ? 0 : WNOHANG);
    while (ended < 0 && errno == EINTR);
    return ended != 0;
}

void
child_stop(struct child *child)
{
    kill(child->pid, SIGTERM);
    child_is_over(child, true);
}

static size_t
measure(int file)
{
    struct stat s;
    return fstat(file, &s) == 0 && s.st_size > 0 ? (size_t)s.st_size : 0;
}

static size_t
read_all(int file, char *text, size_t length)
{
    size_t used = 0;
    ssize_t got = 1;
    while (used < length && got > 0) {
        got = pread(file, text + used, length - used, (off_t)used);
        used += got > 0 ? (size_t)got : 0;
    }
    return used;
}

static bool
collect(const struct child *child, struct child_output *output)
{
    size_t out = measure(child->out), err = measure(child->err);
    output->text = malloc(out + err + 1);
    if (!output->text)
        return false;
    output->length = read_all(child->out, output->text, out);
    output->error_length = read_all(child->err, output->text + output->length, err);
    output->length += output->error_length;
    output->text[output->length] = '\0';
    return true;
}

static const char *
tell_signal(int number)
{
    switch (number) {
    case SIGALRM:
        return "it took longer than it may";
    case SIGXFSZ:
        return "it printed more than it may";
    default:
        return "the command was ended by a signal";
    }
}

bool
child_end(struct child *child, struct child_output *output)
{
    *output = (struct child_output){.code = EXIT_MACHINE};
    if (WIFEXITED(child->status))
        output->code = WEXITSTATUS(child->status);
    else if (WIFSIGNALED(child->status))
        output->reason = tell_signal(WTERMSIG(child->status));
    bool is_fine = collect(child, output);
    close_files(child);
    return is_fine;
}

bool
child_run(const struct child_work *work, struct child_output *output)
{
    struct child child;
    return child_begin(&child, work) && child_is_over(&child, true) &&
           child_end(&child, output);
}
