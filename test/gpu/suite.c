/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must hold on a GPU: memory that is written can be read back wherever its page lies,
 * streams keep their order, and a pool hands out memory that nobody else has.
 */
#include "suite.h"

#include <stdio.h>
#include <string.h>

#include <drystone/pool.h>

#define MIB (UINT64_C(1) << 20)
#define CHUNK 4096

/* Ends the check that is under way; it leaves behind what it has. */
#define NEED(condition)                                                                  \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            printf("  line %d: %s\n", __LINE__, #condition);                             \
            return 0;                                                                    \
        }                                                                                \
    } while (0)

/* The first and the last bytes of a range have this value. */
static int
holds(const struct gpu *gpu, uint64_t address, uint64_t bytes, unsigned char value)
{
    unsigned char found[CHUNK], expected[CHUNK];
    size_t part = bytes < CHUNK ? (size_t)bytes : CHUNK;
    memset(expected, value, sizeof expected);
    for (int i = 0; i < 2; i++) {
        uint64_t at = i ? address + bytes - part : address;
        if (gpu->read(found, at, part) || memcmp(found, expected, part) != 0)
            return 0;
    }
    return 1;
}

#define PAGES 8

static int
moved_pages_keep_what_they_hold(const struct gpu *gpu, struct dry_device d)
{
    struct dry_device_traits t;
    d.ops->get_traits(d.self, &t);
    if (t.page_bytes == 0)
        return 1;
    uint64_t range, pages[PAGES], turned[PAGES];
    NEED(d.ops->reserve(d.self, 2 * PAGES * t.page_bytes, &range) == DRY_OK);
    for (size_t i = 0; i < PAGES; i++) {
        NEED(d.ops->create_page(d.self, &pages[i]) == DRY_OK);
        turned[PAGES - 1 - i] = pages[i];
    }
    /* In two portions, out in three others: whole mappings, never whole calls. */
    NEED(d.ops->map_pages(d.self, range, pages, 3) == DRY_OK);
    NEED(d.ops->map_pages(d.self, range + 3 * t.page_bytes, pages + 3, 5) == DRY_OK);
    for (size_t i = 0; i < PAGES; i++)
        NEED(!gpu->set(range + i * t.page_bytes, (unsigned char)(i + 1), t.page_bytes));
    NEED(!gpu->stream_synchronize(NULL)); /* unmapping does not wait for anybody */
    NEED(d.ops->unmap_pages(d.self, range + t.page_bytes, 4) == DRY_OK);
    NEED(holds(gpu, range, t.page_bytes, 1));
    NEED(d.ops->unmap_pages(d.self, range, 1) == DRY_OK);
    NEED(d.ops->unmap_pages(d.self, range + 5 * t.page_bytes, 3) == DRY_OK);
    uint64_t other = range + PAGES * t.page_bytes;
    NEED(d.ops->map_pages(d.self, other, turned, PAGES) == DRY_OK);
    for (size_t i = 0; i < PAGES; i++)
        NEED(holds(gpu, other + i * t.page_bytes, t.page_bytes,
                   (unsigned char)(PAGES - i)));
    NEED(d.ops->unmap_pages(d.self, other, PAGES) == DRY_OK);
    for (size_t i = 0; i < PAGES; i++)
        d.ops->release_page(d.self, pages[i]);
    d.ops->unreserve(d.self, range, 2 * PAGES * t.page_bytes);
    return 1;
}

