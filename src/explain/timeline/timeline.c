/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Creation runs pairing, sizes, segments and heights in this order; queries use the trees of
 * lives. Cost: O(events) and one replay; O(alive * log) per visited moment.
 * timeline_inside.h has the structure.
 */
#include <drystone/timeline.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "explain/timeline/timeline_inside.h"

void
dry_timeline_options_init_sized(struct dry_timeline_options *options, size_t struct_size)
{
    const struct dry_timeline_options defaults = {0};
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

static bool
index_lives(struct dry_timeline *t)
{
    size_t step = sizeof *t->allocations / sizeof(uint32_t);
    t->lives = (struct dryi_lives){.memory = t->memory,
                                   .begins = &t->allocations->begin,
                                   .ends = &t->allocations->end,
                                   .step = step,
                                   .count = t->view.allocation_count,
                                   .sorted_count = t->window_count};
    step = sizeof *t->segments / sizeof(uint32_t);
    t->segment_lives = (struct dryi_lives){.memory = t->memory,
                                           .begins = &t->segments->begin,
                                           .ends = &t->segments->end,
                                           .step = step,
                                           .count = t->view.segment_count,
                                           .sorted_count = t->window_segment_count};
    return dryi_lives_index(&t->lives) && dryi_lives_index(&t->segment_lives);
}

static enum dry_status
create(struct dry_timeline *t, struct dry_error *err)
{
    enum dry_status status = dryi_timeline_pair(t, err);
    if (status == DRY_OK)
        status = dryi_timeline_measure(t, err);
    if (status == DRY_OK)
        status = dryi_timeline_map(t, err);
    if (status == DRY_OK && !index_lives(t))
        status = dryi_fail_memory(err, "the lives of a timeline");
    if (status == DRY_OK)
        status = dryi_timeline_index_heights(t, err);
    t->view.allocations = t->allocations;
    t->view.event_allocation = t->event_allocation;
    t->view.segments = t->segments;
    return status;
}

enum dry_status
dry_timeline_create(struct dry_replay *replay, const struct dry_timeline_options *options,
                    struct dry_timeline **timeline, struct dry_error *err)
{
    struct dry_timeline_options o;
    dry_timeline_options_init(&o);
    enum dry_status status = dryi_sized_take(&o, sizeof o, options, err);
    if (status != DRY_OK)
        return status;
    if (!dryi_replay_program(replay)->has_addresses)
        return dryi_fail(err, DRY_ERR_UNSUPPORTED,
                         "this kind of trace records no addresses");
    struct dry_memory memory = dryi_memory_or_default(o.memory);
    struct dry_timeline *t = dryi_memory_zalloc(&memory, 1, sizeof *t);
    if (!t)
        return dryi_fail_memory(err, "a timeline");
    const struct dry_trace_device *device = dryi_replay_device(replay);
    t->memory = memory;
    t->replay = replay;
    t->trace = dry_trace_get_view(dryi_replay_trace(replay));
    t->view = (struct dry_timeline_view){
        .trace = dryi_replay_trace(replay),
        .device = device->device,
        .first_event = device->first_event,
        /* a replay has at most 2^31 events */
        .event_count = (uint32_t)device->event_count,
        .dump_moment = (uint32_t)device->event_count + 1,
        .oom_event = DRY_NONE,
    };
    status = create(t, err);
    if (status == DRY_OK)
        *timeline = t;
    else
        dry_timeline_destroy(t);
    return status;
}

void
dry_timeline_destroy(struct dry_timeline *t)
{
    if (!t)
        return;
    struct dry_memory memory = t->memory;
    dryi_lives_finish(&t->lives);
    dryi_lives_finish(&t->segment_lives);
    dryi_memory_free(&memory, t->allocations, t->allocation_capacity,
                     sizeof *t->allocations);
    dryi_memory_free(&memory, t->event_allocation, (size_t)t->view.event_count + 1,
                     sizeof *t->event_allocation);
    dryi_memory_free(&memory, t->lost, t->lost_capacity, sizeof *t->lost);
    dryi_memory_free(&memory, t->segments, t->segment_capacity, sizeof *t->segments);
    dryi_memory_free(&memory, t->steps, t->step_capacity, sizeof *t->steps);
    for (unsigned c = 0; c < DRY_CURVE_COUNT; c++)
        dryi_memory_free(&memory, t->buckets[c], t->bucket_count, sizeof *t->buckets[c]);
    dryi_memory_free(&memory, t->latest, t->bucket_count, sizeof *t->latest);
    dryi_memory_free(&memory, t, 1, sizeof *t);
}

const struct dry_timeline_view *
dry_timeline_get_view(const struct dry_timeline *timeline)
{
    return &timeline->view;
}

static enum dry_status
visit_lives(const struct dryi_lives *lives, uint32_t moment,
            enum dry_status (*visit)(void *self, uint32_t number), void *self)
{
    enum dry_status status = DRY_OK;
    uint32_t i = dryi_lives_next(lives, moment, 0);
    while (i != DRYI_LIVES_NONE && status == DRY_OK) {
        status = visit(self, i);
        i = i + 1 < lives->count ? dryi_lives_next(lives, moment, i + 1)
                                 : DRYI_LIVES_NONE;
    }
    return status;
}

enum dry_status
dry_timeline_visit_alive(const struct dry_timeline *timeline, uint32_t moment,
                         enum dry_status (*visit)(void *self, uint32_t allocation),
                         void *self)
{
    return visit_lives(&timeline->lives, moment, visit, self);
}

enum dry_status
dry_timeline_visit_segments(const struct dry_timeline *timeline, uint32_t moment,
                            enum dry_status (*visit)(void *self, uint32_t segment),
                            void *self)
{
    return visit_lives(&timeline->segment_lives, moment, visit, self);
}
