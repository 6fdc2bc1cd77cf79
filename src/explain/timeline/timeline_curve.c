/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Heights of the curves. For every 256 moments and every curve the first, least and greatest height
 * are stored; heights in between are summed up from the events. 10 million events take 5 MB. A
 * column costs at most two walks of 255 steps and a scan of the buckets.
 */

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/search.h"
#include "explain/timeline/timeline_inside.h"

const char *
dry_curve_name(enum dry_curve curve)
{
    static const char *const names[DRY_CURVE_COUNT] = {"reserved", "active", "allocated",
                                                       "requested"};
    return (unsigned)curve < DRY_CURVE_COUNT ? names[curve] : "unknown";
}

/* --- walking ------------------------------------------------------------------------------ */

static void
add_allocation(struct dryi_timeline_walk *w, const struct dry_allocation *a)
{
    w->height[DRY_CURVE_ACTIVE] += a->size;
    w->height[DRY_CURVE_REQUESTED] += a->requested;
    if (a->freed > w->moment) /* false: its free was requested before the window */
        w->height[DRY_CURVE_ALLOCATED] += a->size;
}

static void
end_allocation(struct dryi_timeline_walk *w, const struct dry_allocation *a,
               uint32_t moment)
{
    if (a->freed == moment)
        w->height[DRY_CURVE_ALLOCATED] -= a->size;
    if (a->end == moment) {
        w->height[DRY_CURVE_ACTIVE] -= a->size;
        w->height[DRY_CURVE_REQUESTED] -= a->requested;
    }
}

void
dryi_timeline_walk_begin(struct dryi_timeline_walk *w, const struct dry_timeline *t)
{
    *w = (struct dryi_timeline_walk){.timeline = t};
    for (uint32_t i = t->window_count; i < t->view.allocation_count; i++)
        add_allocation(w, &t->allocations[i]);
    for (uint32_t i = t->window_segment_count; i < t->view.segment_count; i++)
        w->height[DRY_CURVE_RESERVED] += t->segments[i].size;
}

void
dryi_timeline_walk_begin_at(struct dryi_timeline_walk *w, const struct dry_timeline *t,
                            uint32_t moment)
{
    uint32_t bucket = moment / DRYI_BUCKET_MOMENTS;
    *w = (struct dryi_timeline_walk){.timeline = t,
                                     .moment = bucket * DRYI_BUCKET_MOMENTS};
    for (unsigned c = 0; c < DRY_CURVE_COUNT; c++)
        w->height[c] = t->buckets[c][bucket].first;
    w->next_step = dryi_count_below(t->steps, t->step_count, sizeof *t->steps,
                                    offsetof(struct dryi_segment_step, event), w->moment);
    w->next_lost = dryi_count_below(t->lost, t->lost_count, sizeof *t->lost,
                                    offsetof(struct dryi_lost, event), w->moment);
    while (w->moment < moment)
        dryi_timeline_walk_advance(w);
}

void
dryi_timeline_walk_advance(struct dryi_timeline_walk *w)
{
    const struct dry_timeline *t = w->timeline;
    uint32_t event = w->moment++;
    if (event == t->view.event_count) {
        for (unsigned c = 0; c < DRY_CURVE_COUNT; c++)
            w->height[c] += t->dump_change[c];
    } else if (t->event_allocation[event] != DRY_NONE) {
        const struct dry_allocation *a = &t->allocations[t->event_allocation[event]];
        if (a->begin == w->moment)
            add_allocation(w, a);
        else
            end_allocation(w, a, w->moment);
    }
    for (; w->next_lost < t->lost_count && t->lost[w->next_lost].event == event;
         w->next_lost++)
        end_allocation(w, &t->allocations[t->lost[w->next_lost].allocation], w->moment);
    for (; w->next_step < t->step_count && t->steps[w->next_step].event == event;
         w->next_step++)
        w->height[DRY_CURVE_RESERVED] += (uint64_t)t->steps[w->next_step].change;
}

/* --- the index ---------------------------------------------------------------------------- */

static void
note_height(struct dry_timeline *t, const struct dryi_timeline_walk *w)
{
    for (unsigned c = 0; c < DRY_CURVE_COUNT; c++) {
        struct dryi_bucket *b = &t->buckets[c][w->moment / DRYI_BUCKET_MOMENTS];
        uint64_t height = w->height[c];
        if (w->moment % DRYI_BUCKET_MOMENTS == 0)
            *b = (struct dryi_bucket){
                .first = height, .min = height, .max = height, .max_moment = w->moment};
        if (height < b->min)
            b->min = height;
        if (height > b->max) {
            b->max = height;
            b->max_moment = w->moment;
        }
        if (w->moment == 0 || height > t->view.peaks[c].bytes)
            t->view.peaks[c] = (struct dry_peak){.bytes = height, .moment = w->moment};
    }
}

/* Sum up the allocations that end between the last event and the dump: they are not
   in the final segments. */
