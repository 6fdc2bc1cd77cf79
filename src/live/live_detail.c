/* SPDX-License-Identifier: Apache-2.0 */

/* Sum up a pool's segments by lane (stream and private pool). Whole free pages count as releasable.
   The rest of a free range is stranded, as is all free memory of a private pool. */
#include "live/live_detail.h"

#include <string.h>

#include "base/bits.h"
#include "pool/pool_limit.h"
#include "pool/pool_lock.h"
#include "pool/pool_view.h"

static bool
is_of(const struct dry_live_lane *lane, const struct dry_pool_segment *s)
{
    return lane->stream == s->stream && lane->pool.a == s->pool.a &&
           lane->pool.b == s->pool.b;
}

/* Return the segment's lane; add it if it is new. NULL: all DRY_LIVE_LANES_MAX lanes are taken. */
static struct dry_live_lane *
find_lane(struct dry_live_detail *d, const struct dry_pool_segment *s)
{
    for (uint32_t i = 0; i < d->lane_count; i++)
        if (is_of(&d->lanes[i], s))
            return &d->lanes[i];
    if (d->lane_count == DRY_LIVE_LANES_MAX)
        return NULL;
    struct dry_live_lane *lane = &d->lanes[d->lane_count++];
    *lane = (struct dry_live_lane){.stream = s->stream, .pool = s->pool};
    return lane;
}

/* Return the bytes that could be given back to the device: the whole pages between `from` and `to`,
   offsets in the segment. 0 for a private pool. */
static uint64_t
whole_pages(const struct dry_pool_segment *s, uint64_t from, uint64_t to)
{
    if (s->pool.a != 0 || s->pool.b != 0)
        return 0;
    if (!s->is_expandable)
        return from == 0 && to == s->size ? s->size : 0;
    uint64_t begin = dryi_round_up(from, s->page_bytes);
    uint64_t end = dryi_round_down(to, s->page_bytes);
    return end > begin ? end - begin : 0;
}

static void
take_free(struct dry_live_lane *lane, const struct dry_pool_segment *s, uint64_t from,
          uint64_t to)
{
    uint64_t whole = whole_pages(s, from, to);
    lane->releasable += whole;
    lane->stranded += to - from - whole;
    if (to - from > lane->largest_hole)
        lane->largest_hole = to - from;
}

static void
add(struct dry_live_lane *to, const struct dry_live_lane *more)
{
    to->reserved += more->reserved;
    to->allocated += more->allocated;
    to->pending += more->pending;
    to->releasable += more->releasable;
    to->stranded += more->stranded;
    if (more->largest_hole > to->largest_hole)
        to->largest_hole = more->largest_hole;
}

static void
sum_segment(struct dry_live_lane *lane, const struct dry_pool_segment *s,
            const struct dry_pool_part *parts, size_t count)
{
    lane->reserved = s->size;
    for (size_t i = 0; i < count; i++) {
        uint64_t from = parts[i].address - s->address, to = from + parts[i].size;
        if (parts[i].is_active) {
            lane->allocated += parts[i].size;
        } else if (parts[i].is_pending) {
            lane->pending += parts[i].size;
        } else {
            for (; i + 1 < count && !parts[i + 1].is_active && !parts[i + 1].is_pending;
                 i++)
                to += parts[i + 1].size;
            take_free(lane, s, from, to);
        }
    }
}

struct walk {
    struct dry_live_detail *detail;
    struct dry_live_lane all;
    bool has_lost; /* at least one lane did not fit into `detail` */
};

static enum dry_status
visit(void *self, const struct dry_pool_segment *s, const struct dry_pool_part *parts,
      size_t count)
{
    struct walk *w = self;
    struct dry_live_lane of_segment = {0};
    sum_segment(&of_segment, s, parts, count);
    add(&w->all, &of_segment);
    struct dry_live_lane *lane = find_lane(w->detail, s);
    if (lane)
        add(lane, &of_segment);
    else
        w->has_lost = true;
    return DRY_OK;
}

/* Insertion sort by reserved bytes, largest first: at most DRY_LIVE_LANES_MAX lanes. */
static void
sort_lanes(struct dry_live_detail *d)
{
    for (uint32_t i = 1; i < d->lane_count; i++) {
        struct dry_live_lane lane = d->lanes[i];
        uint32_t at = i;
        for (; at > 0 && d->lanes[at - 1].reserved < lane.reserved; at--)
            d->lanes[at] = d->lanes[at - 1];
        d->lanes[at] = lane;
    }
}

static void
fill(const struct walk *w, const struct dry_stats *stats, struct dry_live_detail *d)
{
    int64_t reserved = stats->reserved_bytes.all.current;
    d->reserved = reserved > 0 ? (uint64_t)reserved : 0;
    d->stock = d->reserved > w->all.reserved ? d->reserved - w->all.reserved : 0;
    d->pending = w->all.pending;
    d->releasable = w->all.releasable + d->stock;
    d->stranded = w->all.stranded;
    d->largest_hole = w->all.largest_hole;
    d->more_lanes = w->has_lost;
}

/* Read statistics and limit. Requires the pool's lock. */
static void
take_sample(const struct dry_pool *pool, struct dryi_live_sample *sample)
{
    uint64_t limit = dryi_pool_limit(pool);
    dryi_pool_stats(pool, &sample->stats);
    sample->limit = limit < pool->total_bytes ? limit : pool->total_bytes;
}

enum dry_status
dryi_live_sample(struct dry_pool *pool, struct dryi_live_sample *sample)
{
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    take_sample(pool, sample);
    dryi_pool_leave(pool);
    return DRY_OK;
}

enum dry_status
dryi_live_walk(struct dry_pool *pool, struct dryi_live_sample *sample,
               struct dry_live_detail *detail)
{
    memset(detail, 0, offsetof(struct dry_live_detail, lanes));
    struct walk w = {.detail = detail};
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    take_sample(pool, sample);
    status = dryi_pool_walk(pool, visit, &w);
    dryi_pool_leave(pool);
    if (status != DRY_OK)
        return status;
    sort_lanes(detail);
    fill(&w, &sample->stats, detail);
    return DRY_OK;
}
