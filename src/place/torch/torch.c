/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests: rounding and the ladder of retries.
 *
 * A request is rounded and takes a free block of its pool and stream. If there is none, it asks the
 * device, then releases cached memory in growing amounts and asks again. A failed request does not
 * undo these effects.
 */

#include "place/torch/torch.h"

#include "base/assert.h"
#include "base/fail.h"
#include "base/memory.h"
#include "place/torch/torch_block.h"
#include "place/torch/torch_pool.h"
#include "place/torch/torch_release.h"
#include "place/torch/torch_segment.h"

/* --- create and destroy ------------------------------------------------------------------- */

static void
set_limit(struct dryi_torch *t, double fraction)
{
    DRYI_ASSERT_SLOW(fraction >= 0 && fraction <= 1);
    t->has_limit = fraction < 1.0 && t->device_total != UINT64_MAX;
    t->mapped_limit_bytes = UINT64_MAX;
    if (t->has_limit) /* exact for the size of any device */
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
    t->memory = memory;
    t->seed = dryi_seed_make(t);
    t->device = options->device;
    t->conf = options->conf;
    t->rules = options->rules;
    if (!t->rules)
        t->rules = dryi_torch_rules_newest();
    t->observer = options->observer;
    t->free_block_slot = t->free_segment_slot = t->free_use = NONE;
    t->free_owner_slot = t->newest_owner = t->owners_by_id = NONE;
    t->busy_streams = NONE;
    t->deferred_first = t->deferred_last = NONE;
    t->progress_is_told = options->progress_is_told;
    t->last_lanes[0] = t->last_lanes[1] = NONE;
    dryi_intern_init(&t->stream_ids, &t->memory);
    dryi_intern_init(&t->lane_ids, &t->memory);
    dryi_map_init(&t->recorded, &t->memory);
    uint64_t free_bytes;
    t->device.ops->get_info(t->device.self, &free_bytes, &t->device_total);
    set_limit(t, t->conf.per_process_memory_fraction);
    t->stats.max_split_size =
        t->conf.max_split_size == UINT64_MAX ? -1 : (int64_t)t->conf.max_split_size;
    if (dryi_torch_owner_make(t, (struct dryi_pool_id){0, 0}) == NONE) {
        dryi_torch_destroy(t);
        return dryi_fail_memory(err, "an allocator");
    }
    dryi_torch_owner_use(t, 0);
    *place = t;
    return DRY_OK;
}

/* The limit and the max_split_size statistic keep their initial values, as in PyTorch. */
enum dry_status
dryi_torch_set_conf(struct dryi_torch *place, const char *text, size_t length,
                    struct dryi_torch_conf *conf, struct dry_error *err)
{
    enum dry_status status =
        dryi_torch_conf_parse(text, length, place->rules, &place->conf, err);
    if (status == DRY_OK)
        *conf = place->conf;
    return status;
}

/* Return a segment to the device, whether its blocks are in use or not. */
static void
return_segment(struct dryi_torch *t, const struct segment *s)
{
    DRYI_ASSERT_SLOW(s->live);
    const struct dry_device_ops *ops = t->device.ops;
    if (s->page == 0) {
        ops->free(t->device.self, s->addr, s->size);
        return;
    }
    for (uint32_t b = s->first_block; b != NONE; b = t->blocks[b].next) {
        if (!t->blocks[b].mapped)
            continue;
        uint64_t begin =
            t->blocks[b].addr; /* a mapped run ends at the next unmapped block */
        while (t->blocks[b].next != NONE && t->blocks[t->blocks[b].next].mapped)
            b = t->blocks[b].next;
        uint64_t end = t->blocks[b].addr + t->blocks[b].size;
        ops->unmap(t->device.self, begin, end - begin, s->page);
    }
    ops->unreserve(t->device.self, s->addr, s->size);
}

void
dryi_torch_destroy(void *self)
{
    struct dryi_torch *t = self;
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
    dryi_place_figures_finish(&t->figures, &m);
    dryi_memory_free(&m, t->owner_nodes, t->owner_node_capacity, sizeof *t->owner_nodes);
    dryi_memory_free(&m, t->pools, t->pool_capacity, sizeof *t->pools);
    dryi_memory_free(&m, t->lanes, t->lane_capacity, sizeof *t->lanes);
    dryi_memory_free(&m, t->lane_nodes, t->lane_node_capacity, sizeof *t->lane_nodes);
    dryi_intern_finish(&t->lane_ids);
    dryi_map_finish(&t->recorded);
    dryi_memory_free(&m, t->scopes, t->scope_capacity, sizeof *t->scopes);
    dryi_memory_free(&m, t->captures, t->capture_capacity, sizeof *t->captures);
    dryi_memory_free(&m, t, 1, sizeof *t);
}

