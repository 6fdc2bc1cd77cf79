/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's own memory as a device.
 *
 * Page n is the n-th range of one memfd. Creating a page allocates its memory; releasing
 * punches a hole and adds n to the free list. Mapping replaces reserved addresses by the
 * page's range; unmapping makes them inaccessible again. Consecutive pages at consecutive
 * addresses share one mapping, so that the kernel's limit (vm.max_map_count, 65530) is
 * reached late. At the limit the kernel refuses even calls that would reduce the number
 * of mappings. Then a spare range of several mappings is unmapped for a moment.
 *
 * Memory of alloc and map is anonymous. A child after fork has copies of it, but shares
 * pages with the parent; pools refuse to work in a child.
 */
#include <drystone/host_device.h>

#include <stdatomic.h>
#include <stdbool.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "os/lock.h"
#include "os/memfd.h"
#include "os/range.h"
#include "os/system.h"

#define NO_PAGE UINT64_MAX
#define IN_USE (UINT64_MAX - 1)
#define SPARE_GRAINS 5

struct dry_host_device {
    struct dry_host_device_options options;
    struct dry_memory memory;
    uint64_t grain_bytes; /* rounding unit of all sizes: the base page */
    int file;
    atomic_uint_least64_t events;

    struct dryi_lock lock; /* guards the fields below */
    uint64_t used_bytes;
    uint64_t *pages; /* the next free page per page, or IN_USE */
    size_t page_count, page_capacity;
    uint64_t first_free;
    uint64_t spare; /* SPARE_GRAINS grains, every other one mapped with memory; 0: none */
};

static bool
has_room(const struct dry_host_device *host, uint64_t bytes)
{
    return bytes <= host->options.capacity_bytes - host->used_bytes;
}

static bool
take_bytes(struct dry_host_device *host, uint64_t bytes)
{
    dryi_lock_take(&host->lock);
    bool fits = has_room(host, bytes);
    if (fits)
        host->used_bytes += bytes;
    dryi_lock_give(&host->lock);
    return fits;
}

static void
give_bytes(struct dry_host_device *host, uint64_t bytes)
{
    dryi_lock_take(&host->lock);
    DRYI_ASSERT(bytes <= host->used_bytes);
    host->used_bytes -= bytes;
    dryi_lock_give(&host->lock);
}

static void
drop_spare(struct dry_host_device *host)
{
    if (host->spare)
        dryi_range_release(host->spare, SPARE_GRAINS * host->grain_bytes);
    host->spare = 0;
}

static void
make_spare(struct dry_host_device *host)
{
    uint64_t grain = host->grain_bytes, spare;
    if (host->spare || dryi_range_reserve(SPARE_GRAINS * grain, grain, &spare) != DRY_OK)
        return;
    host->spare = spare;
    for (uint64_t i = 1; i < SPARE_GRAINS; i += 2) {
        if (dryi_range_fill(spare + i * grain, grain) != DRY_OK)
            drop_spare(host);
        if (!host->spare)
            return;
    }
}

/* Make a range inaccessible again, even if the kernel allows no further mapping. */
static enum dry_status
empty_range(struct dry_host_device *host, uint64_t address, uint64_t bytes)
{
    enum dry_status status = dryi_range_empty(address, bytes);
    dryi_lock_take(&host->lock);
    if (status == DRY_ERR_NO_SPACE) {
        drop_spare(host);
        status = dryi_range_empty(address, bytes);
    }
    make_spare(host);
    dryi_lock_give(&host->lock);
    return status;
}

static void
host_get_traits(void *self, struct dry_device_traits *traits)
{
    const struct dry_host_device *host = self;
    *traits = (struct dry_device_traits){.total_bytes = host->options.capacity_bytes,
                                         .page_bytes = host->options.page_bytes};
}

static enum dry_status
host_alloc(void *self, uint64_t size, uint64_t *address)
{
    struct dry_host_device *host = self;
    uint64_t bytes;
    if (size == 0)
        return DRY_ERR_ARGUMENT;
    if (!dryi_round_up_checked(size, host->grain_bytes, &bytes) ||
        !take_bytes(host, bytes))
        return DRY_ERR_NO_SPACE;
    enum dry_status status = dryi_range_take(bytes, address);
    if (status != DRY_OK)
        give_bytes(host, bytes);
    return status;
}

static void
host_free(void *self, uint64_t address, uint64_t size)
{
    struct dry_host_device *host = self;
    uint64_t bytes = dryi_round_up(size, host->grain_bytes);
    dryi_range_release(address, bytes);
    give_bytes(host, bytes);
}

