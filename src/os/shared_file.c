/* SPDX-License-Identifier: Apache-2.0 */

/* open(), posix_fallocate() and mmap(), with fcntl() locks. The lock on the first byte is
   the writer's. */
#include "os/shared_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static enum dry_status
failed(int error)
{
    errno = error;
    return error == ENOSPC || error == EDQUOT ? DRY_ERR_NO_SPACE : DRY_ERR_SYSTEM;
}

/* --- the writer --------------------------------------------------------------------------- */

static int
set_lock(int file, short kind, uint64_t offset, uint64_t bytes)
{
    struct flock lock = {.l_type = kind,
                         .l_whence = SEEK_SET,
                         .l_start = (off_t)offset,
                         .l_len = (off_t)bytes};
    return fcntl(file, F_SETLK, &lock);
}

bool
dryi_shared_file_lock(const struct dryi_shared_file *file)
{
    return set_lock(file->file, F_WRLCK, 0, 1) == 0;
}

static enum dry_status
prepare(struct dryi_shared_file *made)
{
    int error;
    do
        error = posix_fallocate(made->file, 0, (off_t)made->bytes);
    while (error == EINTR);
    if (error)
        return failed(error);
    void *memory =
        mmap(NULL, made->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, made->file, 0);
    if (memory == MAP_FAILED)
        return failed(errno);
    made->memory = memory;
    return dryi_shared_file_lock(made) ? DRY_OK : failed(errno);
}

enum dry_status
dryi_shared_file_create(const char *path, size_t bytes, struct dryi_shared_file *file)
{
    struct dryi_shared_file made = {.bytes = bytes};
    made.file = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (made.file < 0)
        return failed(errno);
    enum dry_status status = prepare(&made);
    if (status != DRY_OK) {
        int error = errno;
        dryi_shared_file_close(&made);
        unlink(path);
        errno = error;
        return status;
    }
    *file = made;
    return DRY_OK;
}

void
dryi_shared_file_close(struct dryi_shared_file *file)
{
    if (file->memory)
        munmap(file->memory, file->bytes);
    if (file->file >= 0)
        close(file->file);
    *file = (struct dryi_shared_file){.file = -1};
}

void
dryi_shared_file_remove(const char *path)
{
    unlink(path);
}

/* --- readers ------------------------------------------------------------------------------ */

/* O_NONBLOCK, or opening a pipe would block. */
enum dry_status
dryi_shared_file_open(const char *path, int *file, struct dryi_shared_facts *facts)
{
    const int flags = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    int opened = open(path, O_RDWR | flags);
    if (opened < 0 && (errno == EACCES || errno == EROFS))
        opened = open(path, O_RDONLY | flags);
    if (opened < 0)
        return failed(errno);
    struct stat found;
    if (fstat(opened, &found) != 0) {
        int error = errno;
        close(opened);
        return failed(error);
    }
    *facts = (struct dryi_shared_facts){.bytes = (uint64_t)found.st_size,
                                        .owner = found.st_uid,
                                        .user = geteuid(),
                                        .mode = found.st_mode & 07777,
                                        .names = found.st_nlink,
                                        .is_plain = S_ISREG(found.st_mode)};
    *file = opened;
    return DRY_OK;
}

bool
dryi_shared_file_read(int file, uint64_t offset, void *into, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t got =
            pread(file, (char *)into + done, bytes - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            errno = ENODATA;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

bool
dryi_shared_file_write(int file, uint64_t offset, const void *from, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t put =
            pwrite(file, (const char *)from + done, bytes - done, (off_t)(offset + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        done += (size_t)put;
    }
    return true;
}

/* Query by an open file description lock (Linux 3.15): unlike a POSIX lock, it also
   conflicts with locks of this process. */
bool
dryi_shared_file_is_held(int file, uint64_t *process)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    if (fcntl(file, F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK)
        return false;
    *process = lock.l_pid > 0 ? (uint64_t)lock.l_pid : 0;
    return true;
}

bool
dryi_shared_file_claim(int file, uint64_t offset, uint64_t bytes)
{
    return set_lock(file, F_WRLCK, offset, bytes) == 0;
}

void
dryi_shared_file_release(int file, uint64_t offset, uint64_t bytes)
{
    set_lock(file, F_UNLCK, offset, bytes);
}

bool
dryi_shared_file_is_named(int file, const char *path)
{
    struct stat open_file, named;
    return fstat(file, &open_file) == 0 && lstat(path, &named) == 0 &&
           open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

enum dry_status
dryi_shared_file_list(const char *folder, const char *prefix,
                      enum dry_status (*visit)(void *self, const char *name), void *self)
{
    DIR *open_folder = opendir(folder);
    if (!open_folder)
        return DRY_ERR_SYSTEM;
    enum dry_status status = DRY_OK;
    const struct dirent *entry;
    while (status == DRY_OK &&
           (entry = readdir(open_folder))) /* NOLINT(concurrency-mt-unsafe) */
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
            status = visit(self, entry->d_name);
    closedir(open_folder);
    return status;
}
