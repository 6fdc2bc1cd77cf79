/* SPDX-License-Identifier: Apache-2.0 */
#include "prop/timeline_model.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/trace.h>

/* Pages of a segment are looked at one by one up to so many. */
#define PAGES_MAX 4096u
#define SMALL_PAGE (UINT64_C(2) << 20)

static void *
zalloc(size_t count, size_t bytes)
{
    void *memory = calloc(count + 1, bytes);
    if (!memory)
        abort(); /* the test machine itself has no memory */
    return memory;
}

/* --- heights ------------------------------------------------------------------------------ */

static void
add_life(struct timeline_model *m, enum dry_curve curve, uint32_t begin, uint32_t end,
         uint64_t bytes)
{
    m->heights[curve][begin] += bytes;
    if (end <= m->view->dump_moment)
        m->heights[curve][end] -= bytes; /* a difference: the sum comes out right */
}

void
timeline_model_init(struct timeline_model *m, const struct dry_timeline *timeline)
{
    const struct dry_timeline_view *v = dry_timeline_get_view(timeline);
    *m = (struct timeline_model){.timeline = timeline, .view = v};
    for (unsigned c = 0; c < DRY_CURVE_COUNT; c++)
        m->heights[c] = zalloc((size_t)v->dump_moment + 1, sizeof(uint64_t));
    for (uint32_t i = 0; i < v->allocation_count; i++) {
        const struct dry_allocation *a = &v->allocations[i];
        add_life(m, DRY_CURVE_ACTIVE, a->begin, a->end, a->size);
        add_life(m, DRY_CURVE_REQUESTED, a->begin, a->end, a->requested);
        add_life(m, DRY_CURVE_ALLOCATED, a->begin, a->freed, a->size);
    }
    for (uint32_t i = 0; i < v->segment_count; i++)
        add_life(m, DRY_CURVE_RESERVED, v->segments[i].begin, v->segments[i].end,
                 v->segments[i].size);
    for (unsigned c = 0; c < DRY_CURVE_COUNT; c++) {
        for (uint32_t i = 1; i <= v->dump_moment; i++)
            m->heights[c][i] += m->heights[c][i - 1];
    }
}

void
timeline_model_finish(struct timeline_model *m)
{
    for (unsigned c = 0; c < DRY_CURVE_COUNT; c++)
        free(m->heights[c]);
}

/* --- the timeline ------------------------------------------------------------------------- */

static const char *
check_allocations(const struct dry_timeline_view *v)
{
    uint32_t window = v->allocation_count - v->carried_over_count, guessed = 0;
    for (uint32_t i = 0; i < v->allocation_count; i++) {
        const struct dry_allocation *a = &v->allocations[i];
        bool is_carried = i >= window;
        guessed += (a->flags & DRY_ALLOCATION_SIZE_GUESSED) != 0;
        if (((a->flags & DRY_ALLOCATION_CARRIED_OVER) != 0) != is_carried)
            return "carried-over allocations are the last allocations";
        if (is_carried ? a->begin != 0 : a->begin == 0)
            return "carried-over allocations alone begin at moment 0";
        if (!is_carried && i > 0 && v->allocations[i - 1].begin >= a->begin)
            return "L1: allocations in order of birth";
        if (a->begin > a->freed || a->freed > a->end || a->size == 0)
            return "L2: begin <= freed <= end, and some bytes";
        if (a->end != DRY_MOMENT_NEVER && a->end > v->dump_moment)
            return "lives end by the dump, or never";
        if (!is_carried &&
            (a->begin > v->event_count || v->event_allocation[a->begin - 1] != i))
            return "a birth is an event";
    }
    return guessed == v->guessed_sizes ? NULL : "guessed sizes are counted";
}

static const char *
check_segments(const struct dry_timeline_view *v)
{
    bool are_carried = false;
    for (uint32_t i = 0; i < v->segment_count; i++) {
        const struct dry_timeline_segment *s = &v->segments[i];
        are_carried |= s->begin == 0;
        if (are_carried && s->begin != 0)
            return "segments older than the window are the last";
        if (!are_carried && i > 0 && v->segments[i - 1].begin > s->begin)
            return "L1: segments in order of their begin";
        if (s->begin > s->end || s->size == 0 || s->address + s->size < s->address)
            return "a segment has bytes and a life";
        if (s->end != DRY_MOMENT_NEVER && s->end > v->dump_moment)
            return "lives of segments end by the dump, or never";
    }
    return NULL;
}

