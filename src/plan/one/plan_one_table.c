/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The tables of one-level planning, computed from the end of the chain.
 *
 * Let an item lead from stage i to stage j. A memory of whole slots at i becomes column c' at j,
 * with `over` bytes missing. With `short` bytes less at i, over + short bytes are missing. If that
 * is a slot or more, the column is c' - 1, and over + short - slot are missing. With a slot's
 * price p, the two cases promise
 *
 *     V'[c']     + p * (over + short) / slot
 *     V'[c' - 1] + p * (over + short) / slot - p
 *
 * The lesser of the two is lent[c'] + p * (over + short) / slot. So V = time + lent[c'] + p * over
 * / slot promises as much, short of p * short / slot, which stage i promises too.
 *
 * Cost: stages * (options + length of ranges that fit) * slots additions and minima, two at a
 * time, without a branch. A range stops growing when it needs more than the memory. It also stops
 * when it takes longer than the value already known for the least memory it could fit.
 */
#include "plan/one/plan_one.h"

#include "base/fail.h"
#include "base/memory.h"

/* The values that an item offers a row, from the row that the item leads to. */
struct candidate {
    size_t row;    /* the row that the item leads to */
    size_t first;  /* first column of this row that fits the item */
    size_t left;   /* columns that the item's bytes shift to the left, plus one */
    bool is_floor; /* the floor of the rest, not the item's need, sets `first` */
    bool is_whole; /* the held bytes are whole slots, so no bytes are left over */
    double time;
};

size_t
dryi_one_columns(uint64_t memory, uint64_t slot)
{
    /* (memory + 2 * (slot - 1)) / slot + 1, rearranged because the sum may overflow. */
    uint64_t over = memory % slot;
    return (size_t)(memory / slot) + (slot > 1) + (over > 1) + 1;
}

static void
set_offsets(struct dryi_one_table *t, uint64_t memory)
{
    uint64_t offset = (t->slot - memory % t->slot) % t->slot;
    for (size_t i = 0; i < t->one->count; i++) {
        t->offsets[i] = offset;
        offset = (offset + t->one->stages[i].saved) % t->slot;
    }
    t->offsets[t->one->count] = offset;
}

/* Return x / slot, rounded down. */
static inline uint64_t
count_slots(const struct dryi_one_table *t, uint64_t x)
{
    uint64_t q = (uint64_t)((double)x * t->inverse); /* the product may be one off */
    q -= q * t->slot > x;
    q += x - q * t->slot >= t->slot;
    return q;
}

/* Return the column of a stage that holds `bytes`; t->columns if there is none. */
static inline size_t
get_column(const struct dryi_one_table *t, size_t stage, uint64_t bytes)
{
    uint64_t x = bytes + t->offsets[stage];
    if (x > t->top)
        return t->columns;
    uint64_t q = count_slots(t, x);
    return (size_t)(q + (q * t->slot < x));
}

static inline const double *
get_cells(const struct dryi_one_table *t, size_t row)
{
    return t->cells + 2 * row * t->stride;
}

static inline const double *
get_lent(const struct dryi_one_table *t, size_t row)
{
    return get_cells(t, row) + t->stride;
}

/* Return the time that `bytes` are worth, rounded down: never above the true product. */
static inline double
worth(const struct dryi_one_table *t, uint64_t bytes)
{
    double product = t->price * (double)bytes * t->inverse;
    return (double)(uint64_t)(product * (1 - 1e-12));
}

/*
 * Set a candidate that leads from stage i to j and holds `held` bytes; `need` is the
 * item's need at i.
 */
static void
set_candidate(const struct dryi_one_table *t, size_t i, size_t j, uint64_t held,
              uint64_t need, struct candidate *c)
{
    uint64_t behind = held + t->one->floors[c->row];
    c->is_floor = behind > need;
    c->first = get_column(t, i, c->is_floor ? behind : need);
    if (c->first == t->columns)
        return;
    uint64_t from = held + t->offsets[i], to = t->offsets[j], over;
    if (from < to) {
        over = t->slot - (to - from);
        c->left = 0;
    } else {
        uint64_t slots = count_slots(t, from - to);
        over = from - to - slots * t->slot;
        c->left = (size_t)slots + 1;
    }
    c->is_whole = over == 0;
    c->time += worth(t, over);
}

static void
take_least(double *restrict to, const double *restrict from, size_t count, double time)
{
    for (size_t c = 0; c < count; c++) {
        double sum = from[c] + time;
        to[c] = sum < to[c] ? sum : to[c];
    }
}

static void
apply(struct dryi_one_table *t, size_t row, const struct candidate *c, size_t end)
{
    double *to = t->cells + 2 * row * t->stride;
    const double *from = c->is_whole ? get_cells(t, c->row) : get_lent(t, c->row);
    take_least(to + c->first, from + c->first + 1 - c->left, end - c->first, c->time);
}

