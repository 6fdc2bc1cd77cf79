/* SPDX-License-Identifier: Apache-2.0 */
/* Files that a command writes: whole or not at all, whatever ends the command. */
#include "support/cmocka.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/command.h"
#include "base/output.h"

#define PATH_BYTES 128

struct place {
    char folder[PATH_BYTES], file[PATH_BYTES + 8];
};

static void
make_place(struct place *p)
{
    strcpy(p->folder, "/tmp/drystone-output-XXXXXX");
    assert_non_null(mkdtemp(p->folder));
    snprintf(p->file, sizeof p->file, "%s/out", p->folder);
}

static size_t
count_files(const struct place *p)
{
    size_t count = 0;
    DIR *folder = opendir(p->folder);
    assert_non_null(folder);
    for (struct dirent *e = readdir(folder); e; e = readdir(folder))
        count += e->d_name[0] != '.';
    closedir(folder);
    return count;
}

static void
remove_place(const struct place *p)
{
    unlink(p->file);
    assert_int_equal(rmdir(p->folder), 0);
}

static void
assert_holds(const char *path, const char *expected)
{
    char text[64] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(read(fd, text, sizeof text - 1) >= 0);
    close(fd);
    assert_string_equal(text, expected);
}

typedef int open_function(struct output *out, const char *command, const char *path);

static int
write_file(open_function *open_it, const char *path, const char *text,
           enum dry_status status)
{
    struct output out;
    struct dry_error err = {.status = status, .offset = DRY_NO_OFFSET, .text = "why"};
    int code = open_it(&out, "test", path);
    if (code != EXIT_FINE)
        return code;
    struct dry_sink sink = output_sink(&out);
    if (sink.write(sink.self, text, strlen(text), &err) != DRY_OK)
        status = err.status;
    return output_close(&out, status, &err);
}

static void
check_files(open_function *open_it)
{
    struct place p;
    struct stat now;
    make_place(&p);
    assert_int_equal(write_file(open_it, p.file, "one", DRY_ERR_FORMAT), EXIT_INPUT);
    assert_int_equal(count_files(&p), 0);
    assert_int_equal(write_file(open_it, p.file, "two", DRY_OK), EXIT_FINE);
    assert_holds(p.file, "two");
    assert_int_equal(chmod(p.file, 0640), 0);
    assert_int_equal(write_file(open_it, p.file, "three", DRY_OK), EXIT_FINE);
    assert_holds(p.file, "three");
    assert_int_equal(stat(p.file, &now), 0);
    assert_int_equal(now.st_mode & 0777, 0640);
    assert_int_equal(write_file(open_it, p.file, "four", DRY_ERR_SYSTEM), EXIT_MACHINE);
    assert_holds(p.file, "three");
    assert_int_equal(count_files(&p), 1);
    remove_place(&p);
}

static void
files_appear_whole_or_not_at_all(void **state)
{
    (void)state;
    check_files(output_open);
    check_files(output_open_named);
}

static void
a_folder_that_is_not_there_is_said(void **state)
{
    (void)state;
    struct place p;
    char path[PATH_BYTES + 32];
    make_place(&p);
    snprintf(path, sizeof path, "%s/no/out", p.folder);
    assert_int_equal(write_file(output_open, path, "x", DRY_OK), EXIT_MACHINE);
    assert_int_equal(write_file(output_open_named, path, "x", DRY_OK), EXIT_MACHINE);
    remove_place(&p);
}

static void
a_full_disk_is_the_machines(void **state)
{
    (void)state;
    char text[8192];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(write_file(output_open, "/dev/full", text, DRY_OK), EXIT_MACHINE);
    assert_int_equal(write_file(output_open, "/dev/full", "x", DRY_OK), EXIT_MACHINE);
}

/* Write until a signal that comes in the middle of it ends the process. */
static void
write_until_ended(open_function *open_it, const char *path, int number)
{
    struct output out;
    struct dry_error err = {.offset = DRY_NO_OFFSET};
    signal(number, SIG_DFL);
    if (open_it(&out, "test", path) != EXIT_FINE)
        _exit(100);
    struct dry_sink sink = output_sink(&out);
    if (sink.write(sink.self, "half", 4, &err) != DRY_OK)
        _exit(101);
    kill(getpid(), number);
    if (output_is_interrupted(&out) == false)
        _exit(102);
    if (sink.write(sink.self, "more", 4, &err) != DRY_ERR_CANCELLED)
        _exit(103);
    output_close(&out, DRY_ERR_CANCELLED, &err);
    _exit(104);
}

/* Nothing is left, and the process ended by the signal. */
static void
check_signal(open_function *open_it, int number)
{
    struct place p;
    int status;
    make_place(&p);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        write_until_ended(open_it, p.file, number);
    while (waitpid(child, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != number)
        fail_msg("signal %d: the child ended with %d", number,
                 WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    assert_int_equal(count_files(&p), 0);
    remove_place(&p);
}

static void
signals_leave_no_part(void **state)
{
    (void)state;
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        check_signal(output_open, numbers[i]);
        check_signal(output_open_named, numbers[i]);
    }
}

/* Not even the signal that nobody can handle, where files may be without a name. */
static void
a_killed_process_leaves_no_part(void **state)
{
    (void)state;
    int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        skip_because("/tmp has no files without a name: %s", strerror(errno));
    close(fd);
    check_signal(output_open, SIGKILL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_appear_whole_or_not_at_all),
        cmocka_unit_test(a_folder_that_is_not_there_is_said),
        cmocka_unit_test(a_full_disk_is_the_machines),
        cmocka_unit_test(signals_leave_no_part),
        cmocka_unit_test(a_killed_process_leaves_no_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
