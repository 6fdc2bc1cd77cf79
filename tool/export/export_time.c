/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idea is in export_time.h. A curve is the prefix sum of a difference array. It is
 * reduced to the lowest, highest and last moment of each piece. The best k of n
 * allocations are kept in a heap with the worst on top: O(n log k).
 */
#include "export/export_time.h"

#include <stdlib.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)

/* --- times -------------------------------------------------------------------------------- */

/* The formats count nanoseconds, which must fit in 63 bits. */
#define TIME_MAX (INT64_MAX / 1000)

static bool
find_event_time(const struct export_clock *clock, uint32_t event, int64_t *time_us)
{
    size_t i = clock->view->first_event + event;
    const struct dry_note *note =
        dry_trace_note(clock->view->trace, clock->trace->note[i]);
    if (note->flags & DRY_NOTE_NO_TIME)
        return false;
    *time_us = clock->trace->time_us[i];
    return true;
}

static int64_t
clamp_time(int64_t time_us)
{
    return time_us < 0 ? 0 : time_us > TIME_MAX ? TIME_MAX : time_us;
}

void
export_clock_init(struct export_clock *clock, const struct dry_timeline_view *view)
{
    *clock = (struct export_clock){
        .view = view, .trace = dry_trace_get_view(view->trace), .is_counting = true};
    bool has_first = false;
    int64_t now_us = 0;
    for (uint32_t i = 0; i < view->event_count; i++) {
        int64_t time_us;
        if (!find_event_time(clock, i, &time_us))
            continue;
        clock->out_of_range_count += time_us != clamp_time(time_us);
        time_us = clamp_time(time_us);
        if (!has_first)
            clock->first_us = now_us = time_us;
        clock->is_counting = clock->is_counting && time_us == clock->first_us;
        clock->reversal_count += has_first && time_us < now_us;
        if (time_us > now_us)
            now_us = time_us;
        has_first = true;
    }
    if (clock->is_counting && clock->first_us > TIME_MAX - UINT32_MAX)
        clock->first_us = 0;
    export_clock_rewind(clock);
}

void
export_clock_rewind(struct export_clock *clock)
{
    clock->next = 0;
    clock->now_us = clock->first_us;
}

int64_t
export_clock_at(struct export_clock *clock, uint32_t moment)
{
    uint32_t end = moment < clock->view->event_count ? moment : clock->view->event_count;
    for (; clock->next < end; clock->next++) {
        int64_t time_us;
        if (clock->is_counting)
            clock->now_us++;
        else if (find_event_time(clock, clock->next, &time_us) &&
                 clamp_time(time_us) > clock->now_us)
            clock->now_us = clamp_time(time_us);
    }
    return clock->now_us;
}

int64_t
export_clock_fit(const struct export_clock *clock, int64_t time_us)
{
    return clock->is_counting ? clock->first_us : clamp_time(time_us);
}

/* --- counters ----------------------------------------------------------------------------- */

static void
add_life(uint64_t *heights, uint32_t moment_max, uint32_t begin, uint32_t end,
         uint64_t bytes)
{
    if (begin > moment_max || end <= begin)
        return;
    heights[begin] += bytes;
    if (end <= moment_max)
        heights[end] -= bytes;
}

static void
sum_up(uint64_t *heights, uint32_t moment_max)
{
    for (uint32_t i = 1; i <= moment_max; i++)
        heights[i] += heights[i - 1];
}

void
export_heights_of_curve(const struct dry_timeline_view *view, enum dry_curve curve,
                        uint64_t *heights)
{
    uint32_t max = view->dump_moment;
    memset(heights, 0, (max + (size_t)1) * sizeof *heights);
    if (curve == DRY_CURVE_RESERVED) {
        for (uint32_t i = 0; i < view->segment_count; i++) {
            const struct dry_timeline_segment *s = view->segments + i;
            add_life(heights, max, s->begin, s->end, s->size);
        }
    } else {
        for (uint32_t i = 0; i < view->allocation_count; i++) {
            const struct dry_allocation *a = view->allocations + i;
            add_life(heights, max, a->begin,
                     curve == DRY_CURVE_ALLOCATED ? a->freed : a->end,
                     curve == DRY_CURVE_REQUESTED ? a->requested : a->size);
        }
    }
    sum_up(heights, max);
}

void
export_heights_of_lane_class(const struct dry_timeline_view *view, uint32_t lane,
                             bool is_large, uint64_t *heights)
{
    uint32_t max = view->dump_moment;
    memset(heights, 0, (max + (size_t)1) * sizeof *heights);
    for (uint32_t i = 0; i < view->segment_count; i++) {
        const struct dry_timeline_segment *s = view->segments + i;
        if (s->lane == lane && s->is_large == is_large)
            add_life(heights, max, s->begin, s->end, s->size);
    }
    sum_up(heights, max);
}

