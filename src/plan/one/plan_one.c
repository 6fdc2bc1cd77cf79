/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Planning of one level: chooses the number of slots, their price, and the effort of the search.
 *
 * Pruning relaxes all limits but one, in one pass for each price. It finds the price of a byte, a
 * first plan, and which items a better plan can have. Tables and searches hold only those items.
 *
 * If bytes are scarce all along the chain, a table of few slots may give a better price than
 * pruning. Every price gives a lower bound, which rises up to the right price and falls after it.
 * With a good price, few slots bound nearly as well as many.
 *
 * If everything that a plan can hold is a whole number of slots, nothing is rounded. The table is
 * then exact and needs no price, and the first plan found by it is optimal.
 *
 * Cost: that of the tables and searches (plan_one_table.c, plan_one_search.c), limited by WORK_MAX
 * and MOVES_MAX.
 */
#include "plan/one/plan_one.h"
#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "plan/chain/plan_state.h"

#define PRICE_SLOTS 64u /* least number of slots of a table that searches for the price */
#define PRICE_SHARE                                                                      \
    3u /* the need of saving everything exceeds the memory by at least 3 such slots */
/* The first search is limited to plans within 4 mean stages' time of the bound. */
#define NEAR_STAGES 4
#define GOOD_PART 1024 /* a gap of 1/1024 of a plan's time ends the planning */
#define ITEMS_FAR                                                                        \
    (UINT64_C(1) << 20) /* with more items than this, any improvement ends the planning */
/* With more items than this, tables do not refine the pruning's price. */
#define ITEMS_MANY (UINT64_C(1) << 22)
/* Items a row that a limit may admit even if they are over 25 % more than before. */
#define NEAR_ITEMS 24u
#define PRICE_MAX 0x1p51
#define PRICE_TRIES 40u /* price look-ups with a table, at most */
/* Bound ratio up to which the pruning's price is kept: tables add at most 0.025 %. */
#define PRICE_KNOWN 1.00025
/* Bound ratio up to which only the smallest factor is tried: tables add at most 1 %. */
#define PRICE_NEAR 1.01
/*
 * Cells up to which a table may have more slots than `slots` asks for, if that makes it
 * exact: about 10 ms.
 */
#define EXACT_CELLS (UINT64_C(1) << 20)
/*
 * Sums in a table: one or two seconds. Chains of thousands of stages then get fewer
 * slots, which costs little, as prices compensate for rounding.
 */
#define WORK_MAX (UINT64_C(1) << 31)
#define SLOTS_MIN 32u
#define WIDTH_MAX 1024u
#define MOVES_MAX                                                                        \
    1500000u /* item visits of a whole search, over all ways kept: some 10 ms */
#define MOVES_LONG                                                                       \
    (UINT64_C(1) << 25) /* the same for up to WIDTH_FEW ways: long chains take longer */
#define WIDTH_FEW 16u
#define WAY_MOVES 8u /* cost of storing a way, in item visits */

struct planner {
    struct dryi_planning *p;
    struct dryi_one one;
    struct dryi_one_plan plan;
    struct dryi_one_pruning pruning;
    uint64_t memory;
    uint64_t slot;
    uint64_t items; /* items of all stages that pass the pruning; at least 1 */
    double price;   /* time of a byte */
};

/* --- slots ------------------------------------------------------------------------------- */

static double
lesser(double a, double b)
{
    return a < b ? a : b;
}

/* Find the largest size that divides everything a plan can hold. */
static uint64_t
find_unit(const struct dryi_one *one)
{
    uint64_t unit = 0;
    for (size_t i = 0; i < one->count; i++) {
        unit = dryi_common_divisor(unit, one->stages[i].output);
        for (size_t k = one->stages[i].option; k < dryi_one_option_end(one, i); k++)
            unit = dryi_common_divisor(unit, one->options[k].held);
    }
    return unit ? unit : 1;
}

static uint64_t
count_cells(const struct planner *r, uint64_t slot)
{
    return (uint64_t)r->one.row_count * 2 * (dryi_one_columns(r->memory, slot) + 1);
}

