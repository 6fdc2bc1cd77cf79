/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The device as the place sees it: streams are numbers, and the child of a fork has no device.
 *
 * A driver may reuse the handle of a destroyed stream for another stream, which must not inherit
 * the first one's free memory. If the device has stream numbers, the place therefore sees only
 * numbers. This layer between the place and the caller's device maps a number back to the handle
 * when an event is recorded or a stream waits. It also keeps destroy in a forked child from calling
 * the parent's device.
 *
 * No event can be recorded on a destroyed stream, and the driver does not wait for its work when it
 * is destroyed. So the whole device is waited for whenever work on its freed memory must be
 * complete. A program that keeps a stream until the pool no longer needs it avoids these waits.
 *
 * driver_time_ns measures calls that allocate or release memory, and waits of the host.
 */

#include "pool/pool_device.h"

#include "base/assert.h"
#include "os/system.h"
#include "pool/pool_private.h"

#define PASSED UINT64_MAX /* an event that is complete, and unknown to the driver */

/* --- the driver's time ------------------------------------------------------------------- */

/* Start timing a driver call. Returns `self` as the pool, for end(). */
static struct dry_pool *
begin(void *self)
{
    struct dry_pool *pool = self;
    pool->driver_time_ns -= dryi_system_uptime_ns();
    return pool;
}

static enum dry_status
end(struct dry_pool *pool, enum dry_status status)
{
    pool->driver_time_ns += dryi_system_uptime_ns();
    return status;
}

/* --- streams that live ------------------------------------------------------------------ */

/* Return the record of a stream. NULL: streams have no numbers, or it was never seen. */
static struct dryi_pool_stream *
find_stream(struct dry_pool *pool, uint64_t number)
{
    struct dryi_pool_streams *s = &pool->streams;
    const uint32_t *known =
        pool->has_stream_ids ? dryi_map_find(&s->index, number) : NULL;
    return known ? &s->list[*known] : NULL;
}

/* Does the handle still belong to the stream with this number? */
static bool
is_living(const struct dry_pool *pool, uint64_t stream, uint64_t number)
{
    return !pool->has_stream_ids ||
           pool->device.ops->stream_id(pool->device.self, stream) == number;
}

/* Get the stream's handle. False: the stream was destroyed. */
static bool
find_living(struct dry_pool *pool, uint64_t number, uint64_t *stream)
{
    const struct dryi_pool_stream *s = find_stream(pool, number);
    *stream = s ? s->handle : number;
    return (s || !pool->has_stream_ids) && is_living(pool, *stream, number);
}

/*
 * Wait for all work that a destroyed stream was given. UNSUPPORTED, which is not a device failure,
 * means that the device cannot wait now or at all. Streams without numbers count as never
 * destroyed, so each can record events. During a capture the device is not called: waiting for the
 * whole device would end the capture (CUDA driver API, cuStreamBeginCapture). Work given later is
 * not waited for: a handle can be a different stream in each thread, and such a stream is not
 * destroyed.
 */
static enum dry_status
wait_for_all(void *self)
{
    struct dry_pool *pool = self;
    const struct dry_device *device = &pool->device;
    if (!pool->has_stream_ids || !device->ops->wait_all || dryi_pool_is_capturing(pool))
        return DRY_ERR_UNSUPPORTED;
    begin(pool);
    return end(pool, device->ops->wait_all(device->self));
}

/* --- the device between --------------------------------------------------------------------- */

static void
between_get_traits(void *self, struct dry_device_traits *traits)
{
    struct dry_pool *pool = self;
    pool->device.ops->get_traits(pool->device.self, traits);
}

static enum dry_status
between_alloc(void *self, uint64_t size, uint64_t *address)
{
    struct dry_pool *pool = begin(self);
    DRYI_ASSERT_SLOW(!pool->is_child);
    return end(pool, pool->device.ops->alloc(pool->device.self, size, address));
}

static void
between_free(void *self, uint64_t address, uint64_t size)
{
    struct dry_pool *pool = begin(self);
    if (!pool->is_child)
        pool->device.ops->free(pool->device.self, address, size);
    end(pool, DRY_OK);
}

static enum dry_status
between_reserve(void *self, uint64_t size, uint64_t *address)
{
    struct dry_pool *pool = begin(self);
    DRYI_ASSERT_SLOW(!pool->is_child);
    return end(pool, pool->device.ops->reserve(pool->device.self, size, address));
}

static void
between_unreserve(void *self, uint64_t address, uint64_t size)
{
    struct dry_pool *pool = begin(self);
    if (!pool->is_child)
        pool->device.ops->unreserve(pool->device.self, address, size);
    end(pool, DRY_OK);
}

static enum dry_status
between_map(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    struct dry_pool *pool = begin(self);
    DRYI_ASSERT_SLOW(!pool->is_child);
    return end(pool, pool->device.ops->map(pool->device.self, address, size, page));
}

