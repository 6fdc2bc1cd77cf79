/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_OS_RANGE_H
#define DRYI_OS_RANGE_H

/*
 * Ranges of this process's addresses: reserved first, given memory later.
 *
 * Every address and length is a multiple of dryi_system_page_bytes(). Memory put under a
 * range replaces what lay there; nobody may use the range meanwhile.
 *
 * Errors     NO_SPACE: no memory, no addresses, or too many pieces (vm.max_map_count).
 *            SYSTEM: anything else; errno says what. The kernel counts the pieces before it
 *            touches the range, so a call refused for that has changed nothing.
 */

#include <stddef.h>
#include <stdint.h>

#include <drystone/status.h>

/* Addresses without memory at a multiple of `alignment`, a power of two. */
DRY_CHECK_RESULT enum dry_status dryi_range_reserve(uint64_t bytes, uint64_t alignment,
                                                    uint64_t *address);
/* The whole range or any part of it, with whatever lies there. */
void dryi_range_release(uint64_t address, uint64_t bytes);

/* Zeroed memory at addresses of the kernel's choice; ended by dryi_range_release(). */
DRY_CHECK_RESULT enum dry_status dryi_range_take(uint64_t bytes, uint64_t *address);
/* Zeroed memory of its own under a part of a reservation. */
DRY_CHECK_RESULT enum dry_status dryi_range_fill(uint64_t address, uint64_t bytes);
/* A piece of a file under a part of a reservation; writes go to the file. */
DRY_CHECK_RESULT enum dry_status dryi_range_fill_from(uint64_t address, uint64_t bytes,
                                                      int file, uint64_t offset);
/* Back to addresses without memory. */
DRY_CHECK_RESULT enum dry_status dryi_range_empty(uint64_t address, uint64_t bytes);

#endif