static uint64_t
get_slot(uint64_t memory, uint64_t slots)
{
    return memory > slots ? (memory - 1) / slots + 1 : 1;
}

/* Count the items that pass the pruning. */
static uint64_t
count_items(const struct planner *r)
{
    uint64_t items = r->one.option_count;
    for (size_t i = 0; i < r->one.count; i++) {
        struct dryi_one_walk walk = {&r->one, &r->pruning, i, i, r->memory, {.moved = 0}};
        while (dryi_one_walk_on(&walk))
            items++;
    }
    return items;
}

/* Return the number of slots: options.slots, or fewer to stay within WORK_MAX. */
static uint64_t
count_slots(const struct planner *r)
{
    uint64_t slots = r->p->options.slots, most = WORK_MAX / r->items;
    most = most < SLOTS_MIN ? SLOTS_MIN : most;
    return dryi_min(slots, most);
}

/* Choose the slot. The table gets at most half of the memory; the search needs the other half. */
static enum dry_status
choose_slot(struct planner *r)
{
    uint64_t cells_max = r->p->options.table_bytes_max / sizeof(double) / 2;
    uint64_t unit = find_unit(&r->one), slots = count_slots(r);
    r->slot = get_slot(r->memory, slots);
    bool is_fine = r->memory / EXACT_CELLS < unit &&
                   count_cells(r, unit) <= dryi_min(cells_max, EXACT_CELLS);
    if (unit >= r->slot || is_fine)
        r->slot = unit;
    while (slots > 1 && count_cells(r, r->slot) > cells_max) {
        slots -= slots / 4 + 1;
        r->slot = get_slot(r->memory, slots);
    }
    if (count_cells(r, r->slot) > cells_max)
        return dryi_fail(r->p->err, DRY_ERR_LIMIT,
                         "tables of %zu rows need %llu bytes even with one slot; "
                         "table_bytes_max is %llu",
                         r->one.row_count,
                         (unsigned long long)count_cells(r, r->slot) * 2 * sizeof(double),
                         (unsigned long long)r->p->options.table_bytes_max);
    r->p->slots = (uint32_t)(r->memory ? (r->memory - 1) / r->slot + 1 : 1);
    return DRY_OK;
}

/* --- prices ------------------------------------------------------------------------------ */

struct pricing {
    const struct planner *planner;
    uint64_t slot;
    size_t items;
    double price, bound; /* the best so far; `price` is that of a byte */
    enum dry_status status;
};

/* Return the price of a slot: a whole number, at most PRICE_MAX to keep sums exact. */
static double
get_price(uint64_t slot, double price)
{
    double product = price * (double)slot;
    return product < PRICE_MAX ? (double)(uint64_t)product : PRICE_MAX;
}

static enum dry_status
make_table(const struct planner *r, uint64_t slot, double price, struct dryi_one_table *t)
{
    struct dryi_one_grid grid = {r->memory, slot, get_price(slot, price), &r->pruning};
    return dryi_one_table_init(t, &r->one, &grid, r->p->err);
}

/* Compute the bound at `price` with a table. Returns whether it is the best so far. */
static bool
try_price(struct pricing *q, double price)
{
    if (q->status != DRY_OK || q->items == 0)
        return false;
    q->items--;
    struct dryi_one_table t;
    q->status = make_table(q->planner, q->slot, price, &t);
    if (q->status != DRY_OK)
        return false;
    double bound = dryi_one_bound(&t, 0, 0, q->planner->memory);
    dryi_one_table_finish(&t);
    if (bound <= q->bound)
        return false;
    q->price = price;
    q->bound = bound;
    return true;
}

/*
 * Multiply the price by `factor` as long as the bound rises. If it falls at once, divide instead.
 */
static void
climb(struct pricing *q, double factor)
{
    if (try_price(q, q->price * factor)) {
        while (try_price(q, q->price * factor))
            continue;
    } else {
        while (try_price(q, q->price / factor))
            continue;
    }
}

