/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h explains the design. Ranges are one array sorted by address: a program has
 * thousands at most, because PyTorch's allocator requests segments. Dirty intervals are a
 * sorted array too, in pages of 4 KiB and merged. Free space is found by walking the gaps
 * between a device's ranges, O(ranges) for each cudaMalloc.
 *
 * Descending addresses come in chunks of 32 MiB, according to most recordings from Linux:
 *
 *     whole chunks      the highest free ones; the allocation is at their beginning
 *     smaller ones      the lowest gap left in a chunk in use, if any
 *
 *          |<----- 64 MiB ----->|<----- 64 MiB ----->|
 *          [44 MiB 2nd][ 20 3rd][44 MiB 1st][ 16 4th ]      4 requests of a Llama, in order
 */
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "setup.h"

#define REGION_BYTES (UINT64_C(4) << 40)
#define SMALL_PAGE UINT64_C(4096)
#define CHUNK (UINT64_C(32) << 20)
#define SPARSE_LEAST (UINT64_C(64) << 10) /* smaller copies cost less than their pages */

static struct region {
    uint64_t base, bytes;
    uint64_t used_bytes;
} regions[STANDIN_DEVICES_MAX];

static struct range *ranges;
static size_t range_count, range_capacity;
static struct intervals dirty, known; /* M3, M4 */
static struct host_account host;

/* Return the bytes that a device gives, its context's among them. */
static uint64_t
get_limit(void)
{
    const struct standin_setup *setup = standin_setup();
    return setup->limit_bytes ? setup->limit_bytes : setup->total_bytes;
}

/* --- regions -------------------------------------------------------------------------------- */

/*
 * The devices' addresses, if they are free: each run of a program then gets the same
 * addresses, whatever libraries are loaded, and runs can be compared.
 */
#define DEVICES_BASE UINT64_C(0x500000000000)
#define DEVICES_STEP (UINT64_C(5) << 40)

