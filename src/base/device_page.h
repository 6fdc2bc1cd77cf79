/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_BASE_DEVICE_PAGE_H
#define DRYI_BASE_DEVICE_PAGE_H

/*
 * The size of a device's pages.
 *
 * The driver's time goes by the handle: a page of 20 MiB costs about twice as much as a page of
 * 2 MiB. So pages grow with the device, which has 4096 of them or more from 8 GiB on. A page that
 * is half empty is a small part of the memory. A device of 80 GB has pages of 16 MiB, one of 12 GiB
 * has pages of 2 MiB.
 */

#include <stdint.h>

#define DRYI_DEVICE_PAGES_LEAST 4096
#define DRYI_DEVICE_PAGE_MAX (UINT64_C(64) << 20)

/*
 * Return the bytes of a page, a power of two of at least `least`, for a device of `total` bytes;
 * `least`: where no total is known (UINT64_MAX).
 */
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
