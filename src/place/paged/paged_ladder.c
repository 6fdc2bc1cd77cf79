/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The ladder for a miss. Cheap ways first: other streams' blocks, pages of the stock, new pages
 * within the budget, pages of free blocks. Then costly ones: a wait inserted into a stream, new
 * pages beyond the budget. If the device or the limit refuses, a miss waits for all streams.
 */

#include "place/paged/paged_ladder.h"

#include "base/ablate.h"
#include "base/assert.h"
#include "place/paged/paged_cache_shared.h"
#include "place/paged/paged_free.h"
#include "place/paged/paged_reclaim.h"
#include "place/paged/paged_spot.h"
#include "place/paged/paged_take.h"
#include "place/paged/record/paged_bins.h"
#include "place/paged/record/paged_block.h"
#include "place/paged/record/paged_cache.h"
#include "place/paged/record/paged_event.h"
#include "place/paged/record/paged_list.h"
#include "place/paged/record/paged_page.h"
#include "place/paged/record/paged_park.h"
#include "place/paged/record/paged_stats.h"

/* --- pages -------------------------------------------------------------------------------- */

/*
 * Is another page within the budget plus bought pages, once the request is allocated? The last page
 * of each arena always is, however small the program: a pool has two arenas.
 */
static bool
is_in_budget(const struct dryi_paged *p, const struct request *r)
{
    uint64_t live = stat_all(p, STAT_ALLOCATED_BYTES) + r->bytes;
    uint64_t peak = dryi_paged_active_peak(p);
    uint64_t most = live > peak ? live : peak;
    uint64_t reserved = stat_all(p, STAT_RESERVED_BYTES) + p->page_bytes;
    double bought = (double)(dryi_paged_bought(p) << p->page_shift);
    uint64_t pools = p->pool_count - p->dead_pool_count;
    return (double)reserved <= p->conf.budget * (double)most + bought ||
           reserved <= most + 2 * pools * p->page_bytes;
}

/* How far a miss may go for its pages. */
enum rung {
    RUNG_TIGHT,  /* scarce memory: pages of free blocks, with a wait if needed */
    RUNG_BUDGET, /* new pages within the budget, pages of complete free blocks */
    RUNG_WAIT,   /* also pages after a wait, and new ones beyond the budget */
    RUNG_ALL,    /* all pages of pools that always give theirs */
    RUNG_LAST,   /* also pages of pools that give theirs before an OOM */
};

/*
 * Create pages until the stock holds `want`; without `any`, only within the budget. A full device
 * is not an error yet: NO_SPACE becomes OK.
 */
static enum dry_status
create_pages(struct dryi_paged *p, const struct request *r, uint64_t want, bool any)
{
    DRYI_ASSERT_SLOW(p->page_bytes > 0);
    enum dry_status status = DRY_OK;
    while (p->stock_count < want && status == DRY_OK && (any || is_in_budget(p, r)))
        status = dryi_paged_page_create(p);
    return status == DRY_ERR_NO_SPACE ? DRY_OK : status;
}

static bool
is_short(const struct dryi_paged *p, uint64_t want)
{
    return p->stock_count < want;
}

/* Reclaim the pages that a spot needs from free blocks outside the spot. */
static enum dry_status
reclaim_pages_for(struct dryi_paged *p, const struct request *r, const struct spot *spot,
                  enum reclaim_effort effort)
{
    return dryi_paged_reclaim(p, spot->fresh, page_floor(p, spot->addr),
                              page_ceil(p, spot->addr + r->bytes), effort);
}

/*
 * Bring the pages that the spot needs into the stock. *moved: blocks may have changed. NO_SPACE:
 * this rung has too few pages.
 */