static void
apply_options(struct dryi_one_table *t, size_t i, size_t row)
{
    for (size_t k = t->one->stages[i].option; k < dryi_one_option_end(t->one, i); k++) {
        const struct dryi_one_option *o = &t->one->options[k];
        if (t->pruning && !dryi_one_pruning_option(t->pruning, i, k))
            continue;
        struct candidate c = {.row = o->row, .time = (double)o->extra};
        set_candidate(t, i, i + 1, o->held, o->need + t->one->moved[row], &c);
        if (c.first < t->columns)
            apply(t, row, &c, t->columns);
    }
}

/* Apply the ranges from stage i. Columns from `end` on already have the least possible value. */
static void
apply_ranges(struct dryi_one_table *t, size_t i, size_t row, size_t end)
{
    const double *cells = get_cells(t, row);
    struct dryi_one_walk walk = {t->one, t->pruning, i,
                                 i,      t->top,     {.moved = t->one->moved[row]}};
    const struct dryi_one_range *range = &walk.range;
    while (dryi_one_walk_on(&walk)) {
        const struct dryi_one_stage *behind = &t->one->stages[walk.next];
        struct candidate c = {.row = behind->row, .time = (double)range->time};
        set_candidate(t, i, walk.next, behind[-1].output, range->need, &c);
        if (c.first < end && (double)range->time - 2 * t->price < cells[c.first])
            apply(t, row, &c, end);
        else if (range->need == range->at_least && !c.is_floor)
            break; /* every longer range needs at least as much */
    }
    t->is_cut = t->is_cut || range->count >= t->one->longest;
}

/*
 * Raise cells to -price: with up to a slot's price on top they promise 0 at most, and no
 * plan takes less. Returns the first such column.
 */
static size_t
raise_to_zero(double *cells, size_t end, double price)
{
    while (end > 0 && cells[end - 1] <= -price)
        cells[--end] = -price;
    return end;
}

static void
fill_row(struct dryi_one_table *t, size_t i, size_t row)
{
    double *cells = t->cells + 2 * row * t->stride;
    double price = t->price;
    for (size_t c = 0; c < t->stride; c++)
        cells[c] = DRYI_ONE_NEVER;
    if (i == t->one->count) {
        for (size_t c = get_column(t, i, 0); c < t->columns; c++)
            cells[c] = -price;
    } else {
        apply_options(t, i, row);
        apply_ranges(t, i, row, raise_to_zero(cells, t->columns, price));
        raise_to_zero(cells, t->columns, price);
    }
    cells[t->columns] = cells[t->columns - 1];
    double *lent = cells + t->stride;
    lent[0] = cells[0];
    for (size_t c = 1; c < t->stride; c++)
        lent[c] = cells[c] < cells[c - 1] - price ? cells[c] : cells[c - 1] - price;
}

/* Compute the rows, the last stage first. Returns false if the caller cancelled. */
static bool
fill(struct dryi_one_table *t)
{
    const struct dryi_one *one = t->one;
    for (size_t row = one->stages[one->count].row; row < one->row_count; row++)
        fill_row(t, one->count, row);
    for (size_t i = one->count; i-- > 0;) {
        for (size_t row = one->stages[i].row; row < one->stages[i + 1].row; row++)
            fill_row(t, i, row);
        if (!dryi_plan_go_on(one->progress, one->stages[i + 1].row - one->stages[i].row))
            return false;
    }
    return true;
}

enum dry_status
dryi_one_table_init(struct dryi_one_table *t, const struct dryi_one *one,
                    const struct dryi_one_grid *grid, struct dry_error *err)
{
    *t = (struct dryi_one_table){.one = one,
                                 .pruning = grid->pruning,
                                 .slot = grid->slot,
                                 .inverse = 1 / (double)grid->slot,
                                 .price = grid->price};
    t->columns = dryi_one_columns(grid->memory, grid->slot);
    t->stride = t->columns + 1;
    if (__builtin_mul_overflow(t->columns - 1, grid->slot, &t->top))
        t->top = UINT64_MAX;
    bool has_cells = /* not zeroed: every row is written */
        dryi_memory_grow(&one->memory, &t->cells, &t->capacity,
                         2 * one->row_count * t->stride, sizeof *t->cells);
    t->offsets = dryi_memory_zalloc(&one->memory, one->count + 1, sizeof *t->offsets);
    if (!has_cells || !t->offsets) {
        dryi_one_table_finish(t);
        return dryi_fail_memory(err, "a plan's table");
    }
    set_offsets(t, grid->memory);
    if (fill(t))
        return DRY_OK;
    dryi_one_table_finish(t);
    return DRY_ERR_CANCELLED;
}

void
dryi_one_table_finish(struct dryi_one_table *t)
{
    if (!t->one)
        return;
    const struct dry_memory *memory = &t->one->memory;
    dryi_memory_free(memory, t->offsets, t->one->count + 1, sizeof *t->offsets);
    dryi_memory_free(memory, t->cells, t->capacity, sizeof *t->cells);
    *t = (struct dryi_one_table){0};
}

double
dryi_one_bound(const struct dryi_one_table *t, size_t stage, size_t row, uint64_t memory)
{
    size_t column = get_column(t, stage, memory);
    uint64_t bytes = column * t->slot - t->offsets[stage];
    double bound = get_cells(t, row)[column] + worth(t, bytes - memory);
    return bound > 0 ? bound : 0;
}
