/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The search for a plan in exact bytes, guided by a table of lower bounds.
 *
 * A way is the beginning of a plan, with its held bytes and its extra time. Ways are
 * extended stage by stage. At each stage they are thinned out: first those that another
 * way dominates in both bytes and time, then those that cannot beat a known plan. If more
 * than `width` are left, those with the highest bounds are dropped. Only this last step
 * can lose the optimum. If no way is dropped by it, the plan that is found is optimal.
 *
 * Every way can be completed: it is extended only if the memory left is at least the
 * floor of the rest.
 *
 * Cost: width * stages * (options + length of ranges that fit).
 */
#include "plan/one/plan_one.h"

#include <string.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sort.h"

#define SPARE 4u /* ways that a row can hold for each that it keeps */
/* A search reports one row of progress for this many ways, which take as long as a table's row. */
#define WAYS_OF_A_ROW 8u
#define FEW 64u /* below this number, insertion sort is used */

struct way {
    uint64_t held, extra;
    double bound; /* lower bound of every whole plan that begins with it */
    size_t from;  /* index of the way before it; SIZE_MAX: none */
    struct dryi_one_choice choice;
};

struct search {
    const struct dryi_one_table *t;
    uint64_t memory;
    double limit; /* only whole plans that take less are searched for */
    size_t width, capacity;
    struct way *ways; /* `capacity` for each row, and as many more as scratch */
    size_t way_capacity;
    size_t *counts; /* number of ways, by row */
    /* The least bound dropped from each row; higher bounds are dropped at once. */
    double *worst;
    struct dryi_sort_item *items, *scratch;
    bool is_thinned; /* a way was dropped that could have led to the optimum */
};

/* Sort the items by key, stably. */
static void
sort_items(struct search *s, size_t count)
{
    if (count > FEW) {
        dryi_sort_items(s->items, s->scratch, count);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        struct dryi_sort_item item = s->items[i];
        size_t at = i;
        for (; at > 0 && s->items[at - 1].key > item.key; at--)
            s->items[at] = s->items[at - 1];
        s->items[at] = item;
    }
}

/* Find the ways that no other dominates, sorted by held bytes. items[] has their indices. */
static size_t
sort_out_worse(struct search *s, const struct way *ways, size_t count)
{
    for (size_t i = 0; i < count; i++)
        s->items[i] = (struct dryi_sort_item){ways[i].held, (uint32_t)i};
    sort_items(s, count);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const struct way *way = &ways[s->items[i].value];
        if (kept > 0) {
            const struct way *last = &ways[s->items[kept - 1].value];
            if (last->extra <= way->extra)
                continue;
            kept -= last->held == way->held;
        }
        s->items[kept++] = s->items[i];
    }
    return kept;
}

/* Keep the `width` items with the lowest bounds, among the first `count`. */
static size_t
sort_out_high(struct search *s, size_t row, const struct way *ways, size_t count)
{
    if (count <= s->width)
        return count;
    s->is_thinned = true;
    for (size_t i = 0; i < count; i++) {
        const double *bound = &ways[s->items[i].value].bound;
        memcpy(&s->items[i].key, bound,
               sizeof *bound); /* non-negative doubles sort as their bits do */
    }
    sort_items(s, count);
    s->worst[row] = ways[s->items[s->width].value].bound;
    return s->width;
}

static void
thin_out(struct search *s, size_t row)
{
    struct way *ways = s->ways + row * s->capacity;
    size_t count = sort_out_worse(s, ways, s->counts[row]);
    count = sort_out_high(s, row, ways, count);
    /* Scratch after the last row. */
    struct way *kept = s->ways + s->t->one->row_count * s->capacity;
    for (size_t i = 0; i < count; i++)
        kept[i] = ways[s->items[i].value];
    memcpy(ways, kept, count * sizeof *ways);
    s->counts[row] = count;
}

static void
add(struct search *s, size_t row, const struct way *way)
{
    if (s->counts[row] == s->capacity)
        thin_out(s, row);
    s->ways[row * s->capacity + s->counts[row]++] = *way;
}

/* An item to extend a way with: its costs, and the row of stage `to` that it leads to. */
struct move {
    uint64_t need, held, time;
    size_t to, row;
    struct dryi_one_choice choice;
};

static void
go(struct search *s, size_t from, const struct move *move)
{
    const struct way *way = &s->ways[from];
    uint64_t left = s->memory - way->held;
    if (move->need > left || move->held + s->t->one->floors[move->row] > left)
        return;
    struct way next = {.held = way->held + move->held,
                       .extra = way->extra + move->time,
                       .from = from,
                       .choice = move->choice};
    next.bound = (double)next.extra +
                 dryi_one_bound(s->t, move->to, move->row, s->memory - next.held);
    if (next.bound >= s->limit)
        return;
    if (next.bound < s->worst[move->row])
        add(s, move->row, &next);
    else
        s->is_thinned = true;
}

static void
go_all(struct search *s, size_t row, const struct move *move)
{
    size_t begin = row * s->capacity;
    for (size_t i = 0; i < s->counts[row]; i++)
        go(s, begin + i, move);
}

static void
go_on_saving(struct search *s, size_t i, size_t row)
{
    const struct dryi_one *one = s->t->one;
    for (size_t k = one->stages[i].option; k < dryi_one_option_end(one, i); k++) {
        const struct dryi_one_option *o = &one->options[k];
        if (!dryi_one_pruning_option(s->t->pruning, i, k))
            continue;
        struct move move = {o->need + one->moved[row], o->held, o->extra, i + 1, o->row,
                            {.option = k, .last = i}};
        go_all(s, row, &move);
    }
}

