/* SPDX-License-Identifier: Apache-2.0 */

/* The place as a whole, and requests that hit. */

#include "place/paged/paged.h"

#include "base/assert.h"
#include "base/fail.h"
#include "base/inline.h"
#include "base/memory.h"
#include "place/paged/paged_adopt.h"
#include "place/paged/paged_cache_shared.h"
#include "place/paged/paged_checkpoint.h"
#include "place/paged/paged_expect.h"
#include "place/paged/paged_free.h"
#include "place/paged/paged_ladder.h"
#include "place/paged/paged_pool.h"
#include "place/paged/paged_reclaim.h"
#include "place/paged/paged_stream.h"
#include "place/paged/paged_view.h"
#include "place/paged/record/paged_bins.h"
#include "place/paged/record/paged_block.h"
#include "place/paged/record/paged_cache.h"
#include "place/paged/record/paged_event.h"
#include "place/paged/record/paged_index.h"
#include "place/paged/record/paged_list.h"
#include "place/paged/record/paged_page.h"
#include "place/paged/record/paged_park.h"
#include "place/paged/record/paged_stats.h"

/* With fewer streams the search for a record to recycle does not pay. */
#define STREAMS_KEPT 32

/* --- create and destroy ------------------------------------------------------------------- */

static void
paged_destroy(void *self)
{
    struct dryi_paged *p = self;
    if (!p)
        return;
    for (uint32_t s = 0; s < p->stream_count; s++) {
        for (uint32_t u = p->streams[s].first_use; u != NONE; u = p->uses[u].next)
            p->device.ops->event_destroy(p->device.self, p->uses[u].event);
    }
    dryi_paged_segments_finish(p);
    dryi_paged_index_finish(p);
    struct dry_memory m = p->memory;
    dryi_paged_caches_finish(p);
    dryi_paged_lists_finish(p);
    dryi_memory_free(&m, p->block_memory, p->block_bytes, 1);
    dryi_memory_free(&m, p->arenas, p->arena_capacity, sizeof *p->arenas);
    dryi_memory_free(&m, p->pools, p->pool_capacity, sizeof *p->pools);
    dryi_place_figures_finish(&p->figures, &m);
    dryi_memory_free(&m, p->pool_nodes, p->pool_node_capacity, sizeof *p->pool_nodes);
    dryi_memory_free(&m, p->scopes, p->scope_capacity, sizeof *p->scopes);
    dryi_memory_free(&m, p->captures, p->capture_capacity, sizeof *p->captures);
    dryi_memory_free(&m, p->segments, p->segment_capacity, sizeof *p->segments);
    dryi_memory_free(&m, p->pages, p->page_capacity, sizeof *p->pages);
    dryi_memory_free(&m, p->stock, p->stock_capacity, sizeof *p->stock);
    dryi_memory_free(&m, p->handles, p->handle_capacity, sizeof *p->handles);
    dryi_memory_free(&m, p->run_parts, p->run_part_capacity, sizeof *p->run_parts);
    dryi_memory_free(&m, p->streams, p->stream_capacity, sizeof *p->streams);
    dryi_memory_free(&m, p->busy, p->busy_capacity, sizeof *p->busy);
    dryi_memory_free(&m, p->progressed, p->progressed_capacity, sizeof *p->progressed);
    dryi_memory_free(&m, p->orders, p->order_capacity, sizeof *p->orders);
    dryi_memory_free(&m, p->uses, p->use_capacity, sizeof *p->uses);
    dryi_map_finish(&p->list_ids);
    dryi_map_finish(&p->stream_ids);
    dryi_map_finish(&p->order_ids);
    dryi_map_finish(&p->recorded);
    dryi_paged_packing_finish(p);
    dryi_forecast_destroy(p->forecast);
    dryi_paged_layout_finish(p);
    dryi_memory_free(&m, p, 1, sizeof *p);
}

static void
paged_set_limit(void *self, uint64_t bytes, uint64_t mapped_bytes)
{
    struct dryi_paged *p = self;
    uint64_t limit = bytes < mapped_bytes ? bytes : mapped_bytes;
    uint64_t most = RESERVED_LIMIT;
    if (p->device_total < most)
        most =
            p->device_total - (p->conf.leave_bytes < p->device_total ? p->conf.leave_bytes
                                                                     : p->device_total);
    p->limit_bytes = limit < most ? limit : most;
}

