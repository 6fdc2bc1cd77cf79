/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking at everything: the walk, the statistics and the device's account, against the
 * flat list of what is alive.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "prop/place_state.h"

struct found {
    uint64_t addr;
    uint32_t slot;
};

struct survey {
    struct place_ops *ops;
    const struct found *sorted; /* what is alive, by address */
    size_t count, at;
    uint64_t end; /* of the last segment */
    uint64_t pending, pending_bytes, pending_requested, mapped_bytes;
    uint64_t pool_bytes[OPS_POOLS];
    struct ops_waiting still[OPS_WAITING];
    size_t still_count;
};

/* The place may take memory for a walk, which is not what was told to fail. */
static enum dry_status
walk_in_peace(struct place_ops *ops,
              enum dry_status (*visit)(void *visitor,
                                       const struct dryi_segment_info *segment,
                                       const struct dryi_block_info *blocks,
                                       size_t count),
              void *visitor)
{
    size_t left = ops->memory.left;
    ops->memory.left = SIZE_MAX;
    enum dry_status status = ops->place.ops->walk(ops->place.self, visit, visitor);
    ops->memory.left = left;
    return status;
}

static int
compare_found(const void *x, const void *y)
{
    const struct found *a = x, *b = y;
    return a->addr < b->addr ? -1 : a->addr > b->addr;
}

static size_t
sort_live(const struct live_list *list, struct found *sorted)
{
    for (uint32_t i = 0; i < list->count; i++)
        sorted[i] = (struct found){list->begin[list->dense[i]], list->dense[i]};
    qsort(sorted, list->count, sizeof *sorted, compare_found);
    return list->count;
}

static void
survey_used(struct survey *survey, const struct dryi_block_info *b)
{
    const struct place_ops *ops = survey->ops;
    const struct live_list *live = &ops->live;
    if (survey->at == survey->count)
        ops_differ(ops, "the walk has a used block at %#" PRIx64 " nobody asked for",
                   b->addr);
    uint32_t slot = survey->sorted[survey->at++].slot;
    const struct live_block *l = &live->blocks[slot];
    if (b->addr != live->begin[slot] || b->addr + b->size != live->end[slot])
        ops_differ(ops,
                   "the walk has a used block at %#" PRIx64 " of %" PRIu64
                   ", alive is %#" PRIx64 " of %" PRIu64,
                   b->addr, b->size, live->begin[slot],
                   live->end[slot] - live->begin[slot]);
    if (b->requested != l->requested || b->stream != place_stream_id(l->stream) ||
        !ops_same_pool(b->pool, l->pool))
        ops_differ(ops, "the used block at %#" PRIx64 " is not as it was asked for",
                   b->addr);
}

static void
survey_pending(struct survey *survey, const struct dryi_block_info *b)
{
    struct place_ops *ops = survey->ops;
    size_t i = 0;
    while (i < ops->waiting_count &&
           (ops->waiting[i].addr != b->addr || ops->waiting[i].size != b->size ||
            ops->waiting[i].requested != b->requested))
        i++;
    if (i == ops->waiting_count)
        ops_differ(ops,
                   "the block at %#" PRIx64 " of %" PRIu64
                   " waits, but none like it was freed and used by another stream",
                   b->addr, b->size);
    survey->still[survey->still_count++] = ops->waiting[i];
    survey->pending++;
    survey->pending_bytes += b->size;
    survey->pending_requested += b->requested;
}

static enum dry_status
survey_segment(void *self, const struct dryi_segment_info *segment,
               const struct dryi_block_info *blocks, size_t count)
{
    struct survey *survey = self;
    const struct place_ops *ops = survey->ops;
    if (segment->addr < survey->end)
        ops_differ(ops, "the walk is not by address at %#" PRIx64, segment->addr);
    uint64_t at = segment->addr;
    for (size_t i = 0; i < count; i++) {
        const struct dryi_block_info *b = &blocks[i];
        if (b->addr != at || b->size == 0 || !b->mapped)
            ops_differ(ops, "block %zu of the segment at %#" PRIx64 " leaves a gap", i,
                       segment->addr);
        if (!ops_same_pool(b->pool, segment->pool))
            ops_differ(ops, "block %#" PRIx64 " is of another pool than its segment",
                       b->addr);
        if (b->allocated && b->pending)
            ops_differ(ops, "block %#" PRIx64 " is used and waits", b->addr);
        if (b->allocated)
            survey_used(survey, b);
        else if (b->pending)
            survey_pending(survey, b);
        at += b->size;
    }
    if (at != segment->addr + segment->size)
        ops_differ(ops, "blocks do not fill the segment at %#" PRIx64, segment->addr);
    survey->mapped_bytes += segment->size;
    for (size_t i = 0; i < OPS_POOLS; i++) {
        if (ops->pools[i].users > 0 && ops_same_pool(ops->pools[i].id, segment->pool))
            survey->pool_bytes[i] += segment->size;
    }
    survey->end = at;
    return DRY_OK;
}

