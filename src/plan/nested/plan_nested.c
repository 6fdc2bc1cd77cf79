/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The nested planner: Rotor (Beaumont et al., arXiv:1911.13214) with ranges of at most a
 * window's stages, options, and the evaluation's rules.
 *
 * A grid of slots is only approximate: many small saved sizes add up many rounding
 * errors. So sizes are rounded to the nearest slot, and the remainder has a price. Plans
 * are read from the table for more and for less memory than the budget. Each is evaluated
 * in exact bytes, and the fastest that fits is taken.
 *
 * The plan of one level competes with these plans. If they fail, the plan of sizes
 * rounded up and the plan of least memory are tried; the latter exists whenever any plan
 * does. Sizes rounded down give a lower bound of every plan's time.
 *
 * The window doubles until the table's value at the budget stops changing.
 *
 * Cost: that of the tables (plan_nested_table.c), and a walk and an evaluation for each
 * column that is tried.
 */
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "plan/nested/plan_nested.h"

#define WINDOW_FIRST 16u
#define COLUMNS_MORE 3u /* tenths of the slots to add: bytes that rounding may hide */
/* A plan that leaves more than 1/100 of the memory unused is compared with fallbacks. */
#define UNUSED_PART 100u
#define LEAST_WORK (UINT64_C(1) << 25) /* stages * window^2: about 30 ms */
/* stages; with more, the one-level planner takes longer than this one */
#define ONE_LEVEL_MAX 4096u
#define COLUMNS_ABOVE 24u /* columns to try above the first whose plan fits */

struct nested {
    struct dryi_planning *p;
    struct dryi_nested chain;
    struct dryi_nested_least least;
    /* Pruning by the one-level plan; zeroed if there is none. */
    struct dryi_nested_pruning pruning;
    struct dryi_nested_table table;
    uint32_t one_longest; /* length of that plan's longest range, in stages */
    uint32_t window, window_max;
    uint32_t column; /* the first column where the table's plans fit */
    /* The best plan so far. */
    struct dry_plan_item *items;
    size_t item_count, item_capacity;
    struct dry_plan_cost cost;
    uint32_t kept; /* number of plans that became the best */
    bool is_told;  /* the error already has a text */
    /* Floor of plans without nested ranges; 0: unknown. */
    struct dryi_plan_floor one_floor;
};

/* --- plans --------------------------------------------------------------------------------- */

/* Keep p's list if it fits and is better. *fits: whether it fits. */
static enum dry_status
consider(struct nested *n, const struct dryi_planning *p, bool *fits)
{
    struct dry_plan_cost cost;
    const struct dryi_plan_list *list = &p->list;
    enum dry_status status = dryi_plan_price(p, &cost);
    *fits = false;
    if (status != DRY_OK)
        /* Too many second runs to evaluate: not an option. */
        return status == DRY_ERR_LIMIT ? DRY_OK : status;
    *fits =
        cost.peak_phase == DRY_PHASE_STEP || cost.peak_bytes <= p->options.budget_bytes;
    if (!*fits || (n->kept > 0 && (cost.time_ns > n->cost.time_ns ||
                                   (cost.time_ns == n->cost.time_ns &&
                                    cost.peak_bytes >= n->cost.peak_bytes))))
        return DRY_OK;
    if (!dryi_memory_grow(&p->memory, &n->items, &n->item_capacity, list->count,
                          sizeof *n->items))
        return DRY_ERR_MEMORY;
    memcpy(n->items, list->items, list->count * sizeof *n->items);
    n->item_count = list->count;
    n->cost = cost;
    n->kept++;
    return DRY_OK;
}

/* Consider the table's plan of a column. */
static enum dry_status
consider_column(struct nested *n, uint32_t column, bool *fits)
{
    enum dry_status status =
        dryi_nested_walk(n->p, n->window, dryi_nested_table_guide(&n->table), column);
    return status == DRY_OK ? consider(n, n->p, fits) : status;
}

/* Return the least column with the same time as this one. */
static uint32_t
find_equal(const struct nested *n, uint32_t column)
{
    float time = dryi_nested_table_get(&n->table, column);
    while (column > 0 && dryi_nested_table_get(&n->table, column - 1) == time)
        column--;
    return column;
}

