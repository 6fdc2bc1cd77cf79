/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Find the memory that steps leave allocated.
 *
 * The search covers the whole steps after the first, which fills caches and creates the optimizer's
 * state. An allocation outlived its step and the next one if it was born before the last whole step
 * and is alive at that step's end. Code that leaves allocations step after step is a suspect. The
 * first and the last third of the steps show whether it continues. A full cache leaves none in the
 * last third; a buffer of the last n items loses its survivors of the first third.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/sort.h"
#include "explain/steps/steps_inside.h"

/* An allocation that outlived its step, and the group of its code. */
struct survivor {
    uint32_t group;
    uint32_t allocation;
    uint32_t step;
};

struct growing {
    struct dry_steps *s;
    const struct dry_timeline_view *v;
    struct dryi_map groups; /* stack -> group; without a stack, requested size -> group */
    struct survivor *survivors;
    size_t count, capacity;
    /* The steps in which one group left allocations, ascending, and their bytes and counts. */
    uint32_t *steps;
    uint64_t *bytes;
    uint64_t *counts;
    size_t step_capacity;
    uint32_t used;
};

static int
compare_survivors(const void *a, const void *b)
{
    const struct survivor *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return x->allocation < y->allocation ? -1 : x->allocation > y->allocation;
}

/* Sort by bytes per step, largest first; break ties by birth. */
static int
compare_growth(const void *a, const void *b)
{
    const struct dry_growth *x = a, *y = b;
    if (x->bytes_per_step != y->bytes_per_step)
        return x->bytes_per_step > y->bytes_per_step ? -1 : 1;
    return x->allocation < y->allocation ? -1 : x->allocation > y->allocation;
}

/* --- survivors ---------------------------------------------------------------------------- */

#define BY_SIZE (UINT64_C(1) << 63)

/* An empty stack counts as none: with Python stacks only, the autograd engine's
   allocations have empty stacks. */
static uint64_t
get_key(const struct dry_timeline_view *v, const struct dry_allocation *a)
{
    size_t count = 0;
    if (a->stack != DRY_NONE)
        dry_trace_stack(v->trace, a->stack, &count);
    return count > 0 ? a->stack : BY_SIZE | a->requested;
}

/* Return whether an allocation of the whole steps outlived the last of them. */
static bool
is_survivor(const struct dry_steps *s, const struct dry_allocation *a)
{
    uint32_t end = s->rows[s->whole_end - 1].end;
    return a->begin > s->rows[s->first_whole].begin && a->begin <= end && a->end > end;
}

bool
dryi_growth_counts(const struct dry_steps *s, const struct dry_growth *growth,
                   const struct dry_allocation *a)
{
    const struct dry_timeline_view *v = dry_timeline_get_view(s->timeline);
    return is_survivor(s, a) &&
           get_key(v, a) == get_key(v, &v->allocations[growth->allocation]);
}

static bool
add_survivor(struct growing *g, uint32_t allocation, uint32_t step)
{
    const struct dry_allocation *a = &g->v->allocations[allocation];
    uint64_t key = get_key(g->v, a);
    const uint32_t *known = dryi_map_find(&g->groups, key);
    uint32_t group = known ? *known : (uint32_t)g->groups.count;
    if (!known && !dryi_map_put(&g->groups, key, group))
        return false;
    if (!dryi_memory_grow(&g->s->memory, &g->survivors, &g->capacity, g->count + 1,
                          sizeof *g->survivors))
        return false;
    g->survivors[g->count++] =
        (struct survivor){.group = group, .allocation = allocation, .step = step};
    return true;
}

static bool
collect_survivors(struct growing *g)
{
    const struct dry_steps *s = g->s;
    uint32_t born = g->v->allocation_count - g->v->carried_over_count;
    uint32_t end = s->rows[s->whole_end - 1].end;
    uint32_t i = s->first_whole;
    for (uint32_t a = 0; a < born; a++) {
        const struct dry_allocation *row = &g->v->allocations[a];
        while (i + 1 < s->whole_end && row->begin > s->rows[i].end)
            i++;
        if (row->begin > end)
            break;
        if (is_survivor(s, row) && !add_survivor(g, a, i))
            return false;
    }
    if (g->count > 0)
        qsort(g->survivors, g->count, sizeof *g->survivors, compare_survivors);
    return true;
}

