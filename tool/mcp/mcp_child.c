/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The idea stands in mcp_child.h. The child writes into two files in memory, so that nobody
 * has to read while it works. The kernel holds the limits: of addresses, of what is
 * written, and an alarm for the time.
 */
#include "mcp/mcp_child.h"

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

struct files {
    int out, err;
};

/* --- in the child ------------------------------------------------------------------------- */

/* Count from what is mapped already: a sanitizer maps terabytes. */
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

_Noreturn static void
run_in_child(const struct mcp_work *work, const struct files *files)
{
    struct rlimit output = {MCP_OUTPUT_BYTES_MAX, MCP_OUTPUT_BYTES_MAX};
    int in = open(work->input ? work->input : "/dev/null", O_RDONLY | O_CLOEXEC);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (in < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(files->out, STDOUT_FILENO) < 0 ||
        dup2(files->err, STDERR_FILENO) < 0)
        _exit(EXIT_MACHINE);
    __fpurge(stdin); /* the requests that follow are not for the command */
    setrlimit(RLIMIT_FSIZE, &output);
    limit_memory(work->limits.memory_bytes);
    alarm(work->limits.seconds);
    int code = work->command->run(work->argc, work->argv);
    if (fflush(stdout) != 0)
        code = EXIT_MACHINE;
    _exit(code);
}

/* --- in the server ------------------------------------------------------------------------ */

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
collect(const struct files *files, struct mcp_output *output)
{
    size_t out = measure(files->out), err = measure(files->err);
    output->text = malloc(out + err + 1);
    if (!output->text)
        return false;
    output->length = read_all(files->out, output->text, out);
    output->length += read_all(files->err, output->text + output->length, err);
    output->text[output->length] = '\0';
    return true;
}

static void
judge(int status, struct mcp_output *output)
{
    output->code = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_MACHINE;
    output->reason = NULL;
    if (!WIFSIGNALED(status))
        return;
    output->reason = WTERMSIG(status) == SIGALRM ? "it took longer than --seconds allows"
                     : WTERMSIG(status) == SIGXFSZ ? "it printed more than 16 MiB"
                                                   : "the command was ended by a signal";
}

static bool
run_with_files(const struct mcp_work *work, const struct files *files,
               struct mcp_output *output)
{
    int status = 0;
    pid_t child = fork();
    if (child < 0)
        return false;
    if (child == 0)
        run_in_child(work, files);
    while (waitpid(child, &status, 0) != child)
        continue;
    judge(status, output);
    return collect(files, output);
}

bool
mcp_child_run(const struct mcp_work *work, struct mcp_output *output)
{
    struct files files = {memfd_create("answer", MFD_CLOEXEC),
                          memfd_create("errors", MFD_CLOEXEC)};
    bool is_run =
        files.out >= 0 && files.err >= 0 && run_with_files(work, &files, output);
    if (files.out >= 0)
        close(files.out);
    if (files.err >= 0)
        close(files.err);
    return is_run;
}
