/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests: rounding, the ladder of retries, frees, streams and private pools.
 *
 * A request is rounded, looks for a free block of its pool and stream, then asks the device,
 * then gives back cached memory in ever larger helpings and asks again. Whatever a failing
 * request has done on its way stays done.
 */

#include "place/torch.h"

#include <string.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/memory.h"
#include "place/torch_state.h"

/* --- create and destroy ------------------------------------------------------------------- */

static void
set_limit(struct dryi_torch *t, double fraction)
{
    t->has_limit = fraction < 1.0 && t->device_total != UINT64_MAX;
    if (t->has_limit) /* rounded to nearest: x + 1/2 is exact enough for any device */
        t->limit_bytes = (uint64_t)(fraction * (double)t->device_total + 0.5);
}

enum dry_status
dryi_torch_create(const struct dryi_torch_options *options, struct dryi_torch **place,
                  struct dry_error *err)
{
    struct dry_memory memory = dryi_memory_or_default(options->memory);
    struct dryi_torch *t = dryi_memory_zalloc(&memory, 1, sizeof *t);
    if (!t)
        return dryi_fail_memory(err, "an allocator");
    size_t rules_count;
    t->memory = memory;
    t->device = options->device;
    t->conf = options->conf;
    t->rules = options->rules;
    if (!t->rules)
        t->rules = &dryi_torch_rules_all(&rules_count)[0] + (rules_count - 1);
    t->observer = options->observer;
    t->free_block_slot = t->free_segment_slot = t->free_use = NONE;
    t->busy_streams = NONE;
    t->deferred_first = t->deferred_last = NONE;
    t->progress_is_told = options->progress_is_told;
    t->last_lanes[0] = t->last_lanes[1] = NONE;
    dryi_intern_init(&t->stream_ids, &t->memory);
    dryi_intern_init(&t->owner_ids, &t->memory);
    dryi_intern_init(&t->lane_ids, &t->memory);
    dryi_map_init(&t->recorded, &t->memory);
    uint64_t free_bytes;
    t->device.ops->get_info(t->device.self, &free_bytes, &t->device_total);
    set_limit(t, t->conf.per_process_memory_fraction);
    t->stats.max_split_size =
        t->conf.max_split_size == UINT64_MAX ? -1 : (int64_t)t->conf.max_split_size;
    if (dryi_torch_owner_make(t, (struct dryi_torch_pool_id){0, 0}) == NONE) {
        dryi_torch_destroy(t);
        return dryi_fail_memory(err, "an allocator");
    }
    dryi_torch_owner_use(t, 0);
    *place = t;
    return DRY_OK;
}

/* What the device handed out goes back to it, in use or not. */
static void
return_segment(struct dryi_torch *t, const struct segment *s)
{
    const struct dry_device_ops *ops = t->device.ops;
    if (s->page == 0) {
        ops->free(t->device.self, s->addr, s->size);
        return;
    }
    for (uint32_t b = s->first_block; b != NONE; b = t->blocks[b].next) {
        if (!t->blocks[b].mapped)
            continue;
        uint64_t begin =
            t->blocks[b].addr; /* a mapped run ends where an unmapped begins */
        while (t->blocks[b].next != NONE && t->blocks[t->blocks[b].next].mapped)
            b = t->blocks[b].next;
        uint64_t end = t->blocks[b].addr + t->blocks[b].size;
        ops->unmap(t->device.self, begin, end - begin, s->page);
    }
    ops->unreserve(t->device.self, s->addr, s->size);
}