static enum dry_status
get_pages(struct dryi_paged *p, const struct request *r, const struct spot *spot,
          enum rung rung, bool *moved)
{
    uint64_t want = spot->fresh;
    enum dry_status status = DRY_OK;
    if (rung != RUNG_TIGHT)
        status = create_pages(p, r, want, false);
    if (status == DRY_OK && is_short(p, want) && p->conf.remap) {
        *moved = true;
        dryi_paged_flush(p);
        status = reclaim_pages_for(p, r, spot,
                                   rung == RUNG_BUDGET ? RECLAIM_COMPLETE : RECLAIM_WAIT);
    }
    if (status == DRY_OK && rung >= RUNG_WAIT)
        status = create_pages(p, r, want, true);
    if (status == DRY_OK && is_short(p, want) && rung >= RUNG_ALL) {
        *moved = true;
        status = reclaim_pages_for(p, r, spot,
                                   rung == RUNG_LAST ? RECLAIM_ON_OOM : RECLAIM_ALL);
    }
    if (status == DRY_OK && is_short(p, want))
        status = DRY_ERR_NO_SPACE;
    return status;
}

enum dry_status
dryi_paged_fund(struct dryi_paged *p, const struct request *r, const struct spot *spot,
                bool *moved)
{
    DRYI_ASSERT_SLOW(spot->fresh > 0);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    return get_pages(p, r, spot, RUNG_BUDGET, moved);
}

/*
 * Reserve a segment for the request. NO_SPACE: the device has no addresses, even after the rung
 * returned all that it may.
 */
static enum dry_status
reserve_addresses(struct dryi_paged *p, const struct request *r, enum rung rung)
{
    for (bool oom = false;;) {
        enum dry_status status = dryi_paged_segment_reserve(p, r->arena, r->bytes, false);
        if (status == DRY_ERR_NO_SPACE && dryi_paged_return_addresses(p, oom))
            continue;
        if (status == DRY_ERR_NO_SPACE)
            status = dryi_paged_segment_reserve(p, r->arena, r->bytes, true);
        if (status != DRY_ERR_NO_SPACE || oom || rung != RUNG_LAST)
            return status;
        oom = true;
    }
}

/* Attempts of a bounded rung; nearly always the first or second succeeds. */
#define ATTEMPT_MAX 8

/*
 * Take a block by mapping pages. If blocks changed while pages were fetched, the search is
 * repeated. RUNG_ALL and RUNG_LAST repeat without a bound: each attempt but the last gains
 * addresses or pages, so they end.
 */
static enum dry_status
take_mapped(struct dryi_paged *p, const struct request *r, enum rung rung,
            uint32_t *block)
{
    static const enum search_kind kinds[] = {[RUNG_TIGHT] = SEARCH_TOUCH,
                                             [RUNG_BUDGET] = SEARCH_FRESH,
                                             [RUNG_WAIT] = SEARCH_FRESH,
                                             [RUNG_ALL] = SEARCH_ALL,
                                             [RUNG_LAST] = SEARCH_LAST};
    for (unsigned i = 0; i < ATTEMPT_MAX || rung >= RUNG_ALL; i++) {
        struct spot spot;
        bool moved = false;
        enum dry_status status = dryi_paged_spot_find(p, r, kinds[rung], &spot);
        bool is_found = spot.block != NONE;
        if (status == DRY_OK)
            status = is_found ? get_pages(p, r, &spot, rung, &moved)
                              : reserve_addresses(p, r, rung);
        if (status != DRY_OK)
            return status;
        if (!is_found)
            continue;
        if (!moved)
            return dryi_paged_spot_take(p, r, &spot, block);
        if (rung == RUNG_TIGHT)
            continue;
        *block = dryi_paged_take_own(p, r); /* a wait may have freed a block that fits */
        if (*block != NONE)
            return DRY_OK;
    }
    return DRY_ERR_NO_SPACE;
}

/* --- devices without pages ---------------------------------------------------------------- */

/*
 * Bytes. PyTorch's kRoundLarge, kLargeBuffer and kMinLargeAlloc, so that a program sees segments of
 * the sizes it is used to.
 */
#define SEGMENT_STEP (2 * DRYI_MIB)
#define SEGMENT_LEAST (20 * DRYI_MIB)
/* Bytes; a request of this size or more gets its own segment. */
#define SEGMENT_OWN (10 * DRYI_MIB)

