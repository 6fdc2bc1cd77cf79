/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Adoption of a layout, in two steps: a packing job, then its use.
 *
 * The job is created when a period without a layout begins, from a copy of the period and of the
 * segment's occupied ranges. Packing reads no state of the place. Without `wants_job` the job runs
 * at once. Otherwise another thread runs it, and the job returns at the begin of a later period.
 *
 * The segment may have new blocks by then. If more of them collide with the packing than a layout
 * tolerates, the packing is discarded and another job is created.
 *
 * Waits and page moves happen only once a packing is ready.
 */

#include "place/paged/paged_adopt.h"

#include "base/assert.h"
#include "base/memory.h"
#include "place/paged/paged_reclaim.h"
#include "place/paged/record/paged_block.h"
#include "place/paged/record/paged_event.h"
#include "place/paged/record/paged_index.h"
#include "place/paged/record/paged_page.h"
#include "place/paged/record/paged_park.h"
#include "place/paged/record/paged_stats.h"

/* --- what it is made around --------------------------------------------------------------- */

/* Return the default large arena's segment with the most free and hole bytes; NONE: none. */
static uint32_t
choose_segment(const struct dryi_paged *p)
{
    uint32_t best = NONE;
    uint64_t best_free_bytes = 0;
    for (uint32_t i = p->arenas[0].segments; i != NONE; i = p->segments[i].next) {
        uint64_t free_bytes = 0;
        for (uint32_t at = p->segments[i].first_block; at != NONE;
             at = p->blocks[at].next) {
            if (p->blocks[at].state == BLOCK_FREE || p->blocks[at].state == BLOCK_HOLE)
                free_bytes += p->blocks[at].size;
        }
        if (free_bytes > best_free_bytes) {
            best = i;
            best_free_bytes = free_bytes;
        }
    }
    return best;
}

static bool
is_taken(const struct block *b)
{
    return b->state != BLOCK_FREE && b->state != BLOCK_HOLE;
}

static bool
is_passing(const struct dryi_paged *p, const struct block *b)
{
    return b->state == BLOCK_USED && b->has_ticket &&
           dryi_forecast_is_passing(p->forecast, b->bin_prev);
}

/*
 * Count the runs of occupied blocks in the segment. A run ends where is_passing changes. Writes
 * them to `obstacles` unless NULL.
 */
static size_t
list_obstacles(const struct dryi_paged *p, const struct segment *segment,
               struct dryi_obstacle *obstacles)
{
    size_t count = 0;
    struct dryi_obstacle o = {0};
    for (uint32_t at = segment->first_block; at != NONE; at = p->blocks[at].next) {
        const struct block *b = &p->blocks[at];
        uint64_t offset = b->addr - segment->addr;
        if (!is_taken(b))
            continue;
        bool passes = is_passing(p, b);
        if (count == 0 || o.offset + o.size != offset || o.is_passing != passes) {
            o = (struct dryi_obstacle){offset, 0, passes};
            count++;
        }
        o.size += b->size;
        if (obstacles)
            obstacles[count - 1] = o;
    }
    return count;
}

/* Most requests of a period plus obstacles: a larger packing would take too long. */
#define PACKED_MAX 8192
#define REST_FIRST 1024 /* requests between two layouts, doubled after a useless one */

/* Postpone the next layout, which costs waits and moves; for longer if the last was useless. */
static void
rest(struct dryi_paged *p)
{
    uint64_t taken = p->counters.hints_taken - p->layout_taken;
    bool is_useful = p->counters.plans_made > 0 && taken > 2 * (uint64_t)p->layout.period;
    p->layout_rest = is_useful || p->layout_rest == 0 ? REST_FIRST : 2 * p->layout_rest;
    p->layout_earliest = p->requests + p->layout_rest;
    p->layout_taken = p->counters.hints_taken;
}

/* --- the job ------------------------------------------------------------------------------ */

/*
 * List the obstacles of a segment in an array of *count + 1, so it is never empty. NULL: out of
 * memory. The caller frees it with drop_obstacles().
 */
