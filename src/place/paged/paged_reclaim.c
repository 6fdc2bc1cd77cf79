/* SPDX-License-Identifier: Apache-2.0 */

/* Giving memory back: see paged_reclaim.h. */

#include "place/paged/paged_reclaim.h"

#include "base/ablate.h"
#include "base/assert.h"
#include "place/paged/paged_free.h"
#include "place/paged/paged_pool.h"
#include "place/paged/record/paged_bins.h"
#include "place/paged/record/paged_block.h"
#include "place/paged/record/paged_cache.h"
#include "place/paged/record/paged_event.h"
#include "place/paged/record/paged_page.h"
#include "place/paged/record/paged_park.h"
#include "place/paged/record/paged_stats.h"

/* --- blocks ------------------------------------------------------------------------------- */

static void
sweep_segment(struct dryi_paged *p, const struct segment *segment)
{
    uint32_t shared = p->arenas[segment->arena].shared;
    for (uint32_t at = segment->first_block; at != NONE; at = p->blocks[at].next) {
        const struct block *b = &p->blocks[at];
        if (b->state != BLOCK_FREE || b->list == shared || !dryi_paged_is_complete(p, b))
            continue;
        dryi_paged_block_move(p, at, shared, 0);
        at = dryi_paged_block_coalesce(p, at);
    }
}

static void
sweep_arena(struct dryi_paged *p, uint32_t arena)
{
    for (uint32_t i = p->arenas[arena].lists; i != NONE; i = p->lists[i]->next)
        dryi_paged_flush_list(p, p->lists[i]);
    for (uint32_t i = p->arenas[arena].segments; i != NONE; i = p->segments[i].next)
        sweep_segment(p, &p->segments[i]);
}

void
dryi_paged_sweep(struct dryi_paged *p)
{
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    dryi_paged_flush(p); /* waiting may have refilled the caches */
    for (uint32_t i = 0; i < p->segment_slots; i++) {
        if (p->segments[i].live)
            sweep_segment(p, &p->segments[i]);
    }
}

/* --- pages -------------------------------------------------------------------------------- */

/* A reclaim in progress. */
struct reclaim {
    uint64_t want;             /* page count of the stock to reach */
    uint64_t keep_lo, keep_hi; /* pages of this address range stay */
    enum reclaim_effort effort;
    uint32_t asked; /* the stream queried last */
    uint32_t asks;  /* queries of streams so far */
};

static bool
is_waiting(const struct reclaim *reclaim)
{
    return reclaim->effort >= RECLAIM_WAIT;
}

/* Does the reclaim visit all blocks, without bounds? */
static bool
is_thorough(const struct reclaim *reclaim)
{
    return reclaim->effort >= RECLAIM_ALL;
}

/*
 * Bounds of a reclaim that is not thorough. In addition, at most VISITS_MAX streams are queried,
 * each possibly with a driver call, and VISITS_MAX idle pools visited.
 */
#define RECLAIM_LIST_MAX                                                                 \
    1024 /* streams' lists of an arena visited: only their counts are read */

/*
 * Find the whole pages of a free block outside [keep_lo, keep_hi), preferably before that range.
 * False: none.
 */
static bool
find_pages(const struct dryi_paged *p, const struct block *b,
           const struct reclaim *reclaim, uint64_t *lo, uint64_t *hi)
{
    dryi_paged_whole_pages(p, b->addr, block_end(b), lo, hi);
    if (*hi <= reclaim->keep_lo || *lo >= reclaim->keep_hi)
        return *hi > *lo;
    if (*lo < reclaim->keep_lo)
        *hi = reclaim->keep_lo;
    else
        *lo = reclaim->keep_hi;
    return *hi > *lo;
}

/*
 * Are the uses of a free block complete? If not, query its stream or wait for it, as the effort
 * allows. *changed: the stream has progressed, so lists may have changed.
 */
