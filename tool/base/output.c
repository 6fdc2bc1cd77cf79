/* SPDX-License-Identifier: Apache-2.0 */
/* See output.h. The part is renamed over the target at the end; rename() is atomic, so no
   reader sees half a file. */
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/command.h"
#include "base/fail.h"
#include "base/report.h"

static int
report_unwritable(const struct output *out)
{
    return report_failure(out->command, out->path, EXIT_MACHINE, "cannot write: %s",
                          strerror(errno));
}

/* --- signals ------------------------------------------------------------------------------ */

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
#define SIGNAL_COUNT (sizeof ending_signals / sizeof *ending_signals)

/* Block the signals that would end the process while the part has a name, or the part
   would stay in the folder. */
static void
hold_signals(struct output *out)
{
    sigset_t held, before;
    sigemptyset(&held);
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        sigaddset(&held, ending_signals[i]);
    if (out->holds_signals || sigprocmask(SIG_BLOCK, &held, &before) != 0)
        return;
    out->holds_signals = true;
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        out->held |= sigismember(&before, ending_signals[i]) == 1 ? 0 : 1u << i;
}

static void
release_signals(struct output *out)
{
    sigset_t held;
    sigemptyset(&held);
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        if (out->held & 1u << i)
            sigaddset(&held, ending_signals[i]);
    }
    sigprocmask(SIG_UNBLOCK, &held, NULL);
    out->holds_signals = false;
    out->held = 0;
}

bool
output_is_interrupted(const struct output *out)
{
    sigset_t waiting;
    if (!out->holds_signals || sigpending(&waiting) != 0)
        return false;
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        if (sigismember(&waiting, ending_signals[i]) == 1)
            return true;
    }
    return false;
}

/* --- parts -------------------------------------------------------------------------------- */

#define LINK_BYTES 40

/* Write the /proc path of an open file, from which linkat() can give the file a name. */
static const char *
write_link(int fd, char text[LINK_BYTES])
{
    snprintf(text, LINK_BYTES, "/proc/self/fd/%d", fd);
    return text;
}

/* Open a nameless file (O_TMPFILE) in the target's folder. Returns -1 if the file system
   or a missing /proc does not allow that. */
static int
open_unnamed(const struct output *out, mode_t mode)
{
    char link_name[LINK_BYTES];
    char *folder = strdup(out->target);
    if (!folder)
        return -1;
    int fd = open(dirname(folder), O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    free(folder);
    if (fd < 0 || access(write_link(fd, link_name), F_OK) == 0)
        return fd;
    close(fd); /* linkat() needs /proc to name the file later */
    return -1;
}

/* Open the part as a named file next to the target, and replace the part of a killed
   process that had the same PID. */
static int
open_named(struct output *out, mode_t mode)
{
    hold_signals(out);
    unlink(out->part);
    int fd = open(out->part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    out->has_name = fd >= 0;
    return fd;
}

static FILE *
create_part(struct output *out, mode_t mode, bool needs_name)
{
    size_t capacity = strlen(out->target) + 32;
    out->part = malloc(capacity);
    if (!out->part)
        return NULL;
    snprintf(out->part, capacity, "%s.part-%ld", out->target, (long)getpid());
    int fd = needs_name ? -1 : open_unnamed(out, mode);
    if (fd < 0)
        fd = open_named(out, mode);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w+b");
    if (!file && fd >= 0)
        close(fd);
    return file;
}

/* Give a nameless part its name. Signals stay blocked while the part exists. */
static bool
name_part(struct output *out)
{
    char link_name[LINK_BYTES];
    if (out->has_name)
        return true;
    hold_signals(out);
    unlink(out->part);
    out->has_name = linkat(AT_FDCWD, write_link(fileno(out->file), link_name), AT_FDCWD,
                           out->part, AT_SYMLINK_FOLLOW) == 0;
    return out->has_name;
}

/* Remove the part but preserve errno, which the caller still reports. */
static void
drop_part(struct output *out)
{
    int why = errno;
    if (out->has_name)
        unlink(out->part);
    errno = why;
}

static void
finish(struct output *out)
{
    release_signals(out);
    free(out->part);
    free(out->target);
    out->part = out->target = NULL;
}

bool
output_is_input(const char *path, const char *input)
{
    struct stat to, from;
    bool is_known = strcmp(input, "-") == 0 ? fstat(STDIN_FILENO, &from) == 0
                                            : stat(input, &from) == 0;
    return is_known && stat(path, &to) == 0 && S_ISREG(to.st_mode) &&
           to.st_dev == from.st_dev && to.st_ino == from.st_ino;
}

static FILE *
open_file(struct output *out, bool needs_name)
{
    struct stat old;
    bool is_there = stat(out->path, &old) == 0;
    if (is_there && !S_ISREG(old.st_mode))
        return fopen(out->path, "wbe");
    out->target = is_there ? realpath(out->path, NULL) : strdup(out->path);
    if (!out->target)
        return NULL;
    return create_part(out, is_there ? old.st_mode & 0777 : 0666, needs_name);
}

static int
open_output(struct output *out, const char *command, const char *path, bool needs_name)
{
    *out = (struct output){.command = command, .path = path};
    out->file = strcmp(path, "-") == 0 ? stdout : open_file(out, needs_name);
    if (out->file)
        return EXIT_FINE;
    drop_part(out);
    int code = report_unwritable(out);
    finish(out);
    return code;
}

int
output_check(const char *command, const char *path)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX] = ".";
    struct stat about;
    int error = stat(path, &about) == 0 && S_ISDIR(about.st_mode) ? EISDIR : 0;
    if (slash && (size_t)(slash - path) + 2 < sizeof folder)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path) + 1, path);
    if (error == 0 && access(folder, W_OK) != 0)
        error = errno;
    return error == 0 ? EXIT_FINE
                      : report_failure(command, path, EXIT_MACHINE, "cannot write: %s",
                                       strerror(error));
}

