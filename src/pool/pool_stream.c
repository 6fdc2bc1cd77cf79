/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A list of streams with the last handle seen for each number, and a map to find them. Numbers
 * without state in the place are removed when the list has doubled, so the cost is O(1) per
 * request.
 */

#include "pool/pool_stream.h"

#include "base/assert.h"
#include "base/memory.h"
#include "pool/pool_lock.h"

#define STREAMS_MAX 64 /* the list is not pruned below this length */

/*
 * Remove streams without state in the place. The last one stays: a request may ask for two streams
 * before it passes either to the place.
 */
static void
forget_streams(struct dry_pool *pool)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    struct dryi_pool_streams *s = &pool->streams;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        struct dryi_pool_stream stream = s->list[i];
        if (stream.number != s->last &&
            !pool->place.ops->has_stream(pool->place.self, stream.number)) {
            dryi_map_take(&s->index, stream.number);
            continue;
        }
        *dryi_map_find(&s->index, stream.number) = kept;
        s->list[kept++] = stream;
    }
    s->count = kept;
    s->prune_count = s->count < STREAMS_MAX / 2 ? STREAMS_MAX : 2 * s->count;
}

DRYI_NOINLINE static enum dry_status
remember(struct dry_pool *pool, uint64_t id, uint64_t handle)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    struct dryi_pool_streams *s = &pool->streams;
    const uint32_t *known = dryi_map_find(&s->index, id);
    if (!known) {
        if (s->count >= s->prune_count && pool->place.ops->has_stream)
            forget_streams(pool);
        if (!dryi_memory_grow(&pool->memory, &s->list, &s->capacity, (size_t)s->count + 1,
                              sizeof *s->list) ||
            !dryi_map_put(&s->index, id, s->count))
            return DRY_ERR_MEMORY;
        s->list[s->count++] = (struct dryi_pool_stream){.number = id, .handle = handle};
    } else {
        s->list[*known].handle = handle; /* one stream may have several handles */
    }
    s->last = id;
    return DRY_OK;
}

uint64_t
dryi_pool_get_number(const struct dry_pool *pool, uint64_t stream)
{
    return pool->has_stream_ids ? pool->device.ops->stream_id(pool->device.self, stream)
                                : stream;
}

enum dry_status
dryi_pool_stream_number(struct dry_pool *pool, uint64_t stream, uint64_t *number)
{
    *number = dryi_pool_get_number(pool, stream);
    return pool->has_stream_ids ? remember(pool, *number, stream) : DRY_OK;
}

uint64_t
dryi_pool_stream_handle(const struct dry_pool *pool, uint64_t number)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&pool->lock));
    const struct dryi_pool_streams *s = &pool->streams;
    if (!pool->has_stream_ids)
        return number;
    const uint32_t *known = dryi_map_find(&s->index, number);
    return known ? s->list[*known].handle : number;
}