/* Lower a price that is far too high until its bound is positive. */
static void
descend(struct pricing *q)
{
    while (!try_price(q, q->price) && q->status == DRY_OK && q->items > PRICE_TRIES / 2)
        q->price /= 4;
}

/*
 * Choose the price: the pruning's, unless tables, which know all limits, bound better.
 * Then only the last factors are tried. If pruning has no price, start with what the
 * least-memory plan pays for the bytes that it saves.
 */
static enum dry_status
choose_price(struct planner *r, uint64_t all_need)
{
    static const double factors[] = {2, 1.4142, 1.1892, 1.06};
    const size_t count = sizeof factors / sizeof *factors;
    struct pricing q = {.planner = r,
                        .slot = get_slot(r->memory, PRICE_SLOTS),
                        .items = PRICE_TRIES,
                        .price = r->pruning.price};
    q.slot = dryi_min(q.slot, (all_need - r->memory) / PRICE_SHARE);
    q.slot = q.slot < r->slot ? r->slot : q.slot;
    bool is_first = q.price <= 0;
    if (is_first)
        q.price = (double)r->plan.cost.extra / (double)(all_need - r->plan.cost.need);
    r->price = q.price;
    if (q.price <= 0 || (!is_first && r->items > ITEMS_MANY))
        return DRY_OK;
    if (is_first)
        descend(&q);
    else
        try_price(&q, q.price);
    bool is_known = q.bound <= r->pruning.bound * PRICE_KNOWN;
    bool is_near = q.bound <= r->pruning.bound * PRICE_NEAR;
    for (size_t i = is_first ? 0 : is_near ? count - 1 : 2; i < count && !is_known; i++)
        climb(&q, factors[i]);
    r->price = q.price;
    return q.status;
}

/* --- plans ------------------------------------------------------------------------------- */

static bool
push(struct dryi_planning *p, const struct dryi_one *one,
     const struct dryi_one_plan *plan)
{
    dryi_plan_clear(p);
    size_t i = 0;
    for (size_t c = 0; c < plan->count; i = plan->choices[c].last + 1, c++) {
        const struct dryi_one_choice *choice = &plan->choices[c];
        uint32_t first = (uint32_t)i, last = (uint32_t)choice->last;
        bool is_saved = choice->option != SIZE_MAX;
        uint32_t option =
            is_saved ? (uint32_t)(choice->option - one->stages[i].option) : 0;
        if (!(is_saved ? dryi_plan_push_save(p, first, last, option)
                       : dryi_plan_push_range(p, first, last)))
            return false;
    }
    return true;
}

static void
save_all(const struct dryi_one *one, struct dryi_one_plan *plan)
{
    for (size_t i = 0; i < one->count; i++)
        plan->choices[i] = (struct dryi_one_choice){one->stages[i].option, i};
    plan->count = one->count;
    plan->cost = dryi_one_evaluate(one, plan->choices, plan->count);
}

/*
 * Evaluate the plan of least memory; its peak is the floor, with the stage and phase of
 * the peak.
 */
static enum dry_status
set_floor(struct planner *r)
{
    struct dryi_planning *p = r->p;
    r->plan.count = dryi_one_floor_plan(&r->one, r->plan.choices);
    r->plan.cost = dryi_one_evaluate(&r->one, r->plan.choices, r->plan.count);
    DRYI_ASSERT(r->plan.cost.need == r->one.floors[0]);
    if (!push(p, &r->one, &r->plan))
        return dryi_fail_memory(p->err, "a plan");
    struct dry_plan_cost cost;
    enum dry_status status = dryi_plan_price(p, &cost);
    if (status == DRY_OK)
        p->floor =
            (struct dryi_plan_floor){cost.peak_bytes, cost.peak_stage, cost.peak_phase};
    return status;
}

