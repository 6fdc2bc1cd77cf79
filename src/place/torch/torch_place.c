/* SPDX-License-Identifier: Apache-2.0 */

/* PyTorch's allocator behind the interface of place.h. */

#include "place/torch/torch.h"

#include "base/assert.h"
#include "place/torch/torch_checkpoint.h"
#include "place/torch/torch_state.h"

static void
place_destroy(void *self)
{
    dryi_torch_destroy(self);
}

static enum dry_status
place_alloc(void *self, uint64_t size, uint64_t stream, dryi_block *block)
{
    return dryi_torch_alloc(self, size, stream, block);
}

static enum dry_status
place_free(void *self, dryi_block block)
{
    return dryi_torch_free(self, block);
}

static enum dry_status
place_record_stream(void *self, dryi_block block, uint64_t stream)
{
    return dryi_torch_record_stream(self, block, stream);
}

static void
place_stream_progressed(void *self, uint64_t stream)
{
    dryi_torch_stream_progressed(self, stream);
}

static void
place_process_events(void *self)
{
    dryi_torch_process_events(self);
}

static enum dry_status
place_empty_cache(void *self, struct dryi_pool_id pool)
{
    return dryi_torch_empty_cache(self, pool);
}

/* Does nothing: no stream ever takes another's free memory, whatever their order. */
static enum dry_status
place_stream_waits(void *self, uint64_t stream, uint64_t on)
{
    (void)self;
    (void)stream;
    (void)on;
    return DRY_OK;
}

static enum dry_status
place_trim(void *self, uint64_t target)
{
    return dryi_torch_trim(self, target);
}

static void
place_set_limit(void *self, uint64_t bytes, uint64_t mapped_bytes)
{
    dryi_torch_set_limit(self, bytes, mapped_bytes);
}

static enum dry_status
place_open_pool(void *self, struct dryi_pool_id pool, unsigned flags)
{
    return dryi_torch_open_pool(self, pool, flags);
}

static enum dry_status
place_begin_pool(void *self, struct dryi_pool_id pool, struct dryi_stream_filter filter)
{
    return dryi_torch_begin_scope(self, pool, filter);
}

static enum dry_status
place_end_pool(void *self, struct dryi_pool_id pool)
{
    return dryi_torch_end_pool(self, pool);
}

static enum dry_status
place_release_pool(void *self, struct dryi_pool_id pool)
{
    return dryi_torch_release_pool(self, pool);
}

static enum dry_status
place_flag_pool(void *self, struct dryi_pool_id pool, unsigned flags, unsigned mask)
{
    return dryi_torch_flag_pool(self, pool, flags, mask);
}

static enum dry_status
place_count_users(const void *self, struct dryi_pool_id pool, uint64_t *users)
{
    return dryi_torch_count_users(self, pool, users);
}

static enum dry_status
place_hold_pool(void *self, struct dryi_pool_id pool, uint64_t *hold)
{
    return dryi_torch_hold_pool(self, pool, hold);
}

static enum dry_status
place_restore_pool(void *self, const struct dryi_restored *wanted,
                   const struct dryi_restore_watcher *watcher, struct dry_error *err)
{
    return dryi_torch_restore_pool(self, wanted, watcher, err);
}

static enum dry_status
place_begin_capture(void *self, struct dryi_stream_filter filter)
{
    return dryi_torch_begin_capture(self, filter);
}

static enum dry_status
place_end_capture(void *self)
{
    return dryi_torch_end_capture(self);
}

static uint64_t
place_get_address(const void *self, dryi_block block)
{
    const struct dryi_torch *t = self;
    DRYI_ASSERT_SLOW(block < t->block_count && t->blocks[block].live);
    return t->blocks[block].addr;
}

static void
place_visit_figures(const void *self, dryi_figure_visit *visit, void *visitor)
{
    const struct dryi_torch *t = self;
    dryi_place_figures_visit(&t->figures, visit, visitor);
}

static void
place_set_observer(void *self, struct dryi_place_observer observer)
{
    struct dryi_torch *t = self;
    t->observer = observer;
}

static uint64_t
place_round_size(const void *self, uint64_t size)
{
    const struct dryi_torch *t = self;
    return dryi_torch_round_size(&t->conf, size);
}

static enum dry_status
place_walk(const void *self,
           enum dry_status (*visit)(void *visitor,
                                    const struct dryi_segment_info *segment,
                                    const struct dryi_block_info *blocks, size_t count),
           void *visitor)
{
    return dryi_torch_walk(self, visit, visitor);
}

static enum dry_status
place_check(const void *self, struct dry_error *err)
{
    return dryi_torch_check(self, err);
}

static const struct dryi_place_ops torch_ops = {
    .destroy = place_destroy,
    .alloc = place_alloc,
    .free = place_free,
    .record_stream = place_record_stream,
    .stream_waits = place_stream_waits,
    .stream_progressed = place_stream_progressed,
    .process_events = place_process_events,
    .empty_cache = place_empty_cache,
    .trim = place_trim,
    .set_limit = place_set_limit,
    .open_pool = place_open_pool,
    .begin_pool = place_begin_pool,
    .end_pool = place_end_pool,
    .release_pool = place_release_pool,
    .flag_pool = place_flag_pool,
    .count_users = place_count_users,
    .hold_pool = place_hold_pool,
    .restore_pool = place_restore_pool,
    .begin_capture = place_begin_capture,
    .end_capture = place_end_capture,
    .get_address = place_get_address,
    .get_block = dryi_torch_get_block,
    .get_stats = dryi_torch_get_stats,
    .get_counters = dryi_torch_get_counters,
    .visit_figures = place_visit_figures,
    .reset_stats = dryi_torch_reset_stats,
    .set_observer = place_set_observer,
    .round_size = place_round_size,
    .walk = place_walk,
    .check = place_check,
};

struct dryi_place
dryi_torch_as_place(struct dryi_torch *place)
{
    return (struct dryi_place){.ops = &torch_ops, .self = place};
}
