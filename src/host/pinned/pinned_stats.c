/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reports the statistics: those of torch.cuda.host_memory_stats(), and further ones.
 * pinned_count.c updates the counters; sums over blocks are computed by a walk on
 * request.
 */

#include <stddef.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/sized.h"
#include "host/pinned/pinned_arena.h"
#include "host/pinned/pinned_grow.h"
#include "host/pinned/pinned_heap.h"
#include "host/pinned/pinned_state.h"
#include "host/pinned/pinned_thread_cache.h"

/* --- --- statistics --- --------------------------------------------------------------------- */

static int64_t
thread_cache_bytes(const struct dry_pinned *p)
{
    int64_t sum = 0;
    for (uint32_t i = 0; p->thread_caches && i < DRYI_PINNED_THREAD_CACHES; i++)
        sum += p->thread_caches[i].kept_bytes;
    return sum;
}

static int64_t
bytes_of_uses(const struct dry_pinned *p, uint32_t first)
{
    int64_t sum = 0;
    for (uint32_t u = first; u != DRYI_PINNED_NONE; u = p->streams.uses[u].next) {
        uint32_t block = p->streams.uses[u].block;
        sum += (int64_t)dryi_pinned_block_bytes(dryi_pinned_arena_get(p, block),
                                                dryi_pinned_cell(p, block));
    }
    return sum;
}

static void
add_waiting(const struct dry_pinned *p, struct dry_pinned_stats *stats)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    for (uint32_t i = 0; i < p->streams.count; i++) {
        const struct dryi_pinned_stream *s = &p->streams.list[i];
        if (s->use_count == 0)
            continue;
        if (s->is_graph)
            stats->held_bytes += bytes_of_uses(p, s->open_first);
        for (uint32_t u = s->first_batch; s->is_lost && u != DRYI_PINNED_NONE;
             u = p->streams.uses[u].next_batch)
            stats->lost_bytes += bytes_of_uses(p, u);
    }
}

static uint64_t
largest_free(const struct dry_pinned *p)
{
    uint64_t largest = 0;
    for (uint32_t i = 0; i < DRYI_PINNED_HEAP_COUNT; i++) {
        uint64_t bytes = dryi_pinned_heap_largest(p, i);
        if (bytes > largest)
            largest = bytes;
    }
    return largest;
}

enum dry_status
dry_pinned_get_stats(struct dry_pinned *pinned, struct dry_pinned_stats *stats)
{
    struct dry_pinned *p = pinned;
    struct dry_pinned_stats s = {0};
    if (!dryi_fork_mark_is_child(&p->fork)) {
        dryi_pinned_lock_all(p);
        dryi_pinned_adopt(p);
        s = p->stats;
        s.thread_cache_bytes = thread_cache_bytes(p);
        s.idle_bytes = (int64_t)p->idle_bytes;
        s.largest_free_bytes = (int64_t)largest_free(p);
        add_waiting(p, &s);
        dryi_pinned_unlock_all(p);
    }
    return dryi_sized_give(stats, &s, sizeof s);
}

void
dry_pinned_reset_peaks(struct dry_pinned *pinned)
{
    struct dry_pinned_stats *s = &pinned->stats;
    struct dry_stat *all[] = {&s->allocations, &s->allocated_bytes, &s->active_requests,
                              &s->active_bytes, &s->requested_bytes};
    if (dryi_fork_mark_is_child(&pinned->fork))
        return;
    dryi_pinned_lock_all(pinned);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        all[i]->peak = all[i]->current;
    s->host_alloc_time.max = s->host_alloc_time.min = 0;
    s->host_free_time.max = s->host_free_time.min = 0;
    dryi_pinned_unlock_all(pinned);
}

void
dry_pinned_reset_accumulated(struct dry_pinned *pinned)
{
    struct dry_pinned_stats *s = &pinned->stats;
    struct dry_stat *all[] = {&s->allocations, &s->allocated_bytes, &s->active_requests,
                              &s->active_bytes, &s->requested_bytes};
    if (dryi_fork_mark_is_child(&pinned->fork))
        return;
    dryi_pinned_lock_all(pinned);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        all[i]->allocated = all[i]->freed = 0;
    s->num_host_alloc = s->num_host_free = s->num_events = s->num_event_failures = 0;
    s->host_alloc_time = s->host_free_time = (struct dry_pinned_time){0};
    dryi_pinned_unlock_all(pinned);
}

