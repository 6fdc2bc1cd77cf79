/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Why a request fails, and what would fit: one walk over the place, and an estimate of the new
 * memory it can get.
 *
 * A request is served from a free block of its pool, or from new memory. New memory is the device's
 * free memory plus what the pool would release first, within the limit. A block and new memory are
 * not combined. A place that extends blocks (expandable segments, remapped pages) may therefore fit
 * slightly more than reported.
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

/* Requests of 1 EiB or more are refused. */
#define SIZE_MAX_ASKED ((UINT64_C(1) << 60) - 512)
#define SMALL_MAX_TORCH DRYI_MIB
#define SMALL_PAGE_TORCH (2 * DRYI_MIB)
/* Larger requests get a segment of their own size. */
#define LARGE_MIN_TORCH (10 * DRYI_MIB)
#define ROUND_LARGE (2 * DRYI_MIB)

/* The sizes that decide where the placement serves a request. */
struct measures {
    const struct dry_pool *pool;
    bool is_torch, is_expandable;
    uint64_t small_max; /* largest small request, bytes */
    uint64_t new_min;   /* granularity of new memory: a page or a segment */
    uint64_t new_small; /* new memory for a small request, bytes */
    uint64_t page[2];   /* [0] small, [1] large */
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
        dryi_paged_conf_init(&conf); /* cannot fail: create parsed the same text */
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

/* Return the largest request whose block takes at most `bytes`. */
static uint64_t
fit_below(const struct measures *m, uint64_t bytes)
{
    uint64_t low = 0, high = bytes < SIZE_MAX_ASKED ? bytes : SIZE_MAX_ASKED;
    if (high > 0 && round_size(m, high) <= bytes)
        return high;
    while (high - low > 1) { /* invariant: low fits or is 0; high does not fit */
        uint64_t middle = low + (high - low) / 2;
        if (round_size(m, middle) <= bytes)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Return the largest request that a free block serves. Large blocks never serve small requests. */
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

/* Return the largest request that new memory serves: free on the device, or released. */
static uint64_t
fit_new(const struct measures *m, uint64_t available)
{
    uint64_t large = fit_below(m, dryi_round_down(available, m->new_min));
    bool fits_large = !m->is_torch || m->is_expandable || large >= LARGE_MIN_TORCH ||
                      available >= m->page[1];
    if (large > m->small_max && fits_large)
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

/* Return the private pool of the innermost scope that covers the stream; else the default pool. */
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

/* Is the stream being captured? Then its pending frees cannot complete before the capture ends. */
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
sum_up(struct dry_pool *pool, const struct measures *m, uint64_t size, uint64_t stream,
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
get_segment_size(const struct measures *m, uint64_t size)
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
    /* Pages in stock belong to no segment. */
    e->releasable_bytes =
        sums->releasable + subtract(e->reserved_bytes, sums->segment_bytes);
    e->pending_bytes = sums->pending;
    e->pinned_bytes = sums->pinned;
    e->pinner_bytes = sums->pinner_bytes;
    e->pinner_count = sums->pinner_count;
    e->largest_pinner_address = sums->worst_address;
    e->largest_pinner_hole = sums->worst_hole;
}

/* Return the bytes that throw_on_cudamalloc_oom permits. A rejected request releases none. */
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

/* Would throw_on_cudamalloc_oom reject the request? PyTorch checks the limit before. */
static bool
is_rejected(const struct measures *m, const struct dry_pool_explanation *e)
{
    bool is_in_limit = e->limit_bytes == UINT64_MAX ||
                       e->segment_size <= subtract(e->limit_bytes, e->reserved_bytes);
    return is_in_limit && e->segment_size > find_allowed(m, e);
}

/*
 * Find the largest request that would fit now. During a capture no memory is released for a
 * captured request. With paged, holes do not count then, because it cannot tell which of them
 * belong to a captured stream; and paged releases nothing.
 */
static void
find_would_fit(const struct measures *m, const struct dryi_explain_sums *sums,
               struct dry_pool_explanation *e)
{
    uint64_t old, releasable = e->releasable_bytes;
    if (dryi_pool_is_capturing(m->pool)) {
        old = m->is_torch ? fit_hole(m, sums) : 0;
        /* Pages in stock. */
        releasable = subtract(e->reserved_bytes, sums->segment_bytes);
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
    status = sum_up(pool, &m, size, stream, &x);
    if (status == DRY_OK) {
        struct dry_pool_explanation e = {.size = size,
                                         .segment_size = get_segment_size(&m, size)};
        fill(pool, &x, &e);
        find_would_fit(&m, &x.sums, &e);
        status = dryi_sized_give(explanation, &e, sizeof e);
    }
    dryi_pool_leave(pool);
    return status;
}