static const char *
check_heights(const struct timeline_model *m)
{
    const struct dry_timeline_view *v = m->view;
    for (unsigned c = 0; c < DRY_CURVE_COUNT; c++) {
        struct dry_peak peak = {.bytes = m->heights[c][0]};
        for (uint32_t i = 0; i <= v->dump_moment; i++) {
            if (dry_timeline_height(m->timeline, (enum dry_curve)c, i) !=
                m->heights[c][i])
                return "L3: heights are sums of lives";
            if (m->heights[c][i] > peak.bytes)
                peak = (struct dry_peak){.bytes = m->heights[c][i], .moment = i};
        }
        if (v->peaks[c].bytes != peak.bytes || v->peaks[c].moment != peak.moment)
            return "peaks are the first highest moments";
    }
    return NULL;
}

const char *
timeline_model_check(const struct timeline_model *m)
{
    const struct dry_timeline_view *v = m->view;
    if (v->dump_moment != v->event_count + 1)
        return "the dump comes after the last event";
    for (uint32_t i = 0; i < v->event_count; i++) {
        if (v->event_allocation[i] != DRY_NONE &&
            v->event_allocation[i] >= v->allocation_count)
            return "events name allocations";
    }
    const char *problem = check_allocations(v);
    if (!problem)
        problem = check_segments(v);
    return problem ? problem : check_heights(m);
}

/* --- states ------------------------------------------------------------------------------- */

static bool
is_alive(const struct dry_allocation *a, uint32_t moment)
{
    return a->begin <= moment && moment < a->end;
}

static const char *
check_used_block(const struct timeline_model *m, const struct dry_state *s,
                 const struct dry_state_block *b, uint8_t *is_seen)
{
    if (b->allocation >= m->view->allocation_count || is_seen[b->allocation]++)
        return "a block in use is one allocation";
    const struct dry_allocation *a = &m->view->allocations[b->allocation];
    enum dry_block_state state =
        a->freed <= s->moment ? DRY_BLOCK_PENDING_FREE : DRY_BLOCK_ACTIVE;
    if (!is_alive(a, s->moment) || b->state != state)
        return "blocks in use are the allocations alive";
    if (s->overlap_count == 0 &&
        (b->address != a->address || b->size != a->size || b->requested != a->requested))
        return "blocks are as large as their allocations";
    if (b->address < a->address || b->size > a->size)
        return "blocks are cut, never moved or grown";
    return NULL;
}

static const char *
check_blocks(const struct timeline_model *m, const struct dry_state *s,
             const struct dry_state_segment *segment, uint8_t *is_seen)
{
    uint64_t at = segment->address;
    bool is_free = false;
    for (size_t i = 0; i < segment->block_count; i++) {
        const struct dry_state_block *b = &s->blocks[segment->first_block + i];
        if (b->address != at)
            return "blocks of a segment are gapless";
        at += b->size;
        if (b->size == 0)
            return "blocks have bytes";
        if (b->state == DRY_BLOCK_INACTIVE) {
            if (is_free || b->allocation != DRY_NONE)
                return "free neighbours are one block";
        } else {
            const char *problem = check_used_block(m, s, b, is_seen);
            if (problem)
                return problem;
        }
        is_free = b->state == DRY_BLOCK_INACTIVE;
    }
    return at == segment->address + segment->size ? NULL : "blocks fill their segment";
}

static uint64_t
page_of(const struct dry_state *s, const struct dry_state_segment *segment)
{
    if (!segment->is_expandable)
        return segment->size; /* it goes back whole */
    return segment->is_large ? s->page_bytes : SMALL_PAGE;
}

/* Page by page: what could go back, and what the used blocks of the others hold. */
struct pages {
    uint64_t releasable, pinned, used;
    uint32_t used_count;
};