/* Bisect to the column where plans begin to fit, then try those above it. */
static enum dry_status
scan(struct nested *n)
{
    uint32_t lo = n->table.ends[0].lo, hi = n->table.columns, fits_to = lo;
    enum dry_status status = DRY_OK;
    bool fits = false;
    while (lo <= hi && status == DRY_OK) {
        uint32_t middle = lo + (hi - lo) / 2, column = find_equal(n, middle);
        status = consider_column(n, column, &fits);
        if (fits)
            fits_to = lo = middle + 1;
        else if (column == 0)
            break;
        else
            hi = column - 1;
    }
    n->column = fits_to;
    uint32_t last = dryi_min32(n->table.columns, fits_to + COLUMNS_ABOVE);
    for (uint32_t m = fits_to; m <= last && status == DRY_OK; m++) {
        if (m >= n->table.ends[0].lo && find_equal(n, m) == m)
            status = consider_column(n, m, &fits);
    }
    return status;
}

/* --- windows ------------------------------------------------------------------------------- */

static void
note_bytes(struct nested *n)
{
    if (n->table.bytes_peak > n->p->table_bytes)
        n->p->table_bytes = n->table.bytes_peak;
}

static enum dry_status
make_table(struct nested *n, enum dryi_nested_rounding rounding, uint32_t window)
{
    uint32_t slots = n->p->options.slots;
    uint64_t unit = n->chain.free_budget / slots + (n->chain.free_budget % slots > 0);
    unit = unit > 0 ? unit : 1;
    uint32_t columns = (uint32_t)(n->chain.free_budget / unit);
    if (rounding == DRYI_ROUND_DOWN)
        columns += n->chain.free_budget % unit > 0;
    if (rounding == DRYI_ROUND_NEAREST && unit > 1)
        columns += slots / 10 * COLUMNS_MORE;
    dryi_nested_table_finish(&n->table);
    enum dry_status status = dryi_nested_table_init(
        &n->table, &n->chain, rounding, unit, columns, n->p->options.table_bytes_max);
    if (status == DRY_OK && n->pruning.chain)
        dryi_nested_table_prune(&n->table, &n->pruning);
    if (status == DRY_OK)
        status = dryi_nested_table_widen(&n->table, window);
    note_bytes(n);
    return status;
}

static float
get_time(const struct nested *n)
{
    return dryi_nested_table_get(
        &n->table,
        dryi_min32(n->table.columns, (uint32_t)(n->chain.free_budget / n->table.unit)));
}

/*
 * Compute the table with sizes rounded to nearest. The window halves until
 * table_bytes_max holds it.
 */
static enum dry_status
make_nearest(struct nested *n)
{
    enum dry_status status = make_table(n, DRYI_ROUND_NEAREST, n->window);
    while (status == DRY_ERR_LIMIT && n->p->options.window == 0 && n->window > 1)
        status = make_table(n, DRYI_ROUND_NEAREST, n->window /= 2);
    return status;
}

/* Double the window as long as the table's value at the budget changes. */
static enum dry_status
grow_window(struct nested *n)
{
    enum dry_status status = make_nearest(n);
    float before = -1;
    while (status == DRY_OK && n->p->options.window == 0 && n->window < n->window_max &&
           get_time(n) != before) {
        uint32_t window = dryi_min32(2 * n->window, n->window_max);
        before = get_time(n);
        status = dryi_nested_table_widen(&n->table, window);
        note_bytes(n);
        if (status == DRY_ERR_LIMIT)
            return make_nearest(n);
        n->window = window;
    }
    return status;
}

/* --- floor and bound ----------------------------------------------------------------------- */

/* Compute the least memory with this window. DRY_ERR_LIMIT: the previous result stays. */
static enum dry_status
make_least(struct nested *n, uint32_t window)
{
    uint64_t cells = (uint64_t)n->chain.count * window;
    uint64_t bytes = cells * sizeof *n->least.ranges;
    if (bytes > n->p->options.table_bytes_max)
        return DRY_ERR_LIMIT;
    dryi_nested_least_finish(&n->least);
    enum dry_status status = dryi_nested_least_init(&n->least, &n->chain, window);
    if (status != DRY_OK)
        return status;
    if (bytes > n->p->table_bytes)
        n->p->table_bytes = bytes;
    return DRY_OK;
}

