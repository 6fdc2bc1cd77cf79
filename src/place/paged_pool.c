/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Pools, the scopes in which requests go to them, and captures.
 */

#include <string.h>

#include "base/memory.h"
#include "place/paged_state.h"

/* --- owners ------------------------------------------------------------------------------- */

uint32_t
dryi_paged_owner_find(const struct dryi_paged *p, struct dryi_pool_id id)
{
    for (uint32_t i = 0; i < p->owner_count; i++) {
        const struct owner *o = &p->owners[i];
        if (o->live && o->id.a == id.a && o->id.b == id.b)
            return i;
    }
    return NONE;
}

static bool
make_arena(struct dryi_paged *p, uint32_t index)
{
    struct arena arena = {.shelves = NONE,
                          .last_stream = NONE,
                          .last_shelf = NONE,
                          .steal_turn = NONE,
                          .spans = NONE};
    arena.holes = dryi_paged_shelf_make(p, index, SHELF_HOLES, NONE);
    arena.everybody = dryi_paged_shelf_make(p, index, SHELF_EVERYBODY, NONE);
    p->arenas[index] = arena;
    return arena.holes != NONE && arena.everybody != NONE;
}

/* A record of a pool that is gone is taken again, with its arenas, which are empty. */
static uint32_t
dead_owner(const struct dryi_paged *p)
{
    for (uint32_t i = 1; i < p->owner_count; i++) {
        if (!p->owners[i].live)
            return i;
    }
    return NONE;
}

uint32_t
dryi_paged_owner_make(struct dryi_paged *p, struct dryi_pool_id id, unsigned flags)
{
    uint32_t owner = dead_owner(p);
    if (owner == NONE) {
        dryi_paged_forget_idle_pools(p);
        owner = dead_owner(p);
    }
    if (owner == NONE) {
        owner = p->owner_count;
        if (!dryi_memory_grow(&p->memory, &p->owners, &p->owner_capacity,
                              (size_t)owner + 1, sizeof *p->owners) ||
            !dryi_memory_grow(&p->memory, &p->arenas, &p->arena_capacity,
                              2 * ((size_t)owner + 1), sizeof *p->arenas) ||
            !make_arena(p, 2 * owner) || !make_arena(p, 2 * owner + 1))
            return NONE;
        p->owner_count++;
    }
    p->owners[owner] = (struct owner){.id = id, .flags = flags, .live = true};
    return owner;
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
    return oom && (o->flags & DRYI_POOL_USE_ON_OOM) && !(o->flags & DRYI_POOL_NO_REMAP);
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
    p->owners[owner].users++;
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
    p->owners[owner].users--;
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