/* --- one group ---------------------------------------------------------------------------- */

static void
sum_up_group(struct growing *g, const struct survivor *rows, size_t count)
{
    g->used = 0;
    for (size_t i = 0; i < count; i++) {
        if (g->used == 0 || g->steps[g->used - 1] != rows[i].step) {
            g->steps[g->used] = rows[i].step;
            g->bytes[g->used] = g->counts[g->used] = 0;
            g->used++;
        }
        g->bytes[g->used - 1] += g->v->allocations[rows[i].allocation].size;
        g->counts[g->used - 1]++;
    }
}

/* Count the group's steps in the range from <= step < to. */
static uint32_t
count_steps(const struct growing *g, uint32_t from, uint32_t to)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->used; i++)
        count += g->steps[i] >= from && g->steps[i] < to;
    return count;
}

/* Return the lower median of `count` values. `values` holds the `given` nonzero values and is
   sorted in place; the other values are 0. */
static uint64_t
find_median(uint64_t *values, uint32_t given, uint32_t count)
{
    DRYI_ASSERT(given <= count);
    uint32_t middle = (count - 1) / 2, zeros = count - given;
    qsort(values, given, sizeof *values, dryi_compare_leading);
    return middle < zeros ? 0 : values[middle - zeros];
}

static uint32_t
count_near(const uint64_t *values, uint32_t count, uint64_t middle)
{
    uint32_t near = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t off = values[i] > middle ? values[i] - middle : middle - values[i];
        near += off <= middle / 10;
    }
    return near;
}

/*
 * Judge a group by the steps from <= step < to. It leaks regularly if it has survivors in more than
 * half of the steps, also of the first third and of the last. It leaks occasionally if it has
 * survivors in at least three steps, with one in each third.
 */
static bool
judge_group(struct growing *g, uint32_t from, uint32_t to, struct dry_growth *growth)
{
    uint32_t all = to - from, third = (all + 2) / 3;
    uint32_t first = count_steps(g, from, from + third);
    uint32_t last = count_steps(g, to - third, to);
    uint32_t skip = 0;
    while (skip < g->used && g->steps[skip] < from)
        skip++;
    uint32_t used = count_steps(g, from, to);
    uint64_t *bytes = g->bytes + skip, *counts = g->counts + skip;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < used; i++)
        sum += bytes[i];
    double trust = all < 4 ? all / 4.0 : 1.0;
    if (used * 2 > all && first * 2 > third && last * 2 > third) {
        growth->bytes_per_step = find_median(bytes, used, all);
        growth->count_per_step = find_median(counts, used, all);
        growth->confidence =
            trust * count_near(bytes, used, growth->bytes_per_step) / all;
    } else if (used >= 3 && first > 0 && last > 0 &&
               count_steps(g, from + third, to - third) > 0) {
        growth->bytes_per_step = sum / all;
        growth->count_per_step = 0; /* below one */
        growth->confidence = trust / 2 * used / all;
    }
    return growth->bytes_per_step > 0;
}

static bool
add_group(struct growing *g, const struct survivor *rows, size_t count)
{
    struct dry_steps *s = g->s;
    const struct dry_allocation *latest = &g->v->allocations[rows[count - 1].allocation];
    struct dry_growth growth = {.stack = g->v->allocations[rows[0].allocation].stack,
                                .allocation = rows[count - 1].allocation,
                                .requested_bytes = latest->requested,
                                .last_event = g->v->first_event + latest->begin - 1};
    sum_up_group(g, rows, count);
    growth.step_count = g->used;
    for (uint32_t i = 0; i < g->used; i++)
        growth.bytes += g->bytes[i];
    if (!judge_group(g, s->first_whole + 1, s->whole_end - 1, &growth))
        return true;
    if (!dryi_memory_grow(&s->memory, &s->growth, &s->growth_capacity,
                          s->growth_count + 1, sizeof *s->growth))
        return false;
    s->growth[s->growth_count++] = growth;
    return true;
}