static struct dryi_obstacle *
make_obstacles(struct dryi_paged *p, const struct segment *segment, size_t *count)
{
    *count = list_obstacles(p, segment, NULL);
    struct dryi_obstacle *obstacles =
        dryi_memory_zalloc(&p->memory, *count + 1, sizeof *obstacles);
    if (obstacles)
        list_obstacles(p, segment, obstacles);
    return obstacles;
}

static void
drop_obstacles(struct dryi_paged *p, struct dryi_obstacle *obstacles, size_t count)
{
    dryi_memory_free(&p->memory, obstacles, count + 1, sizeof *obstacles);
}

static enum dry_status
create_job(struct dryi_paged *p, uint32_t segment)
{
    DRYI_ASSERT_SLOW(p->packing.state == JOB_NONE && !p->packing.job);
    size_t count;
    struct dryi_obstacle *obstacles = make_obstacles(p, &p->segments[segment], &count);
    enum dry_status status = obstacles ? DRY_OK : DRY_ERR_MEMORY;
    if (dryi_forecast_get_period(p->forecast) + count > PACKED_MAX)
        status = DRY_ERR_UNSUPPORTED;
    struct dryi_packing_request request = {obstacles, count, p->page_bytes,
                                           p->conf.reuse_waiting};
    if (status == DRY_OK)
        status = dryi_packing_job_create(p->forecast, &request, &p->packing.job);
    drop_obstacles(p, obstacles, count);
    if (status != DRY_OK)
        return status;
    p->packing.state = JOB_WAITS;
    p->packing.segment = segment;
    p->packing.ordinal = p->segments[segment].ordinal;
    return DRY_OK;
}

static void
end_job(struct dryi_paged *p)
{
    dryi_packing_job_destroy(p->packing.job);
    p->packing.job = NULL;
    p->packing.state = JOB_NONE;
}

void
dryi_paged_packing_finish(struct dryi_paged *p)
{
    if (p->packing.state != JOB_OUT)
        end_job(p);
}

struct dryi_packing_job *
dryi_paged_take_job(void *self)
{
    struct dryi_paged *p = self;
    if (p->packing.state != JOB_WAITS)
        return NULL;
    p->packing.state = JOB_OUT;
    return p->packing.job;
}

void
dryi_paged_return_job(void *self, struct dryi_packing_job *job)
{
    struct dryi_paged *p = self;
    DRYI_ASSERT(p->packing.state == JOB_OUT && p->packing.job == job);
    (void)job;
    p->packing.state = JOB_IS_BACK;
}

/* --- its pages ---------------------------------------------------------------------------- */

/* Per page of the layout's segment: the number of packed blocks that touch it. */
struct needs {
    int32_t *count; /* page_count + 1 entries */
    unsigned page_shift;
    /* Pages used by the layout or by blocks that outlive the period. */
    uint64_t used_pages;
};

/* Count a packed block, as differences that with_needs() sums. */
static void
note_need(void *self, uint64_t offset, uint64_t size)
{
    struct needs *needs = self;
    needs->count[offset >> needs->page_shift]++;
    needs->count[((offset + size - 1) >> needs->page_shift) + 1]--;
}

static bool
is_needed(const struct dryi_paged *p, const struct needs *needs, uint32_t segment,
          uint64_t addr)
{
    return segment == p->layout.segment &&
           needs->count[dryi_paged_layout_find_page(p, addr)] > 0;
}

/* Find the last run of whole pages in a block that the layout does not need. False: none. */
static bool
find_surplus(const struct dryi_paged *p, const struct needs *needs, const struct block *b,
             uint64_t *lo, uint64_t *hi)
{
    uint64_t first, end;
    dryi_paged_whole_pages(p, b->addr, block_end(b), &first, &end);
    while (end > first && is_needed(p, needs, b->segment, end - p->page_bytes))
        end -= p->page_bytes;
    *lo = *hi = end;
    while (*lo > first && !is_needed(p, needs, b->segment, *lo - p->page_bytes))
        *lo -= p->page_bytes;
    return *hi > *lo;
}