/* Record the peak of all steps but the optimizer's. */
static void
see_step(void *self, const struct dry_plan_step *step)
{
    struct dryi_plan_floor *floor = self;
    if (step->phase == DRY_PHASE_STEP || step->needed_bytes <= floor->bytes)
        return;
    *floor = (struct dryi_plan_floor){step->needed_bytes, step->stage, step->phase};
}

/*
 * Widen the window of the least memory, as long as the result falls, exceeds `goal`,
 * and limits allow it.
 */
static enum dry_status
widen_least(struct nested *n, uint64_t goal)
{
    uint64_t work = n->p->count * UINT64_C(4), before = DRYI_NESTED_NEVER,
             least = dryi_nested_least_get(&n->least);
    while (n->p->options.window == 0 && n->least.window < n->window_max && least > goal &&
           least < before && work * n->least.window * n->least.window <= LEAST_WORK) {
        enum dry_status status =
            make_least(n, dryi_min32(2 * n->least.window, n->window_max));
        if (status != DRY_OK)
            return status == DRY_ERR_LIMIT ? DRY_OK : status;
        before = least;
        least = dryi_nested_least_get(&n->least);
    }
    return DRY_OK;
}

/* Set the floor to the peak of the plan of least memory. */
static enum dry_status
set_floor(struct nested *n)
{
    struct dryi_planning *p = n->p;
    struct dryi_plan_floor floor = {0};
    struct dry_plan_observer observer = {see_step, &floor};
    struct dry_plan_cost cost;
    enum dry_status status = widen_least(n, 0);
    if (status == DRY_OK)
        status = dryi_nested_walk(p, n->least.window, dryi_nested_least_guide(&n->least),
                                  dryi_nested_least_get(&n->least));
    DRYI_ASSERT(status != DRY_ERR_NO_SPACE);
    if (status == DRY_OK) {
        status = dryi_plan_observe(p, &observer, &cost);
        n->is_told = status != DRY_OK;
    }
    if (status != DRY_OK)
        return status;
    p->floor = floor;
    /* These tables count offloaded bytes as held; the evaluation and one-level planning do not. */
    if (n->kept > 0 && n->cost.peak_bytes < p->floor.bytes)
        p->floor = (struct dryi_plan_floor){n->cost.peak_bytes, n->cost.peak_stage,
                                            n->cost.peak_phase};
    if (n->one_floor.bytes > 0 && n->one_floor.bytes < p->floor.bytes)
        p->floor = n->one_floor;
    return DRY_OK;
}

static enum dry_status
set_bound(struct nested *n)
{
    uint64_t extra, bound;
    enum dry_status status = make_table(n, DRYI_ROUND_DOWN, n->window);
    if (status == DRY_ERR_LIMIT)
        return DRY_OK; /* base_ns remains the bound */
    if (status == DRY_OK)
        status = dryi_nested_bound(&n->table, &extra);
    if (status == DRY_OK && !__builtin_add_overflow(n->p->base_ns, extra, &bound))
        n->p->bound_ns = bound < n->cost.time_ns ? bound : n->cost.time_ns;
    return status;
}

/* --- the planner --------------------------------------------------------------------------- */

static enum dry_status
save_all(struct nested *n)
{
    bool fits;
    dryi_plan_clear(n->p);
    if (!dryi_plan_push_save(n->p, 0, n->p->count - 1, 0))
        return DRY_ERR_MEMORY;
    enum dry_status status = consider(n, n->p, &fits);
    DRYI_ASSERT(status != DRY_OK || fits);
    return status;
}

/*
 * Return whether the rows fit table_bytes_max. A requested window may have too many,
 * which is checked before any work.
 */