void
dryi_torch_destroy(struct dryi_torch *t)
{
    if (!t)
        return;
    for (uint32_t s = 0; s < t->stream_count; s++) {
        for (uint32_t u = t->streams[s].queue_first; u != NONE; u = t->uses[u].next)
            t->device.ops->event_destroy(t->device.self, t->uses[u].event);
    }
    for (uint32_t s = 0; s < t->segment_slots; s++) {
        if (t->segments[s].live)
            return_segment(t, &t->segments[s]);
    }
    struct dry_memory m = t->memory;
    dryi_memory_free(&m, t->blocks, t->block_capacity, sizeof *t->blocks);
    dryi_memory_free(&m, t->nodes, t->node_capacity, sizeof *t->nodes);
    dryi_memory_free(&m, t->segments, t->segment_capacity, sizeof *t->segments);
    dryi_memory_free(&m, t->streams, t->stream_capacity, sizeof *t->streams);
    dryi_memory_free(&m, t->progressed, t->progressed_capacity, sizeof *t->progressed);
    dryi_intern_finish(&t->stream_ids);
    dryi_memory_free(&m, t->uses, t->use_capacity, sizeof *t->uses);
    dryi_memory_free(&m, t->owners, t->owner_capacity, sizeof *t->owners);
    dryi_memory_free(&m, t->pools, t->pool_capacity, sizeof *t->pools);
    dryi_memory_free(&m, t->live_owners, t->live_owner_capacity, sizeof *t->live_owners);
    dryi_memory_free(&m, t->lanes, t->lane_capacity, sizeof *t->lanes);
    dryi_memory_free(&m, t->lane_nodes, t->lane_node_capacity, sizeof *t->lane_nodes);
    dryi_intern_finish(&t->owner_ids);
    dryi_intern_finish(&t->lane_ids);
    dryi_map_finish(&t->recorded);
    dryi_memory_free(&m, t->scopes, t->scope_capacity, sizeof *t->scopes);
    dryi_memory_free(&m, t, 1, sizeof *t);
}

/* --- streams and pools -------------------------------------------------------------------- */

uint32_t
dryi_torch_stream_index(struct dryi_torch *t, uint64_t value)
{
    if (t->stream_count > 0 && t->streams[t->last_stream].value == value)
        return t->last_stream;
    if (!dryi_memory_grow(&t->memory, &t->streams, &t->stream_capacity,
                          (size_t)t->stream_count + 1, sizeof *t->streams) ||
        !dryi_memory_grow(&t->memory, &t->progressed, &t->progressed_capacity,
                          (size_t)t->stream_count + 1, sizeof *t->progressed))
        return NONE;
    uint32_t index = dryi_intern_put(&t->stream_ids, &value, sizeof value);
    if (index == DRYI_INTERN_NONE)
        return NONE;
    if (index == t->stream_count) {
        t->streams[index] = (struct stream){
            .value = value, .queue_first = NONE, .queue_last = NONE, .next_busy = NONE};
        t->stream_count++;
    }
    return t->last_stream = index;
}

void
dryi_torch_stream_progressed(struct dryi_torch *t, uint64_t stream)
{
    uint32_t index = dryi_intern_find(&t->stream_ids, &stream, sizeof stream);
    if (index == DRYI_INTERN_NONE || t->streams[index].may_be_done)
        return;
    t->streams[index].may_be_done = true;
    t->progressed[t->progressed_count++] = index; /* one place a stream was reserved */
}

uint32_t
dryi_torch_lane_find(const struct dryi_torch *t, uint32_t pool, uint32_t stream)
{
    uint32_t key[2] = {pool, stream};
    return dryi_intern_find(&t->lane_ids, key, sizeof key);
}

uint32_t
dryi_torch_lane_index(struct dryi_torch *t, uint32_t pool, uint32_t stream)
{
    uint32_t *last = &t->last_lanes[pool_is_small(pool)];
    if (*last != NONE && t->lanes[*last].pool == pool && t->lanes[*last].stream == stream)
        return *last;
    uint32_t known = t->lane_ids.count;
    if (!dryi_memory_grow(&t->memory, &t->lanes, &t->lane_capacity, (size_t)known + 1,
                          sizeof *t->lanes) ||
        !dryi_memory_grow(&t->memory, &t->lane_nodes, &t->lane_node_capacity,
                          (size_t)known + 1, sizeof *t->lane_nodes))
        return NONE;
    uint32_t key[2] = {pool, stream};
    uint32_t lane = dryi_intern_put(&t->lane_ids, key, sizeof key);
    if (lane == DRYI_INTERN_NONE)
        return NONE;
    if (lane == known) {
        t->lanes[lane] = (struct lane){
            .free_root = NONE, .unmapped_root = NONE, .pool = pool, .stream = stream};
        t->lane_nodes[lane] = (struct dryi_order_node){
            .major = t->streams[stream].value,
            .priority = (uint32_t)dryi_mix64(lane + UINT64_C(1))};
        dryi_order_insert(t->lane_nodes, &t->pools[pool].lanes, lane);
    }
    return *last = lane;
}

