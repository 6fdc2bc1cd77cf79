/* SPDX-License-Identifier: Apache-2.0 */
#include "qemu/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

void
guest_require(bool condition, const char *text, int line)
{
    if (condition)
        return;
    printf("# line %d: %s\n", line, text);
    fflush(stdout);
    _exit(1);
}

void
guest_write(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t written = file < 0 ? -1 : write(file, text, strlen(text));
    if (written != (ssize_t)strlen(text))
        printf("# cannot write %s to %s: %s\n", text, path, strerror(errno));
    REQUIRE(written == (ssize_t)strlen(text));
    close(file);
}

uint64_t
guest_number(const char *path)
{
    char text[32] = "";
    int file = open(path, O_RDONLY | O_CLOEXEC);
    REQUIRE(file >= 0 && read(file, text, sizeof text - 1) > 0);
    close(file);
    return strtoull(text, NULL, 10);
}

uint64_t
guest_free_pages(int node)
{
    char path[128];
    snprintf(path, sizeof path,
             "/sys/devices/system/node/node%d/hugepages/hugepages-2048kB/free_hugepages",
             node);
    return guest_number(path);
}

int
guest_fork(int (*body)(void *argument), void *argument)
{
    fflush(stdout);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0)
        _exit(body(argument));
    int status;
    REQUIRE(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void
mount_all(void)
{
    static const char *const mounts[][2] = {{"proc", "/proc"},
                                            {"sysfs", "/sys"},
                                            {"devtmpfs", "/dev"},
                                            {"cgroup2", "/sys/fs/cgroup"}};
    for (size_t i = 0; i < sizeof mounts / sizeof *mounts; i++) {
        mkdir(mounts[i][1], 0755);
        if (mount(mounts[i][0], mounts[i][1], mounts[i][0], 0, NULL) != 0)
            printf("# cannot mount %s: %s\n", mounts[i][0], strerror(errno));
    }
}

static int
run_body(void *argument)
{
    const struct experiment *e = argument;
    e->run();
    return 0;
}

static bool
run(struct experiment e)
{
    int ended = guest_fork(run_body, &e);
    /* Each leaves the pools as they were, however it ended. */
    bool is_whole =
        guest_free_pages(0) == POOL_OF_NODE && guest_free_pages(1) == POOL_OF_NODE;
    if (ended == 0 && is_whole)
        printf("ok %s\n", e.name);
    else if (ended >= 1000)
        printf("not ok %s: signal %d\n", e.name, ended - 1000);
    else
        printf("not ok %s: %s\n", e.name, ended ? "failed" : "pages are missing");
    return ended == 0 && is_whole;
}

int
main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    mount_all();
    unsigned passed = 0;
    for (unsigned i = 0; i < guest_experiment_count; i++)
        passed += run(guest_experiments[i]);
    printf("# %u passed, %u failed\n", passed, guest_experiment_count - passed);
    fflush(stdout);
    sync();
    reboot(RB_POWER_OFF);
    return 0;
}
