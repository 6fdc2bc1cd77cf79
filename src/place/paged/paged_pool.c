/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Pools, the scopes in which requests go to them, and captures.
 */

#include <string.h>

#include "base/memory.h"
#include "place/paged/paged_inside.h"

/* --- pools that nobody uses --------------------------------------------------------------- */

static void
idle_push(struct dryi_paged *p, uint32_t owner)
{
    p->owners[owner].prev = p->last_idle;
    p->owners[owner].next = NONE;
    if (p->last_idle == NONE)
        p->first_idle = owner;
    else
        p->owners[p->last_idle].next = owner;
    p->last_idle = owner;
    p->idle_count++;
}

static void
idle_remove(struct dryi_paged *p, uint32_t owner)
{
    const struct owner *o = &p->owners[owner];
    if (o->prev == NONE)
        p->first_idle = o->next;
    else
        p->owners[o->prev].next = o->next;
    if (o->next == NONE)
        p->last_idle = o->prev;
    else
        p->owners[o->next].prev = o->prev;
    p->idle_count--;
}

void
dryi_paged_idle_turn(struct dryi_paged *p)
{
    uint32_t owner = p->first_idle;
    idle_remove(p, owner);
    idle_push(p, owner);
}

/* --- owners ------------------------------------------------------------------------------- */

uint32_t
dryi_paged_owner_find(const struct dryi_paged *p, struct dryi_pool_id id)
{
    uint32_t owner = dryi_treap_at_least(p->owner_nodes, p->owners_by_id, id.a, id.b);
    bool is_it =
        owner != NONE && p->owners[owner].id.a == id.a && p->owners[owner].id.b == id.b;
    return is_it ? owner : NONE;
}

/* Where there is no memory for all of it, what there is of it is for the next one to ask. */
static bool
make_arena(struct dryi_paged *p, uint32_t index)
{
    struct arena *a = &p->arenas[index];
    if (index == p->arena_count) {
        *a = (struct arena){.holes = NONE,
                            .everybody = NONE,
                            .shelves = NONE,
                            .last_stream = NONE,
                            .last_shelf = NONE,
                            .segments = NONE};
        p->arena_count++;
    }
    if (a->holes == NONE)
        a->holes = dryi_paged_shelf_make(p, index, SHELF_HOLES, NONE);
    if (a->everybody == NONE)
        a->everybody = dryi_paged_shelf_make(p, index, SHELF_EVERYBODY, NONE);
    return a->holes != NONE && a->everybody != NONE;
}

/* A record of a pool that is gone is taken again, with its arenas, which are empty. */
static uint32_t
take_record(struct dryi_paged *p)
{
    p->opened++;
    dryi_paged_forget_idle_pools(p);
    uint32_t owner = p->dead_owner;
    if (owner != NONE) {
        p->dead_owner = p->owners[owner].next;
        return owner;
    }
    owner = p->owner_count;
    const struct dry_memory *m = &p->memory;
    size_t count = (size_t)owner + 1;
    if (count >= NONE / 2 ||
        !dryi_memory_grow(m, &p->owners, &p->owner_capacity, count, sizeof *p->owners) ||
        !dryi_memory_grow(m, &p->owner_nodes, &p->owner_node_capacity, count,
                          sizeof *p->owner_nodes) ||
        !dryi_memory_grow(m, &p->arenas, &p->arena_capacity, 2 * count,
                          sizeof *p->arenas) ||
        !make_arena(p, 2 * owner) || !make_arena(p, 2 * owner + 1))
        return NONE;
    return p->owner_count++;
}

uint32_t
dryi_paged_owner_make(struct dryi_paged *p, struct dryi_pool_id id, unsigned flags)
{
    if (!dryi_place_figures_reserve(&p->figures, &p->memory))
        return NONE;
    uint32_t owner = take_record(p);
    if (owner == NONE)
        return NONE;
    p->owners[owner] = (struct owner){.id = id,
                                      .flags = flags,
                                      .figure = dryi_place_figures_add(&p->figures, id),
                                      .made = p->owners_made++,
                                      .live = true};
    p->owner_nodes[owner] = (struct dryi_treap_node){
        .major = id.a, .minor = id.b, .priority = (uint32_t)dryi_mix64(owner)};
    dryi_treap_insert(p->owner_nodes, &p->owners_by_id, owner);
    if (owner > 0)
        idle_push(p, owner);
    return owner;
}

void
dryi_paged_owner_drop(struct dryi_paged *p, uint32_t owner)
{
    idle_remove(p, owner);
    dryi_treap_remove(p->owner_nodes, &p->owners_by_id, owner);
    dryi_place_figures_end(&p->figures, p->owners[owner].figure);
    p->owners[owner] =
        (struct owner){.figure = p->owners[owner].figure, .next = p->dead_owner};
    p->dead_owner = owner;
}