static enum dry_status
take_segment(struct dryi_paged *p, const struct request *r, uint32_t *block)
{
    uint64_t size = dryi_round_up(r->bytes, SEGMENT_STEP);
    if (!arena_is_small(r->arena) && r->bytes < SEGMENT_OWN)
        size = SEGMENT_LEAST;
    enum dry_status status = dryi_paged_segment_alloc(p, r->arena, size, r->list);
    if (status == DRY_ERR_NO_SPACE && size == SEGMENT_LEAST) {
        size = dryi_round_up(r->bytes, SEGMENT_STEP);
        status = dryi_paged_segment_alloc(p, r->arena, size, r->list);
    }
    if (status == DRY_OK)
        *block = dryi_paged_take_own(p, r);
    return status;
}

static enum dry_status
take_new(struct dryi_paged *p, const struct request *r, enum rung rung, uint32_t *block)
{
    if (p->page_bytes > 0)
        return take_mapped(p, r, rung, block);
    enum dry_status status = take_segment(p, r, block);
    uint32_t from = 0;
    while (status == DRY_ERR_NO_SPACE && rung >= RUNG_ALL &&
           dryi_paged_return_segment(p, rung == RUNG_LAST, &from))
        status = take_segment(p, r, block);
    return status;
}

/* --- before an OOM ------------------------------------------------------------------------ */

/* Take the request from adjacent free blocks, which may be of several lists. */
static uint32_t
take_joined(struct dryi_paged *p, const struct request *r, enum search_kind kind)
{
    struct spot spot;
    uint32_t block = NONE;
    enum dry_status status = dryi_paged_spot_find(p, r, kind, &spot);
    if (status == DRY_OK && spot.block != NONE) {
        if (block_end(&p->blocks[spot.block]) >= spot.addr + r->bytes)
            return dryi_paged_take_found(p, r, spot.block);
        status = dryi_paged_spot_take(p, r, &spot, &block);
    }
    return dryi_note_hindered(&p->hindered, status) == DRY_OK ? block : NONE;
}

/* Take any free memory of the arena that the request may use, also what bounded searches miss. */
static uint32_t
take_any(struct dryi_paged *p, const struct request *r)
{
    uint32_t block = dryi_paged_take_some(p, r);
    return block == NONE ? take_joined(p, r, SEARCH_FREE) : block;
}

/* Does the arena have a free block? Asking for the request's list would create the list. */
static bool
has_free(const struct dryi_paged *p, uint32_t arena)
{
    const struct arena *a = &p->arenas[arena];
    bool any = p->lists[a->shared]->octaves != 0;
    for (uint32_t at = a->lists; at != NONE && !any; at = p->lists[at]->next)
        any = p->lists[at]->octaves != 0;
    return any;
}

/* Take a free block of a private pool that lends its blocks before an OOM (USE_ON_OOM). */
static uint32_t
take_lent(struct dryi_paged *p, const struct request *r)
{
    for (uint32_t pool = 1; pool < p->pool_count; pool++) {
        const struct private_pool *o = &p->pools[pool];
        if (!o->live || !(o->flags & DRYI_POOL_USE_ON_OOM) || pool == r->arena / 2)
            continue;
        struct request lent = *r;
        lent.arena = 2 * pool + (r->arena & 1);
        if (!has_free(p, lent.arena))
            continue;
        lent.list = dryi_paged_list_index(p, lent.arena, r->stream);
        if (lent.list == NONE) {
            (void)dryi_note_hindered(&p->hindered, DRY_ERR_MEMORY);
            continue;
        }
        uint32_t block = take_any(p, &lent);
        if (block != NONE)
            return block;
    }
    return NONE;
}

/* Take any remaining free block, of the request's pool or lent by another. */
static uint32_t
take_left(struct dryi_paged *p, const struct request *r)
{
    uint32_t block = take_any(p, r);
    return block == NONE ? take_lent(p, r) : block;
}

