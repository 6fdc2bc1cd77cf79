/* SPDX-License-Identifier: Apache-2.0 */

/* Pools, the scopes that direct requests to pools, and captures. */

#include "place/paged/paged_pool.h"

#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/memory.h"
#include "place/paged/paged_free.h"
#include "place/paged/record/paged_list.h"

/* --- pools that nobody uses --------------------------------------------------------------- */

static void
idle_push(struct dryi_paged *p, uint32_t pool)
{
    DRYI_ASSERT_SLOW(pool > 0 && p->pools[pool].live && p->pools[pool].users == 0);
    p->pools[pool].prev = p->last_idle;
    p->pools[pool].next = NONE;
    if (p->last_idle == NONE)
        p->first_idle = pool;
    else
        p->pools[p->last_idle].next = pool;
    p->last_idle = pool;
    p->idle_count++;
}

static void
idle_remove(struct dryi_paged *p, uint32_t pool)
{
    DRYI_ASSERT_SLOW(pool > 0 && p->idle_count > 0);
    const struct private_pool *o = &p->pools[pool];
    if (o->prev == NONE)
        p->first_idle = o->next;
    else
        p->pools[o->prev].next = o->next;
    if (o->next == NONE)
        p->last_idle = o->prev;
    else
        p->pools[o->next].prev = o->prev;
    p->idle_count--;
}

void
dryi_paged_idle_turn(struct dryi_paged *p)
{
    DRYI_ASSERT_SLOW(p->first_idle != NONE);
    uint32_t pool = p->first_idle;
    idle_remove(p, pool);
    idle_push(p, pool);
}

/* --- pools ------------------------------------------------------------------------------- */

uint32_t
dryi_paged_pool_find(const struct dryi_paged *p, struct dryi_pool_id id)
{
    uint32_t pool = dryi_treap_at_least(p->pool_nodes, p->pools_by_id, id.a, id.b);
    return pool != NONE && dryi_is_same_pool(p->pools[pool].id, id) ? pool : NONE;
}

/*
 * Make an arena and its two lists. If memory runs out, the finished part stays and the next call
 * completes it. False: out of memory.
 */
static bool
make_arena(struct dryi_paged *p, uint32_t index)
{
    struct arena *a = &p->arenas[index];
    if (index == p->arena_count) {
        *a = (struct arena){.holes = NONE,
                            .shared = NONE,
                            .lists = NONE,
                            .last_stream = NONE,
                            .last_list = NONE,
                            .segments = NONE};
        p->arena_count++;
    }
    if (a->holes == NONE)
        a->holes = dryi_paged_list_make(p, index, FREE_HOLES, NONE);
    if (a->shared == NONE)
        a->shared = dryi_paged_list_make(p, index, FREE_SHARED, NONE);
    return a->holes != NONE && a->shared != NONE;
}

/* Return a dropped pool's record, with its empty arenas, or a new one; NONE: out of memory. */
static uint32_t
take_record(struct dryi_paged *p)
{
    uint32_t pool = p->dead_pool;
    if (pool != NONE) {
        p->dead_pool = p->pools[pool].next;
        p->dead_pool_count--;
        return pool;
    }
    pool = p->pool_count;
    const struct dry_memory *m = &p->memory;
    size_t count = (size_t)pool + 1;
    if (count >= NONE / 2 ||
        !dryi_memory_grow(m, &p->pools, &p->pool_capacity, count, sizeof *p->pools) ||
        !dryi_memory_grow(m, &p->pool_nodes, &p->pool_node_capacity, count,
                          sizeof *p->pool_nodes) ||
        !dryi_memory_grow(m, &p->arenas, &p->arena_capacity, 2 * count,
                          sizeof *p->arenas) ||
        !make_arena(p, 2 * pool) || !make_arena(p, 2 * pool + 1))
        return NONE;
    return p->pool_count++;
}

uint32_t
dryi_paged_pool_make(struct dryi_paged *p, struct dryi_pool_id id, unsigned flags)
{
    DRYI_ASSERT_SLOW(dryi_paged_pool_find(p, id) == NONE);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    if (!dryi_place_figures_reserve(&p->figures, &p->memory))
        return NONE;
    uint32_t pool = take_record(p);
    if (pool == NONE)
        return NONE;
    p->pools[pool] =
        (struct private_pool){.id = id,
                              .flags = flags,
                              .figure = dryi_place_figures_add(&p->figures, id),
                              .made = p->pools_made++,
                              .live = true};
    p->pool_nodes[pool] = (struct dryi_treap_node){
        .major = id.a, .minor = id.b, .priority = (uint32_t)dryi_mix64(pool)};
    dryi_treap_insert(p->pool_nodes, &p->pools_by_id, pool);
    if (pool > 0)
        idle_push(p, pool);
    return pool;
}

void
dryi_paged_pool_drop(struct dryi_paged *p, uint32_t pool)
{
    DRYI_ASSERT_SLOW(p->arenas[2 * pool].segments == NONE);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    idle_remove(p, pool);
    dryi_treap_remove(p->pool_nodes, &p->pools_by_id, pool);
    dryi_place_figures_end(&p->figures, p->pools[pool].figure);
    p->pools[pool] =
        (struct private_pool){.figure = p->pools[pool].figure, .next = p->dead_pool};
    p->dead_pool = pool;
    p->dead_pool_count++;
}