/* --- keys ----------------------------------------------------------------------------------- */

enum key_kind { KEY_STAT, KEY_TIME, KEY_NUMBER };

static const struct key {
    const char *name;
    enum key_kind kind;
    size_t offset;
} keys[] = {
    {"active_bytes", KEY_STAT, offsetof(struct dry_pinned_stats, active_bytes)},
    {"active_requests", KEY_STAT, offsetof(struct dry_pinned_stats, active_requests)},
    {"allocated_bytes", KEY_STAT, offsetof(struct dry_pinned_stats, allocated_bytes)},
    {"allocations", KEY_STAT, offsetof(struct dry_pinned_stats, allocations)},
    {"held_bytes", KEY_NUMBER, offsetof(struct dry_pinned_stats, held_bytes)},
    {"host_alloc_time", KEY_TIME, offsetof(struct dry_pinned_stats, host_alloc_time)},
    {"host_free_time", KEY_TIME, offsetof(struct dry_pinned_stats, host_free_time)},
    {"idle_bytes", KEY_NUMBER, offsetof(struct dry_pinned_stats, idle_bytes)},
    {"largest_free_bytes", KEY_NUMBER,
     offsetof(struct dry_pinned_stats, largest_free_bytes)},
    {"lost_bytes", KEY_NUMBER, offsetof(struct dry_pinned_stats, lost_bytes)},
    {"num_event_failures", KEY_NUMBER,
     offsetof(struct dry_pinned_stats, num_event_failures)},
    {"num_events", KEY_NUMBER, offsetof(struct dry_pinned_stats, num_events)},
    {"num_host_alloc", KEY_NUMBER, offsetof(struct dry_pinned_stats, num_host_alloc)},
    {"num_host_free", KEY_NUMBER, offsetof(struct dry_pinned_stats, num_host_free)},
    {"pending_bytes", KEY_NUMBER, offsetof(struct dry_pinned_stats, pending_bytes)},
    {"requested_bytes", KEY_STAT, offsetof(struct dry_pinned_stats, requested_bytes)},
    {"thread_cache_bytes", KEY_NUMBER,
     offsetof(struct dry_pinned_stats, thread_cache_bytes)},
};

struct visitor {
    void (*visit)(void *self, const char *key, int64_t value);
    void *self;
};

static void
tell(const struct visitor *v, const char *name, const char *part, int64_t value)
{
    char text[48];
    snprintf(text, sizeof text, "%s.%s", name, part);
    v->visit(v->self, text, value);
}

void
dry_pinned_stats_visit(const struct dry_pinned_stats *stats,
                       void (*visit)(void *self, const char *key, int64_t value),
                       void *self)
{
    const struct visitor v = {visit, self};
    struct dry_pinned_stats known = {0};
    if (dryi_sized_take(&known, sizeof known, stats, NULL) != DRY_OK)
        return;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const void *at = (const char *)&known + keys[i].offset;
        const char *name = keys[i].name;
        if (keys[i].kind == KEY_STAT) {
            const struct dry_stat *s = at;
            tell(&v, name, "allocated", s->allocated);
            tell(&v, name, "current", s->current);
            tell(&v, name, "freed", s->freed);
            tell(&v, name, "peak", s->peak);
        } else if (keys[i].kind == KEY_TIME) {
            const struct dry_pinned_time *t = at;
            tell(&v, name, "avg", t->count ? t->total / t->count : 0);
            tell(&v, name, "count", t->count);
            tell(&v, name, "max", t->max);
            tell(&v, name, "min", t->min);
            tell(&v, name, "total", t->total);
        } else {
            const int64_t *number = at;
            visit(self, name, *number);
        }
    }
}

/* --- walking -------------------------------------------------------------------------------- */