/*
 * Wait for events, oldest first, until a block fits. A sweep visits all blocks, so the waits
 * between sweeps double. A sweep per wait would cost events times blocks before an OOM.
 */
static uint32_t
take_waited(struct dryi_paged *p, const struct request *r)
{
    uint32_t skipped = NONE, block = NONE;
    (void)dryi_paged_mark_all(p); /* blocks that get no event stay unavailable */
    for (uint64_t waits = 1; block == NONE && dryi_paged_wait_oldest(p, &skipped);
         waits++) {
        if (!dryi_is_power_of_two(waits))
            continue;
        dryi_paged_sweep(p);
        block = dryi_paged_take_some(p, r);
    }
    return block;
}

/*
 * Wait for all streams, then search all memory exhaustively. After a failure a repeated call cannot
 * succeed, unless p->hindered is set.
 */
static enum dry_status
climb_to_the_top(struct dryi_paged *p, const struct request *r, uint32_t *block)
{
    p->retries++;
    p->hindered = DRY_OK; /* everything refused so far is tried again */
    dryi_paged_release_held(p);
    dryi_paged_flush(p);
    *block = dryi_paged_take_some(p, r);
    if (*block != NONE)
        return DRY_OK;
    /*
     * Two rounds: a pending block freed in round one is incomplete in its own stream, and needs
     * another event.
     */
    for (int round = 0; round < 2 && *block == NONE; round++)
        *block = take_waited(p, r);
    if (*block != NONE)
        return DRY_OK;
    dryi_paged_sweep(p);
    *block = dryi_paged_take_some(p, r);
    if (*block != NONE)
        return DRY_OK;
    enum dry_status status = take_new(p, r, RUNG_ALL, block);
    if (status != DRY_ERR_NO_SPACE)
        return status;
    *block = take_left(p, r); /* before pools that lend blocks lose their pages below */
    return *block != NONE ? DRY_OK : take_new(p, r, RUNG_LAST, block);
}

/* Take free memory without another page and without a wait. */
static uint32_t
take_at_hand(struct dryi_paged *p, const struct request *r)
{
    uint32_t shared = p->arenas[r->arena].shared;
    uint32_t block =
        dryi_paged_take_found(p, r, dryi_paged_list_find(p, p->lists[shared], r->bytes));
    if (block == NONE && dryi_paged_flush_for(p, r->list, r->bytes, FLUSH_MAX))
        block = dryi_paged_take_own(p, r);
    if (block == NONE)
        block = dryi_paged_take_passed(p, r);
    /* A captured stream's frees are not merged with complete blocks: a request may span both. */
    if (block == NONE && dryi_paged_is_captured(p, r->stream))
        block = take_joined(p, r, SEARCH_JOINED);
    return block;
}

#define AHEAD_LEAST (256 * DRYI_MIB)

/*
 * Return how many pending bytes are accepted: the peak of allocated bytes, at least AHEAD_LEAST for
 * a program that just started. Without a bound, a host far ahead of its streams would reserve ever
 * more.
 */
static uint64_t
pending_accepted(const struct dryi_paged *p)
{
    uint64_t peak = (uint64_t)p->stats[STAT_ALLOCATED_BYTES].all_peak;
    return peak > AHEAD_LEAST ? peak : AHEAD_LEAST;
}

#define AHEAD_MAX 32 /* events that one request waits for */

/*
 * Block the host until the oldest events complete, while too many bytes are pending; then take a
 * free block. Requires that the request exceeds the budget.
 */
static uint32_t
take_held_back(struct dryi_paged *p, const struct request *r)
{
    uint32_t skipped = NONE;
    unsigned waits = 0;
    if (DRYI_ABLATED(held_back))
        return NONE;
    while (waits < AHEAD_MAX && stat_all(p, STAT_PENDING_BYTES) > pending_accepted(p) &&
           dryi_paged_wait_oldest(p, &skipped))
        waits++;
    return waits > 0 ? dryi_paged_take_own(p, r) : NONE;
}