/* Set the limit from the options, which holds until set_limit is called. */
static void
set_first_limit(struct dryi_paged *p)
{
    double fraction = p->conf.per_process_memory_fraction;
    uint64_t limit = UINT64_MAX;
    if (fraction < 1 && p->device_total != UINT64_MAX)
        limit = (uint64_t)(fraction * (double)p->device_total + 0.5);
    paged_set_limit(p, limit, UINT64_MAX);
}

/* Bounds of the default segment size. Addresses cost no memory, but are limited. */
#define SEGMENT_SHORTEST DRYI_GIB
#define SEGMENT_LONGEST (64 * DRYI_GIB) /* also used if the device's total is unknown */

static void
size_up_device(struct dryi_paged *p)
{
    struct dry_device_traits traits;
    p->device.ops->get_traits(p->device.self, &traits);
    p->device_total = traits.total_bytes;
    p->page_bytes = traits.page_bytes;
    if (p->page_bytes > 0) {
        p->page_mask = p->page_bytes - 1;
        p->page_shift = dryi_log2_floor(p->page_bytes);
    }
    if (p->conf.segment_bytes == 0)
        p->conf.segment_bytes =
            p->device_total < SEGMENT_LONGEST ? p->device_total : SEGMENT_LONGEST;
    if (p->conf.segment_bytes < SEGMENT_SHORTEST)
        p->conf.segment_bytes = SEGMENT_SHORTEST;
    set_first_limit(p);
}

static void
init_maps(struct dryi_paged *p)
{
    dryi_map_init(&p->list_ids, &p->memory);
    dryi_map_init(&p->stream_ids, &p->memory);
    dryi_map_init(&p->order_ids, &p->memory);
    dryi_map_init(&p->recorded, &p->memory);
    p->dead.first = p->dead_segment = p->dead_page = p->dead_use = NONE;
    p->dead_order = NONE;
    p->oldest_use = p->newest_use = p->first_held = p->last_held = NONE;
    p->last_stream = p->first_divider = p->first_cached = NONE;
    p->dead_pool = p->pools_by_id = p->first_idle = p->last_idle = NONE;
    p->layout.segment = NONE;
    p->block_count = 1; /* record 0 is NIL */
}

/* --- alloc -------------------------------------------------------------------------------- */

/*
 * Count an OOM and tell the observer. Unmapped pages are released first: the failed request
 * gathered them, and others such as cuBLAS or NCCL may need the memory. During a capture they stay,
 * and a snapshot counts them as free memory of the device.
 */
DRYI_NOINLINE static void
report_oom(struct dryi_paged *p, const struct request *r)
{
    while (p->stock_count > 0 && p->capture_count == 0)
        dryi_paged_page_release(p);
    struct dryi_place_event event = {
        .action = DRY_ACTION_OOM,
        .size = r->bytes,
        .stream = p->streams[r->stream].value,
        .pool = p->pools[r->arena / 2].id,
        .segment = DRYI_NO_BLOCK,
    };
    uint64_t total_bytes;
    p->device.ops->get_info(p->device.self, &event.addr, &total_bytes);
    event.addr =
        dryi_add_saturating(event.addr, (uint64_t)p->stock_count << p->page_shift);
    if (p->observer.event)
        p->observer.event(p->observer.self, &event);
    p->ooms++;
}

static void
hand_out(struct dryi_paged *p, const struct request *r, uint32_t block)
{
    DRYI_ASSERT_SLOW(p->blocks[block].size >= r->bytes);
    struct block *b = &p->blocks[block];
    bool small = arena_is_small(r->arena);
    if (!r->is_at_cache)
        dryi_paged_cache_forget(p, b);
    b->state = BLOCK_USED;
    b->uses = NONE;
    b->requested = r->size;
    b->has_ticket = r->has_ticket;
    if (r->has_ticket) {
        b->bin_prev = r->ticket;
        b->bin_next = r->successor;
    }
    stat_taken(p->stats, small, b->size, r->size);
    if (p->stats[STAT_PENDING].current[0] | p->stats[STAT_PENDING].current[1])
        dryi_paged_note_active(p);
    dryi_paged_tell(p, DRY_ACTION_ALLOC, block, b->addr, r->size);
}

