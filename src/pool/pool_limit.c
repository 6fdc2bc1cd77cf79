/* SPDX-License-Identifier: Apache-2.0 */

/* Limits of a pool, release of cached memory, and callbacks before a request fails. */

#include "pool/pool_limit.h"

#include <string.h>

#include "base/assert.h"
#include "base/fail.h"
#include "place/torch/torch.h"
#include "pool/history.h"
#include "pool/pool_lock.h"

uint64_t
dryi_pool_limit(const struct dry_pool *pool)
{
    DRYI_ASSERT_SLOW(pool->fraction >= 0 && pool->fraction <= 1);
    uint64_t limit = UINT64_MAX;
    if (pool->fraction < 1 && pool->total_bytes != UINT64_MAX)
        limit = (uint64_t)(pool->fraction * (double)pool->total_bytes + 0.5);
    return limit < pool->limit_bytes ? limit : pool->limit_bytes;
}

enum dry_status
dry_pool_set_fraction(struct dry_pool *pool, double fraction)
{
    if (!(fraction >= 0 && fraction <= 1))
        return DRY_ERR_ARGUMENT;
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    pool->fraction = fraction;
    pool->place.ops->set_limit(pool->place.self, dryi_pool_limit(pool),
                               pool->limit_bytes);
    dryi_pool_leave(pool);
    return DRY_OK;
}

enum dry_status
dry_pool_set_limit(struct dry_pool *pool, uint64_t bytes)
{
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    pool->limit_bytes = bytes;
    pool->place.ops->set_limit(pool->place.self, dryi_pool_limit(pool),
                               pool->limit_bytes);
    dryi_pool_leave(pool);
    return DRY_OK;
}

/* Parse and store an option string. Requires the lock. */
static enum dry_status
set_conf(struct dry_pool *pool, const char *conf, size_t length, struct dry_error *err)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    char *kept = dryi_memory_zalloc(&pool->memory, length + 1, 1);
    if (!kept)
        return dryi_fail_memory(err, "a pool's options");
    memcpy(kept, conf, length);
    enum dry_status status =
        dryi_torch_set_conf(pool->place.self, kept, length, &pool->torch_conf, err);
    if (status == DRY_ERR_FORMAT) { /* The text is an argument here, not a file */
        status = DRY_ERR_ARGUMENT;
        if (err)
            err->status = status;
    }
    if (status != DRY_OK) {
        dryi_memory_free(&pool->memory, kept, length + 1, 1);
        return status;
    }
    dryi_memory_free(&pool->memory, pool->conf, pool->conf_length + 1, 1);
    pool->conf = kept;
    pool->conf_length = length;
    return DRY_OK;
}

enum dry_status
dry_pool_set_conf(struct dry_pool *pool, const char *conf, struct dry_error *err)
{
    if (pool->options.placement != DRY_PLACEMENT_TORCH)
        return dryi_fail(err, DRY_ERR_UNSUPPORTED,
                         "placement paged keeps the options that it was made with");
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return dryi_fail(err, status, "a forked child has no use of its parent's pool");
    status = set_conf(pool, conf, strlen(conf), err);
    dryi_pool_leave(pool);
    return status;
}

/*
 * Release the cached memory of a pool. A history that asks for the context of frees also asks here,
 * so that the events name the requester.
 */
static enum dry_status
empty(struct dry_pool *pool, struct dryi_pool_id id)
{
    struct dryi_asked asked = {.context = DRY_NONE};
    if (atomic_load_explicit(&pool->asks_free, memory_order_relaxed))
        asked = dryi_history_ask(pool);
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    dryi_history_begin(pool, &asked);
    pool->asking = asked.context;
    status = pool->place.ops->empty_cache(pool->place.self, id);
    pool->asking = DRY_NONE;
    dryi_history_end(pool, &asked);
    dryi_pool_leave(pool);
    return status;
}

enum dry_status
dry_pool_empty_cache(struct dry_pool *pool)
{
    return empty(pool, (struct dryi_pool_id){0, 0});
}

enum dry_status
dry_pool_empty_private(struct dry_pool *pool, struct dry_pool_id id)
{
    return empty(pool, (struct dryi_pool_id){id.a, id.b});
}

enum dry_status
dry_pool_trim(struct dry_pool *pool, uint64_t target, uint64_t *reserved)
{
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    status = pool->place.ops->trim(pool->place.self, target);
    if (status == DRY_OK && reserved) {
        struct dry_stats stats;
        pool->place.ops->get_stats(pool->place.self, &stats);
        *reserved = (uint64_t)stats.reserved_bytes.all.current;
    }
    dryi_pool_leave(pool);
    return status;
}

/* --- callbacks ---------------------------------------------------------------------------- */

static uint32_t
find_callback(const struct dry_pool *pool,
              bool (*callback)(void *self, uint64_t size, uint64_t stream), void *self)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&pool->lock));
    uint32_t i = 0;
    while (i < pool->callback_count &&
           (pool->callbacks[i].callback != callback || pool->callbacks[i].self != self))
        i++;
    return i;
}

enum dry_status
dry_pool_add_oom_callback(struct dry_pool *pool,
                          bool (*callback)(void *self, uint64_t size, uint64_t stream),
                          void *self)
{
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    if (!callback || pool->callback_count == DRYI_POOL_CALLBACKS_MAX ||
        find_callback(pool, callback, self) < pool->callback_count)
        status = DRY_ERR_ARGUMENT;
    else
        pool->callbacks[pool->callback_count++] =
            (struct dryi_oom_callback){.callback = callback, .self = self};
    dryi_pool_leave(pool);
    return status;
}

enum dry_status
dry_pool_remove_oom_callback(struct dry_pool *pool,
                             bool (*callback)(void *self, uint64_t size, uint64_t stream),
                             void *self)
{
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    uint32_t at = find_callback(pool, callback, self);
    if (at == pool->callback_count) {
        status = DRY_ERR_ARGUMENT;
    } else {
        pool->callback_count--;
        memmove(&pool->callbacks[at], &pool->callbacks[at + 1],
                (pool->callback_count - at) * sizeof *pool->callbacks);
    }
    dryi_pool_leave(pool);
    return status;
}
