/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Why a request fails, or what it would take: the place walked once, and what a new segment
 * or new pages could be had for.
 *
 * A request is served from a free block of its pool, or from new memory. New memory is what the
 * device has free and what the pool would give back first, under the limit. Block and new memory
 * are not added up. A place that grows what is there (expandable segments, pages under new
 * addresses) may therefore fit a bit more than is said.
 */

#include <drystone/pool.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/sized.h"
#include "place/paged/paged.h"
#include "place/torch/torch.h"
#include "pool/explain.h"
#include "pool/pool_limit.h"
#include "pool/pool_lock.h"
#include "pool/pool_private.h"
#include "pool/pool_stream.h"
#include "pool/pool_view.h"

#define SIZE_MAX_ASKED ((UINT64_C(1) << 60) - 512) /* 1 EiB and more are refused */
#define SMALL_MAX_TORCH DRYI_MIB
#define SMALL_PAGE_TORCH (2 * DRYI_MIB)
#define LARGE_MIN_TORCH (10 * DRYI_MIB) /* from here segments are made to measure */
#define ROUND_LARGE (2 * DRYI_MIB)

/* The sizes that the placement goes by. */
struct measures {
    const struct dry_pool *pool;
    bool is_torch, is_expandable;
    uint64_t small_max; /* the largest request of the small part */
    uint64_t new_min;   /* the least new memory comes in: a page or a segment */
    uint64_t new_small; /* what a small request takes of the device */
    uint64_t page[2];   /* small, large */
};

void
dryi_explain_pages(const struct dry_pool *pool, uint64_t page[2])
{
    struct dry_device_traits traits;
    if (pool->options.placement == DRY_PLACEMENT_TORCH) {
        page[0] = SMALL_PAGE_TORCH;
        page[1] = pool->torch_conf.large_segment_size;
        return;
    }
    pool->device.ops->get_traits(pool->device.self, &traits);
    page[0] = page[1] = traits.page_bytes > 0 ? traits.page_bytes : ROUND_LARGE;
}

static struct measures
measure_paged(const struct dry_pool *pool)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    struct dryi_paged_conf conf;
    uint64_t page[2];
    dryi_explain_pages(pool, page);
    dryi_paged_conf_init(&conf);
    if (dryi_paged_conf_parse(pool->conf, pool->conf_length, dryi_torch_conf_has, &conf,
                              NULL) != DRY_OK)
        dryi_paged_conf_init(&conf); /* create has read it, too */
    return (struct measures){.pool = pool,
                             .small_max = conf.small_max,
                             .new_min = page[1],
                             .new_small = page[0],
                             .page = {page[0], page[1]}};
}

static struct measures
measure(const struct dry_pool *pool)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    if (pool->options.placement != DRY_PLACEMENT_TORCH)
        return measure_paged(pool);
    uint64_t page[2];
    dryi_explain_pages(pool, page);
    bool is_expandable = pool->torch_conf.expandable_segments;
    return (struct measures){.pool = pool,
                             .is_torch = true,
                             .is_expandable = is_expandable,
                             .small_max = SMALL_MAX_TORCH,
                             .new_min = is_expandable ? page[1] : ROUND_LARGE,
                             .new_small = SMALL_PAGE_TORCH,
                             .page = {page[0], page[1]}};
}

static uint64_t
round_size(const struct measures *m, uint64_t size)
{
    return m->pool->place.ops->round_size(m->pool->place.self, size);
}