/* Resolve the request's stream, pool, arena and list, and reserve records for its cut. */
static enum dry_status
prepare(struct dryi_paged *p, uint64_t size, uint64_t stream, struct request *r)
{
    r->size = size;
    r->has_ticket = r->is_at_cache = false;
    r->bytes = bytes_of(size);
    r->stream = dryi_paged_stream_index(p, stream);
    if (r->stream == NONE || !dryi_paged_block_reserve(p, 0))
        return DRY_ERR_MEMORY;
    uint32_t pool = p->scope_count ? dryi_paged_pool_for(p, r->stream) : 0;
    r->arena = 2 * pool + (r->bytes <= p->conf.small_max);
    r->list = dryi_paged_list_index(p, r->arena, r->stream);
    return r->list == NONE ? DRY_ERR_MEMORY : DRY_OK;
}

/* Take a cached block of the exact size, else the best fit of the stream's own list; NONE: none. */
static inline uint32_t
take_hit(struct dryi_paged *p, const struct request *r)
{
    struct free_list *s = p->lists[r->list];
    uint32_t top = dryi_paged_cache_take_top(p, s, r->bytes);
    if (top != NONE)
        return top;
    if (p->is_full && !arena_is_small(r->arena) && dryi_paged_is_tight(p))
        /* Tight memory: dryi_paged_climb() searches for a spot with fewer pages. */
        return NONE;
    uint32_t found = dryi_paged_list_find(p, s, r->bytes);
    return found == NONE ? NONE : dryi_paged_take_found(p, r, found);
}

#define PROCESS_HIT 4 /* streams queried by each request while blocks are pending */
/* Events queried per stream: with 4 * 8 per request, frees cannot outpace their completion. */
#define PROCESS_HIT_USES 8

/* Serve a request that neither the layout, the cache nor the stream's own list can serve. */
DRYI_NOINLINE static enum dry_status
serve_miss(struct dryi_paged *p, struct request *r, dryi_block *block)
{
    uint32_t found;
    p->hindered = DRY_OK;
    enum dry_status status = dryi_paged_climb(p, r, &found);
    if (status == DRY_ERR_NO_SPACE && arena_is_small(r->arena))
        status = dryi_paged_take_larger(p, r, &found);
    if (status == DRY_ERR_NO_SPACE && p->hindered != DRY_OK)
        status = p->hindered;
    if (status == DRY_ERR_NO_SPACE)
        report_oom(p, r);
    if (status != DRY_OK)
        return status;
    hand_out(p, r, found);
    *block = found;
    return DRY_OK;
}

/* Serve a request. Requires that records for its cut are reserved. */
static inline enum dry_status
serve(struct dryi_paged *p, struct request *r, dryi_block *block)
{
    DRYI_ASSERT_SLOW(r->list < p->list_count && p->lists[r->list]->stream == r->stream);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    p->requests++;
    if (p->waiting_uses > 0 || p->first_held != NONE) {
        dryi_paged_release_held(p);
        dryi_paged_process(p, PROCESS_HIT, PROCESS_HIT_USES);
    }
    uint32_t found = NONE;
    if (p->forecast && r->arena == 0 && !p->is_shared)
        found = dryi_paged_take_expected(p, r);
    if (found == NONE && r->bytes <= RESERVED_LIMIT)
        found = take_hit(p, r);
    if (found == NONE)
        return serve_miss(p, r, block);
    hand_out(p, r, found);
    *block = found;
    return DRY_OK;
}

static enum dry_status
paged_alloc(void *self, uint64_t size, uint64_t stream, dryi_block *block)
{
    struct dryi_paged *p = self;
    if (size >= REQUEST_LIMIT)
        return DRY_ERR_ARGUMENT;
    if (size == 0) {
        *block = DRYI_NO_BLOCK;
        return DRY_OK;
    }
    struct request r;
    enum dry_status status = prepare(p, size, stream, &r);
    return status == DRY_OK ? serve(p, &r, block) : status;
}

