/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges, reservations, handles and mappings, and their bytes. */
#include <stdlib.h>
#include <string.h>

#include "strict/driver.h"
#include "strict/state.h"

/* --- spans by address ------------------------------------------------------------------- */

size_t
stand_in_find(const struct spans *spans, uint64_t address)
{
    size_t low = 0, high = spans->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct span *span = &spans->items[middle];
        if (span->address + span->size <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool
is_at(const struct spans *spans, size_t i, uint64_t address)
{
    return i < spans->count && spans->items[i].address == address;
}

struct span *
stand_in_find_containing(const struct spans *spans, uint64_t address)
{
    size_t i = stand_in_find(spans, address);
    return i < spans->count && spans->items[i].address <= address ? &spans->items[i]
                                                                  : NULL;
}

void
stand_in_add(struct spans *spans, const struct span *span)
{
    spans->items = stand_in_grow(spans->items, &spans->capacity, spans->count + 1,
                                 sizeof *spans->items);
    size_t i = stand_in_find(spans, span->address);
    memmove(&spans->items[i + 1], &spans->items[i],
            (spans->count - i) * sizeof *spans->items);
    spans->items[i] = *span;
    spans->count++;
}

void
stand_in_drop(struct spans *spans, size_t i)
{
    spans->count--;
    memmove(&spans->items[i], &spans->items[i + 1],
            (spans->count - i) * sizeof *spans->items);
}

void
stand_in_memory_forget(void)
{
    struct state *s = &stand_in_state;
    for (size_t i = 0; i < s->ranges.count; i++)
        free(s->ranges.items[i].bytes);
    for (size_t i = 0; i < s->handle_count; i++)
        free(s->handles[i].bytes);
    free(s->ranges.items);
    free(s->reservations.items);
    free(s->mappings.items);
    free(s->registrations.items);
    free(s->opened.items);
    free(s->copies);
    free(s->handles);
}

/* --- bytes and addresses ------------------------------------------------------------------ */

bool
stand_in_take(int device, uint64_t bytes)
{
    struct state *s = &stand_in_state;
    if (bytes > s->setup.total_bytes - s->used_bytes[device])
        return false;
    s->used_bytes[device] += bytes;
    return true;
}

void
stand_in_give(int device, uint64_t bytes)
{
    stand_in_state.used_bytes[device] -= bytes;
}

/* Leaves a gap after the range, so that an access beyond its end hits nothing. */
bool
stand_in_take_address(uint64_t bytes, uint64_t alignment, uint64_t *address)
{
    struct state *s = &stand_in_state;
    uint64_t end = UINT64_C(1) << 63;
    uint64_t begin = (s->next_address + alignment - 1) / alignment * alignment;
    if (bytes > end - begin || alignment > end - begin - bytes)
        return false;
    s->next_address = begin + bytes + s->setup.granularity;
    *address = begin;
    return true;
}

static uint64_t
round_up(uint64_t bytes)
{
    uint64_t grain = stand_in_state.setup.granularity;
    return (bytes + grain - 1) / grain * grain;
}

/* --- cuMemAlloc ------------------------------------------------------------------------- */

static int
alloc(dryi_cuda_address *address, size_t bytes)
{
    int device = stand_in_device();
    if (bytes == 0)
        return stand_in_misuse("cuMemAlloc of nothing");
    if (bytes > stand_in_state.setup.total_bytes ||
        !stand_in_take(device, round_up(bytes)))
        return DRYI_CUDA_OUT_OF_MEMORY;
    uint64_t begin;
    if (!stand_in_take_address(round_up(bytes), stand_in_state.setup.granularity,
                               &begin)) {
        stand_in_give(device, round_up(bytes));
        return DRYI_CUDA_OUT_OF_MEMORY;
    }
    const struct span range = {.address = begin, .size = bytes, .device = device};
    stand_in_add(&stand_in_state.ranges, &range);
    *address = begin;
    return DRYI_CUDA_SUCCESS;
}

EXPORT int
cuMemAlloc_v2(dryi_cuda_address *address, size_t bytes)
{
    int result = stand_in_begin(NEEDS_CONTEXT);
    if (result == DRYI_CUDA_SUCCESS)
        result = stand_in_unsafe();
    if (result == DRYI_CUDA_SUCCESS)
        result = alloc(address, bytes);
    return stand_in_end(result);
}

static int
free_range(uint64_t address)
{
    struct spans *ranges = &stand_in_state.ranges;
    size_t i = stand_in_find(ranges, address);
    if (!is_at(ranges, i, address))
        return stand_in_misuse("cuMemFree of what is not a range");
    free(ranges->items[i].bytes);
    stand_in_give(ranges->items[i].device, round_up(ranges->items[i].size));
    stand_in_drop(ranges, i);
    return DRYI_CUDA_SUCCESS;
}

EXPORT int
cuMemFree_v2(dryi_cuda_address address)
{
    int result = stand_in_begin(NEEDS_CONTEXT);
    if (result == DRYI_CUDA_SUCCESS)
        result = stand_in_unsafe();
    if (result == DRYI_CUDA_SUCCESS && address)
        result = free_range(address);
    return stand_in_end(result);
}

EXPORT int
cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    int result = stand_in_begin(NEEDS_CONTEXT);
    if (result == DRYI_CUDA_SUCCESS) {
        const struct state *s = &stand_in_state;
        *total_bytes = s->setup.total_bytes;
        *free_bytes = s->setup.total_bytes - s->used_bytes[stand_in_device()];
    }
    return stand_in_end(result);
}

/* --- contents of memory ----------------------------------------------------------------- */

/*
 * Return the bytes at an address and how many follow; allocate them at the first access.
 * NULL: no access.
 */
static unsigned char *
reach(uint64_t address, uint64_t *bytes_to_end)
{
    struct state *s = &stand_in_state;
    const struct span *opened = stand_in_find_containing(&s->opened, address);
    if (opened)
        address = opened->opened_of + (address - opened->address);
    struct span *span = stand_in_find_containing(&s->ranges, address);
    unsigned char **bytes = span ? &span->bytes : NULL;
    if (!span) {
        span = stand_in_find_containing(&s->mappings, address);
        if (!span || !(span->accessible_by >> stand_in_device() & 1))
            return NULL;
        bytes = &s->handles[span->slot].bytes;
    }
    if (!*bytes && !(*bytes = calloc(span->size, 1)))
        abort();
    *bytes_to_end = span->address + span->size - address;
    return *bytes + (address - span->address);
}

int
stand_in_transfer(uint64_t address, size_t bytes, void *out, const void *in)
{
    size_t done = 0;
    if (!out && !in && bytes > 0)
        return DRYI_CUDA_INVALID_VALUE;
    while (done < bytes) {
        uint64_t bytes_to_end;
        unsigned char *at = reach(address + done, &bytes_to_end);
        if (!at) {
            stand_in_misuse("memory used without access to it");
            return stand_in_state.broken = DRYI_CUDA_ILLEGAL_ADDRESS;
        }
        size_t part = bytes_to_end < bytes - done ? bytes_to_end : bytes - done;
        if (out)
            memcpy((char *)out + done, at, part);
        else
            memcpy(at, (const char *)in + done, part);
        done += part;
    }
    return DRYI_CUDA_SUCCESS;
}

EXPORT int
cuMemcpyHtoD_v2(dryi_cuda_address to, const void *from, size_t bytes)
{
    int result = stand_in_begin(NEEDS_CONTEXT);
    if (result == DRYI_CUDA_SUCCESS)
        result = stand_in_transfer(to, bytes, NULL, from);
    return stand_in_end(result);
}

EXPORT int
cuMemcpyDtoH_v2(void *to, dryi_cuda_address from, size_t bytes)
{
    int result = stand_in_begin(NEEDS_CONTEXT);
    if (result == DRYI_CUDA_SUCCESS)
        result = stand_in_transfer(from, bytes, to, NULL);
    return stand_in_end(result);
}

EXPORT int
cuMemsetD8_v2(dryi_cuda_address address, unsigned char value, size_t bytes)
{
    unsigned char same[4096];
    memset(same, value, sizeof same);
    int result = stand_in_begin(NEEDS_CONTEXT);
    for (size_t done = 0; done < bytes && result == DRYI_CUDA_SUCCESS;) {
        size_t part = bytes - done < sizeof same ? bytes - done : sizeof same;
        result = stand_in_transfer(address + done, part, NULL, same);
        done += part;
    }
    return stand_in_end(result);
}

#ifndef STAND_IN_OLD

/* --- reservations ----------------------------------------------------------------------- */

static bool
is_granular(uint64_t bytes)
{
    return bytes % stand_in_state.setup.granularity == 0;
}

static int
reserve(dryi_cuda_address *address, size_t bytes, size_t alignment)
{
    uint64_t grain = stand_in_state.setup.granularity, begin;
    if (bytes == 0 || !is_granular(bytes) || (alignment & (alignment - 1)))
        return stand_in_misuse("a reservation that is not granular");
    if (!stand_in_take_address(bytes, alignment > grain ? alignment : grain, &begin))
        return DRYI_CUDA_OUT_OF_MEMORY;
    const struct span reservation = {
        .address = begin, .size = bytes, .device = stand_in_device()};
    stand_in_add(&stand_in_state.reservations, &reservation);
    *address = begin;
    return DRYI_CUDA_SUCCESS;
}

EXPORT int
cuMemAddressReserve(dryi_cuda_address *address, size_t bytes, size_t alignment,
                    dryi_cuda_address at, unsigned long long flags)
{
    int result = stand_in_begin(NEEDS_CONTEXT);
    if (result == DRYI_CUDA_SUCCESS && (at || flags))
        result = stand_in_misuse("a reservation at a given address");
    if (result == DRYI_CUDA_SUCCESS)
        result = reserve(address, bytes, alignment);
    return stand_in_end(result);
}

EXPORT int
cuMemAddressFree(dryi_cuda_address address, size_t bytes)
{
    struct state *s = &stand_in_state;
    int result = stand_in_begin(NEEDS_CONTEXT);
    if (result != DRYI_CUDA_SUCCESS)
        return stand_in_end(result);
    size_t i = stand_in_find(&s->reservations, address),
           inside = stand_in_find(&s->mappings, address);
    if (!is_at(&s->reservations, i, address) || s->reservations.items[i].size != bytes)
        result = stand_in_misuse("cuMemAddressFree of what is not a reservation");
    else if (inside < s->mappings.count &&
             s->mappings.items[inside].address < address + bytes)
        result = stand_in_misuse("cuMemAddressFree of what is still mapped");
    else
        stand_in_drop(&s->reservations, i);
    return stand_in_end(result);
}

/* --- handles ---------------------------------------------------------------------------- */

/* A handle's number is its serial and its slot. */
#define SLOT_BITS 20

struct handle *
stand_in_find_handle(dryi_cuda_handle number)
{
    size_t slot = number & ((1u << SLOT_BITS) - 1);
    if (slot >= stand_in_state.handle_count)
        return NULL;
    struct handle *h = &stand_in_state.handles[slot];
    return h->is_live && h->opens > 0 && h->serial == number >> SLOT_BITS ? h : NULL;
}

dryi_cuda_handle
stand_in_get_number(const struct handle *handle)
{
    return handle->serial << SLOT_BITS | (uint64_t)(handle - stand_in_state.handles);
}

static size_t
take_slot(void)
{
    struct state *s = &stand_in_state;
    while (s->free_slot < s->handle_count && s->handles[s->free_slot].is_live)
        s->free_slot++;
    if (s->free_slot < s->handle_count)
        return s->free_slot;
    s->handles = stand_in_grow(s->handles, &s->handle_capacity, s->handle_count + 1,
                               sizeof *s->handles);
    return s->handle_count++;
}

static int
check_memory(const struct dryi_cuda_memory *m)
{
    const struct stand_in_setup *setup = &stand_in_state.setup;
    if (m->type != DRYI_CUDA_MEM_PINNED || m->location.type != DRYI_CUDA_MEM_ON_DEVICE ||
        m->location.id < 0 || m->location.id >= setup->device_count ||
        m->win32_meta_data || m->compression_type || m->usage)
        return stand_in_misuse("memory of a kind the stand-in has not heard of");
    if ((m->gpu_direct_capable && setup->no_gpu_direct) ||
        (m->handle_types && setup->no_posix_handles))
        return DRYI_CUDA_NOT_SUPPORTED;
    return DRYI_CUDA_SUCCESS;
}

static int
create(dryi_cuda_handle *number, size_t bytes, const struct dryi_cuda_memory *memory)
{
    struct state *s = &stand_in_state;
    int result = check_memory(memory);
    if (result != DRYI_CUDA_SUCCESS)
        return result;
    if (bytes == 0 || !is_granular(bytes))
        return stand_in_misuse("cuMemCreate that is not granular");
    if (!stand_in_take(memory->location.id, bytes))
        return DRYI_CUDA_OUT_OF_MEMORY;
    size_t slot = take_slot();
    s->handles[slot] = (struct handle){.serial = s->next_serial++,
                                       .size = bytes,
                                       .device = memory->location.id,
                                       .is_live = true,
                                       .is_shareable = memory->handle_types != 0,
                                       .opens = 1};
    s->account.gpu_direct_pages += memory->gpu_direct_capable;
    s->account.shareable_pages += memory->handle_types != 0;
    *number = stand_in_get_number(&s->handles[slot]);
    return DRYI_CUDA_SUCCESS;
}

EXPORT int
cuMemCreate(dryi_cuda_handle *handle, size_t bytes, const struct dryi_cuda_memory *memory,
            unsigned long long flags)
{
    int result = stand_in_begin(NEEDS_CONTEXT);
    if (result == DRYI_CUDA_SUCCESS && flags)
        result = stand_in_misuse("cuMemCreate with flags");
    if (result == DRYI_CUDA_SUCCESS)
        result = create(handle, bytes, memory);
    return stand_in_end(result);
}

/* Memory lives as long as its handle or a mapping of it. */
static void
drop_unused(struct handle *h)
{
    if (h->opens || h->mappings)
        return;
    stand_in_give(h->device, h->size);
    free(h->bytes);
    *h = (struct handle){0};
    size_t slot = (size_t)(h - stand_in_state.handles);
    if (slot < stand_in_state.free_slot)
        stand_in_state.free_slot = slot;
}

EXPORT int
cuMemRelease(dryi_cuda_handle number)
{
    int result = stand_in_begin(NEEDS_CONTEXT);
    if (result == DRYI_CUDA_SUCCESS) {
        struct handle *h = stand_in_find_handle(number);
        if (h) {
            h->opens--;
            drop_unused(h);
        } else {
            result = stand_in_misuse("cuMemRelease of what is not a handle");
        }
    }
    return stand_in_end(result);
}

EXPORT int
cuMemGetAllocationGranularity(size_t *bytes, const struct dryi_cuda_memory *memory,
                              int option)
{
    int result = stand_in_begin(NEEDS_INIT);
    if (result == DRYI_CUDA_SUCCESS)
        result = check_memory(memory);
    if (result == DRYI_CUDA_SUCCESS && option != DRYI_CUDA_GRANULARITY_LEAST)
        result = stand_in_misuse("a granularity the stand-in has not heard of");
    if (result == DRYI_CUDA_SUCCESS)
        *bytes = stand_in_state.setup.granularity;
    return stand_in_end(result);
}

/* --- mappings --------------------------------------------------------------------------- */

static int
map(uint64_t address, size_t bytes, struct handle *h)
{
    struct state *s = &stand_in_state;
    const struct span *reservation = stand_in_find_containing(&s->reservations, address);
    if (!h)
        return stand_in_misuse("cuMemMap of what is not a handle");
    if (bytes != h->size || !is_granular(address))
        return stand_in_misuse("cuMemMap that is not whole");
    if (!reservation || bytes > reservation->address + reservation->size - address)
        return stand_in_misuse("cuMemMap outside a reservation");
    size_t i = stand_in_find(&s->mappings, address);
    if (i < s->mappings.count && s->mappings.items[i].address < address + bytes)
        return stand_in_misuse("cuMemMap over a mapping");
    const struct span mapping = {.address = address,
                                 .size = bytes,
                                 .device = h->device,
                                 .slot = (uint32_t)(h - s->handles)};
    stand_in_add(&s->mappings, &mapping);
    h->mappings++;
    return DRYI_CUDA_SUCCESS;
}

EXPORT int
cuMemMap(dryi_cuda_address address, size_t bytes, size_t offset, dryi_cuda_handle handle,
         unsigned long long flags)
{
    int result = stand_in_begin(NEEDS_CONTEXT);
    if (result == DRYI_CUDA_SUCCESS && (offset || flags))
        result = stand_in_misuse("cuMemMap with an offset or flags");
    if (result == DRYI_CUDA_SUCCESS)
        result = map(address, bytes, stand_in_find_handle(handle));
    return stand_in_end(result);
}

/* Find the mappings that fill [address, address + bytes) exactly: the first, and their count. */
static bool
find_whole(uint64_t address, uint64_t bytes, size_t *first, size_t *count)
{
    const struct spans *mappings = &stand_in_state.mappings;
    *first = stand_in_find(mappings, address);
    *count = 0;
    uint64_t at = address;
    while (at < address + bytes) {
        if (!is_at(mappings, *first + *count, at))
            return false;
        at += mappings->items[*first + *count].size;
        ++*count;
    }
    return bytes > 0 && at == address + bytes;
}

EXPORT int
cuMemUnmap(dryi_cuda_address address, size_t bytes)
{
    struct state *s = &stand_in_state;
    int result = stand_in_begin(NEEDS_CONTEXT);
    size_t first, count;
    if (result != DRYI_CUDA_SUCCESS)
        return stand_in_end(result);
    if (!find_whole(address, bytes, &first, &count))
        return stand_in_end(stand_in_misuse("cuMemUnmap of what is not whole mappings"));
    if (s->setup.unmaps_singly && count > 1)
        return stand_in_end(DRYI_CUDA_INVALID_VALUE);
    for (; count > 0; count--) {
        struct handle *h = &s->handles[s->mappings.items[first].slot];
        h->mappings--;
        drop_unused(h);
        stand_in_drop(&s->mappings, first);
    }
    return stand_in_end(DRYI_CUDA_SUCCESS);
}

/* Each device may occur only once. */
static bool
is_known_access(const struct dryi_cuda_access *access, size_t count)
{
    uint32_t seen = 0;
    for (size_t i = 0; i < count; i++) {
        int id = access[i].location.id;
        if (access[i].flags != DRYI_CUDA_MEM_READ_WRITE ||
            access[i].location.type != DRYI_CUDA_MEM_ON_DEVICE || id < 0 ||
            id >= stand_in_state.setup.device_count || (seen >> id & 1))
            return false;
        seen |= 1u << id;
    }
    return count > 0;
}

EXPORT int
cuMemSetAccess(dryi_cuda_address address, size_t bytes,
               const struct dryi_cuda_access *access, size_t count)
{
    struct state *s = &stand_in_state;
    int result = stand_in_begin(NEEDS_CONTEXT);
    size_t first, mappings;
    if (result != DRYI_CUDA_SUCCESS)
        return stand_in_end(result);
    if (!is_known_access(access, count))
        return stand_in_end(
            stand_in_misuse("access of a kind the stand-in does not know"));
    if (!find_whole(address, bytes, &first, &mappings))
        return stand_in_end(stand_in_misuse("cuMemSetAccess where nothing is mapped"));
    for (size_t k = 0; k < count; k++) {
        if (s->setup.no_peers && access[k].location.id != stand_in_device())
            return stand_in_end(DRYI_CUDA_INVALID_DEVICE);
    }
    for (size_t i = first; i < first + mappings; i++) {
        for (size_t k = 0; k < count; k++)
            s->mappings.items[i].accessible_by |= 1u << access[k].location.id;
    }
    return stand_in_end(DRYI_CUDA_SUCCESS);
}

#endif