uint32_t
dryi_torch_owner_find(const struct dryi_torch *t, struct dryi_torch_pool_id id)
{
    if (id.a == 0 && id.b == 0)
        return 0;
    uint32_t index = dryi_intern_find(&t->owner_ids, &id, sizeof id);
    return index != DRYI_INTERN_NONE ? t->live_owners[index] : NONE;
}

/*
 * Every owner gets a number of its own, also one whose id was used before: what the former
 * one left behind (addresses that could not be mapped) is not for the new one.
 */
uint32_t
dryi_torch_owner_make(struct dryi_torch *t, struct dryi_torch_pool_id id)
{
    const struct dry_memory *m = &t->memory;
    size_t count = (size_t)t->owner_count + 1;
    if (count >= NONE / 2 ||
        !dryi_memory_grow(m, &t->owners, &t->owner_capacity, count, sizeof *t->owners) ||
        !dryi_memory_grow(m, &t->pools, &t->pool_capacity, 2 * count, sizeof *t->pools) ||
        !dryi_memory_grow(m, &t->live_owners, &t->live_owner_capacity,
                          (size_t)t->owner_ids.count + 1, sizeof *t->live_owners))
        return NONE;
    uint32_t index = dryi_intern_put(&t->owner_ids, &id, sizeof id);
    if (index == DRYI_INTERN_NONE)
        return NONE;
    uint32_t owner = t->owner_count++;
    t->live_owners[index] = owner;
    t->owners[owner] = (struct owner){.id = id, .live = true};
    t->unused_owners++;
    t->pools[2 * owner] = t->pools[2 * owner + 1] = (struct block_pool){.lanes = NONE};
    return owner;
}

/* Owners are made without users; the first one makes them unfreeable. */
void
dryi_torch_owner_use(struct dryi_torch *t, uint32_t owner)
{
    if (t->owners[owner].use_count++ == 0)
        t->unused_owners--;
}

static bool
is_in_scope(const struct dryi_torch *t, uint32_t owner)
{
    for (uint32_t i = 0; i < t->scope_count; i++) {
        if (t->scopes[i] == owner)
            return true;
    }
    return false;
}

enum dry_status
dryi_torch_begin_pool(struct dryi_torch *t, struct dryi_torch_pool_id pool)
{
    uint32_t owner = dryi_torch_owner_find(t, pool);
    if (owner == 0 || (owner != NONE && is_in_scope(t, owner)))
        return DRY_ERR_ARGUMENT;
    if (owner != NONE && t->owners[owner].use_count == 0)
        return DRY_ERR_ARGUMENT; /* released, and not yet gone: PyTorch refuses too */
    if (!dryi_memory_grow(&t->memory, &t->scopes, &t->scope_capacity, t->scope_count + 1,
                          sizeof *t->scopes))
        return DRY_ERR_MEMORY;
    if (owner == NONE)
        owner = dryi_torch_owner_make(t, pool);
    if (owner == NONE)
        return DRY_ERR_MEMORY;
    dryi_torch_owner_use(t, owner);
    t->scopes[t->scope_count++] = owner;
    return DRY_OK;
}

enum dry_status
dryi_torch_end_pool(struct dryi_torch *t, struct dryi_torch_pool_id pool)
{
    uint32_t owner = dryi_torch_owner_find(t, pool);
    for (uint32_t i = 0; owner != NONE && i < t->scope_count; i++) {
        if (t->scopes[i] != owner)
            continue;
        memmove(&t->scopes[i], &t->scopes[i + 1],
                (t->scope_count - i - 1) * sizeof *t->scopes);
        t->scope_count--;
        return DRY_OK;
    }
    return DRY_ERR_ARGUMENT;
}

enum dry_status
dryi_torch_release_pool(struct dryi_torch *t, struct dryi_torch_pool_id pool)
{
    uint32_t owner = dryi_torch_owner_find(t, pool);
    if (owner == NONE || owner == 0 || t->owners[owner].use_count == 0)
        return DRY_ERR_ARGUMENT;
    if (--t->owners[owner].use_count == 0)
        t->unused_owners++;
    return DRY_OK;
}

bool
dryi_torch_in_capture(const struct dryi_torch *t)
{
    return t->rules->scope_is_capture && t->scope_count > 0;
}