static void
sum_up_dump(struct dry_timeline *t)
{
    struct dryi_timeline_walk w = {.timeline = t};
    for (uint32_t i = 0; i < t->view.allocation_count; i++)
        end_allocation(&w, &t->allocations[i], t->view.dump_moment);
    memcpy(t->dump_change, w.height, sizeof t->dump_change);
}

static void
index_times(struct dry_timeline *t)
{
    int64_t latest = INT64_MIN;
    for (uint32_t i = 0; i < t->view.event_count; i++) {
        int64_t time = t->trace->time_us[t->view.first_event + i];
        latest = time > latest ? time : latest;
        t->latest[i / DRYI_BUCKET_MOMENTS] = latest;
    }
}

enum dry_status
dryi_timeline_index_heights(struct dry_timeline *t, struct dry_error *err)
{
    t->bucket_count = t->view.dump_moment / DRYI_BUCKET_MOMENTS + 1;
    bool has_memory = true;
    for (unsigned c = 0; c < DRY_CURVE_COUNT; c++) {
        t->buckets[c] =
            dryi_memory_zalloc(&t->memory, t->bucket_count, sizeof *t->buckets[c]);
        has_memory &= t->buckets[c] != NULL;
    }
    t->latest = dryi_memory_zalloc(&t->memory, t->bucket_count, sizeof *t->latest);
    if (!has_memory || !t->latest)
        return dryi_fail_memory(err, "the heights of a timeline");
    sum_up_dump(t);
    struct dryi_timeline_walk walk;
    dryi_timeline_walk_begin(&walk, t);
    note_height(t, &walk);
    while (walk.moment < t->view.dump_moment) {
        dryi_timeline_walk_advance(&walk);
        note_height(t, &walk);
    }
    index_times(t);
    return DRY_OK;
}

uint64_t
dry_timeline_height(const struct dry_timeline *t, enum dry_curve curve, uint32_t moment)
{
    struct dryi_timeline_walk walk;
    if (moment > t->view.dump_moment || (unsigned)curve >= DRY_CURVE_COUNT)
        return 0;
    dryi_timeline_walk_begin_at(&walk, t, moment);
    return walk.height[curve];
}

/* --- times -------------------------------------------------------------------------------- */

int64_t
dry_timeline_time(const struct dry_timeline *t, uint32_t moment)
{
    if (t->view.event_count == 0)
        return 0;
    uint32_t event = moment == 0 ? 0 : moment - 1;
    if (event >= t->view.event_count)
        event = t->view.event_count - 1;
    return t->trace->time_us[t->view.first_event + event];
}

uint32_t
dry_timeline_find_time(const struct dry_timeline *t, int64_t time_us)
{
    uint32_t count = t->view.event_count;
    uint32_t low = 0, high = (count + DRYI_BUCKET_MOMENTS - 1) / DRYI_BUCKET_MOMENTS;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (t->latest[middle] < time_us)
            low = middle + 1;
        else
            high = middle;
    }
    for (uint32_t i = low * DRYI_BUCKET_MOMENTS; i < count; i++) {
        if (t->trace->time_us[t->view.first_event + i] >= time_us)
            return i;
    }
    return t->view.dump_moment;
}

/* --- columns ------------------------------------------------------------------------------ */

#define COLUMNS_MAX 65536u

enum dry_status
dryi_axis_check(const struct dry_timeline *t, const struct dry_axis *axis,
                struct dry_error *err)
{
    if (axis->column_count == 0 || axis->column_count > COLUMNS_MAX)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "%u columns: expected 1 to %u",
                         axis->column_count, COLUMNS_MAX);
    if (axis->from >= axis->to || axis->to > t->view.dump_moment + 1)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "moments %u to %u: expected a range up to %u", axis->from,
                         axis->to, t->view.dump_moment + 1);
    return DRY_OK;
}

/* Compute without overflow: the times of a file may be any numbers. */
static int64_t
time_at(const struct dry_timeline *t, const struct dry_axis *axis, uint32_t column)
{
    int64_t begin = dry_timeline_time(t, axis->from);
    int64_t end = dry_timeline_time(t, axis->to - 1);
    if (end <= begin)
        return begin;
    uint64_t span = (uint64_t)end - (uint64_t)begin;
    uint64_t part = span / axis->column_count * column +
                    span % axis->column_count * column / axis->column_count;
    return (int64_t)((uint64_t)begin + part);
}

uint32_t
dryi_axis_moment(const struct dry_timeline *t, const struct dry_axis *axis,
                 uint32_t column)
{
    if (column == 0)
        return axis->from;
    if (column >= axis->column_count)
        return axis->to;
    if (!axis->is_time)
        return axis->from + (uint32_t)((uint64_t)(axis->to - axis->from) * column /
                                       axis->column_count);
    /* The state after an event belongs to the column of the event's time. */
    uint32_t moment = dry_timeline_find_time(t, time_at(t, axis, column)) + 1;
    if (moment < axis->from)
        return axis->from;
    return moment < axis->to ? moment : axis->to;
}