static bool
complete_uses(struct dryi_paged *p, uint32_t block, struct reclaim *reclaim,
              bool *changed)
{
    const struct block *b = &p->blocks[block];
    const struct free_list *s = p->lists[b->list];
    if (dryi_paged_is_complete(p, b))
        return true;
    if (dryi_paged_is_captured(p, s->stream) ||
        (!is_waiting(reclaim) && reclaim->asked == s->stream))
        return false;
    if (!is_thorough(reclaim) && reclaim->asks >= VISITS_MAX)
        return false;
    reclaim->asked = s->stream;
    reclaim->asks++;
    uint64_t done = p->streams[s->stream].completed;
    if (b->epoch > p->streams[s->stream].marked &&
        dryi_paged_mark(p, s->stream) != DRY_OK)
        return false;
    if (is_waiting(reclaim))
        dryi_paged_wait(p, s->stream, b->epoch);
    else
        dryi_paged_observe(p, s->stream);
    *changed = p->streams[s->stream].completed != done;
    return false; /* If *changed, the caller scans the list again. */
}

/*
 * Unmap at most `count` pages of [lo, hi), next to a hole if possible: holes grow and free blocks
 * stay large.
 */
static enum dry_status
unmap_some(struct dryi_paged *p, uint32_t block, uint64_t lo, uint64_t hi, uint64_t count)
{
    DRYI_ASSERT_SLOW(count > 0 && lo < hi);
    uint64_t bytes = count << p->page_shift;
    if (hi - lo > bytes) {
        uint32_t next = p->blocks[block].next;
        bool hole_behind = next != NONE && p->blocks[next].state == BLOCK_HOLE;
        if (hole_behind && hi == block_end(&p->blocks[block]))
            lo = hi - bytes;
        else
            hi = lo + bytes;
    }
    return dryi_paged_unmap(p, block, lo, hi);
}

#define RECLAIM_SCAN_MAX 256 /* blocks of a list visited, unless thorough */

static enum dry_status
reclaim_from_list(struct dryi_paged *p, uint32_t list, struct reclaim *reclaim)
{
    const struct free_list *s = p->lists[list];
    uint32_t bin = dryi_paged_bin_at_most(s, BIN_COUNT - 1);
    uint32_t least = find_bin(p->page_bytes);
    unsigned visited = 0;
    while (bin != NONE && bin >= least) {
        bool changed = false;
        for (uint32_t at = s->heads[bin], next; at != s->end && !changed; at = next) {
            if (p->stock_count >= reclaim->want)
                return DRY_OK;
            if (!is_thorough(reclaim) && visited++ >= RECLAIM_SCAN_MAX)
                return DRY_OK;
            next = p->blocks[at].bin_next; /* stays listed when `at` is removed */
            uint64_t lo, hi;
            enum dry_status status = DRY_OK;
            if (find_pages(p, &p->blocks[at], reclaim, &lo, &hi) &&
                complete_uses(p, at, reclaim, &changed))
                status = unmap_some(p, at, lo, hi, reclaim->want - p->stock_count);
            if (status != DRY_OK)
                return status;
        }
        if (changed)
            bin = dryi_paged_bin_at_most(s, BIN_COUNT - 1);
        else
            bin = bin == 0 ? NONE : dryi_paged_bin_at_most(s, bin - 1);
    }
    return DRY_OK;
}

/* Reclaim from the streams' lists of an arena, newest first; bounded unless thorough. */
static enum dry_status
reclaim_from_streams(struct dryi_paged *p, const struct arena *a, struct reclaim *reclaim)
{
    enum dry_status status = DRY_OK;
    unsigned visited = 0;
    for (uint32_t list = a->lists; list != NONE && status == DRY_OK;
         list = p->lists[list]->next) {
        bool is_much = visited++ >= RECLAIM_LIST_MAX || reclaim->asks >= VISITS_MAX;
        if ((!is_thorough(reclaim) && is_much) || p->stock_count >= reclaim->want)
            break;
        if (p->lists[list]->octaves != 0)
            status = reclaim_from_list(p, list, reclaim);
    }
    return status;
}

static enum dry_status
reclaim_from_arena(struct dryi_paged *p, uint32_t arena, struct reclaim *reclaim)
{
    if (!dryi_paged_gives_pages(p, arena, reclaim->effort == RECLAIM_ON_OOM))
        return DRY_OK;
    enum dry_status status = reclaim_from_list(p, p->arenas[arena].shared, reclaim);
    return status == DRY_OK ? reclaim_from_streams(p, &p->arenas[arena], reclaim)
                            : status;
}

