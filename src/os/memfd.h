/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_OS_MEMFD_H
#define DRYI_OS_MEMFD_H

/*
 * A file without a name that lies in memory: what one page of it holds can be seen at
 * several addresses, or at other ones later.
 *
 * A piece has memory from give to take, zeroed at first. It is set aside at once, so that
 * a write to it later cannot end in a SIGBUS because there is none.
 *
 * Errors     NO_SPACE: no memory. SYSTEM: anything else; errno says what.
 */

#include <stdint.h>

#include <drystone/status.h>

/* `name` is shown in /proc/self/maps. */
DRY_CHECK_RESULT enum dry_status dryi_memfd_open(const char *name, int *file);
void dryi_memfd_close(int file); /* -1: nothing */

DRY_CHECK_RESULT enum dry_status dryi_memfd_give(int file, uint64_t offset,
                                                 uint64_t bytes);
void dryi_memfd_take(int file, uint64_t offset, uint64_t bytes);

#endif