/*
 * Do as paged_alloc() for the cache's stream, whose lists are already known. MEMORY: also if
 * `has_room` is false.
 */
DRYI_FLATTEN DRYI_NOINLINE static enum dry_status
serve_cache(struct dryi_cache *cache, uint64_t size, bool has_room,
            struct dryi_cache_block *got)
{
    struct dryi_paged *p = cache->place;
    if (size >= REQUEST_LIMIT)
        return DRY_ERR_ARGUMENT;
    if (!has_room || !dryi_paged_block_reserve(p, 0))
        return DRY_ERR_MEMORY;
    struct request r = {.size = size,
                        .bytes = bytes_of(size),
                        .stream = cache->stream,
                        .successor = NONE,
                        .is_at_cache = true};
    r.arena = r.bytes <= p->conf.small_max;
    r.list = cache->list_ids[r.arena];
    enum dry_status status = serve(p, &r, &got->block);
    if (status != DRY_OK)
        return status;
    const struct block *b = &p->blocks[got->block];
    got->address = b->addr;
    if (r.arena == 0) {
        got->is_registered = false;
        got->was_registered = dryi_paged_index_note(p, got->block);
        return DRY_OK;
    }
    got->was_registered = b->address == ADDRESS_BY_TABLE;
    got->is_registered = dryi_paged_cache_register(cache, got->block);
    return DRY_OK;
}

/*
 * Fast path: hand out a cached block whose address is registered. Not taken if an observer or
 * pending blocks need each request to pass through serve().
 */
enum dry_status
dryi_paged_cache_alloc(struct dryi_cache *cache, uint64_t size, bool has_room,
                       struct dryi_cache_block *got)
{
    struct dryi_paged *p = cache->place;
    struct free_list *s = cache->lists[1];
    size_t slot = (size_t)(bytes_of(size) >> GRAIN_SHIFT);
    if (slot >= s->stack_count || p->observer.event || p->waiting_uses > 0 ||
        p->first_held != NONE)
        return serve_cache(cache, size, has_room, got);
    uint32_t block = dryi_paged_cache_take_registered(p, s, slot, size);
    if (block == NONE)
        return serve_cache(cache, size, has_room, got);
    p->requests++;
    stat_taken(p->stats, true, bytes_of(size), size);
    *got = (struct dryi_cache_block){p->blocks[block].addr, block, true, true};
    return DRY_OK;
}

static uint64_t
paged_get_address(const void *self, dryi_block block)
{
    const struct dryi_paged *p = self;
    return p->blocks[block].addr;
}

static void
paged_set_observer(void *self, struct dryi_place_observer observer)
{
    struct dryi_paged *p = self;
    p->observer = observer;
}

static uint64_t
paged_round_size(const void *self, uint64_t size)
{
    (void)self;
    return size > UINT64_MAX - GRAIN ? size : bytes_of(size);
}

static void
paged_process_events(void *self)
{
    struct dryi_paged *p = self;
    dryi_paged_release_held(p);
    dryi_paged_process(p, p->busy_count, UINT32_MAX);
}

/* --- the table ---------------------------------------------------------------------------- */

/* Open a pool. Idle pools are cleaned up when a pool is created, and at the end of a capture. */
static enum dry_status
paged_open_pool(void *self, struct dryi_pool_id id, unsigned flags)
{
    struct dryi_paged *p = self;
    if (dryi_paged_pool_find(p, id) == NONE) {
        p->opened++;
        dryi_paged_forget_idle_pools(p);
    }
    return dryi_paged_open_pool(p, id, flags);
}

static enum dry_status
paged_end_capture(void *self)
{
    enum dry_status status = dryi_paged_end_capture(self);
    if (status == DRY_OK)
        dryi_paged_forget_idle_pools(self);
    return status;
}

static void
visit_figures(const void *self, dryi_figure_visit *visit, void *visitor)
{
    const struct dryi_paged *p = self;
    dryi_place_figures_visit(&p->figures, visit, visitor);
}