/*
 * While a private pool has users it keeps what it has, unless it serves others. PyTorch gives
 * its oversize segments back under max_split_size all the same.
 */
static void
survey_pools(struct place_ops *ops, const struct survey *survey)
{
    for (size_t i = 0; i < OPS_POOLS; i++) {
        struct ops_pool *pool = &ops->pools[i];
        bool keeps =
            !(pool->flags & DRYI_POOL_USE_ON_OOM) || (pool->flags & DRYI_POOL_NO_REMAP);
        if (ops->options.kind == PLACE_PAGED && pool->users > 0 && keeps &&
            survey->pool_bytes[i] < pool->mapped_bytes)
            ops_differ(ops,
                       "pool %" PRIu64 ",%" PRIu64
                       " (flags %u) with %u users has %" PRIu64 " bytes, had %" PRIu64,
                       pool->id.a, pool->id.b, pool->flags, pool->users,
                       survey->pool_bytes[i], pool->mapped_bytes);
        pool->mapped_bytes = survey->pool_bytes[i];
    }
}

static void
require(const struct place_ops *ops, const char *what, int64_t value, uint64_t wanted)
{
    if (value < 0 || (uint64_t)value != wanted)
        ops_differ(ops, "%s is %" PRId64 ", counted are %" PRIu64, what, value, wanted);
}

static void
require_sum(const struct place_ops *ops, const char *what, const struct dry_stat_array *s)
{
    if (s->all.current != s->small_pool.current + s->large_pool.current ||
        s->all.allocated != s->small_pool.allocated + s->large_pool.allocated ||
        s->all.freed != s->small_pool.freed + s->large_pool.freed)
        ops_differ(ops, "%s: all is not small and large", what);
    if (s->all.current != s->all.allocated - s->all.freed)
        ops_differ(ops, "%s: current is not allocated less freed", what);
    if (s->all.peak < s->all.current || s->small_pool.peak < s->small_pool.current ||
        s->large_pool.peak < s->large_pool.current)
        ops_differ(ops, "%s: the peak is below", what);
}

static void
survey_stats(struct place_ops *ops, const struct survey *survey,
             const struct dry_sim_account *account)
{
    struct dry_stats s;
    const struct live_list *live = &ops->live;
    ops->place.ops->get_stats(ops->place.self, &s);
    require_sum(ops, "allocation", &s.allocation);
    require_sum(ops, "active", &s.active);
    require_sum(ops, "allocated_bytes", &s.allocated_bytes);
    require_sum(ops, "active_bytes", &s.active_bytes);
    require_sum(ops, "requested_bytes", &s.requested_bytes);
    require_sum(ops, "reserved_bytes", &s.reserved_bytes);
    require_sum(ops, "segment", &s.segment);
    require(ops, "allocation.all.current", s.allocation.all.current, live->count);
    require(ops, "allocation.all.peak", s.allocation.all.peak, live->count_peak);
    require(ops, "allocation.all.allocated", s.allocation.all.allocated,
            ops->tally.allocs);
    require(ops, "allocated_bytes.all.current", s.allocated_bytes.all.current,
            live->size_bytes);
    require(ops, "allocated_bytes.all.peak", s.allocated_bytes.all.peak, live->size_peak);
    require(ops, "active.all.current", s.active.all.current,
            live->count + survey->pending);
    require(ops, "active_bytes.all.current", s.active_bytes.all.current,
            live->size_bytes + survey->pending_bytes);
    require(ops, "requested_bytes.all.current", s.requested_bytes.all.current,
            live->requested_bytes + survey->pending_requested);
    require(ops, "reserved_bytes.all.current", s.reserved_bytes.all.current,
            account->used_bytes);
    require(ops, "num_ooms", s.num_ooms + s.num_oom_rejections, ops->tally.no_space);
    if (survey->mapped_bytes > account->used_bytes ||
        (ops->options.kind == PLACE_TORCH && survey->mapped_bytes != account->used_bytes))
        ops_differ(ops, "%" PRIu64 " bytes are mapped, the device gave %" PRIu64,
                   survey->mapped_bytes, account->used_bytes);
    if (ops->told.mapped_bytes != survey->mapped_bytes)
        ops_differ(ops, "told were %" PRIu64 " mapped bytes, the walk has %" PRIu64,
                   ops->told.mapped_bytes, survey->mapped_bytes);
    if (ops->told.frees - ops->told.completed != survey->pending)
        ops_differ(ops, "told were %" PRIu64 " frees not completed, %" PRIu64 " wait",
                   ops->told.frees - ops->told.completed, survey->pending);
}