/* Return the least held bytes and the least time over all ways of the row. */
static struct way
find_least(const struct search *s, size_t row)
{
    const struct way *ways = s->ways + row * s->capacity;
    struct way least = ways[0];
    for (size_t i = 1; i < s->counts[row]; i++) {
        least.held = ways[i].held < least.held ? ways[i].held : least.held;
        least.extra = ways[i].extra < least.extra ? ways[i].extra : least.extra;
    }
    return least;
}

static void
go_on_repeating(struct search *s, size_t i, size_t row)
{
    const struct dryi_one *one = s->t->one;
    struct way least = find_least(s, row);
    struct dryi_one_walk walk = {one, s->t->pruning,          i,
                                 i,   s->memory - least.held, {.moved = one->moved[row]}};
    const struct dryi_one_range *range = &walk.range;
    while (dryi_one_walk_on(&walk)) {
        const struct dryi_one_stage *behind = &one->stages[walk.next];
        if ((double)(least.extra + range->time) >= s->limit)
            break;
        struct move move = {range->need, behind[-1].output,
                            range->time, walk.next,
                            behind->row, {.option = SIZE_MAX, .last = walk.next - 1}};
        go_all(s, row, &move);
    }
}

/* Extend ways through all stages. Returns false if the caller cancelled. */
static bool
run(struct search *s)
{
    const struct dryi_one *one = s->t->one;
    memset(s->counts, 0, one->row_count * sizeof *s->counts);
    for (size_t row = 0; row < one->row_count; row++)
        s->worst[row] = DRYI_ONE_NEVER;
    struct way begin = {.from = SIZE_MAX};
    add(s, 0, &begin);
    for (size_t i = 0; i < one->count; i++) {
        for (size_t row = one->stages[i].row; row < one->stages[i + 1].row; row++) {
            if (s->counts[row] == 0)
                continue;
            thin_out(s, row);
            go_on_saving(s, i, row);
            go_on_repeating(s, i, row);
            if (!dryi_plan_go_on(one->progress, 1 + s->counts[row] / WAYS_OF_A_ROW))
                return false;
        }
    }
    return true;
}

/* Return the way to the end with the least time, then the least held bytes. */
static const struct way *
best_end(const struct search *s)
{
    const struct dryi_one *one = s->t->one;
    const struct way *best = NULL;
    for (size_t row = one->stages[one->count].row; row < one->row_count; row++) {
        const struct way *ways = s->ways + row * s->capacity;
        for (size_t i = 0; i < s->counts[row]; i++) {
            if (!best || ways[i].extra < best->extra ||
                (ways[i].extra == best->extra && ways[i].held < best->held))
                best = &ways[i];
        }
    }
    return best;
}

static void
collect(const struct search *s, const struct way *end, struct dryi_one_plan *plan)
{
    plan->count = 0;
    for (const struct way *w = end; w->from != SIZE_MAX; w = &s->ways[w->from])
        plan->count++;
    size_t i = plan->count;
    for (const struct way *w = end; w->from != SIZE_MAX; w = &s->ways[w->from])
        plan->choices[--i] = w->choice;
    plan->cost = dryi_one_evaluate(s->t->one, plan->choices, plan->count);
    DRYI_ASSERT(plan->cost.need <= s->memory && plan->cost.extra == end->extra);
}

static enum dry_status
search(struct search *s, struct dryi_one_plan *plan)
{
    if (!run(s))
        return DRY_ERR_CANCELLED;
    const struct way *end = best_end(s);
    if (end)
        collect(s, end, plan);
    /* Every plan below the limit was considered, if the pruning lets it pass. */
    bool is_all = (double)plan->cost.extra <= s->t->pruning->limit;
    plan->is_least = !s->is_thinned && is_all;
    return DRY_OK;
}

static void
give_back(struct search *s)
{
    const struct dry_memory *memory = &s->t->one->memory;
    size_t rows = s->t->one->row_count;
    dryi_memory_free(memory, s->scratch, s->capacity, sizeof *s->scratch);
    dryi_memory_free(memory, s->items, s->capacity, sizeof *s->items);
    dryi_memory_free(memory, s->worst, rows, sizeof *s->worst);
    dryi_memory_free(memory, s->counts, rows, sizeof *s->counts);
    dryi_memory_free(memory, s->ways, s->way_capacity, sizeof *s->ways);
}

enum dry_status
dryi_one_search(const struct dryi_one_table *t, uint64_t memory, size_t width,
                struct dryi_one_plan *plan, struct dry_error *err)
{
    const struct dry_memory *m = &t->one->memory;
    size_t rows = t->one->row_count;
    struct search s = {.t = t,
                       .memory = memory,
                       .width = width,
                       .capacity = width * SPARE,
                       .limit = (double)plan->cost.extra};
    bool has_ways = /* not zeroed: most pages of it may stay untouched */
        dryi_memory_grow(m, &s.ways, &s.way_capacity, (rows + 1) * s.capacity,
                         sizeof *s.ways);
    s.counts = dryi_memory_zalloc(m, rows, sizeof *s.counts);
    s.worst = dryi_memory_zalloc(m, rows, sizeof *s.worst);
    s.items = dryi_memory_zalloc(m, s.capacity, sizeof *s.items);
    s.scratch = dryi_memory_zalloc(m, s.capacity, sizeof *s.scratch);
    enum dry_status status = DRY_OK;
    if (has_ways && s.counts && s.worst && s.items && s.scratch)
        status = search(&s, plan);
    else
        status = dryi_fail_memory(err, "a search for a plan");
    give_back(&s);
    return status;
}

size_t
dryi_one_way_bytes(void)
{
    return SPARE * sizeof(struct way);
}
