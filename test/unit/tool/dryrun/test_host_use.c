/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a program of two processes, beside what they are known to have written. */
#include "support/cmocka.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dryrun/host_use.h"

#define MIB (UINT64_C(1) << 20)
#define OWN (48 * MIB) /* the most that a test's process takes by itself */

struct program {
    char out[40];
    pid_t pid;
    int ready[2], go[2];
    struct host_watch watch;
};

static void
leave_file(const struct program *p, const char *ending, const char *text)
{
    char path[100];
    snprintf(path, sizeof path, "%s/%ld.%s", p->out, (long)p->pid, ending);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static void
write_pages(uint64_t bytes)
{
    void *at =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        _exit(1);
    memset(at, 1, bytes);
}

/* Write 64 MiB, start a process that writes 32, and once told so write 128 more. */
static void
be_program(const struct program *p)
{
    char byte = 0;
    write_pages(64 * MIB);
    pid_t child = fork();
    if (child == 0) {
        write_pages(32 * MIB);
        if (write(p->ready[1], &byte, 1) == 1)
            pause();
        _exit(0);
    }
    if (read(p->go[0], &byte, 1) == 1)
        write_pages(128 * MIB);
    if (write(p->ready[1], &byte, 1) == 1)
        pause();
}

static void
wait_until_ready(const struct program *p)
{
    char byte;
    assert_int_equal(read(p->ready[0], &byte, 1), 1);
}

static void
look(struct program *p)
{
    p->watch.next_ns = 0;
    host_watch_look(&p->watch, p->pid);
}

static int
begin(void **state)
{
    static struct program program;
    struct program *p = &program;
    *p = (struct program){.out = "/tmp/test_host_use-XXXXXX", .watch = {.out = p->out}};
    *state = p;
    if (!mkdtemp(p->out) || pipe(p->ready) != 0 || pipe(p->go) != 0)
        return -1;
    p->pid = fork();
    if (p->pid == 0) {
        setpgid(0, 0);
        be_program(p);
        _exit(0);
    }
    setpgid(p->pid, p->pid);
    return p->pid < 0 ? -1 : 0;
}

static int
end(void **state)
{
    struct program *p = *state;
    char path[100];
    kill(-p->pid, SIGKILL);
    waitpid(p->pid, NULL, 0);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%ld.%s", p->out, (long)p->pid,
                 i ? "host" : "begun");
        unlink(path);
        close(p->ready[i]);
        close(p->go[i]);
    }
    return rmdir(p->out);
}

static void
the_sum_and_each_child_are_counted(void **state)
{
    struct program *p = *state;
    leave_file(p, "begun", "");
    wait_until_ready(p);
    look(p);
    host_watch_end(&p->watch);
    const struct host_use *use = &p->watch.use;
    assert_in_range(use->peak_bytes, 96 * MIB, 96 * MIB + OWN);
    assert_in_range(use->children_bytes, 32 * MIB,
                    64 * MIB + OWN); /* half of what it shares */
    assert_int_equal(use->child_bytes, use->children_bytes);
    assert_int_equal(use->child_count, 1);
}

static void
processes_of_one_without_a_device_are_no_children(void **state)
{
    struct program *p = *state;
    wait_until_ready(p);
    look(p);
    host_watch_end(&p->watch);
    assert_in_range(p->watch.use.peak_bytes, 96 * MIB, 96 * MIB + OWN);
    assert_int_equal(p->watch.use.child_count, 0);
}

static void
the_dry_runs_own_work_is_left_out(void **state)
{
    struct program *p = *state;
    wait_until_ready(p);
    look(p);
    leave_file(p, "host", "");
    assert_int_equal(write(p->go[1], "", 1), 1);
    wait_until_ready(p);
    look(p);
    assert_in_range(p->watch.use.peak_bytes, 96 * MIB, 96 * MIB + OWN);
    leave_file(p, "host", "1000000000 300000000\n"); /* 300 MB of these are files */
    host_watch_end(&p->watch);
    assert_int_equal(p->watch.use.peak_bytes, 700000000);
}

static void
a_look_that_comes_too_early_is_none(void **state)
{
    struct program *p = *state;
    wait_until_ready(p);
    p->watch.next_ns = UINT64_MAX;
    p->watch.rough_bytes = UINT64_MAX / 2;
    host_watch_look(&p->watch, p->pid);
    assert_int_equal(p->watch.count, 0);
    assert_int_equal(p->watch.use.peak_bytes, 0);
}

static void
a_look_is_due_when_memory_has_grown(void **state)
{
    struct program *p = *state;
    wait_until_ready(p);
    p->watch.rough_bytes = 1;
    p->watch.next_ns = UINT64_MAX;
    host_watch_look(&p->watch, p->pid);
    host_watch_end(&p->watch);
    assert_true(p->watch.use.peak_bytes > 0);
}

/* A file of /dev/shm counts with all its bytes, though nobody touched it, and once. */
static void
mapped_shared_files_count_whole(void **state)
{
    struct program *p = *state;
    wait_until_ready(p);
    int file = shm_open("/test_host_use", O_RDWR | O_CREAT, 0600);
    assert_true(file >= 0 && shm_unlink("/test_host_use") == 0);
    assert_int_equal(ftruncate(file, (off_t)(20 * MIB)), 0);
    void *at[2];
    for (int i = 0; i < 2; i++)
        at[i] = mmap(NULL, 20 * MIB, PROT_READ, MAP_SHARED, file, 0);
    p->watch.next_ns = 0;
    host_watch_look(&p->watch, getpid());
    host_watch_end(&p->watch);
    assert_int_equal(p->watch.use.shared_bytes, 20 * MIB);
    for (int i = 0; i < 2; i++)
        munmap(at[i], 20 * MIB);
    close(file);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_sum_and_each_child_are_counted, begin, end),
        cmocka_unit_test_setup_teardown(processes_of_one_without_a_device_are_no_children,
                                        begin, end),
        cmocka_unit_test_setup_teardown(the_dry_runs_own_work_is_left_out, begin, end),
        cmocka_unit_test_setup_teardown(a_look_that_comes_too_early_is_none, begin, end),
        cmocka_unit_test_setup_teardown(a_look_is_due_when_memory_has_grown, begin, end),
        cmocka_unit_test_setup_teardown(mapped_shared_files_count_whole, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