static void
survey_counters(const struct place_ops *ops, const struct dry_sim_account *account)
{
    if (!ops->place.ops->get_counters)
        return;
    struct dry_pool_counters c = DRY_INIT(struct dry_pool_counters);
    ops->place.ops->get_counters(ops->place.self, &c);
    if (ops->page_bytes && ops->options.kind == PLACE_PAGED)
        require(ops, "pages_created less released",
                (int64_t)(c.pages_created - c.pages_released), account->pages_live);
    require(ops, "events_recorded", (int64_t)c.events_recorded,
            account->calls[DRY_SIM_EVENT_RECORD]);
    if (c.reserved_peak_bytes < account->used_bytes)
        ops_differ(ops, "reserved_peak_bytes is below what is reserved");
}

void
ops_survey(struct place_ops *ops)
{
    static struct found sorted[LIVE_MAX];
    static struct survey survey;
    survey.count = sort_live(&ops->live, sorted);
    survey.ops = ops;
    survey.sorted = sorted;
    survey.at = survey.still_count = 0;
    survey.end = survey.mapped_bytes = 0;
    memset(survey.pool_bytes, 0, sizeof survey.pool_bytes);
    survey.pending = survey.pending_bytes = survey.pending_requested = 0;
    enum dry_status status = walk_in_peace(ops, survey_segment, &survey);
    if (status != DRY_OK)
        ops_differ(ops, "the walk says %s", dry_status_name(status));
    if (survey.at != survey.count)
        ops_differ(ops, "alive are %zu blocks, the walk has %zu", survey.count,
                   survey.at);
    survey_pools(ops, &survey);
    memcpy(ops->waiting, survey.still, survey.still_count * sizeof *survey.still);
    ops->waiting_count = survey.still_count;
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(ops->sim, &account);
    survey_stats(ops, &survey, &account);
    survey_counters(ops, &account);
    if (account.reserved_address_bytes > ops->tally.address_bytes)
        ops->tally.address_bytes = account.reserved_address_bytes;
    struct dry_error err = {.text = ""};
    size_t left = ops->memory.left;
    ops->memory.left = SIZE_MAX;
    if (ops->place.ops->check(ops->place.self, &err) != DRY_OK)
        ops_differ(ops, "check: %s", err.text);
    ops->memory.left = left;
    ops->tally.surveys++;
}

/* ---- pages ---- */

struct held {
    const struct place_ops *ops;
    bool for_release; /* not for a request: what a release of cached memory leaves */
    uint64_t page_bytes, next_page, pages;
};

static void
hold(struct held *held, uint64_t addr, uint64_t size)
{
    uint64_t first = addr / held->page_bytes, last = (addr + size - 1) / held->page_bytes;
    if (first < held->next_page)
        first = held->next_page;
    if (last < first)
        return;
    held->pages += last - first + 1;
    held->next_page = last + 1;
}

static const struct ops_pool *
find_pool(const struct place_ops *ops, struct dryi_pool_id id)
{
    for (size_t i = 0; i < OPS_POOLS; i++) {
        if (ops->pools[i].users > 0 && ops_same_pool(ops->pools[i].id, id))
            return &ops->pools[i];
    }
    return NULL;
}

