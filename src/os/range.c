/* SPDX-License-Identifier: Apache-2.0 */

/* MAP_FIXED replaces the former mapping of a range in one call. */
#include "os/range.h"

#include <errno.h>
#include <sys/mman.h>

#define USABLE (PROT_READ | PROT_WRITE)
/* Reserved addresses must not count as committed memory. */
#define EMPTY_FLAGS (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

static enum dry_status
map(uint64_t address, uint64_t bytes, int protection, int flags, uint64_t *mapped)
{
    void *at = mmap((void *)(uintptr_t)address, bytes, protection, flags, -1, 0);
    if (at == MAP_FAILED)
        return errno == ENOMEM ? DRY_ERR_NO_SPACE : DRY_ERR_SYSTEM;
    *mapped = (uintptr_t)at;
    return DRY_OK;
}

/* Map `alignment` more bytes than asked for, then unmap both ends around the aligned
   range. */
enum dry_status
dryi_range_reserve(uint64_t bytes, uint64_t alignment, uint64_t *address)
{
    uint64_t whole, begin;
    if (__builtin_add_overflow(bytes, alignment, &whole))
        return DRY_ERR_NO_SPACE;
    enum dry_status status = map(0, whole, PROT_NONE, EMPTY_FLAGS, &begin);
    if (status != DRY_OK)
        return status;
    uint64_t aligned = (begin + alignment - 1) & ~(alignment - 1);
    dryi_range_release(begin, aligned - begin);
    dryi_range_release(aligned + bytes, whole - bytes - (aligned - begin));
    *address = aligned;
    return DRY_OK;
}

/* Unmapping the middle of a mapping splits it in two, which vm.max_map_count may refuse.
   Then the memory is freed and the addresses stay reserved. */
void
dryi_range_release(uint64_t address, uint64_t bytes)
{
    void *at = (void *)(uintptr_t)address;
    if (bytes && munmap(at, bytes) != 0)
        madvise(at, bytes, MADV_DONTNEED);
}

enum dry_status
dryi_range_take(uint64_t bytes, uint64_t *address)
{
    return map(0, bytes, USABLE, MAP_PRIVATE | MAP_ANONYMOUS, address);
}

enum dry_status
dryi_range_fill(uint64_t address, uint64_t bytes)
{
    uint64_t same;
    return map(address, bytes, USABLE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, &same);
}

enum dry_status
dryi_range_fill_from(uint64_t address, uint64_t bytes, int file, uint64_t offset)
{
    void *at = mmap((void *)(uintptr_t)address, bytes, USABLE, MAP_SHARED | MAP_FIXED,
                    file, (off_t)offset);
    if (at == MAP_FAILED)
        return errno == ENOMEM ? DRY_ERR_NO_SPACE : DRY_ERR_SYSTEM;
    return DRY_OK;
}

enum dry_status
dryi_range_empty(uint64_t address, uint64_t bytes)
{
    uint64_t same;
    return map(address, bytes, PROT_NONE, EMPTY_FLAGS | MAP_FIXED, &same);
}