/* Take a block from flushed caches, before more is reserved than the budget allows. */
static uint32_t
take_flushed(struct dryi_paged *p, const struct request *r)
{
    if (dryi_paged_flush_for(p, r->list, r->bytes, UINT32_MAX))
        return dryi_paged_take_own(p, r);
    return arena_is_small(r->arena) && dryi_paged_flush(p) ? dryi_paged_take_own(p, r)
                                                           : NONE;
}

/* Serve a miss beyond the budget: by a host wait, a stream wait, or more reserved pages. */
static enum dry_status
climb_beyond_budget(struct dryi_paged *p, const struct request *r, uint32_t *block)
{
    *block = take_flushed(p, r);
    if (*block == NONE)
        *block = take_held_back(p, r);
    if (*block == NONE && dryi_paged_gather(p))
        *block = dryi_paged_take_own(p, r);
    if (*block != NONE)
        return DRY_OK;
    enum dry_status status = DRY_ERR_NO_SPACE;
    if (p->conf.reuse_waiting) {
        status = dryi_paged_take_waiting(p, r, block);
        if (status == DRY_ERR_SYSTEM)
            status = DRY_ERR_NO_SPACE; /* continue without a wait */
    }
    if (status == DRY_ERR_NO_SPACE)
        status = take_new(p, r, RUNG_WAIT, block);
    if (status == DRY_ERR_NO_SPACE)
        status = climb_to_the_top(p, r, block);
    return status;
}

enum dry_status
dryi_paged_climb(struct dryi_paged *p, const struct request *r, uint32_t *block)
{
    DRYI_ASSERT_SLOW(r->bytes % GRAIN == 0 && p->lists[r->list]->arena == r->arena);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    /* A block from before the limit was lowered may exceed the limit. */
    if ((r->bytes > p->limit_bytes || r->bytes > p->device_total) &&
        r->bytes > stat_all(p, STAT_RESERVED_BYTES))
        return DRY_ERR_NO_SPACE;
    *block = NONE;
    if (r->arena == 0 && dryi_paged_unpark_all(p))
        *block = dryi_paged_take_own(p, r);
    if (*block != NONE)
        return DRY_OK;
    if (!arena_is_small(r->arena) && dryi_paged_is_tight(p)) {
        enum dry_status tight = dryi_paged_is_no_split(p, r)
                                    ? DRY_ERR_NO_SPACE
                                    : take_mapped(p, r, RUNG_TIGHT, block);
        if (tight != DRY_ERR_NO_SPACE)
            return tight;
        *block = dryi_paged_take_own(p, r);
        if (*block != NONE)
            return DRY_OK;
    }
    *block = take_at_hand(p, r);
    if (*block != NONE)
        return DRY_OK;
    if (p->divider_count > 0)
        dryi_paged_dividers_merge(p);
    enum dry_status status = take_new(p, r, RUNG_BUDGET, block);
    return status == DRY_ERR_NO_SPACE ? climb_beyond_budget(p, r, block) : status;
}

/*
 * Small blocks need pages and addresses of their own, which may run out while the large arena still
 * has memory.
 */
enum dry_status
dryi_paged_take_larger(struct dryi_paged *p, struct request *r, uint32_t *block)
{
    DRYI_ASSERT_SLOW(arena_is_small(r->arena));
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    struct request large = *r;
    large.arena = r->arena - 1;
    large.bytes = (p->conf.small_max & ~(GRAIN - 1)) + GRAIN;
    large.list = dryi_paged_list_index(p, large.arena, r->stream);
    if (large.list == NONE || !dryi_paged_block_reserve(p, 0))
        return DRY_ERR_MEMORY;
    *block = take_left(p, &large);
    enum dry_status status = DRY_OK;
    if (*block == NONE)
        status = take_new(p, &large, RUNG_LAST, block);
    if (status == DRY_OK)
        *r = large;
    return status;
}