static int
mapped_ranges_can_be_used(const struct gpu *gpu, struct dry_device d)
{
    struct dry_device_traits t;
    d.ops->get_traits(d.self, &t);
    uint64_t address, page = 20 * MIB;
    NEED(d.ops->alloc(d.self, page, &address) == DRY_OK);
    NEED(!gpu->set(address, 7, page) && holds(gpu, address, page, 7));
    d.ops->free(d.self, address, page);
    if (t.page_bytes == 0)
        return 1;
    NEED(d.ops->reserve(d.self, 4 * page, &address) == DRY_OK);
    NEED(d.ops->map(d.self, address, 3 * page, page) == DRY_OK);
    NEED(!gpu->set(address, 9, 3 * page) && holds(gpu, address, 3 * page, 9));
    d.ops->unmap(d.self, address + page, 2 * page, page);
    NEED(holds(gpu, address, page, 9));
    NEED(d.ops->map(d.self, address + page, 3 * page, page) == DRY_OK);
    d.ops->unmap(d.self, address, 4 * page, page);
    d.ops->unreserve(d.self, address, 4 * page);
    return 1;
}

static int
full_device_says_so(const struct gpu *gpu, struct dry_device d)
{
    (void)gpu;
    uint64_t is_free, total, address, after;
    d.ops->get_info(d.self, &is_free, &total);
    NEED(is_free > 0 && is_free <= total);
    NEED(d.ops->alloc(d.self, total + 64 * MIB, &address) == DRY_ERR_NO_SPACE);
    NEED(d.ops->alloc(d.self, 2 * MIB, &address) == DRY_OK); /* and goes on */
    d.ops->get_info(d.self, &after, &total);
    NEED(after <= is_free);
    d.ops->free(d.self, address, 2 * MIB);
    return 1;
}

static int
streams_keep_their_order(const struct gpu *gpu, struct dry_device d)
{
    void *one, *two;
    uint64_t event, later;
    NEED(!gpu->stream_create(&one, 1) && !gpu->stream_create(&two, 1));
    NEED(d.ops->event_record(d.self, (uintptr_t)one, &event) == DRY_OK);
    NEED(d.ops->stream_follow(d.self, (uintptr_t)two, event) == DRY_OK);
    NEED(d.ops->event_record(d.self, (uintptr_t)two, &later) == DRY_OK);
    d.ops->event_wait(d.self, later);
    NEED(d.ops->event_query(d.self, later) && d.ops->event_query(d.self, event));
    d.ops->stream_wait(d.self, (uintptr_t)one);
    d.ops->event_destroy(d.self, event);
    d.ops->event_destroy(d.self, later);
    if (d.ops->stream_id) {
        uint64_t id = d.ops->stream_id(d.self, (uintptr_t)one);
        NEED(id != d.ops->stream_id(d.self, (uintptr_t)two));
        NEED(id != d.ops->stream_id(d.self, 0));
        NEED(!gpu->stream_destroy(one) && !gpu->stream_create(&one, 1));
        NEED(id != d.ops->stream_id(d.self, (uintptr_t)one));
    }
    NEED(!gpu->stream_destroy(one) && !gpu->stream_destroy(two));
    return 1;
}

/* --- a pool ----------------------------------------------------------------------------- */

#define SLOTS 64
#define STREAMS 4
#define STEPS 4000

struct slot {
    uint64_t address, size;
    unsigned char value;
    void *stream;
};

struct work {
    const struct gpu *gpu;
    struct dry_pool *pool;
    void *streams[STREAMS];
    struct slot slots[SLOTS];
    uint64_t random;
};

static uint64_t
draw(struct work *w, uint64_t below)
{
    w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (w->random >> 33) % below;
}

static int
write_slot(const struct work *w, const struct slot *s)
{
    if (w->gpu->set_async)
        return w->gpu->set_async(s->address, s->value, s->size, s->stream);
    return w->gpu->set(s->address, s->value, s->size);
}

