/* SPDX-License-Identifier: Apache-2.0 */

/* memfd_create() and fallocate(); take punches a hole into the file. */
#include "os/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum dry_status
dryi_memfd_open(const char *name, int *file)
{
    int opened = memfd_create(name, MFD_CLOEXEC);
    if (opened < 0)
        return DRY_ERR_SYSTEM;
    *file = opened;
    return DRY_OK;
}

void
dryi_memfd_close(int file)
{
    if (file >= 0)
        close(file);
}

/* Retry when a signal interrupts fallocate(); the kernel has then undone the partial
   work. */
static int
allocate(int file, int mode, uint64_t offset, uint64_t bytes)
{
    int result;
    do
        result = fallocate(file, mode, (off_t)offset, (off_t)bytes);
    while (result != 0 && errno == EINTR);
    return result;
}

enum dry_status
dryi_memfd_give(int file, uint64_t offset, uint64_t bytes)
{
    if (offset > INT64_MAX || bytes > INT64_MAX - offset)
        return DRY_ERR_NO_SPACE;
    if (allocate(file, 0, offset, bytes) == 0)
        return DRY_OK;
    return errno == ENOSPC || errno == ENOMEM || errno == EFBIG ? DRY_ERR_NO_SPACE
                                                                : DRY_ERR_SYSTEM;
}

void
dryi_memfd_take(int file, uint64_t offset, uint64_t bytes)
{
    allocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);
}