static uint32_t
last_block(const struct dryi_paged *p, const struct segment *segment)
{
    uint32_t at = segment->first_block;
    while (p->blocks[at].next != NONE)
        at = p->blocks[at].next;
    return at;
}

static bool
is_spare(const struct dryi_paged *p, const struct block *b)
{
    return b->state == BLOCK_FREE && dryi_paged_is_complete(p, b);
}

/*
 * Unmap surplus pages of a segment until the stock holds `want`. Walks backwards: an unmapped hole
 * merges with what follows, so the previous block stays valid.
 */
static enum dry_status
unmap_surplus(struct dryi_paged *p, const struct needs *needs, uint32_t segment,
              uint64_t want)
{
    uint32_t prev = NONE;
    for (uint32_t at = last_block(p, &p->segments[segment]); at != NONE; at = prev) {
        prev = p->blocks[at].prev;
        uint64_t lo, hi;
        bool is_whole = !is_spare(p, &p->blocks[at]);
        while (!is_whole && p->stock_count < want &&
               find_surplus(p, needs, &p->blocks[at], &lo, &hi)) {
            uint64_t most = (want - p->stock_count) << p->page_shift;
            lo = hi - lo > most ? hi - most : lo;
            is_whole = lo == p->blocks[at].addr; /* all of the block was unmapped */
            enum dry_status status = dryi_paged_unmap(p, at, lo, hi);
            if (status != DRY_OK)
                return status;
        }
    }
    return DRY_OK;
}

/* Count the surplus pages mapped at free blocks of the large arena. */
static uint64_t
count_surplus(const struct dryi_paged *p, const struct needs *needs)
{
    uint64_t count = 0;
    for (uint32_t i = p->arenas[0].segments; i != NONE; i = p->segments[i].next) {
        for (uint32_t at = p->segments[i].first_block; at != NONE;
             at = p->blocks[at].next) {
            struct block b = p->blocks[at];
            uint64_t lo, hi;
            while (is_spare(p, &b) && find_surplus(p, needs, &b, &lo, &hi)) {
                count += (hi - lo) >> p->page_shift;
                if (lo == b.addr)
                    break;
                b.size = lo - b.addr;
            }
        }
    }
    return count;
}

static uint64_t
count_missing(const struct dryi_paged *p, const struct needs *needs)
{
    const struct segment *segment = &p->segments[p->layout.segment];
    uint64_t count = 0;
    for (size_t i = 0; i < segment->page_count; i++)
        count += needs->count[i] > 0 && segment->pages[i] == 0;
    return count;
}

static enum dry_status
map_missing(struct dryi_paged *p, const struct needs *needs)
{
    const struct segment *segment = &p->segments[p->layout.segment];
    for (size_t i = 0; i < segment->page_count;) {
        size_t first = i;
        while (i < segment->page_count && needs->count[i] > 0 && segment->pages[i] == 0)
            i++;
        if (i == first) {
            i++;
            continue;
        }
        uint64_t lo = segment->addr + ((uint64_t)first << p->page_shift);
        uint64_t hi = segment->addr + ((uint64_t)i << p->page_shift);
        uint32_t block = dryi_paged_layout_block_at(
            p, lo); /* a hole begins at a page boundary, so it is the first block there */
        if (block == NONE || !dryi_paged_block_reserve(p, 2))
            return DRY_ERR_MEMORY;
        DRYI_ASSERT(p->blocks[block].state == BLOCK_HOLE);
        enum dry_status status =
            dryi_paged_map(p, block, lo, hi, p->arenas[0].shared, &block);
        if (status != DRY_OK)
            return status;
    }
    return DRY_OK;
}

/* Unmap surplus pages of the large arena into the stock, until the stock holds `want`. */
static enum dry_status
gather_surplus(struct dryi_paged *p, const struct needs *needs, uint64_t want)
{
    enum dry_status status = DRY_OK;
    uint32_t segment = p->arenas[0].segments;
    for (; segment != NONE && status == DRY_OK; segment = p->segments[segment].next)
        status = unmap_surplus(p, needs, segment, want);
    return status;
}

