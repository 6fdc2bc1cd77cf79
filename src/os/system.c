/* SPDX-License-Identifier: Apache-2.0 */
#include "os/system.h"

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