static const struct dryi_cache_ops cache_ops = {
    .ask = dryi_paged_cache_ask,
    .flush = dryi_paged_cache_flush,
    .give_back = dryi_paged_cache_give_back,
    .share = dryi_paged_cache_share,
    .take = dryi_paged_cache_take,
    .put = dryi_paged_cache_put,
    .cut = dryi_paged_cache_cut,
    .merge = dryi_paged_cache_merge,
    .register_address = dryi_paged_cache_register,
    .holds = dryi_paged_cache_holds,
    .balance = dryi_paged_cache_balance,
    .watch = dryi_paged_cache_watch,
};

static const struct dryi_place_ops paged_ops = {
    .destroy = paged_destroy,
    .alloc = paged_alloc,
    .free = dryi_paged_free,
    .record_stream = dryi_paged_record_stream,
    .stream_waits = dryi_paged_stream_waits,
    .has_stream = dryi_paged_has_stream,
    .stream_progressed = dryi_paged_stream_progressed,
    .process_events = paged_process_events,
    .empty_cache = dryi_paged_empty_cache,
    .trim = dryi_paged_trim,
    .set_limit = paged_set_limit,
    .open_pool = paged_open_pool,
    .begin_pool = dryi_paged_begin_pool,
    .end_pool = dryi_paged_end_pool,
    .release_pool = dryi_paged_release_pool,
    .flag_pool = dryi_paged_flag_pool,
    .count_users = dryi_paged_count_users,
    .hold_pool = dryi_paged_hold_pool,
    .unhold_pool = dryi_paged_unhold_pool,
    .restore_pool = dryi_paged_restore_pool,
    .begin_capture = dryi_paged_begin_capture,
    .end_capture = paged_end_capture,
    .find = dryi_paged_find,
    .get_address = paged_get_address,
    .get_block = dryi_paged_get_block,
    .get_stats = dryi_paged_get_stats,
    .get_counters = dryi_paged_get_counters,
    .visit_figures = visit_figures,
    .reset_stats = dryi_paged_reset_stats,
    .set_observer = paged_set_observer,
    .round_size = paged_round_size,
    .walk = dryi_paged_walk,
    .take_job = dryi_paged_take_job,
    .return_job = dryi_paged_return_job,
    .check = dryi_paged_check,
};

enum dry_status
dryi_paged_create(const struct dryi_paged_options *options, struct dryi_place *place,
                  struct dry_error *err)
{
    struct dry_memory memory = dryi_memory_or_default(options->memory);
    struct dryi_paged *p = dryi_memory_zalloc(&memory, 1, sizeof *p);
    if (!p)
        return dryi_fail_memory(err, "an allocator");
    p->memory = memory;
    p->device = options->device;
    p->conf = options->conf;
    p->observer = options->observer;
    p->progress_is_told = options->progress_is_told;
    p->streams_kept = options->streams_kept ? options->streams_kept : STREAMS_KEPT;
    p->wants_job = options->wants_job;
    p->completed = dryi_paged_complete;
    init_maps(p);
    size_up_device(p);
    enum dry_status status = DRY_OK;
    if (p->page_bytes > 0 && (!dryi_is_power_of_two(p->page_bytes) ||
                              p->page_bytes < GRAIN || p->page_bytes > RESERVED_LIMIT))
        status =
            dryi_fail(err, DRY_ERR_UNSUPPORTED,
                      "pages of %llu bytes: a power of two from 512 to 2^42 is expected",
                      (unsigned long long)p->page_bytes);
    else if (dryi_paged_pool_make(p, (struct dryi_pool_id){0, 0}, 0) == NONE)
        status = dryi_fail_memory(err, "an allocator");
    else if (p->conf.plan && p->conf.remap && p->page_bytes > 0)
        status = dryi_forecast_create(&p->memory, &p->forecast, err);
    if (status != DRY_OK) {
        paged_destroy(p);
        return status;
    }
    p->pools[0].users = 1;
    *place = (struct dryi_place){.ops = &paged_ops,
                                 .caches = &cache_ops,
                                 .self = p,
                                 .cache_max = p->conf.small_max & ~(GRAIN - 1)};
    return DRY_OK;
}
