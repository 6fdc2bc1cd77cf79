/* SPDX-License-Identifier: Apache-2.0 */

#include "os/system.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fail.h"

#define ERROR_TEXT_BYTES 128

uint64_t
dryi_system_page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t
dryi_system_memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    uint64_t bytes;
    if (pages <= 0 ||
        __builtin_mul_overflow((uint64_t)pages, dryi_system_page_bytes(), &bytes))
        return UINT64_MAX;
    return bytes;
}

uint64_t
dryi_system_time_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint64_t
dryi_system_uptime_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

enum dry_status
dryi_system_fail(struct dry_error *err, enum dry_status status, const char *subject,
                 const char *what)
{
    int error = errno;
    char buffer[ERROR_TEXT_BYTES];
    (void)dryi_fail(err, status, "%s: %s: %s", subject, what,
                    strerror_r(error, buffer, sizeof buffer));
    if (err)
        err->os_errno = error;
    return status;
}

uint64_t
dryi_system_process(void)
{
    return (uint64_t)getpid();
}

void
dryi_system_process_name(char *text, size_t capacity)
{
    int file = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? -1 : read(file, text, capacity - 1);
    if (file >= 0)
        close(file);
    text[got > 0 ? got : 0] = '\0';
    if (got > 0 && text[got - 1] == '\n')
        text[got - 1] = '\0';
}