/* --- alloc -------------------------------------------------------------------------------- */

/* The next of `divisions` equal steps between two powers of two. */
static uint64_t
round_to_division(uint64_t size, uint64_t divisions)
{
    if (dryi_is_power_of_two(size))
        return size;
    uint64_t floor = UINT64_C(1) << dryi_log2_floor(size);
    uint64_t step = floor >> dryi_log2_floor(divisions);
    return step ? dryi_round_up(size, step) : floor << 1;
}

uint64_t
dryi_torch_round_size(const struct dryi_torch_conf *conf, uint64_t size)
{
    if (size < BLOCK_SIZE_MIN)
        return BLOCK_SIZE_MIN;
    unsigned octave = dryi_log2_floor(size);
    unsigned index = octave > 20 ? octave - 20 : 0;
    uint64_t divisions = conf->roundup_power2_divisions[index < 15 ? index : 15];
    if (divisions > 1 && size > BLOCK_SIZE_MIN * divisions)
        return round_to_division(size, divisions);
    return dryi_round_up(size, BLOCK_SIZE_MIN);
}

uint64_t
dryi_torch_segment_size(const struct dryi_torch_conf *conf, uint64_t rounded)
{
    if (rounded <= SMALL_SIZE_MAX)
        return SMALL_SEGMENT;
    if (rounded < LARGE_REQUEST_MIN)
        return conf->large_segment_size;
    return dryi_round_up(rounded, LARGE_ROUND);
}

static uint32_t
pool_for(const struct dryi_torch *t, uint64_t rounded)
{
    uint32_t owner = 0;
    if (t->scope_count > 0)
        owner = t->scopes[t->rules->scopes_last_first ? t->scope_count - 1 : 0];
    return 2 * owner + (rounded <= SMALL_SIZE_MAX);
}

static enum dry_status
prepare(struct dryi_torch *t, uint64_t size, uint64_t stream, struct request *r)
{
    r->size = size;
    r->rounded = dryi_torch_round_size(&t->conf, size);
    r->alloc_size = dryi_torch_segment_size(&t->conf, r->rounded);
    r->stream = dryi_torch_stream_index(t, stream);
    r->pool = pool_for(t, r->rounded);
    if (r->stream == NONE || !dryi_torch_block_reserve(t, 1))
        return DRY_ERR_MEMORY;
    r->lane = dryi_torch_lane_index(t, r->pool, r->stream);
    if (r->lane == NONE)
        return DRY_ERR_MEMORY;
    t->rejected = false;
    return DRY_OK;
}

/* Only a full device leads to the next rung; a rejection or a broken driver ends it. */
static bool
is_worth_retrying(const struct dryi_torch *t, enum dry_status status)
{
    return status == DRY_ERR_NO_SPACE && !t->rejected;
}

static enum dry_status
climb_ladder(struct dryi_torch *t, const struct request *r, uint32_t *block)
{
    if (t->has_limit && t->conf.garbage_collection_threshold > 0)
        dryi_torch_collect_garbage(t);
    enum dry_status status = dryi_torch_segment_alloc(t, r, false, block);
    if (!is_worth_retrying(t, status))
        return status;
    if (dryi_torch_release_available(t, r))
        status = dryi_torch_segment_alloc(t, r, false, block);
    /* Only the first attempt's rejection ends it; a later one's is kept for the verdict. */
    if (status == DRY_ERR_NO_SPACE && !dryi_torch_in_capture(t)) {
        status = dryi_torch_release_cached(t, (struct dryi_torch_pool_id){0, 0});
        if (status == DRY_OK)
            status = dryi_torch_segment_alloc(t, r, true, block);
    }
    return status;
}

static void
report_oom(struct dryi_torch *t, const struct request *r)
{
    struct dryi_torch_event event = {
        .action = DRY_ACTION_OOM,
        .size = r->rounded,
        .stream = t->streams[r->stream].value,
        .pool = t->owners[r->pool / 2].id,
        .segment = DRYI_TORCH_NO_BLOCK,
    };
    uint64_t total_bytes;
    t->device.ops->get_info(t->device.self, &event.addr, &total_bytes);
    if (t->observer.event)
        t->observer.event(t->observer.self, &event);
    t->stats.num_ooms++;
}