uint32_t
dryi_paged_owner_for(const struct dryi_paged *p, uint32_t stream)
{
    for (size_t i = p->scope_count; i-- > 0;) {
        if (dryi_stream_filter_covers(&p->scopes[i].filter, p->streams[stream].value))
            return p->scopes[i].owner;
    }
    return 0;
}

bool
dryi_paged_gives_pages(const struct dryi_paged *p, uint32_t arena, bool oom)
{
    const struct owner *o = &p->owners[arena / 2];
    if (!o->live)
        return false;
    if (arena / 2 == 0 || o->users == 0)
        return true;
    return oom && (o->flags & DRYI_POOL_USE_ON_OOM) && !(o->flags & DRYI_POOL_NO_REMAP) &&
           o->holds == 0;
}

/* --- pools and scopes --------------------------------------------------------------------- */

enum dry_status
dryi_paged_open_pool(void *self, struct dryi_pool_id pool, unsigned flags)
{
    struct dryi_paged *p = self;
    uint32_t owner = dryi_paged_owner_find(p, pool);
    if (owner == 0)
        return DRY_ERR_ARGUMENT;
    if (owner == NONE)
        owner = dryi_paged_owner_make(p, pool, flags);
    if (owner == NONE)
        return DRY_ERR_MEMORY;
    struct owner *o = &p->owners[owner];
    if (o->users == 0 && p->arenas[2 * owner].segments == NONE &&
        p->arenas[2 * owner + 1].segments == NONE)
        o->flags = flags; /* it has nothing: as if it were not there */
    if (o->users++ == 0)
        idle_remove(p, owner);
    return DRY_OK;
}

static size_t
find_scope(const struct dryi_paged *p, uint32_t owner)
{
    size_t i = p->scope_count;
    while (i > 0 && p->scopes[i - 1].owner != owner)
        i--;
    return i; /* one more than its index; 0: none */
}

enum dry_status
dryi_paged_begin_pool(void *self, struct dryi_pool_id pool,
                      struct dryi_stream_filter filter)
{
    struct dryi_paged *p = self;
    uint32_t owner = dryi_paged_owner_find(p, pool);
    if (owner == NONE || owner == 0 || p->owners[owner].users == 0 ||
        find_scope(p, owner) > 0)
        return DRY_ERR_ARGUMENT;
    if (!dryi_memory_grow(&p->memory, &p->scopes, &p->scope_capacity, p->scope_count + 1,
                          sizeof *p->scopes))
        return DRY_ERR_MEMORY;
    p->scopes[p->scope_count++] = (struct scope){.owner = owner, .filter = filter};
    return DRY_OK;
}

enum dry_status
dryi_paged_end_pool(void *self, struct dryi_pool_id pool)
{
    struct dryi_paged *p = self;
    uint32_t owner = dryi_paged_owner_find(p, pool);
    size_t i = owner == NONE ? 0 : find_scope(p, owner);
    if (i == 0)
        return DRY_ERR_ARGUMENT;
    memmove(&p->scopes[i - 1], &p->scopes[i], (p->scope_count - i) * sizeof *p->scopes);
    p->scope_count--;
    return DRY_OK;
}

enum dry_status
dryi_paged_release_pool(void *self, struct dryi_pool_id pool)
{
    struct dryi_paged *p = self;
    uint32_t owner = dryi_paged_owner_find(p, pool);
    if (owner == NONE || owner == 0 || p->owners[owner].users == 0)
        return DRY_ERR_ARGUMENT;
    if (--p->owners[owner].users == 0)
        idle_push(p, owner);
    return DRY_OK;
}

enum dry_status
dryi_paged_flag_pool(void *self, struct dryi_pool_id pool, unsigned flags, unsigned mask)
{
    struct dryi_paged *p = self;
    uint32_t owner = dryi_paged_owner_find(p, pool);
    if (owner == NONE || owner == 0)
        return DRY_ERR_ARGUMENT;
    p->owners[owner].flags = (p->owners[owner].flags & ~mask) | flags;
    return DRY_OK;
}

enum dry_status
dryi_paged_count_users(const void *self, struct dryi_pool_id pool, uint64_t *users)
{
    const struct dryi_paged *p = self;
    uint32_t owner = dryi_paged_owner_find(p, pool);
    if (owner == NONE || owner == 0)
        return DRY_ERR_ARGUMENT;
    *users = p->owners[owner].users;
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
    dryi_paged_forget_idle_pools(p);
    return DRY_OK;
}
