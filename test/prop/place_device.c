/* SPDX-License-Identifier: Apache-2.0 */
#include "prop/place_device.h"

#include <stddef.h>

static const uint64_t stream_ids[PLACE_STREAMS] = {
    0, 7, 11, UINT64_C(0x7f0011223344), 2, UINT64_C(0x55d000000100), 1, 100000,
};

uint64_t
place_stream_id(unsigned index)
{
    return stream_ids[index % PLACE_STREAMS];
}

unsigned
place_stream_index(uint64_t id)
{
    unsigned i = 0;
    while (i < PLACE_STREAMS && stream_ids[i] != id)
        i++;
    return i;
}

static bool
is_told_to_fail(struct place_device *d, enum place_call call)
{
    if (!(d->fail_mask & (uint32_t)call))
        return false;
    if (d->fail_after > 0) {
        d->fail_after--;
        return false;
    }
    if (d->fail_count == 0 || --d->fail_count == 0)
        d->fail_mask = 0;
    d->refused++;
    return true;
}

static enum dry_status
refuse_memory(struct place_device *d)
{
    d->full += d->fail_status == DRY_ERR_NO_SPACE;
    return d->fail_status;
}

static void
note(struct place_device *d, const char *what)
{
    if (!d->broken)
        d->broken = what;
}

static bool
is_captured(const struct place_device *d, uint64_t stream)
{
    unsigned i = place_stream_index(stream);
    return i < PLACE_STREAMS && (d->captured >> i & 1u);
}

static void
give_back(struct place_device *d)
{
    d->given_back++;
    if (d->captured == UINT32_MAX)
        note(d, "memory is given back while every stream is being captured");
}

static void
watch_get_traits(void *self, struct dry_device_traits *traits)
{
    struct place_device *d = self;
    d->below.ops->get_traits(d->below.self, traits);
}

static enum dry_status
watch_alloc(void *self, uint64_t size, uint64_t *address)
{
    struct place_device *d = self;
    if (is_told_to_fail(d, PLACE_CALL_ALLOC))
        return refuse_memory(d);
    return d->below.ops->alloc(d->below.self, size, address);
}

static void
watch_free(void *self, uint64_t address, uint64_t size)
{
    struct place_device *d = self;
    give_back(d);
    d->waits++; /* as cudaFree does */
    d->below.ops->free(d->below.self, address, size);
}

static enum dry_status
watch_reserve(void *self, uint64_t size, uint64_t *address)
{
    struct place_device *d = self;
    if (is_told_to_fail(d, PLACE_CALL_RESERVE))
        return refuse_memory(d);
    if (size > d->addresses_left)
        return DRY_ERR_NO_SPACE;
    enum dry_status status = d->below.ops->reserve(d->below.self, size, address);
    if (status == DRY_OK && d->addresses_left != UINT64_MAX)
        d->addresses_left -= size;
    return status;
}

static void
watch_unreserve(void *self, uint64_t address, uint64_t size)
{
    struct place_device *d = self;
    d->below.ops->unreserve(d->below.self, address, size);
    if (d->addresses_left != UINT64_MAX)
        d->addresses_left += size;
}

static enum dry_status
watch_map(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    struct place_device *d = self;
    if (is_told_to_fail(d, PLACE_CALL_MAP))
        return refuse_memory(d);
    return d->below.ops->map(d->below.self, address, size, page);
}

static void
watch_unmap(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    struct place_device *d = self;
    give_back(d);
    d->below.ops->unmap(d->below.self, address, size, page);
}

static enum dry_status
watch_create_page(void *self, uint64_t *page)
{
    struct place_device *d = self;
    if (is_told_to_fail(d, PLACE_CALL_CREATE_PAGE))
        return refuse_memory(d);
    return d->below.ops->create_page(d->below.self, page);
}

static void
watch_release_page(void *self, uint64_t page)
{
    struct place_device *d = self;
    give_back(d);
    d->below.ops->release_page(d->below.self, page);
}

static enum dry_status
watch_map_pages(void *self, uint64_t address, const uint64_t *pages, size_t count)
{
    struct place_device *d = self;
    if (is_told_to_fail(d, PLACE_CALL_MAP_PAGES))
        return DRY_ERR_SYSTEM;
    return d->below.ops->map_pages(d->below.self, address, pages, count);
}