/* Return the bytes of passing blocks in the layout's segment: in use now, freed within a period. */
static uint64_t
count_passing(const struct dryi_paged *p)
{
    uint64_t bytes = 0;
    uint32_t at = p->segments[p->layout.segment].first_block;
    for (; at != NONE; at = p->blocks[at].next)
        bytes += is_passing(p, &p->blocks[at]) ? p->blocks[at].size : 0;
    return bytes;
}

#define WORTH_SHARE 128 /* Saving 1/128 of the pages justifies the moves of a layout */

/* Is a layout worth its page moves? Either it saves pages, or the program already moved as many. */
static bool
is_worth(const struct dryi_paged *p, const struct needs *needs, uint64_t missing)
{
    const struct segment *segment = &p->segments[p->layout.segment];
    uint64_t pages = p->stock_count;
    for (size_t i = 0; i < segment->page_count; i++)
        pages += segment->pages[i] != 0;
    return missing <= p->counters.pages_remapped ||
           needs->used_pages + pages / WORTH_SHARE <= pages;
}

/* Layouts that reset the rent: loops inside a period may yield one or two layouts first. */
#define LAYOUTS_FREE 4

/*
 * Release the layout's surplus pages beyond the peak and the bought pages. The first layouts reset
 * the rent, because a layout ends the moves. A program that needs further layouts would lose its
 * bought pages and buy them again, so it keeps them.
 */
static enum dry_status
release_surplus(struct dryi_paged *p, const struct needs *needs)
{
    uint64_t peak = (dryi_paged_active_peak(p) + p->page_mask) >> p->page_shift;
    p->rent = p->counters.plans_made > LAYOUTS_FREE ? p->rent : 0;
    uint64_t kept = peak + dryi_paged_bought(p);
    uint64_t beyond = p->page_count > kept ? p->page_count - kept : 0;
    dryi_paged_wait_all(p);
    dryi_paged_sweep(p);
    p->layout.is_settled = true;
    enum dry_status status = gather_surplus(p, needs, beyond);
    for (; beyond > 0 && p->stock_count > 0; beyond--) {
        dryi_paged_page_release(p);
        p->rent++;
    }
    return status;
}

/*
 * Map the pages that the layout needs, moved from where the layout does not need them. New pages
 * may replace those still used by passing blocks, because the period frees as many.
 */
static enum dry_status
bring_missing(struct dryi_paged *p, const struct needs *needs)
{
    uint64_t missing = count_missing(p, needs);
    uint64_t passing = count_passing(p) >> p->page_shift;
    uint64_t live = stat_all(p, STAT_ALLOCATED_BYTES) >> p->page_shift;
    if (missing > p->page_count - live + passing || !is_worth(p, needs, missing))
        return DRY_ERR_NO_SPACE; /* Waiting would not help */
    dryi_paged_wait_all(p);
    dryi_paged_sweep(p);
    uint64_t spare = count_surplus(p, needs) + p->stock_count;
    if (missing > spare + passing)
        return DRY_ERR_NO_SPACE;
    enum dry_status status = DRY_OK;
    for (; missing > spare && status == DRY_OK; spare++)
        status = dryi_paged_page_create(p);
    if (status == DRY_OK)
        status = gather_surplus(p, needs, missing);
    if (status == DRY_OK)
        status = map_missing(p, needs);
    if (status != DRY_OK || passing > 0)
        /* Passing blocks still use pages that become surplus; see dryi_paged_layout_settle(). */
        return status;
    /* A failure leaves pages mapped, which still serve requests. */
    (void)release_surplus(p, needs);
    return DRY_OK;
}

/* Call `call` with the page counts of the layout. False: out of memory, or the call failed. */
static bool
with_needs(struct dryi_paged *p, uint64_t used_pages,
           enum dry_status (*call)(struct dryi_paged *p, const struct needs *needs))
{
    DRYI_ASSERT_SLOW(p->layout.segment != NONE);
    size_t count = p->layout.page_count + 1;
    struct needs needs = {.page_shift = p->page_shift, .used_pages = used_pages};
    needs.count = dryi_memory_zalloc(&p->memory, count, sizeof *needs.count);
    if (!needs.count)
        return false;
    dryi_forecast_walk(p->forecast, note_need, &needs);
    for (size_t i = 1; i < count; i++)
        needs.count[i] += needs.count[i - 1];
    enum dry_status status = call(p, &needs);
    dryi_memory_free(&p->memory, needs.count, count, sizeof *needs.count);
    return status == DRY_OK;
}