static enum dry_status
reclaim_from_pool(struct dryi_paged *p, uint32_t pool, struct reclaim *reclaim)
{
    enum dry_status status = DRY_OK;
    for (uint32_t arena = 2 * pool; arena <= 2 * pool + 1; arena++) {
        if (status == DRY_OK && p->stock_count < reclaim->want)
            status = reclaim_from_arena(p, arena, reclaim);
    }
    return status;
}

/* Reclaim from idle pools, one after the other, so that emptied ones can be forgotten. */
static enum dry_status
reclaim_from_idle(struct dryi_paged *p, struct reclaim *reclaim)
{
    enum dry_status status = DRY_OK;
    uint32_t most = p->idle_count;
    if (!is_thorough(reclaim) && most > VISITS_MAX)
        most = VISITS_MAX;
    for (uint32_t i = 0; i < most && status == DRY_OK; i++) {
        status = reclaim_from_pool(p, p->first_idle, reclaim);
        if (p->stock_count >= reclaim->want)
            break;
        dryi_paged_idle_turn(p);
    }
    return status;
}

static enum dry_status
reclaim_pages(struct dryi_paged *p, struct reclaim *reclaim)
{
    if (p->page_bytes == 0)
        return DRY_OK;
    enum dry_status status = reclaim_from_pool(p, 0, reclaim);
    if (status == DRY_OK && p->stock_count < reclaim->want)
        status = reclaim_from_idle(p, reclaim);
    bool is_last = reclaim->effort == RECLAIM_ON_OOM;
    for (uint32_t pool = 1; is_last && pool < p->pool_count; pool++) {
        bool is_used = p->pools[pool].users > 0;
        if (is_used && status == DRY_OK && p->stock_count < reclaim->want)
            status = reclaim_from_pool(p, pool, reclaim);
    }
    return status;
}

enum dry_status
dryi_paged_reclaim(struct dryi_paged *p, uint64_t want, uint64_t keep_lo,
                   uint64_t keep_hi, enum reclaim_effort effort)
{
    DRYI_ASSERT_SLOW(keep_lo <= keep_hi);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    struct reclaim reclaim = {.want = want,
                              .keep_lo = keep_lo,
                              .keep_hi = keep_hi,
                              .effort = effort,
                              .asked = NONE};
    return reclaim_pages(p, &reclaim);
}

/* --- cached memory ------------------------------------------------------------------------ */

/* Is the segment a single hole or, on a device without pages, a single complete free block? */
static bool
is_empty_segment(const struct dryi_paged *p, const struct segment *segment)
{
    const struct block *b = &p->blocks[segment->first_block];
    if (!segment->live || b->next != NONE)
        return false;
    return b->state == BLOCK_HOLE ||
           (!segment->pages && b->state == BLOCK_FREE && dryi_paged_is_complete(p, b));
}

/* Return an empty segment. If the layout is there, it ends. */
static void
return_segment(struct dryi_paged *p, uint32_t segment)
{
    if (segment == p->layout.segment)
        dryi_paged_layout_finish(p);
    dryi_paged_segment_return(p, segment);
}

bool
dryi_paged_return_segment(struct dryi_paged *p, bool oom, uint32_t *from)
{
    while (p->capture_count == 0 && *from < p->segment_slots) {
        uint32_t segment = (*from)++;
        if (!p->segments[segment].live || !is_empty_segment(p, &p->segments[segment]) ||
            !dryi_paged_gives_pages(p, p->segments[segment].arena, oom))
            continue;
        return_segment(p, segment);
        return true;
    }
    return false;
}

/* Drop an idle pool if it has no segments and no active scope. */
static void
forget_pool(struct dryi_paged *p, uint32_t pool)
{
    DRYI_ASSERT_SLOW(pool > 0 && p->pools[pool].users == 0);
    bool is_begun = false;
    for (size_t i = 0; i < p->scope_count; i++)
        is_begun |= p->scopes[i].pool == pool;
    if (!is_begun && p->arenas[2 * pool].segments == NONE &&
        p->arenas[2 * pool + 1].segments == NONE)
        dryi_paged_pool_drop(p, pool);
}