/* Return how many ways a row keeps: limited by the memory for tables and by the time. */
static size_t
get_width(const struct planner *r, const struct dryi_one_table *t)
{
    uint64_t left =
        r->p->options.table_bytes_max - 2 * r->one.row_count * t->stride * sizeof(double);
    uint64_t width = left / ((r->one.row_count + 1) * dryi_one_way_bytes());
    uint64_t moves = r->items + WAY_MOVES * r->one.row_count;
    uint64_t few = dryi_min(WIDTH_FEW, MOVES_LONG / moves), quick = MOVES_MAX / moves;
    width = dryi_min(width, quick > few ? quick : few);
    return width < WIDTH_MAX ? (size_t)(width ? width : 1) : WIDTH_MAX;
}

/* Return whether the plan meets the bound. Both are whole units of time. */
static bool
is_met(const struct planner *r, double bound)
{
    return (double)r->plan.cost.extra <= bound;
}

/* Raise the bound. If long ranges were cut off, only the pruning's bound covers them. */
static void
set_bound(struct planner *r, double bound, bool is_cut)
{
    struct dryi_planning *p = r->p;
    if (is_cut || r->one.is_cut) {
        p->window = (uint32_t)r->one.longest;
        bound = r->pruning.bound;
    }
    uint64_t bound_ns = p->base_ns + ((uint64_t)bound << r->one.time_shift);
    if (bound_ns > p->bound_ns)
        p->bound_ns = bound_ns;
}

/* Return the next width. The last step goes to `most`, so the searches before it cost little. */
static size_t
wider(size_t width, size_t most)
{
    return 4 * width < most && 16 * width > most ? most : 4 * width;
}

/* Search by the table, with more and more ways. */
static enum dry_status
search(struct planner *r, const struct dryi_one_table *t, double bound)
{
    /* No plan is below the limit: the first plan found is enough. */
    bool is_far = bound >= r->pruning.limit;
    size_t most = is_far ? 1 : get_width(r, t);
    enum dry_status status = DRY_OK;
    for (size_t width = 1; width <= most && status == DRY_OK;
         width = wider(width, most)) {
        if (r->plan.is_least || is_met(r, bound))
            break;
        double limit = (double)r->plan.cost.extra;
        dryi_one_pruning_limit(&r->pruning, lesser(r->pruning.limit, limit));
        status = dryi_one_search(t, r->memory, width, &r->plan, r->p->err);
    }
    return status;
}

/* Search for plans that take less time than the pruning's limit. */
static enum dry_status
plan_below(struct planner *r, uint64_t all_need)
{
    double limit = r->pruning.limit, bound;
    struct dryi_one_table t;
    r->items = count_items(r);
    enum dry_status status = choose_slot(r);
    if (status == DRY_OK && find_unit(&r->one) % r->slot != 0 && r->price <= 0)
        status = choose_price(r, all_need);
    if (status == DRY_OK)
        status = make_table(r, r->slot, r->price, &t);
    if (status != DRY_OK)
        return status;
    bound = dryi_one_bound(&t, 0, 0, r->memory);
    bound = lesser(limit, bound > r->pruning.bound ? bound : r->pruning.bound);
    status = search(r, &t, bound);
    if (r->plan.is_least)
        bound = (double)r->plan.cost.extra;
    r->p->table_bytes = 2 * r->one.row_count * t.stride * sizeof(double);
    set_bound(r, bound, t.is_cut);
    dryi_one_table_finish(&t);
    return status;
}

/* Choose a limit near the bound, as high as possible without admitting many items. */
static double
choose_limit(struct planner *r, double most)
{
    double stage = r->pruning.work[r->one.count] / (double)r->one.count;
    double above = NEAR_STAGES * stage + 1, bound = r->pruning.bound;
    dryi_one_pruning_limit(&r->pruning, lesser(bound + above, most));
    uint64_t items = count_items(r), items_max = NEAR_ITEMS * r->one.row_count;
    items_max = items + items / 4 > items_max ? items + items / 4 : items_max;
    while (bound + above < most) {
        dryi_one_pruning_limit(&r->pruning, lesser(bound + 4 * above, most));
        if (count_items(r) > items_max)
            break;
        above *= 4;
    }
    return lesser(bound + above, most);
}