/* One column of each requested curve; NULL for the others. */
struct columns {
    struct dry_curve_column *of[DRY_CURVE_COUNT];
    uint32_t begin, end;
};

static void
note_height_at(struct dry_curve_column *column, uint64_t height, uint32_t moment)
{
    bool is_first = moment == column->begin;
    if (is_first || height < column->min)
        column->min = height;
    if (is_first || height > column->max) {
        column->max = height;
        column->max_moment = moment;
    }
    column->last = height;
}

static void
note_moment(const struct columns *columns, const struct dryi_timeline_walk *w)
{
    for (unsigned c = 0; c < DRY_CURVE_COUNT; c++)
        if (columns->of[c])
            note_height_at(columns->of[c], w->height[c], w->moment);
}

/* Merge the buckets first <= i < last, which are wholly inside a column, without walking them. */
static void
note_buckets(const struct dryi_bucket *buckets, uint32_t first, uint32_t last,
             struct dry_curve_column *column)
{
    for (uint32_t i = first; i < last; i++) {
        const struct dryi_bucket *b = &buckets[i];
        if (b->min < column->min)
            column->min = b->min;
        if (b->max > column->max) {
            column->max = b->max;
            column->max_moment = b->max_moment;
        }
    }
}

/* Advance the walk to `moment`, which is not before its current one. */
static void
go_to(struct dryi_timeline_walk *w, uint32_t moment)
{
    if (moment / DRYI_BUCKET_MOMENTS > w->moment / DRYI_BUCKET_MOMENTS)
        dryi_timeline_walk_begin_at(w, w->timeline, moment);
    while (w->moment < moment)
        dryi_timeline_walk_advance(w);
}

/* Compute a column from begin to end, begin < end. The walk stops at its last moment. */
static void
fill_column(struct dryi_timeline_walk *w, const struct columns *columns)
{
    const struct dry_timeline *t = w->timeline;
    go_to(w, columns->begin);
    note_moment(columns, w);
    while (w->moment + 1 < columns->end) {
        uint32_t next = w->moment + 1;
        uint32_t first = next / DRYI_BUCKET_MOMENTS;
        uint32_t last = (columns->end - 1) / DRYI_BUCKET_MOMENTS;
        if (next % DRYI_BUCKET_MOMENTS == 0 && first < last) {
            for (unsigned c = 0; c < DRY_CURVE_COUNT; c++)
                if (columns->of[c])
                    note_buckets(t->buckets[c], first, last, columns->of[c]);
            dryi_timeline_walk_begin_at(w, t, last * DRYI_BUCKET_MOMENTS);
        } else {
            dryi_timeline_walk_advance(w);
        }
        note_moment(columns, w);
    }
}

/* Fill in a column without events: the heights stay as they were. */
static void
fill_empty(struct dryi_timeline_walk *w, uint32_t before, const struct columns *columns)
{
    go_to(w, before);
    for (unsigned c = 0; c < DRY_CURVE_COUNT; c++) {
        struct dry_curve_column *column = columns->of[c];
        if (!column)
            continue;
        column->min = column->max = column->last = w->height[c];
        column->max_moment = before;
    }
}

enum dry_status
dry_timeline_curves(const struct dry_timeline *t, const struct dry_axis *axis,
                    struct dry_curve_column *const columns[DRY_CURVE_COUNT],
                    struct dry_error *err)
{
    enum dry_status status = dryi_axis_check(t, axis, err);
    if (status != DRY_OK)
        return status;
    struct columns now = {.begin = axis->from};
    struct dryi_timeline_walk walk;
    dryi_timeline_walk_begin_at(&walk, t, now.begin);
    for (uint32_t i = 0; i < axis->column_count; i++) {
        uint32_t end = dryi_axis_moment(t, axis, i + 1);
        now.end = end < now.begin ? now.begin : end;
        for (unsigned c = 0; c < DRY_CURVE_COUNT; c++) {
            now.of[c] = columns[c] ? &columns[c][i] : NULL;
            if (columns[c])
                columns[c][i] =
                    (struct dry_curve_column){.begin = now.begin, .end = now.end};
        }
        if (now.begin < now.end)
            fill_column(&walk, &now);
        else
            fill_empty(&walk, now.begin > axis->from ? now.begin - 1 : now.begin, &now);
        now.begin = now.end;
    }
    return DRY_OK;
}

enum dry_status
dry_timeline_curve(const struct dry_timeline *t, enum dry_curve curve,
                   const struct dry_axis *axis, struct dry_curve_column *columns,
                   struct dry_error *err)
{
    struct dry_curve_column *all[DRY_CURVE_COUNT] = {NULL};
    if ((unsigned)curve < DRY_CURVE_COUNT) {
        all[curve] = columns;
        return dry_timeline_curves(t, axis, all, err);
    }
    enum dry_status status = dryi_axis_check(t, axis, err);
    if (status != DRY_OK)
        return status;
    return dryi_fail(err, DRY_ERR_ARGUMENT, "there is no curve %u", (unsigned)curve);
}