/* --- alloc -------------------------------------------------------------------------------- */

/* Round up to the next of `divisions` equal steps between two powers of two. */
static uint64_t
round_to_division(uint64_t size, uint64_t divisions)
{
    DRYI_ASSERT_SLOW(size >= BLOCK_SIZE_MIN && divisions > 1);
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
dryi_torch_segment_size(const struct dryi_torch_conf *conf, uint64_t size)
{
    DRYI_ASSERT_SLOW(conf->large_segment_size >= LARGE_REQUEST_MIN);
    if (size <= SMALL_SIZE_MAX)
        return SMALL_SEGMENT;
    if (size < LARGE_REQUEST_MIN)
        return conf->large_segment_size;
    return dryi_round_up(size, LARGE_ROUND);
}

uint64_t
dryi_torch_allowed_bytes(const struct dryi_torch_conf *conf, uint64_t total)
{
    DRYI_ASSERT_SLOW(conf->per_process_memory_fraction >= 0 &&
                     conf->per_process_memory_fraction <= 1);
    if (!conf->throw_on_cudamalloc_oom || total == UINT64_MAX)
        return UINT64_MAX;
    return (uint64_t)(conf->per_process_memory_fraction * (double)total);
}

static enum dry_status
prepare(struct dryi_torch *t, uint64_t size, uint64_t stream, struct request *r)
{
    r->size = size;
    r->rounded = dryi_torch_round_size(&t->conf, size);
    r->alloc_size = dryi_torch_segment_size(&t->conf, r->rounded);
    DRYI_ASSERT_SLOW(size <= r->rounded && r->rounded <= r->alloc_size);
    r->stream = dryi_torch_stream_index(t, stream);
    r->pool = 2 * dryi_torch_find_owner(t, stream) + (r->rounded <= SMALL_SIZE_MAX);
    r->expandable = t->conf.expandable_segments;
    if (r->stream == NONE || !dryi_torch_block_reserve(t, 1))
        return DRY_ERR_MEMORY;
    r->lane = dryi_torch_lane_index(t, r->pool, r->stream);
    if (r->lane == NONE)
        return DRY_ERR_MEMORY;
    t->rejected = false;
    return DRY_OK;
}

static bool
is_capturing(const struct dryi_torch *t, const struct request *r)
{
    return dryi_torch_in_capture(t) || dryi_torch_is_captured(t, r->stream);
}

/* Only a full device leads to the next retry; a rejection or a device failure ends the request. */
static bool
is_worth_retrying(const struct dryi_torch *t, enum dry_status status)
{
    return status == DRY_ERR_NO_SPACE && !t->rejected;
}

/*
 * Serve a request of the default pools from a free block of a private pool with USE_ON_OOM
 * (PyTorch's try_mempool_fallback). On success *r becomes a request of that pool. PyTorch tries
 * such pools in hash table order; here the oldest is first.
 */
static uint32_t
take_from_private(struct dryi_torch *t, struct request *r)
{
    uint32_t found = NONE;
    if (!t->serves_on_oom || r->pool / 2 != 0)
        return found;
    for (uint32_t o = t->owners[0].next; o != NONE && found == NONE;
         o = t->owners[o].next) {
        const struct owner *owner = &t->owners[o];
        if (owner->use_count == 0 || !(owner->flags & DRYI_POOL_USE_ON_OOM))
            continue;
        struct request other = *r;
        other.pool = 2 * o + pool_is_small(r->pool);
        other.lane = dryi_torch_lane_find(t, other.pool, r->stream);
        other.expandable = r->expandable && t->rules->fallback_expands;
        if (other.lane == NONE)
            continue;
        found = dryi_torch_free_take(t, &other);
        if (found != NONE)
            *r = other;
    }
    return found;
}

static enum dry_status
climb_ladder(struct dryi_torch *t, struct request *r, uint32_t *block)
{
    if (t->has_limit && t->conf.garbage_collection_threshold > 0)
        dryi_torch_collect_garbage(t);
    enum dry_status status = dryi_torch_segment_alloc(t, r, false, block);
    if (!is_worth_retrying(t, status))
        return status;
    if (!t->rules->fallback_is_last) {
        *block = take_from_private(t, r);
        if (*block != NONE)
            return DRY_OK;
    }
    if (dryi_torch_release_available(t, r))
        status = dryi_torch_segment_alloc(t, r, false, block);
    /* Only the first attempt's rejection ends the request here; a later one sets the status. */
    if (status == DRY_ERR_NO_SPACE && !is_capturing(t, r)) {
        status = dryi_torch_release_cached(t, (struct dryi_pool_id){0, 0});
        if (status == DRY_OK)
            status = dryi_torch_segment_alloc(t, r, true, block);
    }
    if (status == DRY_ERR_NO_SPACE && t->rules->fallback_is_last) {
        *block = take_from_private(t, r);
        status = *block != NONE ? DRY_OK : status;
    }
    return status;
}

static void
report_oom(struct dryi_torch *t, const struct request *r)
{
    struct dryi_place_event event = {
        .action = DRY_ACTION_OOM,
        .size = r->rounded,
        .stream = t->streams[r->stream].value,
        .pool = t->owners[r->pool / 2].id,
        .segment = DRYI_NO_BLOCK,
    };
    uint64_t total_bytes;
    t->device.ops->get_info(t->device.self, &event.addr, &total_bytes);
    if (t->observer.event)
        t->observer.event(t->observer.self, &event);
    t->stats.num_ooms++;
}

enum dry_status
dryi_torch_alloc(void *self, uint64_t size, uint64_t stream, dryi_block *block)
{
    struct dryi_torch *t = self;
    if (size >= REQUEST_LIMIT)
        return DRY_ERR_ARGUMENT;
    if (size == 0) {
        *block = DRYI_NO_BLOCK;
        return DRY_OK;
    }
    struct request r;
    enum dry_status status = prepare(t, size, stream, &r);
    if (status != DRY_OK)
        return status;
    if (!is_capturing(t, &r))
        dryi_torch_process_events(t);
    uint32_t found = dryi_torch_free_take(t, &r);
    if (found == NONE) {
        t->hindered = DRY_OK;
        status = climb_ladder(t, &r, &found);
        if (status == DRY_ERR_NO_SPACE && t->hindered != DRY_OK)
            return t->hindered; /* PyTorch also throws if an event is refused */
        if (status == DRY_ERR_NO_SPACE && !t->rejected)
            report_oom(t, &r);
        if (status != DRY_OK)
            return status;
    }
    *block = dryi_torch_block_use(t, found, &r);
    DRYI_ASSERT_SLOW(t->blocks[*block].lane == r.lane &&
                     t->blocks[*block].size >= r.rounded);
    return DRY_OK;
}

void
dryi_torch_look_ahead(const struct dryi_torch *t, uint64_t size, uint64_t stream,
                      struct dryi_pool_id pool, struct dryi_torch_outlook *outlook)
{
    *outlook = (struct dryi_torch_outlook){0};
    uint32_t owner = dryi_torch_owner_find(t, pool);
    uint32_t index = dryi_intern_find(&t->stream_ids, &stream, sizeof stream);
    if (owner == NONE || index == DRYI_INTERN_NONE || size == 0 || size >= REQUEST_LIMIT)
        return;
    struct request r = {.rounded = dryi_torch_round_size(&t->conf, size),
                        .stream = index,
                        .expandable = t->conf.expandable_segments};
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
        outlook->suffices =
            t->blocks[available].size >= r.rounded; /* it is oversize in any case */
    }
}

/* --- the rest --------------------------------------------------------------------------- */

enum dry_status
dryi_torch_empty_cache(void *self, struct dryi_pool_id pool)
{
    struct dryi_torch *t = self;
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
dryi_torch_set_limit(void *self, uint64_t bytes, uint64_t mapped_bytes)
{
    struct dryi_torch *t = self;
    t->has_limit = bytes != UINT64_MAX;
    t->limit_bytes = bytes;
    t->mapped_limit_bytes = mapped_bytes;
}

void
dryi_torch_get_stats(const void *self, struct dry_stats *stats)
{
    const struct dryi_torch *t = self;
    DRYI_ASSERT_SLOW((uint64_t)t->stats.reserved_bytes.all.current == t->total_bytes);
    *stats = t->stats;
}