static enum dry_status
host_reserve(void *self, uint64_t size, uint64_t *address)
{
    const struct dry_host_device *host = self;
    uint64_t bytes;
    if (size == 0)
        return DRY_ERR_ARGUMENT;
    if (!dryi_round_up_checked(size, host->options.page_bytes, &bytes))
        return DRY_ERR_NO_SPACE;
    return dryi_range_reserve(bytes, host->options.page_bytes, address);
}

static void
host_unreserve(void *self, uint64_t address, uint64_t size)
{
    const struct dry_host_device *host = self;
    dryi_range_release(address, dryi_round_up(size, host->options.page_bytes));
}

static bool
is_whole(const struct dry_host_device *host, uint64_t address, uint64_t size,
         uint64_t page)
{
    return size && page && size % page == 0 && page % host->grain_bytes == 0 &&
           address % host->grain_bytes == 0;
}

static enum dry_status
host_map(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    struct dry_host_device *host = self;
    if (!is_whole(host, address, size, page))
        return DRY_ERR_ARGUMENT;
    if (!take_bytes(host, size))
        return DRY_ERR_NO_SPACE;
    enum dry_status status = dryi_range_fill(address, size);
    if (status != DRY_OK)
        give_bytes(host, size);
    return status;
}

/* If unmapping fails, the memory stays mapped and counted. */
static void
host_unmap(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    struct dry_host_device *host = self;
    DRYI_ASSERT(is_whole(host, address, size, page));
    (void)page;
    if (empty_range(host, address, size) == DRY_OK)
        give_bytes(host, size);
}

/* Ensure that the free list has a page number; false: no memory. Requires the lock. */
static bool
has_number(struct dry_host_device *host)
{
    if (host->first_free != NO_PAGE)
        return true;
    if (!dryi_memory_grow(&host->memory, &host->pages, &host->page_capacity,
                          host->page_count + 1, sizeof *host->pages))
        return false;
    host->pages[host->page_count] = NO_PAGE;
    host->first_free = host->page_count++;
    return true;
}

/* Take a free page number, and account for the page's bytes. */
static enum dry_status
take_page(struct dry_host_device *host, uint64_t *page)
{
    enum dry_status status = DRY_OK;
    dryi_lock_take(&host->lock);
    if (!has_room(host, host->options.page_bytes))
        status = DRY_ERR_NO_SPACE;
    else if (!has_number(host))
        status = DRY_ERR_MEMORY;
    if (status == DRY_OK) {
        *page = host->first_free;
        host->first_free = host->pages[*page];
        host->pages[*page] = IN_USE;
        host->used_bytes += host->options.page_bytes;
    }
    dryi_lock_give(&host->lock);
    return status;
}

static void
give_page(struct dry_host_device *host, uint64_t page)
{
    uint64_t bytes = host->options.page_bytes;
    dryi_lock_take(&host->lock);
    DRYI_ASSERT(page < host->page_count && host->pages[page] == IN_USE);
    DRYI_ASSERT(bytes <= host->used_bytes);
    host->pages[page] = host->first_free;
    host->first_free = page;
    host->used_bytes -= bytes;
    dryi_lock_give(&host->lock);
}

static enum dry_status
host_create_page(void *self, uint64_t *page)
{
    struct dry_host_device *host = self;
    uint64_t bytes = host->options.page_bytes, number;
    enum dry_status status = take_page(host, &number);
    if (status != DRY_OK)
        return status;
    status = dryi_memfd_give(host->file, number * bytes, bytes);
    if (status != DRY_OK) {
        give_page(host, number);
        return status;
    }
    *page = number;
    return DRY_OK;
}

static void
host_release_page(void *self, uint64_t page)
{
    struct dry_host_device *host = self;
    uint64_t bytes = host->options.page_bytes;
    dryi_memfd_take(host->file, page * bytes, bytes);
    give_page(host, page);
}

/* Return the length of the run of consecutive pages from `begin` on. */
static size_t
run_length(const uint64_t *pages, size_t begin, size_t count)
{
    size_t end = begin + 1;
    while (end < count && pages[end] == pages[end - 1] + 1)
        end++;
    return end - begin;
}

static enum dry_status
host_map_pages(void *self, uint64_t address, const uint64_t *pages, size_t count)
{
    struct dry_host_device *host = self;
    uint64_t bytes = host->options.page_bytes;
    if (address % bytes)
        return DRY_ERR_ARGUMENT;
    size_t done = 0;
    while (done < count) {
        size_t run = run_length(pages, done, count);
        enum dry_status status = dryi_range_fill_from(address + done * bytes, run * bytes,
                                                      host->file, pages[done] * bytes);
        if (status != DRY_OK) {
            if (done && empty_range(host, address, done * bytes) != DRY_OK)
                return DRY_ERR_SYSTEM;
            return status;
        }
        done += run;
    }
    return DRY_OK;
}

