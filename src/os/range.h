/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_OS_RANGE_H
#define DRYI_OS_RANGE_H

/*
 * Address ranges of this process: reserved first, backed by memory later.
 *
 * Every address and length is a multiple of dryi_system_page_bytes(). Backing a range
 * replaces its former mapping; no thread may access the range meanwhile.
 *
 * Errors     NO_SPACE: no memory, no addresses, or too many mappings (vm.max_map_count).
 *            SYSTEM: any other failure; errno has the reason. The kernel counts mappings
 *            before it changes the range, so a call that fails by that limit has changed
 *            nothing.
 */

#include <stddef.h>
#include <stdint.h>

#include <drystone/status.h>

/* Reserve addresses without memory, at a multiple of `alignment`, a power of two. */
DRY_CHECK_RESULT enum dry_status dryi_range_reserve(uint64_t bytes, uint64_t alignment,
                                                    uint64_t *address);
/* Unmap a range or any part of it, with its memory. */
void dryi_range_release(uint64_t address, uint64_t bytes);

/* Allocate zeroed memory at an address of the kernel's choice; end it by
   dryi_range_release(). */
DRY_CHECK_RESULT enum dry_status dryi_range_take(uint64_t bytes, uint64_t *address);
/* Back a part of a reservation with zeroed private memory. */
DRY_CHECK_RESULT enum dry_status dryi_range_fill(uint64_t address, uint64_t bytes);
/* Back a part of a reservation with a range of a file; stores go to the file. */
DRY_CHECK_RESULT enum dry_status dryi_range_fill_from(uint64_t address, uint64_t bytes,
                                                      int file, uint64_t offset);
/* Turn a range back into addresses without memory. */
DRY_CHECK_RESULT enum dry_status dryi_range_empty(uint64_t address, uint64_t bytes);

#endif