static bool
has_room_for_rows(const struct nested *n)
{
    uint64_t rows = n->chain.count * (uint64_t)n->window;
    return n->p->options.window == 0 ||
           dryi_nested_get_all(&n->chain) <= n->chain.free_budget ||
           rows <= n->p->options.table_bytes_max / sizeof(struct dryi_nested_row);
}

/* Choose the first window: the least memory with it fits the budget, or widening stops helping. */
static enum dry_status
start(struct nested *n)
{
    const struct dry_plan_options *options = &n->p->options;
    n->window_max = n->p->count > 1 ? n->p->count - 1 : 1;
    n->window =
        dryi_min32(options->window ? options->window : WINDOW_FIRST, n->window_max);
    if (!has_room_for_rows(n))
        return DRY_ERR_LIMIT;
    enum dry_status status = make_least(n, n->window);
    while (status == DRY_ERR_LIMIT && options->window == 0 && n->window > 1)
        status = make_least(n, n->window /= 2);
    if (status == DRY_OK)
        status = widen_least(n, n->chain.free_budget);
    n->window = n->least.window;
    return status;
}

static uint32_t
get_longest(const struct dryi_plan_list *list)
{
    uint32_t longest = 0;
    for (size_t i = 0; i < list->count; i++) {
        uint32_t length = list->items[i].last - list->items[i].first + 1;
        if (list->items[i].kind == DRY_PLAN_CHECKPOINT && length > longest)
            longest = length;
    }
    return longest;
}

/*
 * Consider the plan without nested ranges. The one-level planner searches in exact bytes,
 * in a fraction of this planner's time.
 */
static enum dry_status
consider_one_level(struct nested *n)
{
    struct dryi_planning p;
    struct dry_plan_options options = n->p->options;
    bool fits;
    if (n->p->count > ONE_LEVEL_MAX)
        return DRY_OK;
    options.method = DRY_METHOD_ONE_LEVEL;
    enum dry_status status = dryi_planning_init(&p, n->p->chain, &options, NULL);
    p.progress = n->p->progress;
    if (status == DRY_OK)
        status = dryi_plan_one_level(&p);
    n->one_longest = get_longest(&p.list);
    if (status == DRY_OK && (n->one_longest <= n->window || options.window == 0))
        status = consider(n, &p, &fits);
    if (options.window == 0)
        n->one_floor = p.floor;
    if (p.table_bytes > n->p->table_bytes)
        n->p->table_bytes = p.table_bytes;
    dryi_planning_finish(&p);
    return status == DRY_ERR_MEMORY || status == DRY_ERR_CANCELLED ? status : DRY_OK;
}

/*
 * Build the plan of least memory, which fits by construction, and keep it if it is
 * faster.
 */
static enum dry_status
consider_least(struct nested *n)
{
    bool fits;
    enum dry_status status = dryi_nested_walk(
        n->p, n->least.window, dryi_nested_least_guide(&n->least), n->chain.free_budget);
    return status == DRY_OK ? consider(n, n->p, &fits) : status;
}

/*
 * Consider the plan of sizes rounded up. Also consider consider_least()'s plan, unless its
 * ranges exceed the table's window.
 */
static enum dry_status
fall_back(struct nested *n)
{
    bool fits;
    enum dry_status status = n->least.window <= n->window ? consider_least(n) : DRY_OK;
    if (status == DRY_OK)
        status = make_table(n, DRYI_ROUND_UP, n->window);
    if (status == DRY_OK && n->table.ends[0].lo <= n->table.columns)
        status = consider_column(n, find_equal(n, n->table.columns), &fits);
    return status == DRY_ERR_LIMIT ? DRY_OK : status;
}

/* Return whether there is a plan that uses nearly all of the memory. */
static bool
is_used(const struct nested *n)
{
    uint64_t free_budget = n->p->free_budget_bytes;
    return n->kept > 0 && n->cost.peak_bytes >=
                              n->p->base_bytes + free_budget - free_budget / UNUSED_PART;
}

/*
 * Scan with the price that the relaxation gives, then with the table's price at the column found.
 */