void
dryi_paged_layout_settle(struct dryi_paged *p)
{
    DRYI_ASSERT_SLOW(p->forecast && !p->layout.is_settled);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    /* Set first: an attempt without memory is not repeated. */
    p->layout.is_settled = true;
    if (p->layout.segment != NONE)
        /* A failure leaves pages mapped, which still serve requests. */
        (void)with_needs(p, 0, release_surplus);
}

/* --- the layout ----------------------------------------------------------------------------- */

/* Does the packing's segment still exist, with few enough new obstacles in the packing's ranges? */
static bool
is_valid(struct dryi_paged *p)
{
    const struct packing *packing = &p->packing;
    const struct segment *segment = &p->segments[packing->segment];
    if (!segment->live || segment->ordinal != packing->ordinal)
        return false;
    size_t count;
    struct dryi_obstacle *obstacles = make_obstacles(p, segment, &count);
    if (!obstacles)
        return false;
    size_t met = dryi_packing_job_count_met(packing->job, obstacles, count);
    drop_obstacles(p, obstacles, count);
    return met <= dryi_forecast_drift(dryi_forecast_get_period(p->forecast));
}

/*
 * Begin a layout without steps in this segment, unless the last layout is already there. False: out
 * of memory.
 */
static bool
begin_layout(struct dryi_paged *p, uint32_t segment)
{
    if (p->layout.segment == segment)
        return true;
    dryi_paged_layout_finish(p);
    return dryi_paged_layout_index(p, segment);
}

/* Turn the packing into the layout. False: the place has no layout then, and is otherwise valid. */
static bool
adopt(struct dryi_paged *p)
{
    DRYI_ASSERT_SLOW(p->packing.state == JOB_IS_BACK);
    uint32_t segment = p->packing.segment;
    struct dryi_packing_info info;
    if (!begin_layout(p, segment) ||
        dryi_packing_job_take(p->packing.job, p->forecast, &info) != DRY_OK ||
        info.height > p->segments[segment].size)
        return false;
    rest(p);
    p->layout.period = info.period;
    p->layout.streams = info.streams;
    p->layout.handed = info.handed;
    p->layout.is_settled = false;
    return dryi_paged_parking_begin(p, info.period) &&
           with_needs(p, info.used_pages, bring_missing);
}

/* Create a job; run it at once if the caller takes no jobs. False: this period gets no layout. */
static bool
request_job(struct dryi_paged *p)
{
    uint32_t segment = choose_segment(p);
    if (segment == NONE || create_job(p, segment) != DRY_OK)
        return false;
    if (p->wants_job.call) {
        p->wants_job.call(p->wants_job.self);
        return true;
    }
    dryi_packing_job_run(p->packing.job, &p->memory);
    p->packing.state = JOB_IS_BACK;
    return true;
}

void
dryi_paged_layout_make(struct dryi_paged *p)
{
    DRYI_ASSERT_SLOW(p->forecast && p->capture_count == 0);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    struct packing *packing = &p->packing;
    if (p->requests < p->layout_earliest || packing->state == JOB_OUT)
        return; /* the next begin of the period tries again */
    /* Parked blocks would otherwise become obstacles of the job. */
    dryi_paged_unpark_all(p);
    if (packing->state != JOB_NONE && !dryi_packing_job_is_of(packing->job, p->forecast))
        end_job(p);
    if (packing->state == JOB_IS_BACK && !is_valid(p)) {
        end_job(p);
        rest(p);
        return;
    }
    bool is_made = packing->state != JOB_NONE || request_job(p);
    if (is_made && packing->state == JOB_WAITS)
        return;
    is_made = is_made && adopt(p);
    end_job(p);
    if (is_made)
        p->counters.plans_made++;
    else
        dryi_forecast_pass_over(p->forecast);
}