static enum dry_status
watch_unmap_pages(void *self, uint64_t address, size_t count)
{
    struct place_device *d = self;
    if (is_told_to_fail(d, PLACE_CALL_UNMAP_PAGES))
        return DRY_ERR_SYSTEM;
    return d->below.ops->unmap_pages(d->below.self, address, count);
}

static void
watch_get_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
    struct place_device *d = self;
    d->below.ops->get_info(d->below.self, free_bytes, total_bytes);
}

static enum dry_status
watch_event_record(void *self, uint64_t stream, uint64_t *event)
{
    struct place_device *d = self;
    if (is_captured(d, stream))
        note(d, "an event is recorded on a stream that is being captured");
    if (is_told_to_fail(d, PLACE_CALL_EVENT_RECORD))
        return DRY_ERR_SYSTEM;
    enum dry_status status = d->below.ops->event_record(d->below.self, stream, event);
    if (status == DRY_OK && *event < PLACE_EVENTS)
        d->event_stream[*event] = (uint8_t)place_stream_index(stream);
    return status;
}

static bool
is_event_captured(const struct place_device *d, uint64_t event)
{
    return event < PLACE_EVENTS && d->event_stream[event] < PLACE_STREAMS &&
           (d->captured >> d->event_stream[event] & 1u);
}

static bool
watch_event_query(void *self, uint64_t event)
{
    struct place_device *d = self;
    if (is_event_captured(d, event))
        note(d, "an event of a stream that is being captured is asked about");
    if (d->says_done)
        return true;
    return d->below.ops->event_query(d->below.self, event);
}

static enum dry_status
watch_event_wait(void *self, uint64_t event)
{
    struct place_device *d = self;
    if (is_event_captured(d, event))
        note(d, "an event of a stream that is being captured is waited for");
    d->waits++;
    if (is_told_to_fail(d, PLACE_CALL_WAIT))
        return DRY_ERR_SYSTEM;
    return d->never_waits ? DRY_OK : d->below.ops->event_wait(d->below.self, event);
}

static void
watch_event_destroy(void *self, uint64_t event)
{
    struct place_device *d = self;
    d->below.ops->event_destroy(d->below.self, event);
}

static enum dry_status
watch_stream_wait(void *self, uint64_t stream)
{
    struct place_device *d = self;
    if (is_captured(d, stream))
        note(d, "a stream that is being captured is waited for");
    d->waits++;
    if (is_told_to_fail(d, PLACE_CALL_WAIT))
        return DRY_ERR_SYSTEM;
    return d->never_waits ? DRY_OK : d->below.ops->stream_wait(d->below.self, stream);
}

static enum dry_status
watch_stream_follow(void *self, uint64_t stream, uint64_t event)
{
    struct place_device *d = self;
    if (is_captured(d, stream))
        note(d, "a stream that is being captured is made to wait");
    if (is_told_to_fail(d, PLACE_CALL_STREAM_FOLLOW))
        return DRY_ERR_SYSTEM;
    return d->below.ops->stream_follow(d->below.self, stream, event);
}

static const struct dry_device_ops watched_ops = {
    .struct_size = sizeof(struct dry_device_ops),
    .get_traits = watch_get_traits,
    .alloc = watch_alloc,
    .free = watch_free,
    .reserve = watch_reserve,
    .unreserve = watch_unreserve,
    .map = watch_map,
    .unmap = watch_unmap,
    .create_page = watch_create_page,
    .release_page = watch_release_page,
    .map_pages = watch_map_pages,
    .unmap_pages = watch_unmap_pages,
    .get_info = watch_get_info,
    .event_record = watch_event_record,
    .event_query = watch_event_query,
    .event_wait = watch_event_wait,
    .event_destroy = watch_event_destroy,
    .stream_wait = watch_stream_wait,
    .stream_follow = watch_stream_follow,
};

void
place_device_init(struct place_device *device, struct dry_device below)
{
    *device = (struct place_device){
        .below = below, .fail_status = DRY_ERR_NO_SPACE, .addresses_left = UINT64_MAX};
}

struct dry_device
place_device_get(struct place_device *device)
{
    return (struct dry_device){.ops = &watched_ops, .self = device};
}
