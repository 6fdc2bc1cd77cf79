/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_BASE_DEVICE_PAGE_H
#define DRYI_BASE_DEVICE_PAGE_H

/*
 * The size of a device's pages.
 *
 * The driver's time depends on the number of handles. A page of 20 MiB costs only about
 * twice as much as a page of 2 MiB. So pages grow with the device. A device of 8 GiB or
 * more has at least 4096 pages, so a half-empty page wastes little. Examples: pages of 16
 * MiB at 80 GB, of 2 MiB at 12 GiB.
 */

#include <stdint.h>

#define DRYI_DEVICE_PAGES_LEAST 4096
#define DRYI_DEVICE_PAGE_MAX (UINT64_C(64) << 20)

/* Return the page size for a device of `total` bytes: a power-of-two multiple of `least`, at least
   `least`. If the total is unknown (UINT64_MAX), return `least`. */
static inline uint64_t
dryi_device_page_bytes(uint64_t least, uint64_t total)
{
    uint64_t page = least,
             most = total == UINT64_MAX ? 0 : total / DRYI_DEVICE_PAGES_LEAST;
    while (2 * page <= most && 2 * page <= DRYI_DEVICE_PAGE_MAX)
        page *= 2;
    return page;
}

#endif