static void
between_unmap(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    struct dry_pool *pool = begin(self);
    if (!pool->is_child)
        pool->device.ops->unmap(pool->device.self, address, size, page);
    end(pool, DRY_OK);
}

static enum dry_status
between_create_page(void *self, uint64_t *page)
{
    struct dry_pool *pool = begin(self);
    DRYI_ASSERT_SLOW(!pool->is_child);
    return end(pool, pool->device.ops->create_page(pool->device.self, page));
}

static void
between_release_page(void *self, uint64_t page)
{
    struct dry_pool *pool = begin(self);
    if (!pool->is_child)
        pool->device.ops->release_page(pool->device.self, page);
    end(pool, DRY_OK);
}

static enum dry_status
between_map_pages(void *self, uint64_t address, const uint64_t *pages, size_t count)
{
    struct dry_pool *pool = begin(self);
    DRYI_ASSERT_SLOW(!pool->is_child);
    return end(pool,
               pool->device.ops->map_pages(pool->device.self, address, pages, count));
}

static enum dry_status
between_unmap_pages(void *self, uint64_t address, size_t count)
{
    struct dry_pool *pool = self;
    if (pool->is_child)
        return DRY_OK;
    begin(pool);
    return end(pool, pool->device.ops->unmap_pages(pool->device.self, address, count));
}

static void
between_get_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
    struct dry_pool *pool = self;
    pool->device.ops->get_info(pool->device.self, free_bytes, total_bytes);
}

/*
 * Record an event on the stream with this number. The handle's number is checked again afterwards:
 * another thread may have destroyed the stream and created another with the same handle, which
 * would then have the event. Numbers are never reused, so an unchanged number means the same stream
 * throughout.
 */
static enum dry_status
between_event_record(void *self, uint64_t number, uint64_t *event)
{
    struct dry_pool *pool = self;
    DRYI_ASSERT_SLOW(!pool->is_child);
    const struct dry_device *device = &pool->device;
    uint64_t stream;
    if (find_living(pool, number, &stream)) {
        enum dry_status status = device->ops->event_record(device->self, stream, event);
        if (is_living(pool, stream, number))
            return status;
        if (status == DRY_OK)
            device->ops->event_destroy(device->self, *event);
    }
    enum dry_status status = wait_for_all(pool);
    if (status == DRY_OK)
        *event = PASSED;
    return status;
}

static bool
between_event_query(void *self, uint64_t event)
{
    struct dry_pool *pool = self;
    return event == PASSED || pool->device.ops->event_query(pool->device.self, event);
}

static enum dry_status
between_event_wait(void *self, uint64_t event)
{
    struct dry_pool *pool = self;
    if (pool->is_child || event == PASSED)
        return DRY_OK;
    begin(pool);
    return end(pool, pool->device.ops->event_wait(pool->device.self, event));
}

static void
between_event_destroy(void *self, uint64_t event)
{
    struct dry_pool *pool = self;
    if (!pool->is_child && event != PASSED)
        pool->device.ops->event_destroy(pool->device.self, event);
}

static enum dry_status
between_stream_wait(void *self, uint64_t number)
{
    struct dry_pool *pool = self;
    uint64_t stream;
    if (pool->is_child)
        return DRY_OK;
    if (find_living(pool, number, &stream)) {
        begin(pool);
        enum dry_status status =
            end(pool, pool->device.ops->stream_wait(pool->device.self, stream));
        if (is_living(pool, stream, number))
            return status;
    }
    return wait_for_all(pool);
}

static enum dry_status
between_stream_follow(void *self, uint64_t number, uint64_t event)
{
    struct dry_pool *pool = self;
    DRYI_ASSERT_SLOW(!pool->is_child);
    uint64_t stream;
    if (event == PASSED)
        return DRY_OK;
    if (!find_living(pool, number, &stream))
        return DRY_ERR_SYSTEM;
    return pool->device.ops->stream_follow(pool->device.self, stream, event);
}

static const struct dry_device_ops between_ops = {
    .struct_size = sizeof(struct dry_device_ops),
    .get_traits = between_get_traits,
    .alloc = between_alloc,
    .free = between_free,
    .reserve = between_reserve,
    .unreserve = between_unreserve,
    .map = between_map,
    .unmap = between_unmap,
    .create_page = between_create_page,
    .release_page = between_release_page,
    .map_pages = between_map_pages,
    .unmap_pages = between_unmap_pages,
    .get_info = between_get_info,
    .event_record = between_event_record,
    .event_query = between_event_query,
    .event_wait = between_event_wait,
    .event_destroy = between_event_destroy,
    .stream_wait = between_stream_wait,
    .stream_follow = between_stream_follow,
    .wait_all = wait_for_all,
};

struct dry_device
dryi_pool_device(struct dry_pool *pool)
{
    return (struct dry_device){.ops = &between_ops, .self = pool};
}