static void
forget_pools(struct dryi_paged *p)
{
    for (uint32_t pool = p->first_idle, next; pool != NONE; pool = next) {
        next = p->pools[pool].next;
        forget_pool(p, pool);
    }
}

/*
 * Move the complete pages of an idle pool to the stock. Within the budget no request would reclaim
 * them, yet each pool holds records and addresses.
 */
static enum dry_status
empty_pool(struct dryi_paged *p, uint32_t pool, struct reclaim *reclaim)
{
    enum dry_status status = DRY_OK;
    for (uint32_t arena = 2 * pool; arena <= 2 * pool + 1 && status == DRY_OK; arena++) {
        sweep_arena(p, arena); /* coalesce first: streams' blocks may share a page */
        status = reclaim_from_arena(p, arena, reclaim);
    }
    return status;
}

static void
return_empty_segments(struct dryi_paged *p, uint32_t arena)
{
    for (uint32_t segment = p->arenas[arena].segments, next; segment != NONE;
         segment = next) {
        next = p->segments[segment].next;
        if (is_empty_segment(p, &p->segments[segment]))
            return_segment(p, segment);
    }
}

void
dryi_paged_forget_idle_pools(struct dryi_paged *p)
{
    struct reclaim reclaim = {.want = p->page_count, .asked = NONE};
    bool is_emptied = p->page_bytes > 0 && p->conf.remap;
    if (p->capture_count > 0)
        return;
    uint64_t most = (uint64_t)p->opened * VISITS_PER_RECORD;
    if (most > p->idle_count)
        most = p->idle_count;
    p->opened = 0;
    for (uint64_t i = 0; i < most; i++) {
        uint32_t pool = p->first_idle;
        dryi_paged_idle_turn(p);
        if (is_emptied && empty_pool(p, pool, &reclaim) != DRY_OK)
            is_emptied = false; /* The next request for pages reports the error */
        return_empty_segments(p, 2 * pool);
        return_empty_segments(p, 2 * pool + 1);
        forget_pool(p, pool);
    }
}

/* Move the complete pages of all idle pools to the stock. */
static void
empty_idle_pools(struct dryi_paged *p)
{
    struct reclaim reclaim = {.want = p->page_count, .asked = NONE};
    for (uint32_t pool = p->first_idle; pool != NONE; pool = p->pools[pool].next) {
        if (dryi_note_hindered(&p->hindered, empty_pool(p, pool, &reclaim)) != DRY_OK)
            break;
    }
}

/* Does the segment consist of holes and complete free blocks? */
static bool
is_free_segment(const struct dryi_paged *p, const struct segment *segment)
{
    for (uint32_t at = segment->first_block; at != NONE; at = p->blocks[at].next) {
        const struct block *b = &p->blocks[at];
        if (b->state != BLOCK_HOLE &&
            (b->state != BLOCK_FREE || !dryi_paged_is_complete(p, b)))
            return false;
    }
    return true;
}

/* Move the pages of a segment to the stock. Requires that the segment has no block in use. */
static enum dry_status
empty_segment(struct dryi_paged *p, const struct segment *segment)
{
    DRYI_ASSERT_SLOW(segment->live && segment->pages);
    enum dry_status status = DRY_OK;
    sweep_segment(p, segment); /* coalesce first: streams' blocks may share a page */
    for (uint32_t at = segment->first_block; at != NONE && status == DRY_OK;
         at = p->blocks[at].next) {
        const struct block *b = &p->blocks[at];
        uint64_t lo, hi;
        dryi_paged_whole_pages(p, b->addr, block_end(b), &lo, &hi);
        if (b->state == BLOCK_FREE && lo < hi)
            status = dryi_paged_unmap(p, at, lo, hi);
        if (p->blocks[at].state == BLOCK_DEAD)
            at = segment->first_block; /* the previous hole has merged `at` */
    }
    return status;
}