/*
 * Its free memory may not be counted on: a private pool with users keeps its pages, for a
 * graph may replay what it recorded, unless it was made to serve others.
 */
static bool
is_pool_held(const struct held *held, struct dryi_pool_id id)
{
    const struct ops_pool *pool = find_pool(held->ops, id);
    if (!pool) /* the default one, or nobody's any more */
        return false;
    return held->for_release || (pool->flags & DRYI_POOL_NO_REMAP) ||
           !(pool->flags & DRYI_POOL_USE_ON_OOM);
}

static enum dry_status
hold_segment(void *self, const struct dryi_segment_info *segment,
             const struct dryi_block_info *blocks, size_t count)
{
    struct held *held = self;
    if (is_pool_held(held, segment->pool)) {
        hold(held, segment->addr, segment->size);
        return DRY_OK;
    }
    for (size_t i = 0; i < count; i++) {
        if (blocks[i].allocated)
            hold(held, blocks[i].addr, blocks[i].size);
    }
    return DRY_OK;
}

/* For who looks into a failure: what lies where. */
static enum dry_status
print_segment(void *self, const struct dryi_segment_info *segment,
              const struct dryi_block_info *blocks, size_t count)
{
    (void)self;
    fprintf(stderr, "segment %#" PRIx64 " of %" PRIu64 ", pool %" PRIu64 ",%" PRIu64 "\n",
            segment->addr, segment->size, segment->pool.a, segment->pool.b);
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, "  %#" PRIx64 " of %" PRIu64 " stream %" PRIu64 "%s%s\n",
                blocks[i].addr, blocks[i].size, blocks[i].stream,
                blocks[i].allocated ? " used" : "", blocks[i].pending ? " waits" : "");
    return DRY_OK;
}

void
ops_print_layout(struct place_ops *ops)
{
    enum dry_status status = walk_in_peace(ops, print_segment, NULL);
    fprintf(stderr, "%s\n", dry_status_name(status));
}

static uint64_t
count_held(struct place_ops *ops, bool for_release)
{
    struct held held = {
        .ops = ops, .for_release = for_release, .page_bytes = ops->page_bytes};
    enum dry_status status = walk_in_peace(ops, hold_segment, &held);
    if (status != DRY_OK)
        ops_differ(ops, "the walk says %s", dry_status_name(status));
    return held.pages;
}

static bool
has_private_memory(struct place_ops *ops)
{
    struct held held = {.ops = ops, .for_release = true, .page_bytes = DRYI_MIB};
    return walk_in_peace(ops, hold_segment, &held) != DRY_OK || held.pages > 0;
}

void
ops_require_full(struct place_ops *ops, uint64_t size)
{
    if (ops->capture_count > 0 || ops->device.addresses_left != UINT64_MAX)
        return; /* pages do not help where there are no addresses for them */
    uint64_t total = ops->capacity < ops->limit ? ops->capacity : ops->limit;
    if (ops->page_bytes == 0) { /* whole ranges only: nothing must be in the way */
        if (ops->live.count == 0 && !has_private_memory(ops) &&
            dryi_round_up(size, 2 * DRYI_MIB) <= total)
            ops_differ(ops, "no room for %" PRIu64 " bytes on an empty device", size);
        return;
    }
    uint64_t held = count_held(ops, false), pages = total / ops->page_bytes;
    uint64_t need = size / ops->page_bytes + (size % ops->page_bytes != 0) + 1;
    if (pages < held || pages - held < need)
        return;
    if (ops->is_traced)
        ops_print_layout(ops);
    ops_differ(ops,
               "no room for %" PRIu64 " bytes, but of %" PRIu64 " pages only %" PRIu64
               " are held: a false out-of-memory",
               size, pages, held);
}

void
ops_require_trimmed(struct place_ops *ops, uint64_t target)
{
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(ops->sim, &account);
    if (ops->page_bytes == 0 || ops->capture_count > 0 || account.used_bytes <= target)
        return;
    uint64_t held = count_held(ops, true) * ops->page_bytes;
    if (account.used_bytes <= held)
        return;
    if (ops->is_traced)
        ops_print_layout(ops);
    ops_differ(ops, "%" PRIu64 " bytes are kept after a release, %" PRIu64 " are held",
               account.used_bytes, held);
}
