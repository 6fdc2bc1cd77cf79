/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Planning of one level: how many slots, at what price, and how long to search.
 *
 * Every price gives a lower bound, and the bound rises to the right price and falls behind
 * it; so the price is searched, with a table of few slots. With a good price that one knows
 * nearly as much as a large one.
 *
 * Where all that a plan can hold is a whole number of slots, nothing is rounded: the table is
 * exact, needs no price, and the first plan that it leads to is the best.
 */
#include "plan/plan_one.h"
#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "plan/plan_state.h"

#define PRICE_SLOTS 16u /* of a table that looks for the price, at least */
#define PRICE_SHARE                                                                      \
    3u /* of such slots are in what all needs beyond the memory, at least */
#define PRICE_MAX 0x1p51
#define PRICE_LOOKS 40u        /* at most */
#define PRICE_STAGES 128u      /* of a chain that is merged to find it */
#define PRICE_STAGES_MAX 1024u /* likewise */
#define PRICE_RANGES_MAX                                                                 \
    (UINT64_C(1) << 23) /* of one that is looked at as it is: 0.1 s */
/* Cells of a table that is exact, if `slots` are too few: about 10 ms. */
#define EXACT_CELLS (UINT64_C(1) << 20)
/*
 * Sums in a table: one or two seconds. Chains of thousands of stages get fewer slots then, which
 * costs little, as prices pay for what is rounded.
 */
#define WORK_MAX (UINT64_C(1) << 31)
#define SLOTS_MIN 32u
#define WIDTH_MAX 1024u
#define WIDTH_STAGES 16384u /* ways that a search keeps in all, about: some 10 ms */

struct planner {
    struct dryi_planning *p;
    struct dryi_one one;
    struct dryi_one_plan plan;
    uint64_t memory;
    uint64_t slot;
    double price;
};

/* --- slots ------------------------------------------------------------------------------- */

static uint64_t
least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Divides all that a plan can hold. */
static uint64_t
unit_of(const struct dryi_one *one)
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
cells_of(const struct planner *r, uint64_t slot)
{
    return (uint64_t)r->one.row_count * 2 * (dryi_one_columns(r->memory, slot) + 1);
}

static uint64_t
slot_of(uint64_t memory, uint64_t slots)
{
    return memory > slots ? (memory - 1) / slots + 1 : 1;
}

/* At ranges, about: as long as what they save fits the memory. */
static uint64_t
count_looks(const struct planner *r)
{
    uint64_t looks = 0, sum = 0;
    size_t begin = 0;
    for (size_t e = 0; e < r->one.count; e++) {
        for (sum += r->one.stages[e].saved; sum > r->memory; begin++)
            sum -= r->one.stages[begin].saved;
        looks += e + 1 - begin < r->one.longest ? e + 1 - begin : r->one.longest;
    }
    return looks;
}

/* As many slots as are asked for; less where that would take long. */
static uint64_t
count_slots(const struct planner *r)
{
    uint64_t slots = r->p->options.slots, most = WORK_MAX / (count_looks(r) + 1);
    most = most < SLOTS_MIN ? SLOTS_MIN : most;
    return least(slots, most);
}

/* Half of the memory is left for the search. */
static enum dry_status
choose_slot(struct planner *r)
{
    uint64_t cells_max = r->p->options.table_bytes_max / sizeof(double) / 2;
    uint64_t unit = unit_of(&r->one), slots = count_slots(r);
    r->slot = slot_of(r->memory, slots);
    bool is_fine = r->memory / EXACT_CELLS < unit &&
                   cells_of(r, unit) <= least(cells_max, EXACT_CELLS);
    if (unit >= r->slot || is_fine)
        r->slot = unit;
    while (slots > 1 && cells_of(r, r->slot) > cells_max) {
        slots -= slots / 4 + 1;
        r->slot = slot_of(r->memory, slots);
    }
    if (cells_of(r, r->slot) > cells_max)
        return dryi_fail(r->p->err, DRY_ERR_LIMIT,
                         "tables of %zu rows need %llu bytes even with one slot; "
                         "table_bytes_max is %llu",
                         r->one.row_count,
                         (unsigned long long)cells_of(r, r->slot) * 2 * sizeof(double),
                         (unsigned long long)r->p->options.table_bytes_max);
    r->p->slots = (uint32_t)(r->memory ? (r->memory - 1) / r->slot + 1 : 1);
    return DRY_OK;
}

