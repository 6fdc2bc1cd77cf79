/* SPDX-License-Identifier: Apache-2.0 */

/* Read access to a pool: statistics, segments and blocks, and the check of its invariants. */

#include "pool/pool_view.h"

#include "base/assert.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "pool/explain.h"
#include "pool/history.h"
#include "pool/pool_address.h"
#include "pool/pool_lock.h"
#include "pool/pool_stream.h"

/* --- statistics --------------------------------------------------------------------------- */

void
dryi_pool_stats(const struct dry_pool *pool, struct dry_stats *stats)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    pool->place.ops->get_stats(pool->place.self, stats);
    stats->num_ooms -= (int64_t)pool->ooms_helped;
}

bool
dryi_pool_saw_oom(struct dry_pool *pool)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    struct dry_stats stats;
    pool->place.ops->get_stats(pool->place.self, &stats);
    bool is_new = stats.num_ooms > pool->ooms_seen;
    pool->ooms_seen = stats.num_ooms;
    return is_new;
}

void
dry_pool_get_stats(struct dry_pool *pool, struct dry_stats *stats)
{
    *stats = (struct dry_stats){0};
    if (dryi_pool_enter(pool) != DRY_OK)
        return;
    dryi_pool_stats(pool, stats);
    dryi_pool_leave(pool);
}

struct figure_visit {
    void (*visit)(void *self, struct dry_pool_id id,
                  const struct dry_stat_array *reserved);
    void *self;
};

static void
visit_figure(void *self, struct dryi_pool_id id, const struct dry_stat_array *reserved)
{
    const struct figure_visit *v = self;
    v->visit(v->self, (struct dry_pool_id){id.a, id.b}, reserved);
}

void
dry_pool_visit_private_stats(struct dry_pool *pool,
                             void (*visit)(void *self, struct dry_pool_id id,
                                           const struct dry_stat_array *reserved_bytes),
                             void *self)
{
    struct figure_visit v = {visit, self};
    if (dryi_pool_enter(pool) != DRY_OK)
        return;
    pool->place.ops->visit_figures(pool->place.self, visit_figure, &v);
    dryi_pool_leave(pool);
}

enum dry_status
dry_pool_get_counters(struct dry_pool *pool, struct dry_pool_counters *counters)
{
    struct dry_pool_counters c = {0};
    if (dryi_pool_enter(pool) == DRY_OK) {
        pool->place.ops->get_counters(pool->place.self, &c);
        c.oom_callbacks_helped = pool->callbacks_helped;
        c.driver_time_ns = pool->driver_time_ns;
        dryi_pool_leave(pool);
    }
    return dryi_sized_give(counters, &c, sizeof c);
}

void
dry_pool_reset_peaks(struct dry_pool *pool)
{
    if (dryi_pool_enter(pool) != DRY_OK)
        return;
    pool->place.ops->reset_stats(pool->place.self, true, false);
    dryi_pool_leave(pool);
}

void
dry_pool_reset_accumulated(struct dry_pool *pool)
{
    if (dryi_pool_enter(pool) != DRY_OK)
        return;
    pool->place.ops->reset_stats(pool->place.self, false, true);
    pool->ooms_helped = 0;
    pool->ooms_seen = 0;
    dryi_pool_leave(pool);
}

/* base/stats_summary.c has the format of torch.cuda.memory_summary(). */
enum dry_status
dry_pool_write_summary(struct dry_pool *pool, bool abbreviated,
                       const struct dry_sink *sink, struct dry_error *err)
{
    struct dry_stats stats;
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return dryi_fail(err, status,
                         "this is the child of a fork: the pool's device "
                         "belongs to the parent");
    dryi_pool_stats(pool, &stats);
    dryi_pool_leave(pool);
    return dry_stats_write_summary(&stats, pool->options.device_index, abbreviated, sink,
                                   err);
}

/* --- walk --------------------------------------------------------------------------------- */

struct walk {
    struct dry_pool *pool;
    enum dry_status (*visit)(void *self, const struct dry_pool_segment *segment,
                             const struct dry_pool_part *parts, size_t count);
    void *self;
    uint64_t page[2];
};