static int
compare_lane_classes(const void *a, const void *b)
{
    const struct export_lane_class *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    return (int)y->is_large - (int)x->is_large;
}

bool
export_find_lane_classes(const struct dry_timeline_view *view,
                         struct export_lane_class classes[EXPORT_LANE_CLASSES_MAX],
                         size_t *count, size_t *left_out)
{
    size_t all = (size_t)dry_trace_get_view(view->trace)->lane_count * 2, used = 0;
    struct export_lane_class *sums = calloc(all + 1, sizeof *sums);
    if (!sums)
        return false;
    for (size_t i = 0; i < all; i++)
        sums[i] =
            (struct export_lane_class){.lane = (uint32_t)(i / 2), .is_large = i % 2};
    for (uint32_t i = 0; i < view->segment_count; i++) {
        const struct dry_timeline_segment *s = view->segments + i;
        uint64_t *bytes = &sums[s->lane * (size_t)2 + s->is_large].bytes;
        *bytes = *bytes > UINT64_MAX - s->size ? UINT64_MAX : *bytes + s->size;
    }
    qsort(sums, all, sizeof *sums, compare_lane_classes);
    while (used < all && sums[used].bytes > 0)
        used++;
    *count = used < EXPORT_LANE_CLASSES_MAX ? used : EXPORT_LANE_CLASSES_MAX;
    *left_out = used - *count;
    memcpy(classes, sums, *count * sizeof *classes);
    free(sums);
    return true;
}

void
export_points_init(struct export_points *points, const uint64_t *heights,
                   uint32_t moment_count, bool is_every_point)
{
    bool is_whole = is_every_point || moment_count <= EXPORT_POINTS;
    *points = (struct export_points){
        .heights = heights,
        .moment_count = moment_count,
        .piece = is_whole ? 1 : (moment_count - 1) / EXPORT_PIECES + 1,
    };
}

/* Find the lowest, highest and last moment of the next piece, in order of time. */
static void
bound_piece(struct export_points *p)
{
    uint32_t end =
        p->moment_count - p->next > p->piece ? p->next + p->piece : p->moment_count;
    uint32_t low = p->next, high = p->next;
    for (uint32_t i = p->next; i < end; i++) {
        low = p->heights[i] < p->heights[low] ? i : low;
        high = p->heights[i] > p->heights[high] ? i : high;
    }
    p->found[0] = low < high ? low : high;
    p->found[1] = low < high ? high : low;
    p->found[2] = end - 1;
    p->found_count = 3;
    p->found_next = 0;
    p->next = end;
}

bool
export_points_next(struct export_points *p, uint32_t *moment)
{
    for (;;) {
        if (p->found_next == p->found_count) {
            if (p->next == p->moment_count)
                return false;
            bound_piece(p);
        }
        uint32_t at = p->found[p->found_next++];
        if (p->has_last && p->heights[at] == p->last)
            continue;
        p->has_last = true;
        p->last = p->heights[at];
        *moment = at;
        return true;
    }
}

/* --- slices ------------------------------------------------------------------------------- */

/* An allocation in a heap of the best ones, whose top is the worst of them. */
struct candidate {
    double score;
    uint32_t allocation;
};

static bool
is_worse(const struct candidate *a, const struct candidate *b)
{
    if (a->score < b->score || b->score < a->score)
        return a->score < b->score;
    return a->allocation > b->allocation;
}

static void
sink_down(struct candidate *heap, size_t count, size_t at)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= count)
            return;
        if (child + 1 < count && is_worse(heap + child + 1, heap + child))
            child++;
        if (!is_worse(heap + child, heap + at))
            return;
        struct candidate c = heap[at];
        heap[at] = heap[child];
        heap[child] = c;
        at = child;
    }
}

static void
make_heap(struct candidate *heap, size_t count)
{
    for (size_t at = count / 2; at-- > 0;)
        sink_down(heap, count, at);
}

static uint32_t
get_end(const struct dry_timeline_view *view, const struct dry_allocation *a)
{
    return a->end < view->dump_moment ? a->end : view->dump_moment;
}

/* Keep the best allocations in `heap`, of length `max`. Returns their number. */
static size_t
keep_best(const struct dry_timeline_view *view, uint64_t min_bytes,
          struct candidate *heap, size_t max)
{
    size_t count = 0;
    for (uint32_t i = 0; i < view->allocation_count; i++) {
        const struct dry_allocation *a = view->allocations + i;
        if (a->size < min_bytes || get_end(view, a) <= a->begin)
            continue;
        struct candidate c = {(double)a->size * (get_end(view, a) - a->begin), i};
        if (count < max) {
            heap[count++] = c;
            if (count == max)
                make_heap(heap, count);
        } else if (max > 0 && is_worse(heap, &c)) {
            heap[0] = c;
            sink_down(heap, count, 0);
        }
    }
    return count;
}

