/* SPDX-License-Identifier: Apache-2.0 */

/* What was so at the moment, asked of the allocator and the device themselves. */

#include "cases/program_state.h"

/* Sums over all blocks, by what a request of one lane could do with them. */
struct census {
    uint64_t stream;
    struct dryi_pool_id pool;
    bool is_large;
    uint64_t live, requested, pending, reserved, releasable;
    uint64_t lane_free, other_class, other_stream, other_pool;
    uint64_t lane_hole, lane_hole_if_done;
};

static bool
is_default(struct dryi_pool_id pool)
{
    return pool.a == 0 && pool.b == 0;
}

static void
count_free(struct census *c, const struct dryi_segment_info *s, uint64_t bytes)
{
    if (s->pool.a != c->pool.a || s->pool.b != c->pool.b)
        c->other_pool += bytes;
    else if (s->stream != c->stream)
        c->other_stream += bytes;
    else if (s->is_large != c->is_large)
        c->other_class += bytes;
    else
        c->lane_free += bytes;
}

/* Free blocks never touch; free and pending ones may. */
static void
measure_holes(struct census *c, const struct dryi_block_info *blocks, size_t count)
{
    uint64_t run = 0;
    for (size_t i = 0; i < count; i++) {
        run = blocks[i].allocated ? 0 : run + blocks[i].size;
        if (run > c->lane_hole_if_done)
            c->lane_hole_if_done = run;
        if (!blocks[i].allocated && !blocks[i].pending && blocks[i].size > c->lane_hole)
            c->lane_hole = blocks[i].size;
    }
}

static enum dry_status
count_segment(void *self, const struct dryi_segment_info *s,
              const struct dryi_block_info *blocks, size_t count)
{
    struct census *c = self;
    c->reserved += s->size;
    for (size_t i = 0; i < count; i++) {
        if (blocks[i].allocated) {
            c->live += blocks[i].size;
            c->requested += blocks[i].requested;
        } else if (blocks[i].pending) {
            c->pending += blocks[i].size;
        } else {
            count_free(c, s, blocks[i].size);
        }
    }
    if (count == 1 && !blocks[0].allocated && !blocks[0].pending && !s->is_expandable &&
        is_default(s->pool))
        c->releasable += s->size;
    if (s->stream == c->stream && s->pool.a == c->pool.a && s->pool.b == c->pool.b &&
        s->is_large == c->is_large)
        measure_holes(c, blocks, count);
    return DRY_OK;
}

static void
take_census(struct program *p, struct census *c)
{
    enum dry_status status = dryi_torch_walk(p->place, count_segment, c);
    if (status != DRY_OK)
        program_fail(p, status);
}

/* Only where something waits is there a difference to the moment. */
void
truth_note_request(struct program *p)
{
    struct dry_stats stats;
    dryi_torch_get_stats(p->place, &stats);
    if (p->truth.has_oom)
        return;
    struct census c = {.stream = p->stream, .pool = p->pool, .is_large = true};
    if (stats.active_bytes.all.current > stats.allocated_bytes.all.current)
        take_census(p, &c);
    p->truth.pending_before_bytes = c.pending;
    p->truth.hole_before_bytes = c.lane_hole;
    p->truth.hole_if_done_bytes = c.lane_hole_if_done;
}

static void
copy_census(struct case_truth *t, const struct census *c)
{
    t->live_bytes = c->live;
    t->requested_bytes = c->requested;
    t->pending_bytes = c->pending;
    t->reserved_bytes = c->reserved;
    t->releasable_bytes = c->releasable;
    t->lane_free_bytes = c->lane_free;
    t->lane_hole_bytes = c->lane_hole;
    t->other_class_bytes = c->other_class;
    t->other_stream_bytes = c->other_stream;
    t->other_pool_bytes = c->other_pool;
}

static uint64_t
device_free_bytes(const struct program *p)
{
    uint64_t free_bytes, total_bytes;
    struct dry_device device = dry_sim_get_device(p->sim);
    device.ops->get_info(device.self, &free_bytes, &total_bytes);
    return free_bytes;
}

static void
note_limit(struct program *p)
{
    double fraction = p->label->fraction;
    if (!(fraction > 0))
        fraction = p->conf.per_process_memory_fraction;
    if (fraction < 1)
        p->truth.limit_bytes = (uint64_t)(fraction * (double)p->label->total_bytes + 0.5);
}

void
truth_note_moment(struct program *p, uint64_t bytes)
{
    struct case_truth *t = &p->truth;
    if (t->has_oom || p->oom_index == SIZE_MAX)
        return;
    const struct dry_event *oom = &p->events[p->oom_index];
    struct census c = {.stream = p->stream, .pool = p->pool, .is_large = oom->size > MIB};
    take_census(p, &c);
    copy_census(t, &c);
    note_limit(p);
    t->has_oom = true;
    t->device = p->device;
    t->request_bytes = bytes;
    t->rounded_bytes = oom->size;
    t->driver_bytes = dryi_torch_segment_size(&p->conf, oom->size);
    t->request_stream = p->stream;
    t->request_pool_a = p->pool.a;
    t->request_pool_b = p->pool.b;
    t->device_free_bytes = device_free_bytes(p);
    if (t->pending_before_bytes == 0)
        t->hole_before_bytes = t->hole_if_done_bytes = c.lane_hole;
}

void
truth_note_end(struct program *p)
{
    struct case_truth *t = &p->truth;
    struct dry_stats stats;
    dryi_torch_get_stats(p->place, &stats);
    if ((size_t)p->device < CASE_DEVICES_MAX) {
        t->device_peak_bytes[p->device] = (uint64_t)stats.allocated_bytes.all.peak;
        t->device_count = (size_t)p->device + 1;
    }
    if (t->has_oom && t->device != p->device)
        return;
    struct census c = {.is_large = true};
    take_census(p, &c);
    if (!t->has_oom) {
        copy_census(t, &c);
        note_limit(p);
        t->device = p->device;
        t->device_free_bytes = device_free_bytes(p);
    }
    t->retry_count = (uint64_t)stats.num_alloc_retries;
    t->end_live_bytes = c.live;
    t->end_reserved_bytes = c.reserved;
}