static struct pages
count_segment_pages(const struct dry_state *s, const struct dry_state_segment *segment)
{
    struct pages result = {0};
    uint64_t page = page_of(s, segment);
    uint8_t *is_counted = zalloc(segment->block_count, 1);
    for (uint64_t at = 0; at < segment->size; at += page) {
        uint64_t end = segment->size - at < page ? segment->size : at + page, used = 0;
        for (int pass = 0; pass < 2; pass++) {
            for (size_t i = 0; i < segment->block_count; i++) {
                const struct dry_state_block *b = &s->blocks[segment->first_block + i];
                uint64_t from = b->address - segment->address, to = from + b->size;
                from = from > at ? from : at;
                to = to < end ? to : end;
                if (b->state == DRY_BLOCK_INACTIVE || from >= to)
                    continue;
                used += pass == 0 ? to - from : 0;
                if (pass == 0 || used == end - at || is_counted[i])
                    continue;
                is_counted[i] = 1;
                result.used_count++;
                result.used += b->size;
            }
        }
        *(used == 0 ? &result.releasable : &result.pinned) += end - at - used;
    }
    free(is_counted);
    if (segment->is_private) {
        result.pinned += result.releasable;
        result.releasable = 0;
    }
    return result;
}

static const struct dry_pinner *
find_pinner(const struct dry_state *s, size_t segment)
{
    for (size_t i = 0; i < s->pinner_count; i++) {
        if (s->pinners[i].segment == segment)
            return &s->pinners[i];
    }
    return NULL;
}

static const char *
check_pages(const struct dry_state *s, size_t number)
{
    const struct dry_state_segment *segment = &s->segments[number];
    if (segment->size / page_of(s, segment) > PAGES_MAX)
        return NULL;
    struct pages pages = count_segment_pages(s, segment);
    if (pages.releasable != segment->releasable)
        return "releasable is whole free pages";
    const struct dry_pinner *p = find_pinner(s, number);
    if (!p)
        return pages.pinned == 0 || pages.used_count == 0 ? NULL : "pinners are listed";
    if (p->pinned != pages.pinned)
        return "pinned is what is free in partly used pages";
    if (p->used != pages.used || p->used_count != pages.used_count)
        return "pinners are the blocks of partly used pages";
    return NULL;
}

static const char *
check_segment_sums(const struct dry_state *s, const struct dry_state_segment *segment)
{
    uint64_t allocated = 0, pending = 0, largest = 0;
    for (size_t i = 0; i < segment->block_count; i++) {
        const struct dry_state_block *b = &s->blocks[segment->first_block + i];
        allocated += b->state == DRY_BLOCK_ACTIVE ? b->size : 0;
        pending += b->state == DRY_BLOCK_PENDING_FREE ? b->size : 0;
        if (b->state == DRY_BLOCK_INACTIVE && b->size > largest)
            largest = b->size;
    }
    if (allocated != segment->allocated || pending != segment->pending ||
        largest != segment->largest_free)
        return "sums of a segment are those of its blocks";
    return NULL;
}

static const char *
check_pool(const struct dry_state *s, uint32_t number)
{
    const struct dry_state_pool *p = &s->pools[number];
    struct dry_state_pool sum = {.lane = p->lane};
    for (size_t i = 0; i < s->segment_count; i++) {
        const struct dry_state_segment *segment = &s->segments[i];
        if (segment->pool != number)
            continue;
        if (segment->lane != p->lane || segment->is_large != p->is_large ||
            segment->is_private != p->is_private)
            return "a pool is of one lane and one size class";
        sum.segment_count++;
        sum.reserved += segment->size;
        sum.allocated += segment->allocated;
        sum.pending += segment->pending;
        sum.releasable += segment->releasable;
        sum.stranded +=
            segment->size - segment->allocated - segment->pending - segment->releasable;
    }
    if (sum.segment_count != p->segment_count || sum.segment_count == 0 ||
        sum.reserved != p->reserved || sum.allocated != p->allocated ||
        sum.pending != p->pending || sum.releasable != p->releasable ||
        sum.stranded != p->stranded)
        return "sums of a pool are those of its segments";
    return number > 0 && s->pools[number - 1].reserved < p->reserved
               ? "the largest pool comes first"
               : NULL;
}