static enum dry_pinned_state
public_state(const struct dryi_pinned_cell *cell)
{
    enum dryi_pinned_state state = dryi_pinned_cell_get_state(dryi_pinned_tag(cell));
    if (state == DRYI_PINNED_USED)
        return DRY_PINNED_IN_USE;
    return state == DRYI_PINNED_PENDING ? DRY_PINNED_PENDING : DRY_PINNED_FREE;
}

static void
visit_arena(const struct dryi_pinned_arena *a,
            void (*visit)(void *self, const struct dry_pinned_block *block), void *self)
{
    for (uint32_t at = 0; at < a->count; at += a->cells[at].size) {
        const struct dryi_pinned_cell *cell = &a->cells[at];
        struct dry_pinned_block block = {
            .address = dryi_pinned_block_address(a, cell),
            .bytes = dryi_pinned_block_bytes(a, cell),
            .arena = a->range.address,
            .state = public_state(cell),
        };
        if (block.state != DRY_PINNED_FREE)
            block.requested_bytes = block.bytes - cell->waste;
        visit(self, &block);
    }
}

enum dry_status
dry_pinned_walk(struct dry_pinned *pinned,
                void (*visit)(void *self, const struct dry_pinned_block *block),
                void *self)
{
    if (dryi_fork_mark_is_child(&pinned->fork))
        return DRY_ERR_UNSUPPORTED;
    dryi_pinned_lock_all(pinned);
    for (uint32_t i = 0; i < pinned->arena_count; i++)
        visit_arena(pinned->arenas[i], visit, self);
    dryi_pinned_unlock_all(pinned);
    return DRY_OK;
}

/* --- explaining ----------------------------------------------------------------------------- */

enum dry_status
dry_pinned_explain(struct dry_pinned *pinned, uint64_t bytes,
                   struct dry_pinned_explanation *explanation)
{
    struct dry_pinned_stats s = DRY_INIT(struct dry_pinned_stats);
    struct dryi_pinned_request request;
    if (dryi_fork_mark_is_child(&pinned->fork))
        return DRY_ERR_UNSUPPORTED;
    if (bytes == 0 || bytes > DRYI_PINNED_BYTES_MAX)
        return DRY_ERR_ARGUMENT;
    (void)dry_pinned_get_stats(pinned, &s);
    dryi_pinned_request_init(pinned, bytes, &request);
    dryi_lock_take(&pinned->lock);
    uint64_t largest = dryi_pinned_heap_largest(pinned, request.heap);
    dryi_lock_give(&pinned->lock);
    uint64_t pinned_bytes = (uint64_t)s.allocated_bytes.current;
    uint64_t active = (uint64_t)s.active_bytes.current;
    DRYI_ASSERT_SLOW(pinned_bytes >= active + (uint64_t)s.thread_cache_bytes);
    uint64_t need = pinned->heaps[request.heap].is_buddy
                        ? pinned->options.block_bytes
                        : dryi_round_up(request.bytes, DRYI_PINNED_SQUARE);
    uint64_t available_bytes = dryi_pinned_available_bytes(pinned);
    uint64_t with_idle = dryi_add_saturating(available_bytes, (uint64_t)s.idle_bytes);
    const struct dry_pinned_explanation e = {
        .bytes = bytes,
        .block_bytes = request.bytes,
        .pinned_bytes = pinned_bytes,
        .requested_bytes = (uint64_t)s.requested_bytes.current,
        .rounding_bytes = active - (uint64_t)s.requested_bytes.current,
        .pending_bytes = (uint64_t)s.pending_bytes,
        .thread_cache_bytes = (uint64_t)s.thread_cache_bytes,
        .free_bytes = pinned_bytes - active - (uint64_t)s.thread_cache_bytes,
        .idle_bytes = (uint64_t)s.idle_bytes,
        .largest_free_bytes = largest,
        .available_bytes = available_bytes,
        .is_hit = largest >= request.bytes,
        .would_fit = largest >= request.bytes || with_idle >= need,
    };
    return dryi_sized_give(explanation, &e, sizeof e);
}
