/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Streams, private pools with their scopes, and lanes. Streams and lanes are found by a hash in
 * O(1), owners by id in O(log n).
 */

#include "place/torch/torch_pool.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"

/* --- streams and lanes -------------------------------------------------------------------- */

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
dryi_torch_stream_progressed(void *self, uint64_t stream)
{
    struct dryi_torch *t = self;
    uint32_t index = dryi_intern_find(&t->stream_ids, &stream, sizeof stream);
    if (index == DRYI_INTERN_NONE || t->streams[index].may_be_done)
        return;
    DRYI_ASSERT_SLOW(t->progressed_count < t->stream_count);
    t->streams[index].may_be_done = true;
    /* Dryi_torch_stream_index() reserved it. */
    t->progressed[t->progressed_count++] = index;
}

uint32_t
dryi_torch_lane_find(const struct dryi_torch *t, uint32_t pool, uint32_t stream)
{
    DRYI_ASSERT_SLOW(pool / 2 < t->owner_count && stream < t->stream_count);
    uint32_t key[2] = {pool, stream};
    return dryi_intern_find(&t->lane_ids, key, sizeof key);
}

uint32_t
dryi_torch_lane_index(struct dryi_torch *t, uint32_t pool, uint32_t stream)
{
    DRYI_ASSERT_SLOW(pool / 2 < t->owner_count && stream < t->stream_count);
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
        t->lane_nodes[lane] =
            (struct dryi_treap_node){.major = t->streams[stream].value,
                                     .priority = (uint32_t)dryi_mix64(lane ^ t->seed)};
        dryi_treap_insert(t->lane_nodes, &t->pools[pool].lanes, lane);
    }
    return *last = lane;
}

/* --- owners ------------------------------------------------------------------------------- */

uint32_t
dryi_torch_owner_find(const struct dryi_torch *t, struct dryi_pool_id id)
{
    uint32_t owner = dryi_treap_at_least(t->owner_nodes, t->owners_by_id, id.a, id.b);
    return owner != NONE && dryi_is_same_pool(t->owners[owner].id, id) ? owner : NONE;
}

/* Take an unused record, or a new one; NONE: out of memory. */
static uint32_t
take_record(struct dryi_torch *t)
{
    const struct dry_memory *m = &t->memory;
    uint32_t owner = t->free_owner_slot;
    if (owner != NONE) {
        t->free_owner_slot = t->owners[owner].next;
        DRYI_ASSERT_SLOW(!t->owners[owner].live && t->owners[owner].segments == 0);
        return owner;
    }
    size_t count = (size_t)t->owner_count + 1;
    if (count >= NONE / 2 ||
        !dryi_memory_grow(m, &t->owners, &t->owner_capacity, count, sizeof *t->owners) ||
        !dryi_memory_grow(m, &t->owner_nodes, &t->owner_node_capacity, count,
                          sizeof *t->owner_nodes) ||
        !dryi_memory_grow(m, &t->pools, &t->pool_capacity, 2 * count, sizeof *t->pools))
        return NONE;
    owner = t->owner_count++;
    t->pools[2 * owner].lanes = t->pools[2 * owner + 1].lanes = NONE;
    return owner;
}

/*
 * An id used before gets a new owner: what the former owner left (addresses that could not be
 * unmapped) does not pass to it. A recycled record keeps its lanes, which are empty.
 */
uint32_t
dryi_torch_owner_make(struct dryi_torch *t, struct dryi_pool_id id)
{
    DRYI_ASSERT_SLOW(dryi_torch_owner_find(t, id) == NONE);
    if (!dryi_place_figures_reserve(&t->figures, &t->memory))
        return NONE;
    uint32_t owner = take_record(t);
    if (owner == NONE)
        return NONE;
    t->owners[owner] = (struct owner){.id = id,
                                      .figure = dryi_place_figures_add(&t->figures, id),
                                      .made = t->owners_made++,
                                      .prev = t->newest_owner,
                                      .next = NONE,
                                      .live = true};
    if (t->newest_owner != NONE)
        t->owners[t->newest_owner].next = owner;
    t->newest_owner = owner;
    t->owner_nodes[owner] = (struct dryi_treap_node){
        .major = id.a, .minor = id.b, .priority = (uint32_t)dryi_mix64(owner ^ t->seed)};
    dryi_treap_insert(t->owner_nodes, &t->owners_by_id, owner);
    t->pools[2 * owner].search_count = t->pools[2 * owner + 1].search_count = 0;
    t->unused_owners++;
    return owner;
}