static const char *
check_sums(const struct timeline_model *m, const struct dry_state *s)
{
    uint64_t reserved = 0, releasable = 0, stranded = 0, allocated = 0, pending = 0;
    for (uint32_t i = 0; i < s->pool_count; i++) {
        const char *problem = check_pool(s, i);
        if (problem)
            return problem;
        reserved += s->pools[i].reserved;
        releasable += s->pools[i].releasable;
        stranded += s->pools[i].stranded;
        allocated += s->pools[i].allocated;
        pending += s->pools[i].pending;
    }
    if (reserved != s->reserved || releasable != s->releasable ||
        stranded != s->stranded || allocated != s->allocated || pending != s->pending)
        return "sums of a state are those of its pools";
    if (s->reserved != s->active + s->releasable + s->stranded ||
        s->active != s->allocated + s->pending || s->private_free > s->stranded)
        return "reserved = active + releasable + stranded";
    if (s->reserved != m->heights[DRY_CURVE_RESERVED][s->moment])
        return "reserved is the height of its curve";
    if (s->overlap_count > 0)
        return NULL;
    return s->active + s->unplaced_bytes == m->heights[DRY_CURVE_ACTIVE][s->moment]
               ? NULL
               : "active and unplaced are the height of the active curve";
}

static const char *
check_pinner_order(const struct dry_state *s)
{
    for (size_t i = 1; i < s->pinner_count; i++) {
        const struct dry_pinner *x = &s->pinners[i - 1], *y = &s->pinners[i];
        double p = (double)x->pinned / (double)(x->used ? x->used : 1);
        double q = (double)y->pinned / (double)(y->used ? y->used : 1);
        if (p < q)
            return "those that pin most for a byte come first";
    }
    return NULL;
}

static const char *
check_state(const struct timeline_model *m, const struct dry_state *s, uint8_t *is_seen)
{
    size_t next_block = 0, used = 0, alive = 0;
    const char *problem = NULL;
    for (size_t i = 0; i < s->segment_count && !problem; i++) {
        const struct dry_state_segment *segment = &s->segments[i];
        if (segment->first_block != next_block || segment->pool >= s->pool_count ||
            (i > 0 && s->segments[i - 1].address > segment->address))
            return "segments and their blocks lie in order";
        next_block += segment->block_count;
        problem = check_blocks(m, s, segment, is_seen);
        if (!problem)
            problem = check_segment_sums(s, segment);
        if (!problem)
            problem = check_pages(s, i);
    }
    if (problem)
        return problem;
    for (size_t i = 0; i < s->block_count; i++)
        used += s->blocks[i].state != DRY_BLOCK_INACTIVE;
    for (uint32_t i = 0; i < m->view->allocation_count; i++)
        alive += is_alive(&m->view->allocations[i], s->moment);
    if (next_block != s->block_count || used + s->unplaced_count != alive)
        return "every allocation alive is a block, or unplaced";
    problem = check_sums(m, s);
    return problem ? problem : check_pinner_order(s);
}

const char *
timeline_model_check_state(const struct timeline_model *m, uint32_t moment,
                           struct dry_state **state)
{
    struct dry_state *s;
    if (dry_state_create(m->timeline, moment, &s, NULL) != DRY_OK)
        return "a state can be made";
    uint8_t *is_seen = zalloc(m->view->allocation_count, 1);
    const char *problem =
        s->moment == moment ? check_state(m, s, is_seen) : "a state knows its moment";
    free(is_seen);
    if (problem || !state)
        dry_state_destroy(s);
    else
        *state = s;
    return problem;
}

/* --- curves ------------------------------------------------------------------------------- */

static int64_t
time_of(const struct timeline_model *m, uint32_t event)
{
    return dry_trace_get_view(m->view->trace)->time_us[m->view->first_event + event];
}

