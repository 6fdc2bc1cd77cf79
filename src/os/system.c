/* SPDX-License-Identifier: Apache-2.0 */

/* sysconf() and the clock, asked anew each time. */
#include "os/system.h"

#include <time.h>
#include <unistd.h>

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