static void
free_record(struct dryi_torch *t, uint32_t owner)
{
    DRYI_ASSERT_SLOW(owner > 0 && !t->owners[owner].live &&
                     t->owners[owner].segments == 0);
    DRYI_ASSERT_SLOW(t->owners[owner].reserved_bytes == 0);
    dryi_place_figures_end(&t->figures, t->owners[owner].figure);
    t->owners[owner].next = t->free_owner_slot;
    t->free_owner_slot = owner;
}

void
dryi_torch_owner_end(struct dryi_torch *t, uint32_t owner)
{
    struct owner *o = &t->owners[owner];
    DRYI_ASSERT_SLOW(owner > 0 && o->live && o->use_count == 0 && o->reserved_bytes == 0);
    DRYI_ASSERT_SLOW(o->prev != NONE && t->owners[o->prev].next == owner &&
                     t->unused_owners > 0);
    dryi_treap_remove(t->owner_nodes, &t->owners_by_id, owner);
    t->owners[o->prev].next = o->next; /* never NONE: the default pool is the oldest */
    if (o->next != NONE)
        t->owners[o->next].prev = o->prev;
    else
        t->newest_owner = o->prev;
    o->live = false;
    t->unused_owners--;
    if (o->segments == 0)
        free_record(t, owner);
}

void
dryi_torch_owner_lose(struct dryi_torch *t, uint32_t owner)
{
    struct owner *o = &t->owners[owner];
    DRYI_ASSERT_SLOW(o->segments > 0);
    if (--o->segments == 0 && !o->live)
        free_record(t, owner);
}

/* Add a user. An owner is created without users, and becomes unfreeable with the first. */
void
dryi_torch_owner_use(struct dryi_torch *t, uint32_t owner)
{
    DRYI_ASSERT_SLOW(t->owners[owner].live &&
                     (t->owners[owner].use_count > 0 || t->unused_owners > 0));
    if (t->owners[owner].use_count++ == 0)
        t->unused_owners--;
}

bool
dryi_torch_is_in_scope(const struct dryi_torch *t, uint32_t owner)
{
    for (uint32_t i = 0; i < t->scope_count; i++) {
        if (t->scopes[i].owner == owner)
            return true;
    }
    return false;
}

enum dry_status
dryi_torch_begin_pool(struct dryi_torch *t, struct dryi_pool_id pool)
{
    uint32_t owner = dryi_torch_owner_find(t, pool);
    if (owner == 0 || (owner != NONE && dryi_torch_is_in_scope(t, owner)))
        return DRY_ERR_ARGUMENT;
    if (owner != NONE && t->owners[owner].use_count == 0)
        return DRY_ERR_ARGUMENT; /* Released but not yet freed; PyTorch refuses too */
    if (!dryi_memory_grow(&t->memory, &t->scopes, &t->scope_capacity, t->scope_count + 1,
                          sizeof *t->scopes))
        return DRY_ERR_MEMORY;
    if (owner == NONE)
        owner = dryi_torch_owner_make(t, pool);
    if (owner == NONE)
        return DRY_ERR_MEMORY;
    dryi_torch_owner_use(t, owner);
    t->scopes[t->scope_count++] = (struct scope){.owner = owner};
    return DRY_OK;
}

enum dry_status
dryi_torch_open_pool(void *self, struct dryi_pool_id pool, unsigned flags)
{
    struct dryi_torch *t = self;
    uint32_t owner = dryi_torch_owner_find(t, pool);
    if (owner == 0)
        return DRY_ERR_ARGUMENT;
    if (owner == NONE) {
        owner = dryi_torch_owner_make(t, pool);
        if (owner == NONE)
            return DRY_ERR_MEMORY;
        t->owners[owner].flags = flags;
        t->serves_on_oom |= (flags & DRYI_POOL_USE_ON_OOM) != 0;
    }
    dryi_torch_owner_use(t, owner);
    return DRY_OK;
}

