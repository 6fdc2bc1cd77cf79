/* SPDX-License-Identifier: Apache-2.0 */

/* The place as a whole: its life, its limit, and its table. */

#include "place/paged/paged.h"

#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "place/paged/paged_adopt.h"
#include "place/paged/paged_alloc.h"
#include "place/paged/paged_cache_shared.h"
#include "place/paged/paged_checkpoint.h"
#include "place/paged/paged_free.h"
#include "place/paged/paged_pool.h"
#include "place/paged/paged_reclaim.h"
#include "place/paged/paged_stream.h"
#include "place/paged/paged_view.h"
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
    return size > UINT64_MAX - GRAIN ? size : round_to_grains(size);
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
    .alloc = dryi_paged_alloc,
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