/* The largest request, of at most `bytes`, whose block takes no more than `bytes`. */
static uint64_t
fit_below(const struct measures *m, uint64_t bytes)
{
    uint64_t low = 0, high = bytes < SIZE_MAX_ASKED ? bytes : SIZE_MAX_ASKED;
    if (high > 0 && round_size(m, high) <= bytes)
        return high;
    while (high - low > 1) { /* low fits, or is 0; high does not */
        uint64_t middle = low + (high - low) / 2;
        if (round_size(m, middle) <= bytes)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The large part's blocks serve nothing that belongs to the small one. */
static uint64_t
fit_hole(const struct measures *m, const struct dryi_explain_sums *sums)
{
    uint64_t large = fit_below(m, sums->oversized_hole);
    if (large > 0 && dryi_torch_may_have(m->pool->place.self, sums->oversized_hole,
                                         round_size(m, large)))
        return large;
    large = fit_below(m, sums->fitting_hole[1]);
    if (large > m->small_max)
        return large;
    uint64_t small = sums->fitting_hole[0];
    return fit_below(m, small < m->small_max ? small : m->small_max);
}

/* The largest request that fits into new memory: what is to come, or to come back. */
static uint64_t
fit_new(const struct measures *m, uint64_t available)
{
    uint64_t large = fit_below(m, dryi_round_down(available, m->new_min));
    bool is_enough = !m->is_torch || m->is_expandable || large >= LARGE_MIN_TORCH ||
                     available >= m->page[1];
    if (large > m->small_max && is_enough)
        return large;
    uint64_t small = dryi_round_down(available, m->new_small);
    return fit_below(m, small < m->small_max ? small : m->small_max);
}

static uint64_t
subtract(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* --- the walk ----------------------------------------------------------------------------- */

struct explaining {
    struct dryi_explain_request request;
    struct dryi_explain_sums sums;
};

static enum dry_status
on_segment(void *self, const struct dryi_segment_info *segment,
           const struct dryi_block_info *blocks, size_t count)
{
    struct explaining *x = self;
    dryi_explain_segment(&x->sums, &x->request, segment, blocks, count);
    return DRY_OK;
}

/* The private pool of the innermost scope that covers the stream, else the default one. */
static struct dryi_pool_id
find_pool(const struct dry_pool *pool, uint64_t stream)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    for (const struct dryi_pool_scope *s = pool->scopes; s; s = s->outer) {
        bool covers = !s->filter.covers || s->filter.covers(s->filter.self, stream);
        if (!s->is_capture && covers)
            return s->id;
    }
    return (struct dryi_pool_id){0, 0};
}

/* Nothing can be known of it before the capture ends. */
static bool
is_captured(const void *self, uint64_t number)
{
    const struct dry_pool *pool = self;
    uint64_t stream = dryi_pool_stream_handle(pool, number);
    for (const struct dryi_pool_scope *s = pool->scopes; s; s = s->outer) {
        if (s->is_capture &&
            (!s->filter.covers || s->filter.covers(s->filter.self, stream)))
            return true;
    }
    return false;
}

static enum dry_status
look(struct dry_pool *pool, const struct measures *m, uint64_t size, uint64_t stream,
     struct explaining *x)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    *x = (struct explaining){
        .request = {.pool = find_pool(pool, stream),
                    .any_stream = !m->is_torch,
                    .is_large = round_size(m, size) > m->small_max,
                    .hole_limit = UINT64_MAX,
                    .oversize = UINT64_MAX,
                    .is_fixed = dryi_pool_is_capturing(pool) ? is_captured : NULL,
                    .self = pool,
                    .page = {m->page[0], m->page[1]}},
    };
    if (m->is_torch)
        x->request.oversize = pool->torch_conf.max_split_size;
    if (round_size(m, size) < x->request.oversize)
        x->request.hole_limit = x->request.oversize;
    enum dry_status status = dryi_pool_stream_number(pool, stream, &x->request.stream);
    if (status == DRY_OK)
        status = pool->place.ops->walk(pool->place.self, on_segment, x);
    return status;
}

static uint64_t
segment_size_of(const struct measures *m, uint64_t size)
{
    uint64_t rounded = round_size(m, size);
    return m->is_torch ? dryi_torch_segment_size(&m->pool->torch_conf, rounded)
                       : dryi_round_up(rounded, m->new_min);
}

static void
fill(const struct dry_pool *pool, const struct explaining *x,
     struct dry_pool_explanation *e)
{
    const struct dryi_explain_sums *sums = &x->sums;
    struct dry_stats stats;
    dryi_pool_stats(pool, &stats);
    pool->device.ops->get_info(pool->device.self, &e->free_bytes, &e->total_bytes);
    e->limit_bytes = dryi_pool_limit(pool);
    e->allocated_bytes = (uint64_t)stats.allocated_bytes.all.current;
    e->reserved_bytes = (uint64_t)stats.reserved_bytes.all.current;
    e->private_free_bytes = sums->private_free;
    e->largest_hole = sums->largest_hole;
    e->largest_hole_any = sums->largest_hole_any;
    /* Pages kept in stock lie in no segment. */
    e->releasable_bytes =
        sums->releasable + subtract(e->reserved_bytes, sums->segment_bytes);
    e->pending_bytes = sums->pending;
    e->pinned_bytes = sums->pinned;
    e->pinner_bytes = sums->pinner_bytes;
    e->pinner_count = sums->pinner_count;
    e->largest_pinner_address = sums->worst_address;
    e->largest_pinner_hole = sums->worst_hole;
}

/* The bytes that throw_on_cudamalloc_oom leaves; for a request it rejects none come back. */
static uint64_t
find_allowed(const struct measures *m, const struct dry_pool_explanation *e)
{
    if (!m->is_torch)
        return UINT64_MAX;
    uint64_t allowed = dryi_torch_allowed_bytes(&m->pool->torch_conf, e->total_bytes);
    return allowed == UINT64_MAX ? UINT64_MAX : subtract(allowed, e->reserved_bytes);
}

static uint64_t
find_available(const struct measures *m, const struct dry_pool_explanation *e,
               uint64_t releasable)
{
    uint64_t allowed = find_allowed(m, e);
    uint64_t held = subtract(e->reserved_bytes, releasable);
    uint64_t of_device = dryi_add_saturating(e->free_bytes, releasable);
    uint64_t of_limit =
        e->limit_bytes == UINT64_MAX ? UINT64_MAX : subtract(e->limit_bytes, held);
    uint64_t available = of_device < of_limit ? of_device : of_limit;
    return available < allowed ? available : allowed;
}

/* The limit is looked at before. */
static bool
is_rejected(const struct measures *m, const struct dry_pool_explanation *e)
{
    bool is_in_limit = e->limit_bytes == UINT64_MAX ||
                       e->segment_size <= subtract(e->limit_bytes, e->reserved_bytes);
    return is_in_limit && e->segment_size > find_allowed(m, e);
}

/*
 * Find the largest request that would fit now. Amid a capture nothing goes back for a captured
 * request. Paged does not tell whose a hole was, and some of it may be a captured stream's, so
 * its holes do not count then; nor does it trim anything.
 */
static void
find_would_fit(const struct measures *m, const struct dryi_explain_sums *sums,
               struct dry_pool_explanation *e)
{
    uint64_t old, releasable = e->releasable_bytes;
    if (dryi_pool_is_capturing(m->pool)) {
        old = m->is_torch ? fit_hole(m, sums) : 0;
        releasable = subtract(e->reserved_bytes, sums->segment_bytes); /* in stock */
        e->releasable_bytes = m->is_torch ? sums->releasable : 0;
    } else {
        old = fit_hole(m, sums);
    }
    uint64_t new = fit_new(m, find_available(m, e, releasable));
    e->would_fit = old > new ? old : new;
    e->is_rejected = is_rejected(m, e);
}

enum dry_status
dry_pool_explain(struct dry_pool *pool, uint64_t size, uint64_t stream,
                 struct dry_pool_explanation *explanation)
{
    if (size > SIZE_MAX_ASKED)
        return DRY_ERR_ARGUMENT;
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    struct measures m = measure(pool);
    struct explaining x;
    status = look(pool, &m, size, stream, &x);
    if (status == DRY_OK) {
        struct dry_pool_explanation e = {.size = size,
                                         .segment_size = segment_size_of(&m, size)};
        fill(pool, &x, &e);
        find_would_fit(&m, &x.sums, &e);
        status = dryi_sized_give(explanation, &e, sizeof e);
    }
    dryi_pool_leave(pool);
    return status;
}
