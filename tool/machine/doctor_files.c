/* SPDX-License-Identifier: Apache-2.0 */
/* See doctor_files.h. Paths are opened folder by folder with O_NOFOLLOW. The journal is
   written to a temporary file, synced and renamed. */
#include "machine/doctor_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"

#define TEXT_MAX 512

/* --- files of the machine ----------------------------------------------------------------- */

/*
 * Open a path below the root, folder by folder, so that links in another machine's files
 * cannot lead outside. Only the root itself may be a link. Returns a descriptor or a
 * negative errno.
 */
static int
open_below(const char *root, const char *path, int flags)
{
    int folder = open(*root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    while (folder >= 0) {
        char name[128];
        path += strspn(path, "/");
        size_t length = strcspn(path, "/");
        if (length >= sizeof name) {
            close(folder);
            return -ENAMETOOLONG;
        }
        memcpy(name, path, length);
        name[length] = '\0';
        path += length;
        int how = *path ? O_PATH | O_DIRECTORY : flags | O_NONBLOCK | O_NOCTTY;
        int next = openat(folder, name, how | O_NOFOLLOW | O_CLOEXEC);
        int error = errno;
        close(folder);
        errno = error;
        if (next < 0 || !*path)
            return next < 0 ? -errno : next;
        folder = next;
    }
    return -errno;
}

static int
require_plain(int fd)
{
    struct stat s;
    if (fstat(fd, &s) != 0)
        return -errno;
    return S_ISREG(s.st_mode) ? 0 : -EINVAL;
}

/* Take the selected word of a file, or its only word. */
static int
take_value(char *text, char value[APPLY_VALUE_MAX])
{
    char *begin = strchr(text, '[');
    char *end = begin ? strchr(begin, ']') : NULL;
    if (begin && !end)
        return -EINVAL;
    begin = begin ? begin + 1 : text;
    size_t length = end ? (size_t)(end - begin) : strcspn(begin, "\n");
    if (length == 0 || length >= APPLY_VALUE_MAX || memchr(begin, ' ', length))
        return -EINVAL;
    memcpy(value, begin, length);
    value[length] = '\0';
    return 0;
}

static int
read_value(void *self, const char *path, char value[APPLY_VALUE_MAX])
{
    const struct doctor_files *files = self;
    char text[TEXT_MAX];
    int fd = open_below(files->root, path, O_RDONLY);
    if (fd < 0)
        return fd;
    int error = require_plain(fd);
    ssize_t got = error ? 0 : read(fd, text, sizeof text - 1);
    if (got < 0)
        error = -errno;
    close(fd);
    if (error)
        return error;
    text[got] = '\0';
    return take_value(text, value);
}

static int
write_value(void *self, const char *path, const char *value)
{
    const struct doctor_files *files = self;
    char text[APPLY_VALUE_MAX + 1];
    size_t length = strlen(value);
    if (length >= APPLY_VALUE_MAX)
        return -EINVAL;
    snprintf(text, sizeof text, "%s\n", value);
    int fd = open_below(files->root, path, O_WRONLY | O_TRUNC);
    if (fd < 0)
        return fd;
    int error = require_plain(fd);
    if (!error) {
        ssize_t written = write(fd, text, length + 1);
        error = written < 0 ? -errno : (size_t)written == length + 1 ? 0 : -EIO;
    }
    if (close(fd) != 0 && !error)
        error = -errno;
    return error;
}

/* --- the journal -------------------------------------------------------------------------- */

/* Create the journal's parent folders. Existing folders are not an error. */
static int
make_folders(char *path)
{
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        int made = mkdir(path, 0755);
        int error = errno;
        *at = '/';
        if (made != 0 && error != EEXIST)
            return -error;
    }
    return 0;
}

static int
write_whole(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, text, length);
        if (n == 0 || (n < 0 && errno != EINTR))
            return n == 0 ? -EIO : -errno;
        n = n < 0 ? 0 : n;
        text += n;
        length -= (size_t)n;
    }
    return fsync(fd) == 0 ? 0 : -errno;
}

/* Sync the folder, so that the rename survives a crash. */
static int
sync_folder(char *path)
{
    char *slash = strrchr(path, '/');
    const char *folder = slash == path ? "/" : slash ? path : ".";
    if (slash && slash != path)
        *slash = '\0';
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (slash && slash != path)
        *slash = '/';
    if (fd < 0)
        return -errno;
    int error = fsync(fd) == 0 || errno == EINVAL ? 0 : -errno;
    close(fd);
    return error;
}

/* Write a temporary file and rename it: the journal is never incomplete. */
static int
place(char *path, const char *part, const char *text, size_t length)
{
    unlink(part);
    int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int error = write_whole(fd, text, length);
    if (close(fd) != 0 && !error)
        error = -errno;
    if (!error && rename(part, path) != 0)
        error = -errno;
    if (error)
        unlink(part);
    return error ? error : sync_folder(path);
}

static int
remove_journal(char *path)
{
    if (unlink(path) != 0 && errno != ENOENT)
        return -errno;
    return sync_folder(path);
}

static int
save_journal(void *self, const struct journal *journal)
{
    const struct doctor_files *files = self;
    size_t length = 0, name = strlen(files->journal);
    char *path = strdup(files->journal), *part = malloc(name + 8);
    char *text = journal_write(journal, &length);
    int error = path && part && text ? 0 : -ENOMEM;
    if (!error && journal->count == 0) {
        error = remove_journal(path);
    } else if (!error) {
        memcpy(part, path, name);
        memcpy(part + name, ".part", sizeof ".part");
        error = make_folders(path);
        error = error ? error : place(path, part, text, length);
    }
    free(text);
    free(part);
    free(path);
    return error;
}

static enum dry_status
read_open(int fd, struct journal *journal, struct dry_error *err)
{
    char *text = malloc(JOURNAL_BYTES_MAX);
    if (!text)
        return fail_memory(err, "no memory for the journal");
    size_t length = 0;
    ssize_t got = 1;
    while (got > 0 && length < JOURNAL_BYTES_MAX) {
        got = read(fd, text + length, JOURNAL_BYTES_MAX - length);
        length += got > 0 ? (size_t)got : 0;
    }
    enum dry_status status =
        got < 0 ? fail_at(err, DRY_ERR_SYSTEM, DRY_NO_OFFSET, "cannot read: %s",
                          strerror(errno))
        : length == JOURNAL_BYTES_MAX
            ? fail_at(err, DRY_ERR_LIMIT, length, "this is too long for a journal")
            : journal_read(text, length, journal, err);
    free(text);
    return status;
}

enum dry_status
doctor_files_read_journal(const struct doctor_files *files, struct journal *journal,
                          struct dry_error *err)
{
    *journal = (struct journal){0};
    int fd = open(files->journal, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return DRY_OK;
    if (fd < 0 || require_plain(fd) != 0) {
        enum dry_status status =
            fail_at(err, DRY_ERR_SYSTEM, DRY_NO_OFFSET, "cannot be read: %s",
                    fd < 0 ? strerror(errno) : "it is no plain file");
        if (fd >= 0)
            close(fd);
        return status;
    }
    enum dry_status status = read_open(fd, journal, err);
    close(fd);
    return status;
}

void
doctor_files_init(struct doctor_files *files, const char *root, const char *journal)
{
    *files = (struct doctor_files){.root = root, .journal = journal};
    files->table = (struct apply_files){
        .read = read_value, .write = write_value, .save = save_journal, .self = files};
}