/* Take the pruning's plan if it is better. It is often within one stage's time of the optimum. */
static enum dry_status
take_first(struct planner *r)
{
    const struct dry_memory *m = &r->one.memory;
    struct dryi_one_plan first = {
        .choices = dryi_memory_zalloc(m, r->one.count, sizeof *first.choices)};
    if (!first.choices)
        return dryi_fail_memory(r->p->err, "a plan");
    first.count = dryi_one_pruning_plan(&r->pruning, first.choices);
    first.cost = dryi_one_evaluate(&r->one, first.choices, first.count);
    struct dryi_one_plan worse = first;
    if (first.count > 0 && first.cost.extra < r->plan.cost.extra) {
        worse = r->plan;
        r->plan = first;
    }
    dryi_memory_free(m, worse.choices, r->one.count, sizeof *worse.choices);
    return DRY_OK;
}

static enum dry_status
plan_by_table(struct planner *r, uint64_t all_need)
{
    struct dryi_one_ends ends = {r->memory, all_need, r->plan.cost.need,
                                 r->plan.cost.extra};
    enum dry_status status = dryi_one_pruning_init(&r->pruning, &r->one, r->p->err);
    if (status != DRY_OK)
        return status;
    dryi_one_pruning_set(&r->pruning, &ends);
    status = take_first(r);
    double first = (double)r->plan.cost.extra, limit = choose_limit(r, first);
    bool is_last = false;
    while (status == DRY_OK && !is_last) {
        dryi_one_pruning_limit(&r->pruning, limit);
        status = plan_below(r, all_need);
        double found = (double)r->plan.cost.extra;
        bool is_good = found - r->pruning.bound < found / GOOD_PART;
        is_good = is_good || (found < first && r->items > ITEMS_FAR);
        is_last = is_good || limit >= first || found <= limit;
        limit = lesser(limit + 7 * (limit - r->pruning.bound), first);
    }
    dryi_one_pruning_finish(&r->pruning);
    return status;
}

static enum dry_status
plan_equal(struct planner *r)
{
    struct dryi_planning *p = r->p;
    size_t *ends = dryi_memory_zalloc(&p->memory, p->count, sizeof *ends);
    if (!ends)
        return dryi_fail_memory(p->err, "a plan");
    r->one.longest = r->one.count; /* one walk is cheap, so no range is cut off */
    dryi_one_plan_equal(&r->one, r->memory, ends, &r->plan);
    set_bound(r, (double)r->plan.cost.extra, false);
    dryi_memory_free(&p->memory, ends, p->count, sizeof *ends);
    return DRY_OK;
}

static enum dry_status
make_plan(struct planner *r)
{
    struct dryi_planning *p = r->p;
    save_all(&r->one, &r->plan);
    uint64_t all_need = r->plan.cost.need;
    enum dry_status status = set_floor(r);
    if (status != DRY_OK)
        return status;
    if (r->plan.cost.need > p->free_budget_bytes)
        return DRY_ERR_NO_SPACE;
    r->memory = p->free_budget_bytes;
    if (all_need <= r->memory)
        save_all(&r->one, &r->plan);
    else if (dryi_one_is_equal(p->chain))
        status = plan_equal(r);
    else
        status = plan_by_table(r, all_need);
    if (status == DRY_OK && !push(p, &r->one, &r->plan))
        return dryi_fail_memory(p->err, "a plan");
    return status;
}

enum dry_status
dryi_plan_one_level(struct dryi_planning *p)
{
    struct planner r = {.p = p};
    enum dry_status status = dryi_one_init(&r.one, p->chain, &p->memory, p->err);
    if (status != DRY_OK)
        return status;
    r.one.progress = p->progress;
    r.plan.choices = dryi_memory_zalloc(&p->memory, p->count, sizeof *r.plan.choices);
    status = r.plan.choices ? make_plan(&r) : dryi_fail_memory(p->err, "a plan");
    dryi_memory_free(&p->memory, r.plan.choices, p->count, sizeof *r.plan.choices);
    dryi_one_finish(&r.one);
    return status;
}