static enum dry_status
visit_segment(void *visitor, const struct dryi_segment_info *s,
              const struct dryi_block_info *blocks, size_t count)
{
    const struct walk *w = visitor;
    struct dry_pool *pool = w->pool;
    if (!dryi_memory_grow(&pool->memory, &pool->parts, &pool->part_capacity, count,
                          sizeof *pool->parts))
        return DRY_ERR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const struct dryi_block_info *b = &blocks[i];
        bool is_free = !b->allocated && !b->pending;
        pool->parts[i] = (struct dry_pool_part){
            .address = b->addr,
            .size = b->size,
            .requested = is_free ? 0 : b->requested,
            .context = is_free ? DRY_NONE : dryi_history_context(pool, b->addr),
            .is_active = b->allocated,
            .is_pending = b->pending,
        };
    }
    struct dry_pool_segment segment = {
        .address = s->addr,
        .size = s->size,
        .stream = dryi_pool_stream_handle(pool, s->stream),
        .pool = {s->pool.a, s->pool.b},
        .context = dryi_history_segment(pool, s->addr),
        .is_large = s->is_large,
        .is_expandable = s->is_expandable,
        .page_bytes = s->is_expandable ? w->page[s->is_large] : s->size,
    };
    return w->visit(w->self, &segment, pool->parts, count);
}

enum dry_status
dryi_pool_walk(struct dry_pool *pool,
               enum dry_status (*visit)(void *self,
                                        const struct dry_pool_segment *segment,
                                        const struct dry_pool_part *parts, size_t count),
               void *self)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    struct walk walk = {.pool = pool, .visit = visit, .self = self};
    dryi_explain_pages(pool, walk.page);
    return pool->place.ops->walk(pool->place.self, visit_segment, &walk);
}

enum dry_status
dry_pool_walk(struct dry_pool *pool,
              enum dry_status (*visit)(void *self, const struct dry_pool_segment *segment,
                                       const struct dry_pool_part *parts, size_t count),
              void *self)
{
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    status = dryi_pool_walk(pool, visit, self);
    dryi_pool_leave(pool);
    return status;
}

/* --- expandable segments, free blocks -------------------------------------------------------- */

/*
 * Expandable segments of a walk. The mapped runs of a segment are consecutive, so a segment is
 * reported when the next one begins.
 */
struct expandables {
    const struct dry_pool *pool;
    enum dry_status (*visit)(void *self, const struct dry_pool_expandable *segment);
    void *self;
    struct dry_pool_expandable last;
    uint32_t ordinal;
};

static enum dry_status
tell_last(struct expandables *e)
{
    bool is_there = e->last.mapped_bytes > 0;
    struct dry_pool_expandable last = e->last;
    e->last = (struct dry_pool_expandable){0};
    return is_there ? e->visit(e->self, &last) : DRY_OK;
}

static enum dry_status
add_run(void *visitor, const struct dryi_segment_info *s,
        const struct dryi_block_info *blocks, size_t count)
{
    (void)blocks;
    (void)count;
    struct expandables *e = visitor;
    if (e->last.mapped_bytes > 0 && s->is_expandable && s->segment == e->ordinal) {
        e->last.mapped_bytes += s->size;
        return DRY_OK;
    }
    enum dry_status status = tell_last(e);
    if (status != DRY_OK || !s->is_expandable)
        return status;
    e->ordinal = s->segment;
    e->last = (struct dry_pool_expandable){
        .address = s->addr,
        .mapped_bytes = s->size,
        .stream = dryi_pool_stream_handle(e->pool, s->stream),
        .pool = {s->pool.a, s->pool.b},
        .is_small = !s->is_large,
    };
    return DRY_OK;
}

enum dry_status
dry_pool_walk_expandable(struct dry_pool *pool,
                         enum dry_status (*visit)(void *self,
                                                  const struct dry_pool_expandable *s),
                         void *self)
{
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    struct expandables e = {.pool = pool, .visit = visit, .self = self};
    status = pool->place.ops->walk(pool->place.self, add_run, &e);
    if (status == DRY_OK)
        status = tell_last(&e);
    dryi_pool_leave(pool);
    return status;
}

static enum dry_status
find_largest(void *visitor, const struct dryi_segment_info *segment,
             const struct dryi_block_info *blocks, size_t count)
{
    (void)segment;
    uint64_t *largest = visitor;
    for (size_t i = 0; i < count; i++) {
        bool is_free = !blocks[i].allocated && !blocks[i].pending;
        if (is_free && blocks[i].size > *largest)
            *largest = blocks[i].size;
    }
    return DRY_OK;
}