/* --- prices ------------------------------------------------------------------------------ */

struct pricing {
    const struct dryi_one *one;
    uint64_t memory, slot;
    size_t looks;
    double price, bound; /* the best; the price is a byte's */
    enum dry_status status;
    struct dry_error *err;
};

/* Of a slot, a whole number; and no more than anything can take. */
static double
price_of(uint64_t slot, double price)
{
    double product = price * (double)slot;
    return product < PRICE_MAX ? (double)(uint64_t)product : PRICE_MAX;
}

/* Is this price better? */
static bool
try_price(struct pricing *q, double price)
{
    if (q->status != DRY_OK || q->looks == 0)
        return false;
    q->looks--;
    struct dryi_one_grid grid = {q->memory, q->slot, price_of(q->slot, price)};
    struct dryi_one_table t;
    q->status = dryi_one_table_init(&t, q->one, &grid, q->err);
    if (q->status != DRY_OK)
        return false;
    double bound = dryi_one_bound(&t, 0, 0, q->memory);
    dryi_one_table_finish(&t);
    if (bound <= q->bound)
        return false;
    q->price = price;
    q->bound = bound;
    return true;
}

/* Up, else down, as long as it is better. */
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

/* In steps that become smaller, from `first` on. */
static void
find_price(struct pricing *q, size_t first)
{
    static const double factors[] = {2, 1.4142, 1.1892, 1.0905};
    while (!try_price(q, q->price) && q->status == DRY_OK && q->looks > PRICE_LOOKS / 2)
        q->price /= 4; /* far too high: no plan would pay that */
    for (size_t i = first; i < sizeof factors / sizeof *factors; i++)
        climb(q, factors[i]);
}

/* Long chains: first with fewer stages. */
static enum dry_status
find_price_of_merged(struct pricing *q)
{
    struct dryi_one merged;
    size_t wanted = q->one->count / 8;
    wanted = wanted < PRICE_STAGES ? PRICE_STAGES : wanted;
    wanted = wanted < PRICE_STAGES_MAX ? wanted : PRICE_STAGES_MAX;
    size_t group = (q->one->count + wanted - 1) / wanted;
    enum dry_status status = dryi_one_merge(q->one, group, &merged, q->err);
    if (status != DRY_OK)
        return status;
    struct pricing less = *q;
    less.one = &merged;
    if (merged.floors[0] <= q->memory)
        find_price(&less, 0);
    q->price = less.price;
    dryi_one_finish(&merged);
    return less.status;
}

/* The first guess: what the floor's plan pays for the bytes that it does without. */
static enum dry_status
choose_price(struct planner *r, uint64_t all_need)
{
    struct pricing q = {.one = &r->one,
                        .memory = r->memory,
                        .slot = slot_of(r->memory, PRICE_SLOTS),
                        .looks = PRICE_LOOKS,
                        .err = r->p->err};
    q.slot = least(q.slot, (all_need - r->memory) / PRICE_SHARE);
    q.slot = q.slot < r->slot ? r->slot : q.slot;
    q.price = (double)r->plan.cost.extra / (double)(all_need - r->plan.cost.need);
    if (q.price <= 0)
        return DRY_OK;
    bool is_long = r->one.count > 2 * PRICE_STAGES;
    q.status = is_long ? find_price_of_merged(&q) : DRY_OK;
    if (count_looks(r) <= PRICE_RANGES_MAX)
        find_price(&q, is_long ? 2 : 0);
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
    plan->cost = dryi_one_judge(one, plan->choices, plan->count);
}