/* Empty each free segment of all pools that give pages before an OOM. */
static void
empty_free_segments(struct dryi_paged *p)
{
    for (uint32_t i = 0; i < p->segment_slots; i++) {
        struct segment *segment = &p->segments[i];
        if (!segment->live || !segment->pages ||
            !dryi_paged_gives_pages(p, segment->arena, true) ||
            !is_free_segment(p, segment))
            continue;
        if (dryi_note_hindered(&p->hindered, empty_segment(p, segment)) != DRY_OK)
            break;
    }
}

bool
dryi_paged_return_addresses(struct dryi_paged *p, bool oom)
{
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    bool any = false;
    if (p->capture_count > 0)
        return false;
    if (oom)
        empty_free_segments(p);
    else
        empty_idle_pools(p);
    for (uint32_t i = 0; i < p->segment_slots; i++) {
        if (!p->segments[i].live || !is_empty_segment(p, &p->segments[i]))
            continue;
        return_segment(p, i);
        any = true;
    }
    forget_pools(p);
    return any;
}

void
dryi_paged_wait_all(struct dryi_paged *p)
{
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    dryi_paged_release_held(
        p); /* frees deferred by a capture whose end could not record their events */
    /*
     * Two rounds: a pending block freed in round one is incomplete in its own stream, and needs
     * another event.
     */
    for (int round = 0; round < 2; round++) {
        uint32_t skipped = NONE;
        (void)dryi_paged_mark_all(p); /* a block that gets no event stays incomplete */
        while (dryi_paged_wait_oldest(p, &skipped))
            continue;
    }
    p->syncs++;
}

/* A gather visits all blocks and streams. It waits for one request per GATHER_SHARE of them. */
#define GATHER_SHARE 32
/* Minimum ratio of reserved bytes to the peak of active bytes. */
#define GATHER_FACTOR 1.75

bool
dryi_paged_gather(struct dryi_paged *p)
{
    uint64_t cost = (uint64_t)(p->block_count - p->dead.count) + p->stream_count;
    if (DRYI_ABLATED(gather) || p->requests - p->gathered_request < cost / GATHER_SHARE ||
        (double)stat_all(p, STAT_RESERVED_BYTES) <
            GATHER_FACTOR * (double)dryi_paged_active_peak(p))
        return false;
    p->gathered_request = p->requests;
    dryi_paged_wait_all(p);
    dryi_paged_sweep(p);
    return true;
}

enum dry_status
dryi_paged_trim(void *self, uint64_t target)
{
    struct dryi_paged *p = self;
    if (stat_all(p, STAT_RESERVED_BYTES) <= target || p->capture_count > 0)
        return DRY_OK;
    dryi_paged_wait_all(p);
    dryi_paged_sweep(p);
    enum dry_status status = DRY_OK;
    if (p->page_bytes > 0) {
        uint64_t excess = stat_all(p, STAT_RESERVED_BYTES) - target;
        uint64_t want = (excess + p->page_mask) >> p->page_shift;
        struct reclaim reclaim = {.want = want, .effort = RECLAIM_ALL, .asked = NONE};
        status = reclaim_pages(p, &reclaim);
        while (p->stock_count > 0 && stat_all(p, STAT_RESERVED_BYTES) > target)
            dryi_paged_page_release(p);
    }
    for (uint32_t i = 0; i < p->segment_slots; i++) {
        if (p->segments[i].live && is_empty_segment(p, &p->segments[i]) &&
            dryi_paged_gives_pages(p, p->segments[i].arena, false) &&
            (target == 0 || stat_all(p, STAT_RESERVED_BYTES) > target))
            return_segment(p, i);
    }
    forget_pools(p);
    return status;
}

/* Trim to 0 for the default or an idle pool. Either releases the memory of all idle pools. */
enum dry_status
dryi_paged_empty_cache(void *self, struct dryi_pool_id id)
{
    struct dryi_paged *p = self;
    uint32_t pool = dryi_paged_pool_find(p, id);
    if (pool != 0 && (pool == NONE || p->pools[pool].users > 0))
        return DRY_OK;
    return dryi_paged_trim(p, 0);
}