static int
step(struct work *w, int i)
{
    struct slot *s = &w->slots[draw(w, SLOTS)];
    if (s->size) {
        NEED(!w->gpu->stream_synchronize(s->stream));
        NEED(holds(w->gpu, s->address, s->size, s->value));
        if (draw(w, 4) == 0)
            NEED(dry_pool_record_stream(w->pool, s->address,
                                        (uintptr_t)w->streams[draw(w, STREAMS)]) ==
                 DRY_OK);
        NEED(dry_pool_free(w->pool, s->address) == DRY_OK);
        s->size = 0;
        return 1;
    }
    uint64_t size = UINT64_C(1) << draw(w, 23);
    size += draw(w, size) + 1;
    s->stream = w->streams[draw(w, STREAMS)];
    s->value = (unsigned char)(i % 251);
    enum dry_status status =
        dry_pool_alloc(w->pool, size, (uintptr_t)s->stream, &s->address);
    if (status == DRY_ERR_NO_SPACE)
        return 1;
    NEED(status == DRY_OK);
    s->size = size;
    NEED(!write_slot(w, s));
    return 1;
}

static int
work_on(struct work *w)
{
    for (int i = 0; i < STEPS; i++) {
        NEED(step(w, i));
        if (i % 1000 == 999) {
            NEED(dry_pool_check(w->pool, NULL) == DRY_OK);
            NEED(dry_pool_empty_cache(w->pool) == DRY_OK);
        }
    }
    for (size_t i = 0; i < SLOTS; i++)
        NEED(!w->slots[i].size ||
             (!w->gpu->stream_synchronize(w->slots[i].stream) &&
              holds(w->gpu, w->slots[i].address, w->slots[i].size, w->slots[i].value)));
    return 1;
}

static int
try_pool(const struct gpu *gpu, struct dry_device d, enum dry_placement placement,
         const char *conf)
{
    struct dry_pool_options o;
    dry_pool_options_init(&o);
    o.device = d;
    o.placement = placement;
    o.conf = conf;
    struct work w = {.gpu = gpu, .random = 1};
    struct dry_error err;
    enum dry_status status = dry_pool_create(&o, &w.pool, &err);
    if (status == DRY_ERR_UNSUPPORTED) {
        printf("  not there: %s\n", err.text);
        return 1;
    }
    NEED(status == DRY_OK);
    for (int i = 0; i < STREAMS; i++)
        NEED(!gpu->stream_create(&w.streams[i], 1));
    int good = work_on(&w);
    dry_pool_destroy(w.pool);
    for (int i = 0; i < STREAMS; i++)
        NEED(!gpu->stream_destroy(w.streams[i]));
    return good;
}

static int
paged_pool_gives_memory_of_one_s_own(const struct gpu *gpu, struct dry_device d)
{
    return try_pool(gpu, d, DRY_PLACEMENT_PAGED, "");
}

static int
torch_pool_gives_memory_of_one_s_own(const struct gpu *gpu, struct dry_device d)
{
    return try_pool(gpu, d, DRY_PLACEMENT_TORCH, "");
}

static int
expandable_pool_gives_memory_of_one_s_own(const struct gpu *gpu, struct dry_device d)
{
    struct dry_device_traits t;
    d.ops->get_traits(d.self, &t);
    return t.page_bytes == 0 ||
           try_pool(gpu, d, DRY_PLACEMENT_TORCH, "expandable_segments:True");
}

#define CHECK(function)                                                                  \
    {                                                                                    \
#function, function                                                              \
    }

int
gpu_suite(const struct gpu *gpu, struct dry_device device)
{
    static const struct {
        const char *name;
        int (*check)(const struct gpu *gpu, struct dry_device device);
    } checks[] = {
        CHECK(moved_pages_keep_what_they_hold),
        CHECK(mapped_ranges_can_be_used),
        CHECK(full_device_says_so),
        CHECK(streams_keep_their_order),
        CHECK(paged_pool_gives_memory_of_one_s_own),
        CHECK(torch_pool_gives_memory_of_one_s_own),
        CHECK(expandable_pool_gives_memory_of_one_s_own),
    };
    int failed = 0;
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        int good = checks[i].check(gpu, device);
        printf("%s %s\n", good ? "ok    " : "FAILED", checks[i].name);
        failed += !good;
    }
    return failed;
}