/* Where a column begins, by looking at every event. */
static uint32_t
column_begin(const struct timeline_model *m, const struct dry_axis *axis, uint32_t column)
{
    __extension__ typedef unsigned __int128 wide;
    if (column == 0 || column == axis->column_count)
        return column == 0 ? axis->from : axis->to;
    uint32_t length = axis->to - axis->from, count = m->view->event_count;
    if (!axis->is_time)
        return axis->from + (uint32_t)((uint64_t)length * column / axis->column_count);
    int64_t begin = dry_timeline_time(m->timeline, axis->from);
    int64_t end = dry_timeline_time(m->timeline, axis->to - 1);
    uint64_t span = end > begin ? (uint64_t)end - (uint64_t)begin : 0;
    int64_t time =
        (int64_t)((uint64_t)begin + (uint64_t)((wide)span * column / axis->column_count));
    uint32_t event = 0;
    while (event < count && time_of(m, event) < time)
        event++;
    uint32_t moment = event < count ? event + 1 : m->view->dump_moment + 1;
    moment = moment > axis->from ? moment : axis->from;
    return moment < axis->to ? moment : axis->to;
}

/* All curves at once are the curves one by one. */
static const char *
check_curves(const struct timeline_model *m, enum dry_curve curve,
             const struct dry_axis *axis, const struct dry_curve_column *alone)
{
    struct dry_curve_column *all[DRY_CURVE_COUNT];
    const char *problem = NULL;
    for (unsigned c = 0; c < DRY_CURVE_COUNT; c++)
        all[c] = zalloc(axis->column_count, sizeof *all[c]);
    if (dry_timeline_curves(m->timeline, axis, all, NULL) != DRY_OK)
        problem = "curves can be made";
    for (uint32_t i = 0; i < axis->column_count && !problem; i++) {
        const struct dry_curve_column *x = &alone[i], *y = &all[curve][i];
        if (x->min != y->min || x->max != y->max || x->last != y->last ||
            x->begin != y->begin || x->end != y->end || x->max_moment != y->max_moment)
            problem = "curves at once are curves one by one";
    }
    for (unsigned c = 0; c < DRY_CURVE_COUNT; c++)
        free(all[c]);
    return problem;
}

static const char *
check_column(const struct timeline_model *m, enum dry_curve curve,
             const struct dry_axis *axis, const struct dry_curve_column *column)
{
    const uint64_t *heights = m->heights[curve];
    if (column->begin == column->end) {
        uint32_t before = column->begin > axis->from ? column->begin - 1 : axis->from;
        bool carries_on = column->min == heights[before] &&
                          column->max == heights[before] &&
                          column->last == heights[before] && column->max_moment == before;
        return carries_on ? NULL : "in an empty column the height carries on";
    }
    uint32_t max_moment = column->begin;
    uint64_t min = heights[max_moment];
    for (uint32_t i = column->begin; i < column->end; i++) {
        min = heights[i] < min ? heights[i] : min;
        max_moment = heights[i] > heights[max_moment] ? i : max_moment;
    }
    if (column->min != min || column->max != heights[max_moment] ||
        column->max_moment != max_moment || column->last != heights[column->end - 1])
        return "a column is the least, greatest and last of its heights";
    return NULL;
}

const char *
timeline_model_check_curve(const struct timeline_model *m, enum dry_curve curve,
                           const struct dry_axis *axis)
{
    struct dry_curve_column *columns = zalloc(axis->column_count, sizeof *columns);
    const char *problem = NULL;
    if (dry_timeline_curve(m->timeline, curve, axis, columns, NULL) != DRY_OK)
        problem = "a curve can be made";
    for (uint32_t i = 0; i < axis->column_count && !problem; i++) {
        uint32_t begin = column_begin(m, axis, i), end = column_begin(m, axis, i + 1);
        if (columns[i].begin != begin || columns[i].end != (end > begin ? end : begin))
            problem = "columns divide the axis";
        else
            problem = check_column(m, curve, axis, &columns[i]);
    }
    if (!problem)
        problem = check_curves(m, curve, axis, columns);
    free(columns);
    return problem;
}

/* --- drawings ----------------------------------------------------------------------------- */

/* What is looked for in one column. */
struct cell {
    uint64_t bottom;
    uint32_t allocation;
};

