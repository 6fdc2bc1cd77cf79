/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuFile: reads and writes between a file and a device, through the host.
 *
 * Like a copy to a device, a read delivers only zeros if it exceeds setup's
 * `copy_bytes_max`. Its result is the same either way. A write is done in full.
 *
 * A handle is one more than a descriptor that is opened here. The program's descriptor
 * may use O_DIRECT, which requires aligned memory; cuFile's callers need not align. Cost:
 * a buffer of the read's size.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"
#include "setup.h"

/* A result: cuFile's error, then the driver's. */
struct file_error {
    int error, driver;
};

struct file_descriptor {
    int type;
    union {
        int number;
        void *pointer;
    } handle;
    const void *operations;
};

#define ERROR_INVALID 5022 /* CU_FILE_INVALID_VALUE */

static int
get_number(void *handle)
{
    return (int)(uintptr_t)handle - 1;
}

EXPORT struct file_error
cuFileHandleRegister(void **handle, const struct file_descriptor *descriptor)
{
    int theirs = descriptor->handle.number;
    int mode = fcntl(theirs, F_GETFL);
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", theirs);
    int ours = mode < 0 ? -1 : open(path, (mode & O_ACCMODE) | O_CLOEXEC);
    *handle = ours < 0 ? NULL : (void *)(uintptr_t)(ours + 1);
    return (struct file_error){ours < 0 ? ERROR_INVALID : 0, 0};
}

EXPORT void
cuFileHandleDeregister(void *handle)
{
    if (handle)
        close(get_number(handle));
}

EXPORT struct file_error
cuFileBufRegister(const void *buffer, size_t bytes, int flags)
{
    (void)buffer, (void)bytes, (void)flags;
    return (struct file_error){0, 0};
}

EXPORT struct file_error
cuFileBufDeregister(const void *buffer)
{
    (void)buffer;
    return (struct file_error){0, 0};
}

/* Return how many of `bytes` the file has from `offset` on; -1: it is no file. */
static ssize_t
count_bytes(int file, size_t bytes, off_t offset)
{
    struct stat status;
    if (fstat(file, &status) != 0)
        return -1;
    off_t left = status.st_size > offset ? status.st_size - offset : 0;
    return (size_t)left < bytes ? (ssize_t)left : (ssize_t)bytes;
}

EXPORT ssize_t
cuFileRead(void *handle, char *buffer, size_t bytes, off_t file_offset,
           off_t buffer_offset)
{
    ssize_t count = count_bytes(get_number(handle), bytes, file_offset);
    uint64_t to = (uintptr_t)(buffer + buffer_offset);
    if (count <= 0)
        return count;
    if ((uint64_t)count > standin_setup()->copy_bytes_max) {
        standin_set(to, 0, (uint64_t)count);
        return count;
    }
    void *host = malloc((size_t)count);
    ssize_t got = host ? pread(get_number(handle), host, (size_t)count, file_offset) : -1;
    if (got > 0)
        standin_copy(to, (uintptr_t)host, (uint64_t)got);
    free(host);
    return got;
}

EXPORT ssize_t
cuFileWrite(void *handle, const char *buffer, size_t bytes, off_t file_offset,
            off_t buffer_offset)
{
    return pwrite(get_number(handle), buffer + buffer_offset, bytes, file_offset);
}
