/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reserved bytes under other settings, over the moments of the record. The two runs
 * have different events, so moments are matched by requests: the n-th allocation of the
 * record corresponds to the n-th of the run. A request that fails in the record and is
 * served in the run counts from the record's first OOM on.
 */
#include "view/answers.h"

#include <stdlib.h>

struct run {
    const struct view_device *device;
    struct dry_trace *trace;
    struct dry_replay *replay;
    struct dry_timeline *timeline;
    const struct dry_timeline_view *v;
    uint32_t births; /* allocations of the run, without those carried over */
    uint32_t before; /* the first of these, made for blocks older than the window */
    uint32_t served; /* requests that fail in the record, and not in the run */
};

/* Return the capacity that `sweep` uses, so that both give the same results. */
static uint64_t
find_proved_capacity(const struct dry_replay *recorded)
{
    const struct dry_replay_recorded *r = dry_replay_get_recorded(recorded);
    if (r->capacity_bytes > 0)
        return r->capacity_bytes;
    bool is_proved = !r->oom && r->capacity_high_bytes > 0;
    return is_proved ? r->capacity_low_bytes : UINT64_MAX;
}

static bool
begin(struct run *r, const char *conf)
{
    struct dry_replay *recorded = r->device->replay;
    struct dry_run_options options;
    struct dry_replay_options again;
    dry_run_options_init(&options);
    dry_replay_options_init(&again);
    options.conf = conf;
    options.capacity_bytes = find_proved_capacity(recorded);
    again.device = r->device->v->device;
    if (dry_replay_record(recorded, &options, &r->trace, NULL) != DRY_OK ||
        dry_replay_create(r->trace, &again, &r->replay, NULL) != DRY_OK ||
        dry_timeline_create(r->replay, NULL, &r->timeline, NULL) != DRY_OK)
        return false;
    r->v = dry_timeline_get_view(r->timeline);
    r->births = r->v->allocation_count - r->v->carried_over_count;
    uint32_t asked = r->device->v->allocation_count - r->device->v->carried_over_count;
    size_t live = dry_replay_get_check(recorded)->live_before;
    r->before = r->births >= asked + live ? (uint32_t)live : 0;
    r->served = r->births > asked + r->before ? r->births - asked - r->before : 0;
    return true;
}

static void
end(struct run *r)
{
    dry_timeline_destroy(r->timeline);
    dry_replay_destroy(r->replay);
    dry_trace_destroy(r->trace);
}

/* Count the record's allocations that begin at `moment` or earlier. */
static uint32_t
born_until(const struct dry_timeline_view *v, uint32_t moment)
{
    uint32_t low = 0, high = v->allocation_count - v->carried_over_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (v->allocations[middle].begin <= moment)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Return the run's moment after `count` requests, or its end if the run fails before. */
static uint32_t
get_moment(const struct run *r, uint32_t count)
{
    uint64_t number = (uint64_t)r->before + count;
    if (number == 0)
        return 0;
    return number <= r->births ? r->v->allocations[number - 1].begin : r->v->dump_moment;
}

static uint64_t
highest(const struct run *r, uint32_t from, uint32_t to)
{
    struct dry_axis axis = {
        .from = from, .to = to > from ? to : from + 1, .column_count = 1};
    struct dry_curve_column column;
    if (dry_timeline_curve(r->timeline, DRY_CURVE_RESERVED, &axis, &column, NULL) !=
        DRY_OK)
        return 0;
    return column.max;
}

static void
put_curve(struct pack *p, const struct run *r)
{
    const struct dry_timeline_view *v = r->device->v;
    uint32_t moments = r->device->moments, last = 0;
    uint32_t count = moments < VIEW_TILE_COLUMNS ? moments : VIEW_TILE_COLUMNS;
    unsigned begins = pack_column(p, "col_begin", PACK_U32);
    unsigned max = pack_column(p, "reserved_max", PACK_F64);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t begin_at = (uint32_t)((uint64_t)moments * i / count);
        uint32_t end_at = (uint32_t)((uint64_t)moments * (i + 1) / count);
        uint32_t born = born_until(v, end_at - 1);
        uint32_t to =
            get_moment(r, born + (end_at - 1 > v->oom_event ? r->served : 0)) + 1;
        pack_u32(p, begins, begin_at);
        pack_f64(p, max, (double)highest(r, last, to));
        last = to - 1;
    }
}

bool
answer_reserved(const struct view_device *device, const char *conf, struct answer *answer)
{
    struct run r = {.device = device};
    struct pack p = {0};
    bool is_fine = begin(&r, conf);
    if (is_fine)
        put_curve(&p, &r);
    is_fine = is_fine && pack_write(&p, answer);
    pack_finish(&p);
    end(&r);
    return is_fine;
}