static int
compare_cells(const void *a, const void *b)
{
    const struct cell *x = a, *y = b;
    if (x->bottom != y->bottom)
        return x->bottom < y->bottom ? -1 : 1;
    return (x->allocation > y->allocation) - (x->allocation < y->allocation);
}

/* Carried-over allocations are older than all others. */
static uint64_t
age_rank(const struct dry_timeline_view *v, uint32_t allocation)
{
    uint32_t window = v->allocation_count - v->carried_over_count;
    return allocation >= window ? allocation - window
                                : (uint64_t)v->carried_over_count + allocation;
}

static const char *
check_stack(const struct timeline_model *m, const struct dry_drawing_column *column,
            const struct cell *cells, size_t count)
{
    uint64_t at = 0;
    for (size_t i = 0; i < count; i++) {
        const struct dry_allocation *a = &m->view->allocations[cells[i].allocation];
        if (!is_alive(a, column->moment))
            return "what is drawn is alive";
        if (cells[i].bottom != at)
            return "the stack has neither gaps nor overlaps";
        at += a->size;
    }
    return at + column->undrawn_bytes == column->active_bytes
               ? NULL
               : "stack and small ones are the active bytes";
}

static const char *
check_alive(const struct timeline_model *m, const struct dry_drawing_column *column,
            uint64_t min_bytes, size_t drawn)
{
    uint32_t undrawn_count = 0, large_count = 0;
    uint64_t undrawn_bytes = 0;
    for (uint32_t i = 0; i < m->view->allocation_count; i++) {
        const struct dry_allocation *a = &m->view->allocations[i];
        if (!is_alive(a, column->moment))
            continue;
        bool is_small = a->size < min_bytes;
        undrawn_count += is_small;
        large_count += !is_small;
        undrawn_bytes += is_small ? a->size : 0;
    }
    if (undrawn_count != column->undrawn_count || undrawn_bytes != column->undrawn_bytes)
        return "small ones are counted";
    if (large_count != drawn)
        return "all large ones are drawn, once";
    return column->active_bytes == m->heights[DRY_CURVE_ACTIVE][column->moment]
               ? NULL
               : "a column is as high as the active curve";
}

static const char *
check_drawing_column(const struct timeline_model *m, const struct dry_drawing *d,
                     uint32_t column, uint64_t min_bytes, struct cell *cells)
{
    size_t count = 0;
    for (size_t i = 0; i < d->run_count; i++) {
        const struct dry_drawing_run *run = &d->runs[i];
        if (run->column <= column && column < run->column_end)
            cells[count++] = (struct cell){run->bottom, run->allocation};
    }
    if (count > 0)
        qsort(cells, count, sizeof *cells, compare_cells);
    const char *problem = check_stack(m, &d->columns[column], cells, count);
    return problem ? problem : check_alive(m, &d->columns[column], min_bytes, count);
}

static uint32_t
life_length(const struct dry_timeline_view *v, uint32_t allocation)
{
    const struct dry_allocation *a = &v->allocations[allocation];
    return (is_alive(a, v->dump_moment) ? v->dump_moment + 1 : a->end) - a->begin;
}

/* Tell whether run `i` may lie on the one before, which is another allocation's. */
static bool
is_in_order(const struct timeline_model *m, const struct dry_drawing *d,
            enum dry_stacking stacking, size_t i)
{
    uint32_t below = life_length(m->view, d->runs[i - 1].allocation);
    uint32_t above = life_length(m->view, d->runs[i].allocation);
    if (stacking == DRY_STACKING_LONG_LIVED && below != above)
        return below > above;
    return age_rank(m->view, d->runs[i - 1].allocation) <
           age_rank(m->view, d->runs[i].allocation);
}

static const char *
check_runs(const struct timeline_model *m, const struct dry_drawing *d,
           enum dry_stacking stacking)
{
    for (size_t i = 0; i < d->run_count; i++) {
        const struct dry_drawing_run *run = &d->runs[i], *before = run - 1;
        if (run->column >= run->column_end || run->column_end > d->column_count ||
            run->allocation >= m->view->allocation_count)
            return "runs lie in the drawing";
        if (i == 0)
            continue;
        if (before->allocation == run->allocation) {
            if (before->column_end != run->column || before->bottom == run->bottom)
                return "a run goes as far as its height stays";
        } else if (!is_in_order(m, d, stacking, i)) {
            return "the oldest lie at the bottom, or the longest";
        }
    }
    return NULL;
}