enum dry_status
dryi_torch_begin_scope(void *self, struct dryi_pool_id pool,
                       struct dryi_stream_filter filter)
{
    struct dryi_torch *t = self;
    uint32_t owner = dryi_torch_owner_find(t, pool);
    if (owner == NONE || owner == 0 || t->owners[owner].use_count == 0 ||
        dryi_torch_is_in_scope(t, owner))
        return DRY_ERR_ARGUMENT;
    if (!dryi_memory_grow(&t->memory, &t->scopes, &t->scope_capacity, t->scope_count + 1,
                          sizeof *t->scopes))
        return DRY_ERR_MEMORY;
    t->scopes[t->scope_count++] = (struct scope){.owner = owner, .filter = filter};
    return DRY_OK;
}

uint32_t
dryi_torch_find_owner(const struct dryi_torch *t, uint64_t stream)
{
    for (uint32_t i = 0; i < t->scope_count; i++) {
        uint32_t at = t->rules->scopes_last_first ? t->scope_count - 1 - i : i;
        if (dryi_stream_filter_covers(&t->scopes[at].filter, stream))
            return t->scopes[at].owner;
    }
    return 0;
}

enum dry_status
dryi_torch_end_pool(void *self, struct dryi_pool_id pool)
{
    struct dryi_torch *t = self;
    uint32_t owner = dryi_torch_owner_find(t, pool);
    for (uint32_t i = 0; owner != NONE && i < t->scope_count; i++) {
        if (t->scopes[i].owner != owner)
            continue;
        memmove(&t->scopes[i], &t->scopes[i + 1],
                (t->scope_count - i - 1) * sizeof *t->scopes);
        t->scope_count--;
        return DRY_OK;
    }
    return DRY_ERR_ARGUMENT;
}

enum dry_status
dryi_torch_release_pool(void *self, struct dryi_pool_id pool)
{
    struct dryi_torch *t = self;
    uint32_t owner = dryi_torch_owner_find(t, pool);
    if (owner == NONE || owner == 0 || t->owners[owner].use_count == 0)
        return DRY_ERR_ARGUMENT;
    if (--t->owners[owner].use_count == 0)
        t->unused_owners++;
    return DRY_OK;
}

enum dry_status
dryi_torch_flag_pool(void *self, struct dryi_pool_id pool, unsigned flags, unsigned mask)
{
    struct dryi_torch *t = self;
    uint32_t owner = dryi_torch_owner_find(t, pool);
    if (owner == NONE || owner == 0)
        return DRY_ERR_ARGUMENT;
    t->owners[owner].flags = (t->owners[owner].flags & ~mask) | flags;
    t->serves_on_oom |= (flags & DRYI_POOL_USE_ON_OOM) != 0;
    return DRY_OK;
}

enum dry_status
dryi_torch_count_users(const void *self, struct dryi_pool_id pool, uint64_t *users)
{
    const struct dryi_torch *t = self;
    uint32_t owner = dryi_torch_owner_find(t, pool);
    if (owner == NONE || owner == 0)
        return DRY_ERR_ARGUMENT;
    *users = t->owners[owner].use_count;
    return DRY_OK;
}

bool
dryi_torch_in_capture(const struct dryi_torch *t)
{
    return t->rules->scope_is_capture && t->scope_count > 0;
}

/* --- captures --------------------------------------------------------------------------- */

enum dry_status
dryi_torch_begin_capture(void *self, struct dryi_stream_filter filter)
{
    struct dryi_torch *t = self;
    if (!dryi_memory_grow(&t->memory, &t->captures, &t->capture_capacity,
                          (size_t)t->capture_count + 1, sizeof *t->captures))
        return DRY_ERR_MEMORY;
    t->captures[t->capture_count++] = filter;
    return DRY_OK;
}

enum dry_status
dryi_torch_end_capture(void *self)
{
    struct dryi_torch *t = self;
    if (t->capture_count == 0)
        return DRY_ERR_ARGUMENT;
    t->capture_count--;
    return DRY_OK;
}

bool
dryi_torch_is_captured(const struct dryi_torch *t, uint32_t stream)
{
    DRYI_ASSERT_SLOW(stream < t->stream_count);
    for (uint32_t i = 0; i < t->capture_count; i++) {
        if (dryi_stream_filter_covers(&t->captures[i], t->streams[stream].value))
            return true;
    }
    return false;
}