static int
compare_slices(const void *a, const void *b)
{
    const struct export_slice *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end > y->end ? -1 : 1;
    return x->allocation < y->allocation ? -1 : x->allocation > y->allocation;
}

static int
compare_ends(const void *a, const void *b, void *slices)
{
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const struct export_slice *x = (const struct export_slice *)slices + i;
    const struct export_slice *y = (const struct export_slice *)slices + j;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return i > j ? -1 : i < j; /* the last to begin ends first */
}

static void
order_by_end(struct export_slices *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        s->by_end[i] = i;
    if (s->count > 0)
        qsort_r(s->by_end, s->count, sizeof *s->by_end, compare_ends, s->slices);
}

static void
count_left_out(struct export_slices *s, const struct dry_timeline_view *view)
{
    uint64_t all = 0, kept = 0;
    for (uint32_t i = 0; i < view->allocation_count; i++)
        all += view->allocations[i].size;
    for (uint32_t i = 0; i < s->count; i++)
        kept += view->allocations[s->slices[i].allocation].size;
    s->left_out = view->allocation_count - s->count;
    s->left_out_bytes = all - kept;
}

uint32_t
export_lanes_place(struct export_lanes *lanes, const struct export_span *span,
                   uint32_t lane_max)
{
    for (uint32_t i = 0; i < lanes->count; i++) {
        uint8_t *depth = lanes->depth + i;
        if (lanes->classes[i] != span->class)
            continue;
        while (*depth > 0 && lanes->ends[i][*depth - 1] <= span->begin)
            --*depth;
        if (*depth > 0 &&
            (*depth == EXPORT_LANE_DEPTH || span->end > lanes->ends[i][*depth - 1]))
            continue;
        lanes->ends[i][(*depth)++] = span->end;
        return i;
    }
    if (lanes->count >= lane_max)
        return DRY_NONE;
    lanes->classes[lanes->count] = span->class;
    lanes->ends[lanes->count][0] = span->end;
    lanes->depth[lanes->count] = 1;
    return lanes->count++;
}

static const uint64_t class_min_bytes[EXPORT_CLASSES] = {1024 * MIB, 32 * MIB, MIB, 0};

const char *
export_class_name(uint32_t class)
{
    static const char *const names[EXPORT_CLASSES] = {
        "allocations from 1 GiB", "allocations from 32 MiB", "allocations from 1 MiB",
        "allocations below 1 MiB"};
    return names[class];
}

static uint32_t
place_slice(struct export_lanes *lanes, const struct export_slice *slice, uint64_t size)
{
    struct export_span span = {.begin = slice->begin, .end = slice->end};
    while (size < class_min_bytes[span.class])
        span.class ++;
    bool is_smallest = span.class == EXPORT_CLASSES - 1;
    return export_lanes_place(lanes, &span,
                              is_smallest ? EXPORT_LANES / 2 : EXPORT_LANES);
}

static void
place_slices(struct export_slices *s, struct export_lanes *lanes,
             const struct dry_timeline_view *view)
{
    memset(lanes, 0, sizeof *lanes);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        struct export_slice slice = s->slices[i];
        uint64_t size = view->allocations[slice.allocation].size;
        slice.lane = place_slice(lanes, &slice, size);
        if (slice.lane != DRY_NONE)
            s->slices[kept++] = slice;
    }
    s->count = kept;
}

bool
export_slices_choose(struct export_slices *s, struct export_lanes *lanes,
                     const struct dry_timeline_view *view,
                     const struct export_slice_rule *rule)
{
    *s = (struct export_slices){0};
    uint64_t min_bytes = rule->min_bytes;
    if (min_bytes == UINT64_MAX)
        min_bytes = view->allocation_count > rule->max ? MIB : 0;
    size_t max =
        rule->max < view->allocation_count ? (size_t)rule->max : view->allocation_count;
    struct candidate *heap = malloc((max + 1) * sizeof *heap);
    s->slices = malloc((max + 1) * sizeof *s->slices);
    s->by_end = malloc((max + 1) * sizeof *s->by_end);
    if (!heap || !s->slices || !s->by_end) {
        free(heap);
        return false;
    }
    s->count = (uint32_t)keep_best(view, min_bytes, heap, max);
    for (uint32_t i = 0; i < s->count; i++) {
        const struct dry_allocation *a = view->allocations + heap[i].allocation;
        s->slices[i] = (struct export_slice){
            .allocation = heap[i].allocation, .begin = a->begin, .end = get_end(view, a)};
    }
    free(heap);
    qsort(s->slices, s->count, sizeof *s->slices, compare_slices);
    place_slices(s, lanes, view);
    order_by_end(s);
    count_left_out(s, view);
    return true;
}

