/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_OS_MEMFD_H
#define DRYI_OS_MEMFD_H

/*
 * An unnamed file in memory. The same page of it can be mapped at several addresses, or
 * at different ones over time.
 *
 * A range of the file has memory from give to take, zeroed at first. Memory is allocated
 * at give, so a later store cannot raise SIGBUS.
 *
 * Errors     NO_SPACE: no memory. SYSTEM: any other failure; errno has the reason.
 */

#include <stdint.h>

#include <drystone/status.h>

/* Open a file of length 0; the caller closes it. `name` is shown in /proc/self/maps. */
DRY_CHECK_RESULT enum dry_status dryi_memfd_open(const char *name, int *file);
void dryi_memfd_close(int file); /* -1: does nothing */

DRY_CHECK_RESULT enum dry_status dryi_memfd_give(int file, uint64_t offset,
                                                 uint64_t bytes);
void dryi_memfd_take(int file, uint64_t offset, uint64_t bytes);

#endif
