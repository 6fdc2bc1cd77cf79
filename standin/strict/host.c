/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory: registrations, and copies from and to it on streams. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "strict/driver.h"
#include "strict/state.h"

/* --- copies ----------------------------------------------------------------------------- */

static int
copy(const struct copy *c)
{
    void *host = (void *)(uintptr_t)c->host_address;
    return stand_in_transfer(c->device_address, c->bytes, c->is_to_device ? NULL : host,
                             c->is_to_device ? host : NULL);
}

void
stand_in_copy(uint32_t stream, uint64_t ordinal)
{
    struct state *s = &stand_in_state;
    size_t left = 0;
    for (size_t i = 0; i < s->copy_count; i++) {
        if (s->copies[i].stream == stream && s->copies[i].ordinal <= ordinal)
            copy(&s->copies[i]);
        else
            s->copies[left++] = s->copies[i];
    }
    s->copy_count = left;
}

#ifndef STAND_IN_OLD

static bool
is_in_use(const struct span *registration)
{
    const struct state *s = &stand_in_state;
    for (size_t i = 0; i < s->copy_count; i++)
        if (s->copies[i].host_address >= registration->address &&
            s->copies[i].host_address < registration->address + registration->size)
            return true;
    return false;
}

/* Copy. Pageable memory is copied at once. A copy that begins in a registration must end in it. */
static int
put_copy(const struct copy *c, void *stream)
{
    struct state *s = &stand_in_state;
    const struct span *r = stand_in_find_containing(&s->registrations, c->host_address);
    size_t next = stand_in_find(&s->registrations, c->host_address);
    uint64_t end = c->host_address + c->bytes;
    if (r ? end > r->address + r->size
          : next < s->registrations.count && s->registrations.items[next].address < end)
        return stand_in_misuse("a copy over the border of a registration");
    struct copy put = *c;
    put.ordinal = stand_in_put(stream, &put.stream);
    if (put.ordinal == 0)
        return stand_in_misuse("a copy on what is not a stream of this context");
    if (!r)
        return copy(&put);
    s->copies =
        stand_in_grow(s->copies, &s->copy_capacity, s->copy_count + 1, sizeof *s->copies);
    s->copies[s->copy_count++] = put;
    stand_in_advance();
    return DRYI_CUDA_SUCCESS;
}

EXPORT int
cuMemcpyHtoDAsync_v2(dryi_cuda_address to, const void *from, size_t bytes, void *stream)
{
    int result = stand_in_begin(NEEDS_CONTEXT);
    const struct copy c = {.device_address = to,
                           .host_address = (uintptr_t)from,
                           .bytes = bytes,
                           .is_to_device = true};
    if (result == DRYI_CUDA_SUCCESS)
        result = put_copy(&c, stream);
    return stand_in_end(result);
}

EXPORT int
cuMemcpyDtoHAsync_v2(void *to, dryi_cuda_address from, size_t bytes, void *stream)
{
    int result = stand_in_begin(NEEDS_CONTEXT);
    const struct copy c = {
        .device_address = from, .host_address = (uintptr_t)to, .bytes = bytes};
    if (result == DRYI_CUDA_SUCCESS)
        result = put_copy(&c, stream);
    return stand_in_end(result);
}

/* --- registrations ---------------------------------------------------------------------- */

#define COUNTED_MAX (UINT64_C(8) << 30)

/* Count the bytes of a range without a page. Returns false if part of the range is unmapped. */
static bool
count_absent(uint64_t address, uint64_t bytes, uint64_t *absent_bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    *absent_bytes = 0;
    if (bytes > COUNTED_MAX)
        return true;
    unsigned char *here = malloc(bytes / page);
    if (!here)
        abort();
    bool is_mapped = mincore((void *)(uintptr_t)address, bytes, here) == 0;
    for (uint64_t i = 0; is_mapped && i < bytes / page; i++)
        *absent_bytes += here[i] & 1 ? 0 : page;
    free(here);
    return is_mapped;
}

/* Sleep with the lock held, as the driver blocks other calls meanwhile. */
static void
take_time(void)
{
    const struct timespec t = {
        .tv_sec = (time_t)(stand_in_state.setup.register_ns / 1000000000),
        .tv_nsec = (long)(stand_in_state.setup.register_ns % 1000000000)};
    if (t.tv_sec || t.tv_nsec)
        nanosleep(&t, NULL);
}

static int
register_range(uint64_t address, uint64_t bytes)
{
    struct state *s = &stand_in_state;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), absent;
    if (bytes == 0 || address % page || bytes % page)
        return stand_in_misuse("cuMemHostRegister of what is not whole pages");
    size_t i = stand_in_find(&s->registrations, address);
    if (i < s->registrations.count && s->registrations.items[i].address < address + bytes)
        return DRYI_CUDA_HOST_ALREADY_REGISTERED;
    if (!count_absent(address, bytes, &absent))
        return stand_in_misuse("cuMemHostRegister of what is not mapped");
    take_time();
    if (s->setup.register_result)
        return s->setup.register_result;
    if (s->setup.register_cap_bytes && bytes >= s->setup.register_cap_bytes)
        return DRYI_CUDA_OUT_OF_MEMORY;
    s->account.unpopulated_bytes += absent;
    const struct span registration = {
        .address = address, .size = bytes, .device = stand_in_device()};
    stand_in_add(&s->registrations, &registration);
    return DRYI_CUDA_SUCCESS;
}

EXPORT int
cuMemHostRegister_v2(void *address, size_t bytes, unsigned flags)
{
    int result = stand_in_begin(NEEDS_CONTEXT);
    if (result == DRYI_CUDA_SUCCESS)
        result = stand_in_unsafe();
    if (result == DRYI_CUDA_SUCCESS &&
        flags != (DRYI_CUDA_HOST_PORTABLE | DRYI_CUDA_HOST_MAPPED))
        result = stand_in_misuse("memory that not all contexts may use");
    if (result == DRYI_CUDA_SUCCESS)
        result = register_range((uintptr_t)address, bytes);
    return stand_in_end(result);
}

static int
unregister_range(uint64_t address)
{
    struct state *s = &stand_in_state;
    size_t i = stand_in_find(&s->registrations, address);
    uint64_t absent;
    if (i == s->registrations.count || s->registrations.items[i].address != address) {
        stand_in_misuse("cuMemHostUnregister of what is not registered");
        return DRYI_CUDA_HOST_NOT_REGISTERED;
    }
    if (is_in_use(&s->registrations.items[i]))
        stand_in_misuse("unregistered while a copy has to use it");
    if (!count_absent(address, s->registrations.items[i].size, &absent))
        stand_in_misuse("unregistered when it was unmapped already");
    take_time();
    stand_in_drop(&s->registrations, i);
    return DRYI_CUDA_SUCCESS;
}

EXPORT int
cuMemHostUnregister(void *address)
{
    int result = stand_in_begin(NEEDS_CONTEXT);
    if (result == DRYI_CUDA_SUCCESS)
        result = stand_in_unsafe();
    if (result == DRYI_CUDA_SUCCESS)
        result = unregister_range((uintptr_t)address);
    return stand_in_end(result);
}

#endif