enum dry_status
dryi_torch_alloc(struct dryi_torch *t, uint64_t size, uint64_t stream,
                 dryi_torch_block *block)
{
    if (size >= REQUEST_LIMIT)
        return DRY_ERR_ARGUMENT;
    if (size == 0) {
        *block = DRYI_TORCH_NO_BLOCK;
        return DRY_OK;
    }
    struct request r;
    enum dry_status status = prepare(t, size, stream, &r);
    if (status != DRY_OK)
        return status;
    if (!dryi_torch_in_capture(t))
        dryi_torch_process_events(t);
    uint32_t found = dryi_torch_free_take(t, &r);
    if (found == NONE) {
        status = climb_ladder(t, &r, &found);
        if (status == DRY_ERR_NO_SPACE && !t->rejected)
            report_oom(t, &r);
        if (status != DRY_OK)
            return status;
    }
    *block = dryi_torch_block_use(t, found, &r);
    return DRY_OK;
}

void
dryi_torch_look_ahead(const struct dryi_torch *t, uint64_t size, uint64_t stream,
                      struct dryi_torch_pool_id pool, struct dryi_torch_outlook *outlook)
{
    *outlook = (struct dryi_torch_outlook){0};
    uint32_t owner = dryi_torch_owner_find(t, pool);
    uint32_t index = dryi_intern_find(&t->stream_ids, &stream, sizeof stream);
    if (owner == NONE || index == DRYI_INTERN_NONE || size == 0 || size >= REQUEST_LIMIT)
        return;
    struct request r = {.rounded = dryi_torch_round_size(&t->conf, size),
                        .stream = index};
    r.pool = 2 * owner + (r.rounded <= SMALL_SIZE_MAX);
    r.lane = dryi_torch_lane_find(t, r.pool, index);
    if (r.lane == NONE)
        return;
    uint32_t grown = NONE;
    if (t->conf.expandable_segments)
        grown = dryi_torch_expandable_find(t, &r);
    outlook->is_served =
        dryi_torch_free_find(t, &r) != NONE ||
        (grown != NONE && t->blocks[grown].mapped && t->blocks[grown].size >= r.rounded);
    uint32_t available = dryi_torch_available_find(t, &r);
    if (available != NONE) {
        outlook->released_first = t->blocks[available].addr;
        outlook->is_enough =
            t->blocks[available].size >= r.rounded; /* oversize it is anyway */
    }
}

/* --- free and streams --------------------------------------------------------------------- */

static uint64_t
use_key(uint32_t block, uint32_t stream)
{
    return (uint64_t)block << 32 | stream;
}

enum dry_status
dryi_torch_record_stream(struct dryi_torch *t, dryi_torch_block block, uint64_t stream)
{
    if (block == DRYI_TORCH_NO_BLOCK)
        return DRY_OK;
    DRYI_ASSERT(block < t->block_count && t->blocks[block].allocated);
    struct block *b = &t->blocks[block];
    if (t->streams[b->stream].value == stream)
        return DRY_OK;
    uint32_t index = dryi_torch_stream_index(t, stream);
    if (index == NONE)
        return DRY_ERR_MEMORY;
    const uint32_t *known = dryi_map_find(&t->recorded, use_key(block, index));
    if (known) {
        t->uses[*known].in_capture |= dryi_torch_in_capture(t);
        return DRY_OK;
    }
    uint32_t use = t->free_use != NONE ? t->free_use : t->use_count;
    if (!dryi_memory_grow(&t->memory, &t->uses, &t->use_capacity, (size_t)use + 1,
                          sizeof *t->uses) ||
        !dryi_map_put(&t->recorded, use_key(block, index), use))
        return DRY_ERR_MEMORY;
    if (use == t->free_use)
        t->free_use = t->uses[use].next;
    else
        t->use_count++;
    t->uses[use] = (struct stream_use){.block = block,
                                       .stream = index,
                                       .next = b->uses,
                                       .in_capture = dryi_torch_in_capture(t)};
    b->uses = use;
    return DRY_OK;
}

/* One event a recorded stream, all or none. */
static enum dry_status
record_events(struct dryi_torch *t, const struct block *b)
{
    const struct dry_device_ops *ops = t->device.ops;
    for (uint32_t u = b->uses; u != NONE; u = t->uses[u].next) {
        enum dry_status status = ops->event_record(
            t->device.self, t->streams[t->uses[u].stream].value, &t->uses[u].event);
        if (status == DRY_OK)
            continue;
        for (uint32_t done = b->uses; done != u; done = t->uses[done].next)
            ops->event_destroy(t->device.self, t->uses[done].event);
        return status;
    }
    return DRY_OK;
}

