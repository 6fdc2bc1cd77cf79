/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Private pools and captures are implemented by the place. This file keeps the caller's stream
 * filters, and translates between the filters' handles and the place's numbers.
 */

#include "pool/pool_private.h"

#include "base/assert.h"
#include "base/memory.h"
#include "pool/pool_lock.h"
#include "pool/pool_stream.h"

#define ALL_FLAGS (DRY_POOL_USE_ON_OOM | DRY_POOL_NO_SPLIT | DRY_POOL_NO_REMAP)

_Static_assert(DRY_POOL_USE_ON_OOM == DRYI_POOL_USE_ON_OOM &&
                   DRY_POOL_NO_SPLIT == DRYI_POOL_NO_SPLIT &&
                   DRY_POOL_NO_REMAP == DRYI_POOL_NO_REMAP,
               "flags go to the place as they are");

static bool
scope_covers(void *self, uint64_t number)
{
    const struct dryi_pool_scope *scope = self;
    return scope->filter.covers(scope->filter.self,
                                dryi_pool_stream_handle(scope->pool, number));
}

static struct dryi_stream_filter
get_filter(struct dryi_pool_scope *scope)
{
    struct dryi_stream_filter filter = {0};
    if (scope->filter.covers)
        filter = (struct dryi_stream_filter){.covers = scope_covers, .self = scope};
    return filter;
}

static enum dry_status
begin_scope(struct dry_pool *pool, const struct dryi_pool_scope *wanted,
            const struct dry_stream_filter *filter)
{
    const struct dryi_place *place = &pool->place;
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    struct dryi_pool_scope *scope = dryi_memory_zalloc(&pool->memory, 1, sizeof *scope);
    dryi_pool_caches_close(pool); /* requests must pass through the place's filters */
    status = DRY_ERR_MEMORY;
    if (scope) {
        *scope = *wanted;
        scope->pool = pool;
        scope->outer = pool->scopes;
        if (filter)
            scope->filter = *filter;
        status = scope->is_capture
                     ? place->ops->begin_capture(place->self, get_filter(scope))
                     : place->ops->begin_pool(place->self, scope->id, get_filter(scope));
    }
    if (status == DRY_OK)
        pool->scopes = scope;
    else
        dryi_memory_free(&pool->memory, scope, 1, sizeof *scope);
    dryi_pool_leave(pool);
    return status;
}

bool
dryi_pool_is_capturing(const struct dry_pool *pool)
{
    const struct dryi_pool_scope *s = pool->scopes;
    while (s && !s->is_capture)
        s = s->outer;
    return s;
}

/* Free the innermost capture, or the scope of this private pool. */
static void
drop_scope(struct dry_pool *pool, bool is_capture, struct dryi_pool_id id)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    for (struct dryi_pool_scope **link = &pool->scopes; *link; link = &(*link)->outer) {
        struct dryi_pool_scope *scope = *link;
        if (scope->is_capture != is_capture || !dryi_is_same_pool(scope->id, id))
            continue;
        *link = scope->outer;
        dryi_memory_free(&pool->memory, scope, 1, sizeof *scope);
        return;
    }
}

enum dry_status
dry_pool_open_private(struct dry_pool *pool, struct dry_pool_id id, unsigned flags)
{
    if (flags & ~ALL_FLAGS)
        return DRY_ERR_ARGUMENT;
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    status = pool->place.ops->open_pool(pool->place.self,
                                        (struct dryi_pool_id){id.a, id.b}, flags);
    dryi_pool_leave(pool);
    return status;
}

enum dry_status
dry_pool_release_private(struct dry_pool *pool, struct dry_pool_id id)
{
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    status = pool->place.ops->release_pool(pool->place.self,
                                           (struct dryi_pool_id){id.a, id.b});
    dryi_pool_leave(pool);
    return status;
}

enum dry_status
dry_pool_set_private_flags(struct dry_pool *pool, struct dry_pool_id id, unsigned flags,
                           unsigned mask)
{
    if ((mask & ~ALL_FLAGS) || (flags & ~mask))
        return DRY_ERR_ARGUMENT;
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    status = pool->place.ops->flag_pool(pool->place.self,
                                        (struct dryi_pool_id){id.a, id.b}, flags, mask);
    dryi_pool_leave(pool);
    return status;
}

enum dry_status
dry_pool_count_private_users(struct dry_pool *pool, struct dry_pool_id id,
                             uint64_t *users)
{
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    status = pool->place.ops->count_users(pool->place.self,
                                          (struct dryi_pool_id){id.a, id.b}, users);
    dryi_pool_leave(pool);
    return status;
}

enum dry_status
dry_pool_begin_private(struct dry_pool *pool, struct dry_pool_id id,
                       const struct dry_stream_filter *filter)
{
    return begin_scope(pool, &(struct dryi_pool_scope){.id = {id.a, id.b}}, filter);
}

enum dry_status
dry_pool_end_private(struct dry_pool *pool, struct dry_pool_id id)
{
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    struct dryi_pool_id inner = {id.a, id.b};
    status = pool->place.ops->end_pool(pool->place.self, inner);
    if (status == DRY_OK)
        drop_scope(pool, false, inner);
    dryi_pool_leave(pool);
    return status;
}

enum dry_status
dry_pool_begin_capture(struct dry_pool *pool, const struct dry_stream_filter *filter)
{
    return begin_scope(pool, &(struct dryi_pool_scope){.is_capture = true}, filter);
}

enum dry_status
dry_pool_end_capture(struct dry_pool *pool)
{
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    bool has_begun = dryi_pool_is_capturing(pool);
    /* Before end_capture: deferred frees may call the device, which checks for captures. */
    if (has_begun)
        drop_scope(pool, true, (struct dryi_pool_id){0, 0});
    status =
        has_begun ? pool->place.ops->end_capture(pool->place.self) : DRY_ERR_ARGUMENT;
    dryi_pool_leave(pool);
    return status;
}
