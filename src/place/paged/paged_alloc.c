/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests: expected ones and hits. All others are misses, and climb the ladder.
 *
 * Expected requests get the ranges that the layout, an offline packing of their period, assigned to
 * them. A layout occupies one segment, at addresses that were free or will be. Each hint is validated
 * against the current blocks: a request gets only free memory that its stream may use, even if the
 * forecast is wrong.
 */

#include "place/paged/paged_alloc.h"

#include "base/assert.h"
#include "base/bits.h"
#include "base/inline.h"
#include "place/paged/paged.h"
#include "place/paged/paged_adopt.h"
#include "place/paged/paged_cache_shared.h"
#include "place/paged/paged_free.h"
#include "place/paged/paged_ladder.h"
#include "place/paged/paged_pool.h"
#include "place/paged/paged_spot.h"
#include "place/paged/paged_stream.h"
#include "place/paged/paged_take.h"
#include "place/paged/record/paged_bins.h"
#include "place/paged/record/paged_block.h"
#include "place/paged/record/paged_cache.h"
#include "place/paged/record/paged_event.h"
#include "place/paged/record/paged_index.h"
#include "place/paged/record/paged_list.h"
#include "place/paged/record/paged_page.h"
#include "place/paged/record/paged_park.h"
#include "place/paged/record/paged_stats.h"

/* --- expected requests ------------------------------------------------------------------------ */

/* Most blocks that a range may consist of. A range in more pieces is left to the ladder. */
#define PARTS_MAX 32

/*
 * Is another wait within this period's allowance? A period needs one wait per range that passes
 * between streams, plus some drift.
 */
static bool
may_wait(struct dryi_paged *p)
{
    struct layout *layout = &p->layout;
    if (!p->conf.reuse_waiting || layout->streams < 2)
        return false;
    if (p->requests - layout->waits_since >= layout->period) {
        layout->waits_since = p->requests;
        layout->waits = 0;
    }
    return layout->waits < layout->handed + DRYI_FORECAST_DRIFT_LEAST;
}

/* A range of the layout, and the state of its blocks. */
struct range {
    struct spot spot;
    /* Other streams with blocks in the range to be waited for, and the newest epoch of each. */
    uint32_t streams[DRYI_PACKING_STREAMS_MAX];
    uint64_t epochs[DRYI_PACKING_STREAMS_MAX];
    uint32_t stream_count;
    uint32_t parked; /* a parked block inside the range, or NONE */
};

/*
 * Add the block's stream to the waits of the range. False: the block belongs to no stream, or the
 * range has too many streams.
 */
static bool
note_wait(const struct dryi_paged *p, const struct block *b, struct range *range)
{
    const struct free_list *s = p->lists[b->list];
    uint32_t i = 0;
    if (s->kind != FREE_STREAM)
        return false;
    while (i < range->stream_count && range->streams[i] != s->stream)
        i++;
    if (i == DRYI_PACKING_STREAMS_MAX)
        return false;
    if (i == range->stream_count) {
        range->streams[range->stream_count++] = s->stream;
        range->epochs[i] = 0;
    }
    if (range->epochs[i] < b->epoch)
        range->epochs[i] = b->epoch;
    return true;
}

/*
 * Is the whole range free for the request, now or after waits? Fills *range. range->parked: the
 * parked block that prevents this, or NONE.
 */
static bool
can_lie(const struct dryi_paged *p, const struct request *r, uint64_t addr,
        struct range *range)
{
    uint64_t end = addr + r->bytes;
    uint64_t lo = page_floor(p, addr), hi = page_ceil(p, end);
    uint32_t at = dryi_paged_layout_block_at(p, addr);
    range->spot = (struct spot){.block = at, .addr = addr};
    range->stream_count = 0;
    range->parked = NONE;
    for (unsigned i = 0; at != NONE && p->blocks[at].addr < end; i++) {
        const struct block *b = &p->blocks[at];
        bool is_hole = b->state == BLOCK_HOLE;
        range->parked = b->state == BLOCK_PARKED ? at : NONE;
        if (i == PARTS_MAX || (!is_hole && b->state != BLOCK_FREE))
            return false;
        if (!is_hole && !dryi_paged_is_usable(p, r->list, b) && !note_wait(p, b, range))
            return false;
        if (is_hole) {
            uint64_t from = b->addr > lo ? b->addr : lo;
            uint64_t to = block_end(b) < hi ? block_end(b) : hi;
            range->spot.fresh += (to - from) >> p->page_shift;
        }
        at = b->next;
    }
    return range->spot.block != NONE;
}

static bool
is_free_now(const struct dryi_paged *p, const struct request *r, uint64_t addr,
            struct range *range)
{
    return can_lie(p, r, addr, range) && range->stream_count == 0;
}

/* Do as can_lie(), but unpark blocks inside the range: the program deviates from its period. */
static bool
make_way(struct dryi_paged *p, const struct request *r, uint64_t addr,
         struct range *range)
{
    while (!can_lie(p, r, addr, range)) {
        if (range->parked == NONE)
            return false;
        dryi_paged_unpark(p, range->parked);
    }
    return true;
}