static const char *
check_samples(const struct timeline_model *m, const struct dry_axis *axis,
              const struct dry_drawing *d)
{
    if (d->column_count != axis->column_count)
        return "a drawing has the columns of its axis";
    for (uint32_t i = 0; i < d->column_count; i++) {
        uint32_t begin = column_begin(m, axis, i), end = column_begin(m, axis, i + 1);
        uint32_t moment = d->columns[i].moment;
        if (begin < end && (moment < begin || moment >= end))
            return "a column is sampled in itself";
        for (uint32_t k = begin; k < end; k++) {
            if (m->heights[DRY_CURVE_ACTIVE][k] > d->columns[i].active_bytes)
                return "a column is sampled at its highest moment";
        }
    }
    return NULL;
}

static bool
is_same_drawing(const struct dry_drawing *a, const struct dry_drawing *b)
{
    if (a->column_count != b->column_count || a->run_count != b->run_count ||
        a->min_bytes != b->min_bytes)
        return false;
    for (uint32_t i = 0; i < a->column_count; i++) {
        const struct dry_drawing_column *x = &a->columns[i], *y = &b->columns[i];
        if (x->moment != y->moment || x->undrawn_count != y->undrawn_count ||
            x->undrawn_bytes != y->undrawn_bytes || x->active_bytes != y->active_bytes)
            return false;
    }
    for (size_t i = 0; i < a->run_count; i++) {
        const struct dry_drawing_run *x = &a->runs[i], *y = &b->runs[i];
        if (x->allocation != y->allocation || x->column != y->column ||
            x->column_end != y->column_end || x->bottom != y->bottom)
            return false;
    }
    return true;
}

/* A drawing within a number of runs is the first that has no more, tried one by one. */
static const char *
check_within(const struct timeline_model *m, const struct dry_axis *axis,
             enum dry_stacking stacking, const struct dry_drawing_bounds *bounds)
{
    struct dry_drawing *within, *naive;
    if (dry_drawing_create(m->timeline, axis, stacking, bounds, &within, NULL) != DRY_OK)
        return "a drawing within bounds can be made";
    const char *problem = NULL;
    bool is_few = false;
    for (uint64_t bytes = bounds->min_bytes; !is_few && !problem; bytes = bytes * 2 + 1) {
        struct dry_drawing_bounds any = {.min_bytes = bytes, .run_max = SIZE_MAX};
        if (dry_drawing_create(m->timeline, axis, stacking, &any, &naive, NULL) !=
            DRY_OK) {
            problem = "a drawing can be made";
            break;
        }
        is_few = naive->run_count <= bounds->run_max;
        if (is_few && !is_same_drawing(naive, within))
            problem = "a drawing within bounds has the smallest that are few enough";
        dry_drawing_destroy(naive);
    }
    dry_drawing_destroy(within);
    return problem;
}

const char *
timeline_model_check_drawing(const struct timeline_model *m, const struct dry_axis *axis,
                             enum dry_stacking stacking, uint64_t min_bytes)
{
    struct dry_drawing_bounds any = {.min_bytes = min_bytes, .run_max = SIZE_MAX};
    struct dry_drawing *d;
    if (dry_drawing_create(m->timeline, axis, stacking, &any, &d, NULL) != DRY_OK)
        return "a drawing can be made";
    const char *problem = check_samples(m, axis, d);
    if (!problem)
        problem = check_runs(m, d, stacking);
    struct cell *cells = zalloc(d->run_count, sizeof *cells);
    for (uint32_t i = 0; i < d->column_count && !problem; i++)
        problem = check_drawing_column(m, d, i, min_bytes, cells);
    free(cells);
    size_t run_count = d->run_count;
    dry_drawing_destroy(d);
    for (unsigned i = 1; i <= 4 && !problem; i++) {
        struct dry_drawing_bounds bounds = {min_bytes, run_count / i};
        problem = check_within(m, axis, stacking, &bounds);
    }
    return problem;
}
