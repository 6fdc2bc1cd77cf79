/* SPDX-License-Identifier: Apache-2.0 */

/* See copy.h. The arrays grow during the walk. */

#include "pool/copy.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "pool/history.h"
#include "pool/pool_lock.h"
#include "pool/pool_view.h"

static enum dry_status
on_event(void *self, const struct dry_pool_event *event)
{
    struct dryi_pool_copy *c = self;
    if (!dryi_memory_grow(&c->memory, &c->events, &c->event_capacity, c->event_count + 1,
                          sizeof *c->events))
        return DRY_ERR_MEMORY;
    c->events[c->event_count++] = *event;
    return DRY_OK;
}

static enum dry_status
on_segment(void *self, const struct dry_pool_segment *segment,
           const struct dry_pool_part *parts, size_t count)
{
    struct dryi_pool_copy *c = self;
    size_t n = c->segment_count + 1;
    if (!dryi_memory_grow(&c->memory, &c->segments, &c->segment_capacity, n,
                          sizeof *c->segments) ||
        !dryi_memory_grow(&c->memory, &c->part_counts, &c->part_count_capacity, n,
                          sizeof *c->part_counts) ||
        !dryi_memory_grow(&c->memory, &c->parts, &c->part_capacity, c->part_count + count,
                          sizeof *c->parts))
        return DRY_ERR_MEMORY;
    c->segments[c->segment_count] = *segment;
    c->part_counts[c->segment_count++] = count;
    memcpy(c->parts + c->part_count, parts, count * sizeof *parts);
    c->part_count += count;
    return DRY_OK;
}

/* Paged has none of PyTorch's settings; its mapped segments resemble expandable ones most. */
static void
copy_settings(struct dryi_pool_copy *c, const struct dry_pool *pool)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    if (c->is_torch)
        c->settings = dryi_torch_conf_settings(&pool->torch_conf);
    else
        c->settings = (struct dry_trace_settings){
            .known = true,
            .conf = DRY_NONE,
            .max_split_size = -1,
            .expandable_segments = true,
            .extra = DRY_NONE,
        };
}

static enum dry_status
copy_conf(struct dryi_pool_copy *c, const struct dry_pool *pool)
{
    c->conf = dryi_memory_zalloc(&c->memory, pool->conf_length + 1, 1);
    if (!c->conf)
        return DRY_ERR_MEMORY;
    c->conf_length = pool->conf_length;
    memcpy(c->conf, pool->conf, pool->conf_length);
    return DRY_OK;
}

/* Call `call` for each context of the copy. Requires the pool's lock. */
static void
for_each_context(struct dryi_pool_copy *c,
                 void (*call)(struct dryi_pool_copy *c, uint32_t context))
{
    for (size_t i = 0; i < c->event_count; i++)
        call(c, c->events[i].context);
    for (size_t i = 0; i < c->part_count; i++)
        call(c, c->parts[i].context);
    for (size_t i = 0; i < c->segment_count; i++)
        call(c, c->segments[i].context);
}

static void
hold(struct dryi_pool_copy *c, uint32_t context)
{
    dryi_history_hold(c->pool, context);
}

static void
drop(struct dryi_pool_copy *c, uint32_t context)
{
    dryi_history_drop(c->pool, context, c->history_turn);
}

/* Hold the contexts, so that they stay valid after the lock is released. */
static void
hold_contexts(struct dryi_pool_copy *c, struct dry_pool *pool)
{
    DRYI_ASSERT_SLOW(dryi_pool_is_locked(pool));
    c->pool = pool;
    c->history_turn = pool->history_turn;
    for_each_context(c, hold);
}

static void
drop_contexts(struct dryi_pool_copy *c)
{
    if (!c->pool || dryi_pool_enter(c->pool) != DRY_OK)
        return;
    for_each_context(c, drop);
    dryi_pool_leave(c->pool);
}

enum dry_status
dryi_pool_copy_init(struct dryi_pool_copy *copy, struct dry_pool *pool,
                    const struct dry_memory *memory)
{
    *copy = (struct dryi_pool_copy){.memory = dryi_memory_or_default(memory)};
    enum dry_status status = dryi_pool_enter(pool);
    if (status != DRY_OK)
        return status;
    copy->device_index = pool->options.device_index;
    copy->is_torch = pool->options.placement == DRY_PLACEMENT_TORCH;
    copy_settings(copy, pool);
    status = copy_conf(copy, pool);
    if (status == DRY_OK)
        status = dryi_history_walk(pool, on_event, copy);
    if (status == DRY_OK)
        status = dryi_pool_walk(pool, on_segment, copy);
    if (status == DRY_OK)
        hold_contexts(copy, pool);
    dryi_pool_leave(pool);
    return status;
}

void
dryi_pool_copy_finish(struct dryi_pool_copy *c)
{
    const struct dry_memory *m = &c->memory;
    drop_contexts(c);
    dryi_memory_free(m, c->events, c->event_capacity, sizeof *c->events);
    dryi_memory_free(m, c->segments, c->segment_capacity, sizeof *c->segments);
    dryi_memory_free(m, c->part_counts, c->part_count_capacity, sizeof *c->part_counts);
    dryi_memory_free(m, c->parts, c->part_capacity, sizeof *c->parts);
    if (c->conf)
        dryi_memory_free(m, c->conf, c->conf_length + 1, 1);
    *c = (struct dryi_pool_copy){0};
}