/*
 * Make the request's stream wait for all incomplete uses in the range. False: no wait is allowed,
 * or the device refused.
 */
static bool
wait_for(struct dryi_paged *p, const struct request *r, const struct range *range)
{
    for (uint32_t i = 0; i < range->stream_count; i++) {
        uint32_t on = range->streams[i];
        dryi_paged_observe(p, on);
        if (range->epochs[i] <= p->streams[on].completed && p->conf.reuse_passed) {
            p->counters.reused_passed++;
            continue;
        }
        if (!may_wait(p) ||
            dryi_paged_follow(p, r->stream, on, range->epochs[i]) != DRY_OK)
            return false;
        p->counters.reused_waiting++;
        p->layout.waits++;
    }
    return true;
}

/* Take a block at the address. NONE: the range cannot serve the request. */
DRYI_NOINLINE static uint32_t
take_at(struct dryi_paged *p, const struct request *r, uint64_t addr)
{
    DRYI_ASSERT_SLOW(r->bytes % GRAIN == 0);
    struct range range;
    const struct spot *spot = &range.spot;
    bool moved = false;
    if (!make_way(p, r, addr, &range))
        return NONE;
    if (range.stream_count > 0 &&
        (!wait_for(p, r, &range) || !is_free_now(p, r, addr, &range)))
        return NONE;
    if (spot->fresh > 0 &&
        (dryi_paged_fund(p, r, spot, &moved) != DRY_OK ||
         (moved && (!is_free_now(p, r, addr, &range) || spot->fresh > p->stock_count))))
        return NONE;
    uint32_t block;
    return dryi_paged_spot_take(p, r, spot, &block) == DRY_OK ? block : NONE;
}

/* Take the block parked for this request, else a block in the hint's range; NONE: neither fits. */
static uint32_t
take_forecast(struct dryi_paged *p, const struct request *r, const struct dryi_hint *hint)
{
    uint32_t block = dryi_paged_parked_find(p, hint->step);
    if (block != NONE && p->blocks[block].size == r->bytes &&
        /* Keys are hashes, so a hint may be of another size or stream. */
        p->blocks[block].list == r->list) {
        dryi_paged_parked_pop(p, hint->step);
        return block;
    }
    if (p->layout.segment == NONE)
        return NONE;
    const struct segment *segment = &p->segments[p->layout.segment];
    if (hint->offset > segment->size || r->bytes > segment->size - hint->offset)
        return NONE;
    return take_at(p, r, segment->addr + hint->offset);
}

/*
 * Tell the forecast of the request, and take the range that the layout has for it. NONE: there is
 * no such range, or the range is not free. Sets the request's ticket and successor.
 */
static uint32_t
take_expected(struct dryi_paged *p, struct request *r)
{
    DRYI_ASSERT_SLOW(p->forecast && r->arena == 0 && !p->is_shared);
    if (p->capture_count > 0) {
        dryi_paged_unpark_all(p);
        return NONE;
    }
    if (dryi_forecast_is_ready(p->forecast))
        dryi_paged_layout_make(p);
    else if (!p->layout.is_settled && dryi_forecast_is_settled(p->forecast))
        dryi_paged_layout_settle(p);
    struct dryi_hint hint = dryi_forecast_request(p->forecast, r->bytes, r->stream);
    r->has_ticket = true;
    r->ticket = hint.ticket;
    r->successor = NONE;
    /* The layout did not expect this request, but a parked block may fit. */
    if (hint.step == DRYI_STEP_NONE && p->layout.parked_count > 0)
        dryi_paged_unpark_all(p);
    if (hint.offset == DRYI_HINT_NONE)
        return NONE;
    uint32_t block = take_forecast(p, r, &hint);
    if (block == NONE) {
        p->counters.hints_refused++;
        dryi_forecast_refused(p->forecast);
        return NONE;
    }
    p->counters.hints_taken++;
    r->successor = hint.successor;
    return block;
}

/* --- requests ----------------------------------------------------------------------------- */

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
    r->bytes = round_to_grains(size);
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
        found = take_expected(p, r);
    if (found == NONE && r->bytes <= RESERVED_LIMIT)
        found = take_hit(p, r);
    if (found == NONE)
        return serve_miss(p, r, block);
    hand_out(p, r, found);
    *block = found;
    return DRY_OK;
}

enum dry_status
dryi_paged_alloc(void *self, uint64_t size, uint64_t stream, dryi_block *block)
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
 * Do as dryi_paged_alloc() for the cache's stream, whose lists are already known. MEMORY: also if
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
                        .bytes = round_to_grains(size),
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
    size_t slot = (size_t)(round_to_grains(size) >> GRAIN_SHIFT);
    if (slot >= s->stack_count || p->observer.event || p->waiting_uses > 0 ||
        p->first_held != NONE)
        return serve_cache(cache, size, has_room, got);
    uint32_t block = dryi_paged_cache_take_registered(p, s, slot, size);
    if (block == NONE)
        return serve_cache(cache, size, has_room, got);
    p->requests++;
    stat_taken(p->stats, true, round_to_grains(size), size);
    *got = (struct dryi_cache_block){p->blocks[block].addr, block, true, true};
    return DRY_OK;
}