/* The judge says where the floor is, and what is there. */
static enum dry_status
set_floor(struct planner *r)
{
    struct dryi_planning *p = r->p;
    r->plan.count = dryi_one_floor_plan(&r->one, r->plan.choices);
    r->plan.cost = dryi_one_judge(&r->one, r->plan.choices, r->plan.count);
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

/* How many ways: as the memory for tables allows, and the time. */
static size_t
width_of(const struct planner *r, const struct dryi_one_table *t)
{
    uint64_t left =
        r->p->options.table_bytes_max - 2 * r->one.row_count * t->stride * sizeof(double);
    uint64_t width = left / ((r->one.row_count + 1) * dryi_one_way_bytes());
    uint64_t quick = WIDTH_STAGES / r->one.row_count;
    width = width < quick ? width : quick;
    return width < WIDTH_MAX ? (size_t)(width ? width : 1) : WIDTH_MAX;
}

/* The bound is in whole units of time, as every plan's cost is. */
static bool
is_met(const struct planner *r, double bound)
{
    return (double)r->plan.cost.extra <= bound;
}

/* Of ranges that were not looked at nothing is known. */
static void
set_bound(struct planner *r, double bound, bool is_cut)
{
    struct dryi_planning *p = r->p;
    if (is_cut || r->one.is_cut)
        p->window = (uint32_t)r->one.longest;
    else
        p->bound_ns = p->base_ns + ((uint64_t)bound << r->one.time_shift);
}

/* A first plan: near the bound if one is there, for that is quick. */
static enum dry_status
find_plan(struct planner *r, const struct dryi_one_table *t, double bound)
{
    const double limits[] = {bound * 65 / 64 + 1, bound * 9 / 8 + 1, DRYI_ONE_NEVER};
    uint64_t first = r->plan.cost.extra;
    enum dry_status status = DRY_OK;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (status == DRY_OK && r->plan.cost.extra == first)
            status = dryi_one_search(t, r->memory, 1, limits[i], &r->plan, r->p->err);
    }
    return status;
}

static enum dry_status
search(struct planner *r, const struct dryi_one_table *t, double *bound)
{
    size_t most = width_of(r, t);
    *bound = dryi_one_bound(t, 0, 0, r->memory);
    if (is_met(r, *bound))
        return DRY_OK;
    enum dry_status status = find_plan(r, t, *bound);
    for (size_t width = 4; width <= most && status == DRY_OK; width *= 4) {
        if (r->plan.is_least || is_met(r, *bound))
            break;
        status =
            dryi_one_search(t, r->memory, width, DRYI_ONE_NEVER, &r->plan, r->p->err);
    }
    if (r->plan.is_least)
        *bound = (double)r->plan.cost.extra;
    return status;
}

static enum dry_status
plan_by_table(struct planner *r, uint64_t all_need)
{
    enum dry_status status = choose_slot(r);
    if (status == DRY_OK && unit_of(&r->one) % r->slot != 0)
        status = choose_price(r, all_need);
    if (status != DRY_OK)
        return status;
    struct dryi_one_grid grid = {r->memory, r->slot, price_of(r->slot, r->price)};
    struct dryi_one_table t;
    status = dryi_one_table_init(&t, &r->one, &grid, r->p->err);
    if (status != DRY_OK)
        return status;
    double bound;
    status = search(r, &t, &bound);
    r->p->table_bytes = 2 * r->one.row_count * t.stride * sizeof(double);
    set_bound(r, bound, t.is_cut);
    dryi_one_table_finish(&t);
    return status;
}

static enum dry_status
plan_equal(struct planner *r)
{
    struct dryi_planning *p = r->p;
    size_t *ends = dryi_memory_zalloc(&p->memory, p->count, sizeof *ends);
    if (!ends)
        return dryi_fail_memory(p->err, "a plan");
    r->one.longest = r->one.count; /* one walk looks at so many */
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
    if (r->plan.cost.need > p->room_bytes)
        return DRY_ERR_NO_SPACE;
    r->memory = p->room_bytes;
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
    r.one.watch = p->watch;
    r.plan.choices = dryi_memory_zalloc(&p->memory, p->count, sizeof *r.plan.choices);
    status = r.plan.choices ? make_plan(&r) : dryi_fail_memory(p->err, "a plan");
    dryi_memory_free(&p->memory, r.plan.choices, p->count, sizeof *r.plan.choices);
    dryi_one_finish(&r.one);
    return status;
}
