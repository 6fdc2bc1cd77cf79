/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idea stands in output.h. The part is renamed over the target at the end, which is one
 * step for whoever looks.
 */
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
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

/* A new file beside the target; one that a killed process left behind is replaced. */
static FILE *
create_part(struct output *out, mode_t mode)
{
    size_t capacity = strlen(out->target) + 32;
    out->part = malloc(capacity);
    if (!out->part)
        return NULL;
    snprintf(out->part, capacity, "%s.part-%ld", out->target, (long)getpid());
    unlink(out->part);
    int fd = open(out->part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w+b");
    if (!file && fd >= 0)
        close(fd);
    return file;
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
open_file(struct output *out)
{
    struct stat old;
    bool is_there = stat(out->path, &old) == 0;
    if (is_there && !S_ISREG(old.st_mode))
        return fopen(out->path, "wbe");
    out->target = is_there ? realpath(out->path, NULL) : strdup(out->path);
    if (!out->target)
        return NULL;
    FILE *file = create_part(out, is_there ? old.st_mode & 0777 : 0666);
    if (!file) {
        free(out->part);
        out->part = NULL;
    }
    return file;
}

int
output_open(struct output *out, const char *command, const char *path)
{
    *out = (struct output){.command = command, .path = path};
    out->file = strcmp(path, "-") == 0 ? stdout : open_file(out);
    if (out->file)
        return EXIT_FINE;
    int code = report_unwritable(out);
    free(out->target);
    return code;
}

const char *
output_part_path(const struct output *out)
{
    return out->part;
}

static enum dry_status
write_file(void *self, const void *bytes, size_t count, struct dry_error *err)
{
    if (fwrite(bytes, 1, count, self) == count)
        return DRY_OK;
    return fail_at(err, DRY_ERR_SYSTEM, DRY_NO_OFFSET, "cannot write: %s",
                   strerror(errno));
}

struct dry_sink
output_sink(struct output *out)
{
    return (struct dry_sink){.write = write_file, .self = out->file};
}

int
output_close(struct output *out, enum dry_status status, const struct dry_error *err)
{
    bool is_written = out->file == stdout || fclose(out->file) == 0;
    if (out->part) {
        bool is_placed =
            status == DRY_OK && is_written && rename(out->part, out->target) == 0;
        int why = errno;
        if (!is_placed)
            unlink(out->part);
        errno = why;
        is_written = is_placed;
    }
    int code = EXIT_FINE;
    if (status != DRY_OK)
        code = report_error(out->command, out->path, err);
    else if (!is_written)
        code = report_unwritable(out);
    free(out->part);
    free(out->target);
    return code;
}

void
output_discard(struct output *out)
{
    if (out->file != stdout)
        fclose(out->file);
    if (out->part)
        unlink(out->part);
    free(out->part);
    free(out->target);
}