enum dry_status
dry_pool_get_largest_free(struct dry_pool *pool, uint64_t *bytes)
{
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    uint64_t largest = 0;
    status = pool->place.ops->walk(pool->place.self, find_largest, &largest);
    if (status == DRY_OK)
        *bytes = largest;
    dryi_pool_leave(pool);
    return status;
}

/* --- one block ---------------------------------------------------------------------------- */

struct search {
    uint64_t address;
    struct dryi_segment_info segment;
};

static enum dry_status
find_segment(void *visitor, const struct dryi_segment_info *segment,
             const struct dryi_block_info *blocks, size_t count)
{
    (void)blocks;
    (void)count;
    struct search *s = visitor;
    if (s->address - segment->addr >= segment->size)
        return DRY_OK;
    s->segment = *segment;
    return DRY_END;
}

enum dry_status
dryi_pool_find_segment(const struct dry_pool *pool, uint64_t address,
                       struct dryi_segment_info *segment)
{
    struct search search = {.address = address};
    enum dry_status status =
        pool->place.ops->walk(pool->place.self, find_segment, &search);
    if (status == DRY_END)
        *segment = search.segment;
    return status == DRY_END ? DRY_OK : status == DRY_OK ? DRY_ERR_ARGUMENT : status;
}

static enum dry_status
describe(struct dry_pool *pool, uint64_t address, struct dry_pool_block *block)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    dryi_block found = dryi_pool_find(pool, address);
    if (found == DRYI_NO_BLOCK)
        return DRY_ERR_ARGUMENT;
    struct dryi_block_info info;
    pool->place.ops->get_block(pool->place.self, found, &info);
    struct dryi_segment_info segment;
    enum dry_status status = dryi_pool_find_segment(pool, info.addr, &segment);
    if (status != DRY_OK)
        return status;
    *block = (struct dry_pool_block){
        .address = info.addr,
        .size = info.size,
        .requested = info.requested,
        .stream = dryi_pool_stream_handle(pool, info.stream),
        .pool = {info.pool.a, info.pool.b},
        .segment_address = segment.addr,
        .segment_size = segment.size,
        .context = dryi_history_context(pool, info.addr),
    };
    return DRY_OK;
}

enum dry_status
dry_pool_get_block(struct dry_pool *pool, uint64_t address, struct dry_pool_block *block)
{
    struct dry_pool_block found;
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    status = describe(pool, address, &found);
    dryi_pool_leave(pool);
    if (status != DRY_OK)
        return status;
    return dryi_sized_give(block, &found, sizeof found);
}

/* --- a private pool's blocks --------------------------------------------------------------- */

/* The number of blocks in use in one pool. */
struct tally_of_pool {
    struct dryi_pool_id id;
    size_t count;
};

static enum dry_status
count_in_pool(void *visitor, const struct dryi_segment_info *segment,
              const struct dryi_block_info *blocks, size_t count)
{
    struct tally_of_pool *tally = visitor;
    for (size_t i = 0; i < count && dryi_is_same_pool(segment->pool, tally->id); i++)
        tally->count += blocks[i].allocated;
    return DRY_OK;
}

/* Collect the pool's blocks at these addresses in a set. END: an address has no such block. */
static enum dry_status
collect_blocks(struct dry_pool *pool, struct dryi_pool_id id, const uint64_t *addresses,
               size_t count, struct dryi_map *found)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    for (size_t i = 0; i < count; i++) {
        dryi_block block = dryi_pool_find(pool, addresses[i]);
        if (block == DRYI_NO_BLOCK)
            return DRY_END;
        struct dryi_block_info info;
        pool->place.ops->get_block(pool->place.self, block, &info);
        if (!dryi_is_same_pool(info.pool, id))
            return DRY_END;
        if (!dryi_map_put(found, block, 0))
            return DRY_ERR_MEMORY;
    }
    return DRY_OK;
}

static enum dry_status
hold_against(struct dry_pool *pool, struct dryi_pool_id id, const uint64_t *addresses,
             size_t count, bool *has)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    struct tally_of_pool tally = {.id = id};
    struct dryi_map found;
    dryi_map_init(&found, &pool->memory);
    enum dry_status status = collect_blocks(pool, id, addresses, count, &found);
    if (status == DRY_OK)
        status = pool->place.ops->walk(pool->place.self, count_in_pool, &tally);
    if (status == DRY_OK)
        *has = found.count == tally.count;
    else if (status == DRY_END)
        *has = false;
    dryi_map_finish(&found);
    return status == DRY_END ? DRY_OK : status;
}