static enum dry_status
scan_priced(struct nested *n)
{
    double price;
    if (!dryi_nested_find_price(&n->table, &price))
        return DRY_ERR_MEMORY;
    enum dry_status status = dryi_nested_table_set_price(&n->table, price);
    if (status == DRY_OK)
        status = scan(n);
    if (status == DRY_OK)
        status = dryi_nested_table_price(&n->table, n->column);
    return status == DRY_OK ? scan(n) : status;
}

/* Prune by the best plan so far: others have to be better. */
static enum dry_status
set_pruning(struct nested *n)
{
    uint64_t limit = n->cost.time_ns - n->p->base_ns;
    if (n->kept == 0 || dryi_nested_pruning_init(&n->pruning, &n->chain, limit))
        return DRY_OK;
    return DRY_ERR_MEMORY;
}

/* Find the best plan, in n->items. */
static enum dry_status
search(struct nested *n)
{
    if (dryi_nested_get_all(&n->chain) <= n->chain.free_budget)
        return save_all(n);
    enum dry_status status = consider_one_level(n);
    if (status == DRY_OK)
        status = set_pruning(n);
    uint32_t kept = n->kept;
    if (status == DRY_OK)
        status = grow_window(n);
    n->p->slots = n->p->options.slots;
    if (status == DRY_OK)
        status = scan(n);
    if (status == DRY_OK && n->table.unit > 1)
        status = scan_priced(n);
    if (status == DRY_ERR_LIMIT && n->table.price > 0)
        /* Rows with a price are longer; they are an improvement that may be skipped. */
        status = DRY_OK;
    if (kept > 0 && n->kept == kept && n->one_longest > n->window)
        n->window = n->one_longest;
    if (status == DRY_OK && !is_used(n))
        status = fall_back(n);
    n->p->window = n->window;
    if (status != DRY_OK || n->kept > 0)
        return status == DRY_OK ? set_bound(n) : status;
    n->p->slots = 0; /* the table is unused: table_bytes_max made its ranges too short */
    n->p->window = n->least.window;
    return consider_least(n);
}

static bool
has_offload(const struct dryi_nested *chain)
{
    for (size_t o = 0; o < chain->option_count; o++) {
        if (chain->options[o].light < chain->options[o].held)
            return true;
    }
    return false;
}

static enum dry_status
run(struct nested *n)
{
    struct dryi_plan_list *list = &n->p->list;
    enum dry_status status = start(n);
    bool is_possible = status == DRY_OK &&
                       n->p->options.budget_bytes >= n->p->base_bytes &&
                       dryi_nested_least_get(&n->least) <= n->chain.free_budget;
    if (is_possible)
        status = search(n);
    else if (status == DRY_OK && has_offload(&n->chain))
        status = consider_one_level(n);
    if (status == DRY_OK)
        status = set_floor(n);
    if (status != DRY_OK)
        return status;
    if (n->kept == 0)
        return DRY_ERR_NO_SPACE;
    if (!dryi_memory_grow(&n->p->memory, &list->items, &list->capacity, n->item_count,
                          sizeof *list->items))
        return DRY_ERR_MEMORY;
    memcpy(list->items, n->items, n->item_count * sizeof *n->items);
    list->count = n->item_count;
    return DRY_OK;
}

enum dry_status
dryi_plan_nested(struct dryi_planning *p)
{
    struct nested n = {.p = p};
    if (!dryi_nested_init(&n.chain, p))
        return dryi_fail_memory(p->err, "a plan's chain");
    enum dry_status status = run(&n);
    dryi_nested_table_finish(&n.table);
    dryi_nested_least_finish(&n.least);
    dryi_nested_pruning_finish(&n.pruning);
    dryi_nested_finish(&n.chain);
    dryi_memory_free(&p->memory, n.items, n.item_capacity, sizeof *n.items);
    if (status == DRY_ERR_MEMORY)
        return dryi_fail_memory(p->err, "a plan's tables");
    if (status == DRY_ERR_LIMIT && !n.is_told)
        return dryi_fail(
            p->err, status,
            "tables of %u stages, ranges to %u of them and %u slots take more "
            "than the %llu bytes they may",
            p->count, n.window, p->options.slots,
            (unsigned long long)p->options.table_bytes_max);
    return status;
}
