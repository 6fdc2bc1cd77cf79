/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Expected requests get the ranges that the layout, an offline packing of their period, assigned to
 * them.
 *
 * A layout occupies one segment, at addresses that were free or will be. Each hint is validated
 * against the current blocks: a request gets only free memory that its stream may use, even if the
 * forecast is wrong.
 */

#include "place/paged/paged_expect.h"
#include "base/assert.h"

#include "place/paged/paged_adopt.h"
#include "place/paged/paged_ladder.h"
#include "place/paged/paged_spot.h"
#include "place/paged/paged_take.h"
#include "place/paged/record/paged_event.h"
#include "place/paged/record/paged_index.h"
#include "place/paged/record/paged_park.h"

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

uint32_t
dryi_paged_take_expected(struct dryi_paged *p, struct request *r)
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