static bool
judge_groups(struct growing *g)
{
    for (size_t i = 0; i < g->count;) {
        size_t n = 1;
        while (i + n < g->count && g->survivors[i + n].group == g->survivors[i].group)
            n++;
        if (!add_group(g, g->survivors + i, n))
            return false;
        i += n;
    }
    if (g->s->growth_count > 0)
        qsort(g->s->growth, g->s->growth_count, sizeof *g->s->growth, compare_growth);
    return true;
}

/* --- the slope ---------------------------------------------------------------------------- */

/* Return the growth per step between the medians of the first and the last third. The result is
   exact for linear growth, and no single step affects it. */
static uint64_t
find_slope(const struct dry_step *rows, uint32_t count, uint64_t *scratch)
{
    uint32_t third = count / 3 > 0 ? count / 3 : 1;
    for (uint32_t i = 0; i < third; i++)
        scratch[i] = rows[i].active_end;
    uint64_t first = find_median(scratch, third, third);
    for (uint32_t i = 0; i < third; i++)
        scratch[i] = rows[count - third + i].active_end;
    uint64_t last = find_median(scratch, third, third);
    return last > first ? (last - first) / (count - third) : 0;
}

/* Steps of varying sizes rise and fall about equally often. Require three
   rises per fall for growth. */
static bool
goes_up(const struct dry_step *rows, uint32_t count)
{
    uint32_t ups = 0, downs = 0;
    for (uint32_t i = 0; i + 1 < count; i++) {
        ups += rows[i + 1].active_end > rows[i].active_end;
        downs += rows[i + 1].active_end < rows[i].active_end;
    }
    return ups >= 3 * (uint64_t)downs;
}

/* Measure the growth per step. Take the lowest slope over all steps, the last half and the last
   third: memory that stopped growing there is no leak. */
static uint64_t
measure_slope(const struct growing *g)
{
    const struct dry_steps *s = g->s;
    const struct dry_step *rows = s->rows + s->first_whole;
    uint32_t count = s->whole_end - s->first_whole;
    uint64_t least = goes_up(rows, count) ? UINT64_MAX : 0;
    for (uint32_t part = 1; part <= 3; part++) {
        uint32_t used = count / part > 2 ? count / part : 2;
        uint64_t slope = find_slope(rows + (count - used), used, g->bytes);
        least = slope < least ? slope : least;
    }
    return least;
}

enum dry_status
dryi_growth_find(struct dry_steps *s, struct dry_error *err)
{
    if (s->whole_end < s->first_whole + 4) /* first, last, and two in between */
        return DRY_OK;
    struct growing g = {.s = s,
                        .v = dry_timeline_get_view(s->timeline),
                        .step_capacity = s->whole_end - s->first_whole};
    dryi_map_init(&g.groups, &s->memory);
    g.steps = dryi_memory_zalloc(&s->memory, g.step_capacity, sizeof *g.steps);
    g.bytes = dryi_memory_zalloc(&s->memory, g.step_capacity, sizeof *g.bytes);
    g.counts = dryi_memory_zalloc(&s->memory, g.step_capacity, sizeof *g.counts);
    bool is_ok =
        g.steps && g.bytes && g.counts && collect_survivors(&g) && judge_groups(&g);
    if (is_ok)
        s->growth_per_step = measure_slope(&g);
    dryi_map_finish(&g.groups);
    dryi_memory_free(&s->memory, g.survivors, g.capacity, sizeof *g.survivors);
    dryi_memory_free(&s->memory, g.steps, g.step_capacity, sizeof *g.steps);
    dryi_memory_free(&s->memory, g.bytes, g.step_capacity, sizeof *g.bytes);
    dryi_memory_free(&s->memory, g.counts, g.step_capacity, sizeof *g.counts);
    return is_ok ? DRY_OK : dryi_fail_memory(err, "what steps leave behind");
}