void
export_slices_finish(struct export_slices *slices)
{
    free(slices->slices);
    free(slices->by_end);
    *slices = (struct export_slices){0};
}

/* --- annotations -------------------------------------------------------------------------- */

static int
compare_scopes(const void *a, const void *b)
{
    const struct export_scope *x = a, *y = b;
    if (x->begin_us != y->begin_us)
        return x->begin_us < y->begin_us ? -1 : 1;
    if (x->end_us != y->end_us)
        return x->end_us > y->end_us ? -1 : 1;
    return x->name < y->name ? -1 : x->name > y->name;
}

static bool
is_stage(const struct dry_trace *trace, uint32_t stage, const char *word)
{
    const char *text = dry_trace_string(trace, stage, NULL);
    return text && strcmp(text, word) == 0;
}

/* Open scopes. An end closes the scope of its name that was opened last. */
struct pairing {
    const struct export_clock *clock;
    struct export_scopes *scopes;
    uint32_t *open;    /* the scope of each name opened last, + 1 */
    uint32_t *earlier; /* the scope of the same name opened before each scope, + 1 */
};

static void
pair_one(struct pairing *p, const struct dry_trace_annotation *a)
{
    const struct dry_trace *trace = p->clock->view->trace;
    struct export_scopes *s = p->scopes;
    int64_t time_us = export_clock_fit(p->clock, a->time_us);
    if (is_stage(trace, a->stage, "START")) {
        p->earlier[s->count] = p->open[a->name];
        s->scopes[s->count] = (struct export_scope){
            .begin_us = time_us, .end_us = -1, .name = a->name, .lane = DRY_NONE};
        p->open[a->name] = (uint32_t)++s->count;
    } else if (is_stage(trace, a->stage, "END") && p->open[a->name] > 0) {
        uint32_t i = p->open[a->name] - 1;
        s->scopes[i].end_us = time_us;
        p->open[a->name] = p->earlier[i];
    } else {
        s->unmatched++;
    }
}

/* End open scopes. Each lasts at least 1 us, or its nesting would not be visible. */
static void
close_scopes(struct export_scopes *s, int64_t last_us)
{
    for (size_t i = 0; i < s->count; i++) {
        struct export_scope *scope = s->scopes + i;
        if (scope->end_us < 0)
            scope->end_us = last_us;
        if (scope->end_us <= scope->begin_us)
            scope->end_us = scope->begin_us + 1;
    }
}

static void
pair_all(struct pairing *p)
{
    const struct dry_trace_view *v = p->clock->trace;
    int64_t last_us = 0;
    for (size_t i = 0; i < v->annotation_count; i++) {
        const struct dry_trace_annotation *a = v->annotations + i;
        int64_t time_us = export_clock_fit(p->clock, a->time_us);
        last_us = time_us > last_us ? time_us : last_us;
        if (a->device != p->clock->view->device)
            continue;
        if (a->name == DRY_NONE)
            p->scopes->unmatched++;
        else
            pair_one(p, a);
    }
    close_scopes(p->scopes, last_us);
}

bool
export_scopes_pair(struct export_scopes *s, const struct export_clock *clock,
                   struct export_lanes *lanes)
{
    *s = (struct export_scopes){0};
    memset(lanes, 0, sizeof *lanes);
    size_t max = clock->trace->annotation_count + 1;
    struct pairing p = {.clock = clock, .scopes = s};
    p.open = calloc(clock->trace->string_count + (size_t)1, sizeof *p.open);
    p.earlier = calloc(max, sizeof *p.earlier);
    s->scopes = calloc(max, sizeof *s->scopes);
    bool has_memory = p.open && p.earlier && s->scopes;
    if (has_memory)
        pair_all(&p);
    free(p.open);
    free(p.earlier);
    if (!has_memory)
        return false;
    qsort(s->scopes, s->count, sizeof *s->scopes, compare_scopes);
    for (size_t i = 0; i < s->count; i++) {
        struct export_span span = {0, s->scopes[i].begin_us, s->scopes[i].end_us};
        s->scopes[i].lane = export_lanes_place(lanes, &span, EXPORT_LANES);
    }
    return true;
}

void
export_scopes_finish(struct export_scopes *scopes)
{
    free(scopes->scopes);
    *scopes = (struct export_scopes){0};
}