int
output_open(struct output *out, const char *command, const char *path)
{
    return open_output(out, command, path, false);
}

int
output_open_named(struct output *out, const char *command, const char *path)
{
    return open_output(out, command, path, true);
}

const char *
output_part_path(const struct output *out)
{
    return out->has_name ? out->part : NULL;
}

static enum dry_status
write_file(void *self, const void *bytes, size_t count, struct dry_error *err)
{
    const struct output *out = self;
    if (output_is_interrupted(out))
        return fail_at(err, DRY_ERR_CANCELLED, DRY_NO_OFFSET, "interrupted");
    if (fwrite(bytes, 1, count, out->file) == count)
        return DRY_OK;
    return fail_at(err, DRY_ERR_SYSTEM, DRY_NO_OFFSET, "cannot write: %s",
                   strerror(errno));
}

struct dry_sink
output_sink(struct output *out)
{
    return (struct dry_sink){.write = write_file, .self = out};
}

int
output_close(struct output *out, enum dry_status status, const struct dry_error *err)
{
    bool is_named =
        !out->part || (status == DRY_OK && fflush(out->file) == 0 && name_part(out));
    int why = errno;
    bool is_written = out->file == stdout || fclose(out->file) == 0;
    if (is_written && !is_named)
        errno = why;
    is_written = is_written && is_named;
    if (out->part)
        is_written =
            status == DRY_OK && is_written && rename(out->part, out->target) == 0;
    if (out->part && !is_written)
        drop_part(out);
    int code = EXIT_FINE;
    if (status == DRY_ERR_SYSTEM)
        code = report_failure(out->command, out->path, EXIT_MACHINE, "%s", err->text);
    else if (status != DRY_OK)
        code = report_error(out->command, out->path, err);
    else if (!is_written)
        code = report_unwritable(out);
    finish(out);
    return code;
}

int
output_write_text(const char *command, const char *path, char *text)
{
    struct output out;
    struct dry_error err = {.text = ""};
    if (!text)
        return report_memory(command, path);
    int code = output_open(&out, command, path);
    if (code == EXIT_FINE) {
        enum dry_status status = write_file(&out, text, strlen(text), &err);
        if (status == DRY_OK)
            status = write_file(&out, "\n", 1, &err);
        code = output_close(&out, status, &err);
    }
    free(text);
    return code;
}

void
output_discard(struct output *out)
{
    if (out->file != stdout)
        fclose(out->file);
    drop_part(out);
    finish(out);
}
