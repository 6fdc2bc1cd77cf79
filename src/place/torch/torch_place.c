/* SPDX-License-Identifier: Apache-2.0 */

/* PyTorch's allocator behind the interface of place.h. */

#include "place/torch/torch.h"

#include "base/assert.h"
#include "place/torch/torch_checkpoint.h"
#include "place/torch/torch_state.h"

/* Does nothing: no stream ever takes another's free memory, whatever their order. */
static enum dry_status
place_stream_waits(void *self, uint64_t stream, uint64_t on)
{
    (void)self;
    (void)stream;
    (void)on;
    return DRY_OK;
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

static const struct dryi_place_ops torch_ops = {
    .destroy = dryi_torch_destroy,
    .alloc = dryi_torch_alloc,
    .free = dryi_torch_free,
    .record_stream = dryi_torch_record_stream,
    .stream_waits = place_stream_waits,
    .stream_progressed = dryi_torch_stream_progressed,
    .process_events = dryi_torch_process_events,
    .empty_cache = dryi_torch_empty_cache,
    .trim = dryi_torch_trim,
    .set_limit = dryi_torch_set_limit,
    .open_pool = dryi_torch_open_pool,
    .begin_pool = dryi_torch_begin_scope,
    .end_pool = dryi_torch_end_pool,
    .release_pool = dryi_torch_release_pool,
    .flag_pool = dryi_torch_flag_pool,
    .count_users = dryi_torch_count_users,
    .hold_pool = dryi_torch_hold_pool,
    .restore_pool = dryi_torch_restore_pool,
    .begin_capture = dryi_torch_begin_capture,
    .end_capture = dryi_torch_end_capture,
    .get_address = place_get_address,
    .get_block = dryi_torch_get_block,
    .get_stats = dryi_torch_get_stats,
    .get_counters = dryi_torch_get_counters,
    .visit_figures = place_visit_figures,
    .reset_stats = dryi_torch_reset_stats,
    .set_observer = place_set_observer,
    .round_size = place_round_size,
    .walk = dryi_torch_walk,
    .check = dryi_torch_check,
};

struct dryi_place
dryi_torch_as_place(struct dryi_torch *place)
{
    return (struct dryi_place){.ops = &torch_ops, .self = place};
}
