/* SPDX-License-Identifier: Apache-2.0 */

/*
 * As the first process of a machine: runs the commands in /commands, a line each, and says how
 * each ended. As any other: holds so many MiB for so many milliseconds, and with a third
 * word leaves the CPUs it was bound to.
 */
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORDS_MAX 30

static uint64_t
now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int
hold(int count, char **words)
{
    size_t bytes = (size_t)strtoul(words[1], NULL, 10) << 20;
    uint64_t ms = strtoul(words[2], NULL, 10), begin = now_ms();
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);
    if (count > 3 && sched_setaffinity(0, sizeof all, &all) != 0)
        return 2;
    char *at = malloc(bytes);
    if (!at)
        return 3;
    memset(at, 1, bytes);
    /* Looks become rarer with time: held for longer than filled, memory is seen whole. */
    uint64_t filling = now_ms() - begin;
    ms = ms > 2 * filling ? ms : 2 * filling;
    struct timespec t = {.tv_sec = (time_t)(ms / 1000),
                         .tv_nsec = (long)(ms % 1000 * 1000000)};
    nanosleep(&t, NULL);
    int is_kept = at[bytes / 2] == 1;
    free(at);
    return !is_kept;
}

static void
run_line(char *line)
{
    char *words[WORDS_MAX + 1] = {NULL};
    line[strcspn(line, "\n")] = '\0';
    printf("== %s\n", line);
    fflush(stdout);
    size_t count = 0;
    for (char *at = line; *at && count < WORDS_MAX;) {
        words[count++] = at;
        at += strcspn(at, " ");
        if (*at)
            *at++ = '\0';
    }
    if (count == 0)
        return;
    pid_t child = fork();
    if (child == 0) {
        dup2(STDOUT_FILENO, STDERR_FILENO);
        char path[] = "PATH=/bin", *variables[] = {path, NULL};
        execvpe(words[0], words, variables);
        _exit(127);
    }
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    printf("== exit %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    fflush(stdout);
}

static void
be_first(void)
{
    static const char *const mounts[][2] = {
        {"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}};
    char line[1024];
    for (size_t i = 0; i < sizeof mounts / sizeof *mounts; i++)
        if (mount(mounts[i][0], mounts[i][1], mounts[i][0], 0, NULL) != 0)
            printf("== cannot mount %s: error %d\n", mounts[i][0], errno);
    FILE *file = fopen("/commands", "re");
    while (file && fgets(line, sizeof line, file))
        run_line(line);
    printf("== over\n");
    fflush(stdout);
    sync();
    reboot(RB_POWER_OFF);
}

int
main(int count, char **words)
{
    if (getpid() == 1)
        be_first();
    return count > 2 ? hold(count, words) : 4;
}