uint32_t
dryi_paged_pool_for(const struct dryi_paged *p, uint32_t stream)
{
    DRYI_ASSERT_SLOW(p->scope_count > 0);
    for (size_t i = p->scope_count; i-- > 0;) {
        if (dryi_stream_filter_covers(&p->scopes[i].filter, p->streams[stream].value))
            return p->scopes[i].pool;
    }
    return 0;
}

bool
dryi_paged_gives_pages(const struct dryi_paged *p, uint32_t arena, bool oom)
{
    DRYI_ASSERT_SLOW(arena / 2 < p->pool_count);
    const struct private_pool *o = &p->pools[arena / 2];
    if (!o->live)
        return false;
    if (arena / 2 == 0 || o->users == 0)
        return true;
    return oom && (o->flags & DRYI_POOL_USE_ON_OOM) && !(o->flags & DRYI_POOL_NO_REMAP) &&
           o->holds == 0;
}

/* --- pools and scopes --------------------------------------------------------------------- */

enum dry_status
dryi_paged_open_pool(void *self, struct dryi_pool_id id, unsigned flags)
{
    struct dryi_paged *p = self;
    uint32_t pool = dryi_paged_pool_find(p, id);
    if (pool == 0)
        return DRY_ERR_ARGUMENT;
    if (pool == NONE)
        pool = dryi_paged_pool_make(p, id, flags);
    if (pool == NONE)
        return DRY_ERR_MEMORY;
    struct private_pool *o = &p->pools[pool];
    if (o->users == 0 && p->arenas[2 * pool].segments == NONE &&
        p->arenas[2 * pool + 1].segments == NONE)
        o->flags = flags; /* it has nothing: as if it were not there */
    if (o->users++ == 0)
        idle_remove(p, pool);
    return DRY_OK;
}

static size_t
find_scope(const struct dryi_paged *p, uint32_t pool)
{
    size_t i = p->scope_count;
    while (i > 0 && p->scopes[i - 1].pool != pool)
        i--;
    return i; /* index plus 1; 0: not found */
}

enum dry_status
dryi_paged_begin_pool(void *self, struct dryi_pool_id id,
                      struct dryi_stream_filter filter)
{
    struct dryi_paged *p = self;
    uint32_t pool = dryi_paged_pool_find(p, id);
    if (pool == NONE || pool == 0 || p->pools[pool].users == 0 || find_scope(p, pool) > 0)
        return DRY_ERR_ARGUMENT;
    if (!dryi_memory_grow(&p->memory, &p->scopes, &p->scope_capacity, p->scope_count + 1,
                          sizeof *p->scopes))
        return DRY_ERR_MEMORY;
    p->scopes[p->scope_count++] = (struct scope){.pool = pool, .filter = filter};
    return DRY_OK;
}

enum dry_status
dryi_paged_end_pool(void *self, struct dryi_pool_id id)
{
    struct dryi_paged *p = self;
    uint32_t pool = dryi_paged_pool_find(p, id);
    size_t i = pool == NONE ? 0 : find_scope(p, pool);
    if (i == 0)
        return DRY_ERR_ARGUMENT;
    memmove(&p->scopes[i - 1], &p->scopes[i], (p->scope_count - i) * sizeof *p->scopes);
    p->scope_count--;
    return DRY_OK;
}

enum dry_status
dryi_paged_release_pool(void *self, struct dryi_pool_id id)
{
    struct dryi_paged *p = self;
    uint32_t pool = dryi_paged_pool_find(p, id);
    if (pool == NONE || pool == 0 || p->pools[pool].users == 0)
        return DRY_ERR_ARGUMENT;
    if (--p->pools[pool].users == 0)
        idle_push(p, pool);
    return DRY_OK;
}

enum dry_status
dryi_paged_flag_pool(void *self, struct dryi_pool_id id, unsigned flags, unsigned mask)
{
    struct dryi_paged *p = self;
    uint32_t pool = dryi_paged_pool_find(p, id);
    if (pool == NONE || pool == 0)
        return DRY_ERR_ARGUMENT;
    p->pools[pool].flags = (p->pools[pool].flags & ~mask) | flags;
    return DRY_OK;
}

enum dry_status
dryi_paged_count_users(const void *self, struct dryi_pool_id id, uint64_t *users)
{
    const struct dryi_paged *p = self;
    uint32_t pool = dryi_paged_pool_find(p, id);
    if (pool == NONE || pool == 0)
        return DRY_ERR_ARGUMENT;
    *users = p->pools[pool].users;
    return DRY_OK;
}

/* --- captures ----------------------------------------------------------------------------- */

enum dry_status
dryi_paged_begin_capture(void *self, struct dryi_stream_filter filter)
{
    struct dryi_paged *p = self;
    if (!dryi_memory_grow(&p->memory, &p->captures, &p->capture_capacity,
                          p->capture_count + 1, sizeof *p->captures))
        return DRY_ERR_MEMORY;
    p->captures[p->capture_count++] = filter;
    return DRY_OK;
}

enum dry_status
dryi_paged_end_capture(void *self)
{
    struct dryi_paged *p = self;
    if (p->capture_count == 0)
        return DRY_ERR_ARGUMENT;
    p->capture_count--;
    dryi_paged_release_held(p);
    return DRY_OK;
}