enum dry_status
dry_pool_private_has(struct dry_pool *pool, struct dry_pool_id id,
                     const uint64_t *addresses, size_t count, bool *has)
{
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    struct dryi_pool_id inner = {id.a, id.b};
    uint64_t users;
    status = pool->place.ops->count_users(pool->place.self, inner, &users);
    if (status == DRY_OK)
        status = hold_against(pool, inner, addresses, count, has);
    dryi_pool_leave(pool);
    return status;
}

/* --- check -------------------------------------------------------------------------------- */

/* Number of blocks in use, and how many of them the place finds by address. */
struct used {
    const struct dry_pool *pool;
    size_t blocks, found;
};

static enum dry_status
count_used(void *visitor, const struct dryi_segment_info *segment,
           const struct dryi_block_info *blocks, size_t count)
{
    (void)segment;
    struct used *used = visitor;
    const struct dryi_place *place = &used->pool->place;
    for (size_t i = 0; i < count; i++) {
        used->blocks += blocks[i].allocated;
        used->found += dryi_pool_place_finds(used->pool) &&
                       place->ops->find(place->self, blocks[i].addr) != DRYI_NO_BLOCK;
    }
    return DRY_OK;
}

/* Check that a slot can be found, and that its block is in use or cached, and begins there. */
static const char *
check_slot(struct dry_pool *pool, const struct dryi_pool_slot *slot)
{
    uint64_t address = dryi_pool_slot_address(slot);
    if (dryi_pool_seek(pool, address).slot != slot)
        return "cannot be found";
    struct dryi_block_info info;
    pool->place.ops->get_block(pool->place.self, slot->block, &info);
    bool is_used = dryi_pool_slot_is_used(pool, slot);
    if (is_used && (!info.allocated || address - info.addr >= info.size))
        return "is of no block in use";
    if (dryi_pool_slot_is_registered(slot) && address != info.addr)
        return "is not where its block begins";
    return NULL;
}

/* Number of blocks in tables: in use, or cached. */
struct held {
    size_t used, resting;
};

static enum dry_status
check_table(struct dry_pool *pool, const struct dryi_pool_table *table, struct held *held,
            struct dry_error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < table->slot_count; i++) {
        const struct dryi_pool_slot *slot = &table->slots[i];
        if (!slot->key)
            continue;
        count++;
        *(dryi_pool_slot_is_used(pool, slot) ? &held->used : &held->resting) += 1;
        const char *broken = check_slot(pool, slot);
        if (broken)
            return dryi_fail(err, DRY_ERR_FORMAT, "slot %zu %s", i, broken);
    }
    if (count != table->count)
        return dryi_fail(err, DRY_ERR_FORMAT, "%zu addresses counted, there are %zu",
                         table->count, count);
    return DRY_OK;
}

static enum dry_status
check_tables(struct dry_pool *pool, struct dry_error *err)
{
    struct held held = {0};
    enum dry_status status = DRY_OK;
    for (uint32_t i = 0; i <= pool->caches.count && status == DRY_OK; i++)
        status = check_table(pool, &pool->caches.all[i]->table, &held, err);
    if (status != DRY_OK)
        return status;
    struct used used = {.pool = pool};
    status = pool->place.ops->walk(pool->place.self, count_used, &used);
    if (status != DRY_OK)
        return dryi_fail(err, status, "the pool cannot be walked");
    if (held.used + used.found != used.blocks)
        return dryi_fail(
            err, DRY_ERR_FORMAT,
            "%zu addresses in use, %zu at rest, %zu found, %zu blocks in use", held.used,
            held.resting, used.found, used.blocks);
    return DRY_OK;
}

enum dry_status
dry_pool_check(struct dry_pool *pool, struct dry_error *err)
{
    if (dryi_pool_enter(pool) != DRY_OK)
        return dryi_fail(err, DRY_ERR_UNSUPPORTED,
                         "the pool belongs to the process that forked this one");
    enum dry_status status = pool->place.ops->check(pool->place.self, err);
    if (status == DRY_OK)
        status = check_tables(pool, err);
    dryi_pool_leave(pool);
    return status;
}