/* Each use goes from the block's list to the end of its stream's queue. */
static void
queue_uses(struct dryi_torch *t, struct block *b)
{
    while (b->uses != NONE) {
        uint32_t use = b->uses;
        struct stream_use *u = &t->uses[use];
        struct stream *stream = &t->streams[u->stream];
        b->uses = u->next;
        dryi_map_take(&t->recorded, use_key(u->block, u->stream));
        b->event_count++;
        u->next = NONE;
        if (stream->queue_first == NONE)
            stream->queue_first = use;
        else
            t->uses[stream->queue_last].next = use;
        stream->queue_last = use;
        if (!stream->is_busy) {
            stream->is_busy = true;
            stream->next_busy = t->busy_streams;
            t->busy_streams = u->stream;
        }
    }
}

/*
 * In a capture PyTorch may not record events: the block waits for the first malloc outside.
 * Its uses recorded inside are then taken to be over, as at the end of a real capture.
 */
static void
defer(struct dryi_torch *t, uint32_t block)
{
    t->blocks[block].next_deferred = NONE;
    if (t->deferred_first == NONE)
        t->deferred_first = block;
    else
        t->blocks[t->deferred_last].next_deferred = block;
    t->deferred_last = block;
}

static void
drop_uses_in_capture(struct dryi_torch *t, struct block *b)
{
    for (uint32_t *link = &b->uses; *link != NONE;) {
        uint32_t use = *link;
        if (!t->uses[use].in_capture) {
            link = &t->uses[use].next;
            continue;
        }
        *link = t->uses[use].next;
        dryi_map_take(&t->recorded, use_key(t->uses[use].block, t->uses[use].stream));
        t->uses[use].next = t->free_use;
        t->free_use = use;
    }
}

void
dryi_torch_settle_deferred(struct dryi_torch *t)
{
    while (t->deferred_first != NONE) {
        uint32_t block = t->deferred_first;
        struct block *b = &t->blocks[block];
        drop_uses_in_capture(t, b);
        if (record_events(t, b) != DRY_OK)
            return;
        t->deferred_first = b->next_deferred;
        if (b->uses == NONE)
            dryi_torch_block_free(t, block);
        else
            queue_uses(t, b);
    }
}

enum dry_status
dryi_torch_free(struct dryi_torch *t, dryi_torch_block block)
{
    if (block == DRYI_TORCH_NO_BLOCK)
        return DRY_OK;
    DRYI_ASSERT(block < t->block_count && t->blocks[block].allocated);
    struct block *b = &t->blocks[block];
    bool deferred = b->uses != NONE && dryi_torch_in_capture(t);
    enum dry_status status = deferred ? DRY_OK : record_events(t, b);
    if (status != DRY_OK)
        return status;
    b->allocated = false;
    dryi_torch_stat_change(&t->stats.allocation, b->pool, -1);
    dryi_torch_stat_change(&t->stats.allocated_bytes, b->pool, -(int64_t)b->size);
    dryi_torch_tell(t, DRY_ACTION_FREE_REQUESTED, b->segment, b->addr, b->requested);
    if (b->size >= t->conf.max_split_size)
        dryi_torch_stat_add(&t->stats.oversize_allocations, -1);
    if (deferred)
        defer(t, block);
    else if (b->uses == NONE)
        dryi_torch_block_free(t, block);
    else
        queue_uses(t, b);
    return DRY_OK;
}

enum dry_status
dryi_torch_empty_cache(struct dryi_torch *t, struct dryi_torch_pool_id pool)
{
    return dryi_torch_release_cached(t, pool);
}

enum dry_status
dryi_torch_set_fraction(struct dryi_torch *t, double fraction)
{
    if (!(fraction >= 0 && fraction <= 1))
        return DRY_ERR_ARGUMENT;
    set_limit(t, fraction);
    return DRY_OK;
}

void
dryi_torch_get_stats(const struct dryi_torch *t, struct dry_stats *stats)
{
    *stats = t->stats;
}