static enum dry_status
host_unmap_pages(void *self, uint64_t address, size_t count)
{
    struct dry_host_device *host = self;
    uint64_t bytes = host->options.page_bytes;
    if (address % bytes)
        return DRY_ERR_ARGUMENT;
    return count ? empty_range(host, address, count * bytes) : DRY_OK;
}

static void
host_get_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
    struct dry_host_device *host = self;
    dryi_lock_take(&host->lock);
    *free_bytes = host->options.capacity_bytes - host->used_bytes;
    dryi_lock_give(&host->lock);
    *total_bytes = host->options.capacity_bytes;
}

/* The host has no asynchronous work, so every event has passed once it is recorded. */
static enum dry_status
host_event_record(void *self, uint64_t stream, uint64_t *event)
{
    (void)stream;
    struct dry_host_device *host = self;
    *event = atomic_fetch_add_explicit(&host->events, 1, memory_order_relaxed) + 1;
    return DRY_OK;
}

static bool
host_event_query(void *self, uint64_t event)
{
    (void)self;
    (void)event;
    return true;
}

/* Wait for an event or a stream: nothing to wait for. */
static enum dry_status
host_wait(void *self, uint64_t handle)
{
    (void)self;
    (void)handle;
    return DRY_OK;
}

static void
host_event_destroy(void *self, uint64_t event)
{
    (void)self;
    (void)event;
}

static enum dry_status
host_stream_follow(void *self, uint64_t stream, uint64_t event)
{
    (void)self;
    (void)stream;
    (void)event;
    return DRY_OK;
}

static const struct dry_device_ops host_ops = {
    .struct_size = sizeof(struct dry_device_ops),
    .get_traits = host_get_traits,
    .alloc = host_alloc,
    .free = host_free,
    .reserve = host_reserve,
    .unreserve = host_unreserve,
    .map = host_map,
    .unmap = host_unmap,
    .create_page = host_create_page,
    .release_page = host_release_page,
    .map_pages = host_map_pages,
    .unmap_pages = host_unmap_pages,
    .get_info = host_get_info,
    .event_record = host_event_record,
    .event_query = host_event_query,
    .event_wait = host_wait,
    .event_destroy = host_event_destroy,
    .stream_wait = host_wait,
    .stream_follow = host_stream_follow,
};

void
dry_host_device_options_init_sized(struct dry_host_device_options *options,
                                   size_t struct_size)
{
    const struct dry_host_device_options defaults = {
        .capacity_bytes = dryi_system_memory_bytes(),
        .page_bytes = 2 * DRYI_MIB,
    };
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

static enum dry_status
check_page_bytes(uint64_t page_bytes, struct dry_error *err)
{
    uint64_t least = dryi_system_page_bytes();
    /* at most 1 TiB, so that the sum of a page and an address cannot overflow */
    if (dryi_is_power_of_two(page_bytes) && page_bytes >= least &&
        page_bytes <= UINT64_C(1) << 40)
        return DRY_OK;
    return dryi_fail(err, DRY_ERR_ARGUMENT,
                     "page_bytes %llu: a power of two from %llu to 2^40 is expected",
                     (unsigned long long)page_bytes, (unsigned long long)least);
}

enum dry_status
dry_host_device_create(const struct dry_host_device_options *options,
                       struct dry_host_device **host, struct dry_error *err)
{
    struct dry_host_device_options o;
    dry_host_device_options_init(&o);
    enum dry_status status = dryi_sized_take(&o, sizeof o, options, err);
    if (status == DRY_OK)
        status = check_page_bytes(o.page_bytes, err);
    if (status != DRY_OK)
        return status;
    struct dry_memory memory = dryi_memory_or_default(o.memory);
    struct dry_host_device *h = dryi_memory_zalloc(&memory, 1, sizeof *h);
    if (!h)
        return dryi_fail_memory(err, "a host device");
    h->options = o;
    h->memory = memory;
    h->grain_bytes = dryi_system_page_bytes();
    h->first_free = NO_PAGE;
    status = dryi_memfd_open("drystone", &h->file);
    if (status != DRY_OK) {
        dryi_memory_free(&memory, h, 1, sizeof *h);
        return dryi_fail(err, status, "the system refuses a file in memory");
    }
    dryi_lock_init(&h->lock);
    make_spare(h);
    *host = h;
    return DRY_OK;
}

void
dry_host_device_destroy(struct dry_host_device *host)
{
    if (!host)
        return;
    struct dry_memory memory = host->memory;
    drop_spare(host);
    dryi_lock_finish(&host->lock);
    dryi_memfd_close(host->file);
    dryi_memory_free(&memory, host->pages, host->page_capacity, sizeof *host->pages);
    dryi_memory_free(&memory, host, 1, sizeof *host);
}

struct dry_device
dry_host_device_get_device(struct dry_host_device *host)
{
    return (struct dry_device){.ops = &host_ops, .self = host};
}