static void *
map_quietly(int device, uint64_t bytes)
{
    uint64_t wanted = DEVICES_BASE + (uint64_t)device * DEVICES_STEP;
    void *at = mmap((void *)(uintptr_t)wanted, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* Map up to REGION_BYTES. At least twice the card's memory must fit. */
static char *
map_region(int device, uint64_t *bytes)
{
    uint64_t least = 2 * get_limit() + (UINT64_C(16) << 30);
    for (*bytes = REGION_BYTES; *bytes >= least; *bytes /= 2) {
        char *at = map_quietly(device, *bytes + CHUNK);
        if (at)
            return at;
    }
    /* an error of CUDA's would wrongly blame the card */
    fputs("drystone: a device takes more addresses than there are (see ulimit -v)\n",
          stderr);
    abort();
}

static struct region *
get_region(int device)
{
    struct region *region = &regions[device];
    if (region->base)
        return region;
    char *at = map_region(device, &region->bytes);
    /* A touched byte must not cost a page of 2 MiB. */
    madvise(at, region->bytes + CHUNK, MADV_NOHUGEPAGE);
    region->base = ((uintptr_t)at + CHUNK - 1) & ~(CHUNK - 1);
    const struct standin_setup *setup = standin_setup();
    region->used_bytes = setup->context_bytes < setup->total_bytes ? setup->context_bytes
                                                                   : setup->total_bytes;
    return region;
}

int
standin_find_device(uint64_t address)
{
    for (int i = 0; i < standin_setup()->device_count; i++) {
        if (regions[i].base && address - regions[i].base < regions[i].bytes)
            return i;
    }
    return -1;
}

/* --- ranges --------------------------------------------------------------------------------- */

/* Return the index of the first range that ends after `address`. */
static size_t
find_at(uint64_t address)
{
    size_t low = 0, high = range_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges[middle].address + ranges[middle].size <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct range *
standin_find(uint64_t address)
{
    size_t i = find_at(address);
    return i < range_count && ranges[i].address <= address ? &ranges[i] : NULL;
}

static void
insert(const struct range *range)
{
    ranges = standin_grow(ranges, &range_capacity, range_count, sizeof *ranges);
    size_t i = find_at(range->address);
    memmove(ranges + i + 1, ranges + i, (range_count - i) * sizeof *ranges);
    ranges[i] = *range;
    range_count++;
}

/* A gap between ranges of a region, before the first, or after the last. */
struct gap {
    uint64_t begin, end;
    size_t next; /* index of the range after it */
    bool is_last;
};

static uint64_t
round_up(uint64_t number, uint64_t step)
{
    return (number + step - 1) & ~(step - 1);
}

static struct gap
gap_before(const struct region *region, uint64_t begin, size_t next)
{
    uint64_t end = region->base + region->bytes;
    bool is_last = next == range_count || ranges[next].address >= end;
    return (struct gap){begin, is_last ? end : ranges[next].address, next, is_last};
}

static struct gap
first_gap(const struct region *region)
{
    return gap_before(region, region->base, find_at(region->base));
}

static struct gap
next_gap(const struct region *region, const struct gap *gap)
{
    const struct range *range = &ranges[gap->next];
    return gap_before(region, round_up(range->address + range->size, STANDIN_PAGE),
                      gap->next + 1);
}

/* Find an address in the gap's parts of chunks that are already in use. */
static bool
find_beside(const struct gap *gap, uint64_t size, uint64_t *address)
{
    uint64_t tail_end = round_up(gap->begin, CHUNK), head = gap->end & ~(CHUNK - 1);
    if (tail_end > gap->end)
        tail_end = gap->end; /* both ends in one chunk */
    *address = gap->begin;
    if (tail_end - gap->begin >= size)
        return true;
    *address = head > gap->begin ? head : gap->begin;
    return gap->end - *address >= size;
}

/* Find whole chunks at the upper end of a gap. */
static bool
find_chunks(const struct gap *gap, uint64_t size, uint64_t *address)
{
    uint64_t begin = round_up(gap->begin, CHUNK), end = gap->end & ~(CHUNK - 1);
    uint64_t wanted = round_up(size, CHUNK);
    if (end < begin || end - begin < wanted)
        return false;
    *address = end - wanted;
    return true;
}

/* Find an address as a descending driver does: in chunks in use, else below them. */
static bool
find_descending(const struct region *region, uint64_t size, uint64_t *address)
{
    bool found = false;
    uint64_t at;
    for (struct gap gap = first_gap(region);; gap = next_gap(region, &gap)) {
        if (size < CHUNK && find_beside(&gap, size, &at)) {
            *address = at;
            return true;
        }
        if (find_chunks(&gap, size, &at)) {
            *address = at;
            found = true;
        }
        if (gap.is_last)
            return found;
    }
}

static bool
find_ascending(const struct region *region, uint64_t size, uint64_t *address)
{
    for (struct gap gap = first_gap(region);; gap = next_gap(region, &gap)) {
        *address = gap.begin;
        if (gap.end - gap.begin >= size)
            return true;
        if (gap.is_last)
            return false;
    }
}

static bool
find_gap(const struct region *region, uint64_t size, uint64_t *address)
{
    return standin_setup()->is_descending ? find_descending(region, size, address)
                                          : find_ascending(region, size, address);
}

bool
standin_take(int device, uint64_t bytes)
{
    struct region *region = get_region(device);
    uint64_t limit = get_limit();
    if (bytes > limit || region->used_bytes > limit - bytes)
        return false;
    region->used_bytes += bytes;
    return true;
}

void
standin_give(int device, uint64_t bytes)
{
    regions[device].used_bytes -= bytes;
}

/* Called by the hook: take what a real card loses to something that no call here stands for. */
EXPORT bool
drystone_standin_take_outside(int device, uint64_t bytes)
{
    standin_lock();
    bool is_taken =
        device >= 0 && device < STANDIN_DEVICES_MAX && standin_take(device, bytes);
    standin_unlock();
    return is_taken;
}

uint64_t
standin_used(int device)
{
    return get_region(device)->used_bytes;
}

enum cuda_error
standin_alloc(int device, uint64_t size, enum range_kind kind, uint64_t *address)
{
    if (size == 0 || size > REGION_BYTES)
        return size ? CUDA_NO_MEMORY : CUDA_INVALID_VALUE;
    const struct region *region = get_region(device);
    uint64_t rounded = (size + STANDIN_PAGE - 1) & ~(STANDIN_PAGE - 1);
    bool counts = kind != RANGE_RESERVED;
    if (!find_gap(region, rounded, address))
        return CUDA_NO_MEMORY;
    if (counts && !standin_take(device, rounded))
        return CUDA_NO_MEMORY;
    insert(&(struct range){*address, rounded, kind, device});
    return CUDA_OK;
}

enum cuda_error
standin_add_host(uint64_t address, uint64_t size, enum range_kind kind)
{
    size_t i = find_at(address);
    if (size == 0 || (i < range_count && ranges[i].address < address + size))
        return size ? CUDA_ALREADY_REGISTERED : CUDA_INVALID_VALUE;
    insert(&(struct range){address, size, kind, -1});
    host.pinned += size;
    host.pinned_peak = host.pinned > host.pinned_peak ? host.pinned : host.pinned_peak;
    return CUDA_OK;
}

/* --- dirty pages ---------------------------------------------------------------------------- */

/* The bytes of [begin, end) are what a real device would hold, or a guess. */
static void
write_down(uint64_t begin, uint64_t end, bool is_known)
{
    standin_intervals_add(&dirty, begin & ~(SMALL_PAGE - 1), round_up(end, SMALL_PAGE));
    host.dirty_peak = dirty.bytes > host.dirty_peak ? dirty.bytes : host.dirty_peak;
    if (is_known)
        standin_intervals_add(&known, begin, end);
    else
        standin_intervals_cut(&known, begin, end);
}

static void
zero_pages(uint64_t begin, uint64_t end)
{
    uint64_t first = (begin + SMALL_PAGE - 1) & ~(SMALL_PAGE - 1),
             last = end & ~(SMALL_PAGE - 1);
    if (first >= last) {
        memset((void *)(uintptr_t)begin, 0, end - begin);
        return;
    }
    memset((void *)(uintptr_t)begin, 0, first - begin);
    if (madvise((void *)(uintptr_t)first, last - first, MADV_DONTNEED) != 0)
        memset((void *)(uintptr_t)first, 0, last - first); /* locked */
    memset((void *)(uintptr_t)last, 0, end - last);
}

/* Zero [begin, end), which is not known then. Its whole pages are clean afterwards; pages
   that it shares stay dirty. */
static void
zero(uint64_t begin, uint64_t end)
{
    for (size_t i = standin_intervals_find(&dirty, begin);
         i < dirty.count && dirty.items[i].begin < end; i++) {
        const struct interval *old = &dirty.items[i];
        zero_pages(old->begin > begin ? old->begin : begin,
                   old->end < end ? old->end : end);
    }
    standin_intervals_cut(&dirty, round_up(begin, SMALL_PAGE), end & ~(SMALL_PAGE - 1));
    standin_intervals_cut(&known, begin, end);
}

void
standin_touch(uint64_t address, uint64_t bytes, bool is_known)
{
    write_down(address, address + bytes, is_known);
}

void
standin_forget(uint64_t address, uint64_t bytes)
{
    standin_intervals_cut(&known, address, address + bytes);
}

bool
standin_knows(uint64_t address, uint64_t bytes)
{
    return standin_intervals_have(&known, address, address + bytes);
}

uint64_t
standin_dirty_bytes(void)
{
    return dirty.bytes;
}

/* Return the bytes of a range that have no page. */
static uint64_t
count_untouched(const struct range *range)
{
    enum { STEP = 4096 };
    unsigned char states[STEP];
    uint64_t bytes = 0, end = range->address + range->size;
    for (uint64_t at = range->address & ~(SMALL_PAGE - 1); at < end;
         at += STEP * SMALL_PAGE) {
        uint64_t pages = (end - at + SMALL_PAGE - 1) / SMALL_PAGE;
        pages = pages < STEP ? pages : STEP;
        if (mincore((void *)(uintptr_t)at, pages * SMALL_PAGE, states) != 0)
            return bytes;
        for (uint64_t i = 0; i < pages; i++)
            bytes += states[i] & 1 ? 0 : SMALL_PAGE;
    }
    return bytes;
}

void
standin_account(struct host_account *account)
{
    *account = host;
    for (size_t i = 0; i < range_count; i++)
        if (ranges[i].kind == RANGE_HOST || ranges[i].kind == RANGE_REGISTERED)
            account->untouched += count_untouched(&ranges[i]);
}

void
standin_wipe(uint64_t address, uint64_t bytes)
{
    zero(address, address + bytes);
}

enum cuda_error
standin_free(uint64_t address)
{
    size_t i = find_at(address);
    if (i == range_count || ranges[i].address != address)
        return CUDA_INVALID_VALUE;
    struct range range = ranges[i];
    if (range.device >= 0)
        zero(range.address, range.address + range.size);
    if (range.device >= 0 && range.kind != RANGE_RESERVED)
        standin_give(range.device, range.size);
    if (range.device < 0)
        host.pinned -= range.size;
    range_count--;
    memmove(ranges + i, ranges + i + 1, (range_count - i) * sizeof *ranges);
    return CUDA_OK;
}

/* Copy from a device to [to, to + bytes) of cudaHostAlloc(). Pages that were not written on the
   device have none on the host, either. */
static void
copy_to_pinned(uint64_t to, uint64_t from, uint64_t bytes)
{
    zero_pages(to, to + bytes);
    for (size_t i = standin_intervals_find(&dirty, from);
         i < dirty.count && dirty.items[i].begin < from + bytes; i++) {
        const struct interval *old = &dirty.items[i];
        uint64_t begin = old->begin > from ? old->begin : from;
        uint64_t end = old->end < from + bytes ? old->end : from + bytes;
        memcpy((void *)(uintptr_t)(to + (begin - from)), (const void *)(uintptr_t)begin,
               end - begin);
    }
}

static void
copy_to_host(uint64_t to, uint64_t from, uint64_t bytes)
{
    bool is_pinned = false;
    if (bytes >= SPARSE_LEAST && standin_find_device(from) >= 0) {
        standin_lock();
        const struct range *range = standin_find(to), *source = standin_find(from);
        /* a program writes managed memory by itself */
        is_pinned = range && range->kind == RANGE_HOST &&
                    bytes <= range->address + range->size - to && source &&
                    source->kind != RANGE_MANAGED;
        if (is_pinned)
            copy_to_pinned(to, from, bytes);
        standin_unlock();
    }
    if (!is_pinned)
        memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
}

void
standin_copy(uint64_t to, uint64_t from, uint64_t bytes)
{
    if (bytes == 0)
        return;
    if (standin_find_device(to) < 0) {
        copy_to_host(to, from, bytes);
        return;
    }
    standin_lock();
    if (bytes > standin_setup()->copy_bytes_max) {
        zero(to, to + bytes);
    } else {
        bool is_known = standin_find_device(from) < 0 || standin_knows(from, bytes);
        write_down(to, to + bytes, is_known);
        memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    }
    standin_unlock();
}

void
standin_set(uint64_t at, int value, uint64_t bytes)
{
    if (bytes == 0)
        return;
    if (standin_find_device(at) < 0) {
        memset((void *)(uintptr_t)at, value, bytes);
        return;
    }
    standin_lock();
    if ((unsigned char)value == 0 || bytes > standin_setup()->copy_bytes_max) {
        zero(at, at + bytes);
        if ((unsigned char)value == 0)
            standin_intervals_add(&known, at, at + bytes);
    } else {
        write_down(at, at + bytes, true);
        memset((void *)(uintptr_t)at, value, bytes);
    }
    standin_unlock();
}
