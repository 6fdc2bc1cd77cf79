/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Rotor's table (Beaumont et al., arXiv:1911.13214), of ranges of at most `window` stages:
 *
 *   C(s, t, m) = min over  saving s in option k:     redo(k) + C(s+1, t, m - held(k))
 *                          a range s to e, e < t:    work(s..e) + C(s, e, m)
 *                                                    + C(e+1, t, m - output(e))
 *
 * Each requires that m is at least what its own passes need. C is recomputation only: every plan
 * runs all forwards and backwards once, so a cell is 0 from where all can be saved.
 *
 * A row, C of one range for all m, is a float for every slot between `lo`, where it becomes
 * feasible, and `hi`, where it becomes 0. The rows of short ranges are short: a twentieth of the
 * columns for 32 stages of a thousand. This makes a window cheap. All loops over slots add two
 * rows and a number and take the minimum. They stop where the rows' last cells show that nothing
 * can be gained.
 *
 * Rounding errs most where much is kept: an output of a third of a slot is free on the grid, and
 * the table would keep all of them. So running sums are rounded to nearest: a run of sizes errs by
 * no more than one size would. Rows that reach the chain's end can also carry a price (a
 * Lagrangian relaxation of the remainder). The part of a size beyond its slots costs as much time
 * as memory is worth, and a part that is missing is paid back. Then 500 slots are as good as
 * 64,000.
 *
 * Times are whole numbers of quanta, so that sums of floats are exact below 2^24. No choices are
 * stored: the walk computes a cell's candidates again to find its choice. Bytes that an option
 * offloads count as held here, unless sizes are rounded down.
 *
 * Invariants
 *
 *   T1  rows do not grow with m; cells are at least 0, without a price
 *   T2  lo <= hi <= columns + 1; lo = columns + 1: infeasible, and `last` is FAR
 *   T3  cells of ranges come before cells of ends, range_cells says where those begin
 *
 * Cost: stages * window^2 / 2 rows added. Memory: `bytes`, at most bytes_max.
 */
#include "plan/nested/plan_nested.h"

#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/memory.h"

#define FAR 1e30f /* exceeds any sum of times */
/* The sum of all forwards is at most this, so it stays exact in a float. */
#define QUANTA (UINT64_C(1) << 23)
#define SLOPE_PART 32u /* the slope is taken over 1/32 of the columns to each side */
#define CELLS_MIN (UINT64_C(1) << 14)

/* A first move: from slot `start` on it takes `time` plus the cells of the two rows. */
struct dryi_nested_candidate {
    const struct dryi_nested_row *range; /* NULL: the move saves a stage */
    const struct dryi_nested_row *rest;
    /* start: first feasible slot; shift: slots that the move takes from `rest` */
    uint32_t start, shift;
    float time, least; /* least: the sum of the two rows' last cells */
};

/* Return the slots of `parts` by the table's rounding, at most columns + 1. */
static uint32_t
get_slots(const struct dryi_nested_table *table, uint64_t parts)
{
    uint64_t slots = parts / table->unit, left = parts % table->unit;
    if (table->rounding == DRYI_ROUND_UP)
        slots += left > 0;
    else if (table->rounding == DRYI_ROUND_NEAREST)
        slots += left >= table->unit - left;
    return slots > table->columns ? table->columns + 1 : (uint32_t)slots;
}

static float
get_quanta(const struct dryi_nested_table *table, uint64_t ns)
{
    uint64_t quanta = ns / table->quantum, left = ns % table->quantum;
    if (table->rounding != DRYI_ROUND_DOWN)
        quanta += left >= table->quantum - left;
    return (float)quanta;
}

/* --- rows ---------------------------------------------------------------------------------- */

static const struct dryi_nested_row *
find(const struct dryi_nested_table *table, uint32_t s, uint32_t t)
{
    if (s > t)
        return &table->ends[table->chain->count];
    if (t + 1 == table->chain->count)
        return &table->ends[s];
    DRYI_ASSERT_SLOW(t - s < table->window);
    return &table->ranges[(size_t)s * table->window + (t - s)];
}

/* Return the cell of m. Requires row->lo <= m. */
static float
read_row(const struct dryi_nested_table *table, const struct dryi_nested_row *row,
         uint32_t m)
{
    return m < row->hi ? table->cells[row->at + m - row->lo] : 0;
}

/* Return whether this is a row to the chain's end and carries the price. */
static bool
is_priced(const struct dryi_nested_table *table, uint32_t t)
{
    return table->price > 0 && t + 1 == table->chain->count;
}

/*
 * Return the price of what rounding to `slots` left out; negative if it added. Promises
 * are rounded down to whole quanta.
 */
static float
get_price(const struct dryi_nested_table *table, uint64_t parts, uint32_t slots)
{
    int64_t left = (int64_t)parts - (int64_t)(slots * table->unit);
    float price = table->price * (float)left;
    if (table->promise == 0)
        return price;
    double share = (double)left / (double)table->unit * (1 - 0x1p-40);
    return (float)(uint64_t)(share * table->promise);
}

static uint64_t
get_held(const struct dryi_nested_table *table, const struct dryi_nested_option *option)
{
    return table->rounding == DRYI_ROUND_DOWN ? option->light : option->held;
}

/* Return the slots that a pass of a row to t needs. */
static uint32_t
get_need(const struct dryi_nested_table *table, uint32_t t, uint64_t parts)
{
    bool is_up = table->promise > 0 && is_priced(table, t);
    return get_slots(table, is_up && parts > 0 ? parts + table->unit - 1 : parts);
}

static struct dryi_nested_candidate
make_saved(const struct dryi_nested_table *table, uint32_t s, uint32_t t, uint32_t option)
{
    const struct dryi_nested_stage *stages = table->chain->stages;
    const struct dryi_nested_option *o = &table->chain->options[stages[s].first + option];
    uint64_t need = o->keep + stages[t].end;
    struct dryi_nested_candidate c = {
        .rest = find(table, s + 1, t),
        .shift = table->held[stages[s].first + option],
        .time = get_quanta(table, o->redo),
    };
    if (is_priced(table, t) && (s < t || table->promise == 0))
        c.time += get_price(table, get_held(table, o), c.shift);
    else if (is_priced(table, t))
        c.time -= (float)table->promise; /* up to a slot may be left over */
    need = need > o->back ? need : o->back;
    c.start = dryi_max32(get_need(table, t, need), c.shift + c.rest->lo);
    return c;
}

/* Make a range's candidate. `pass`: need of its forward, in slots. */
static struct dryi_nested_candidate
make_range(const struct dryi_nested_table *table, uint32_t s, uint32_t e, uint32_t t,
           uint32_t pass)
{
    const struct dryi_nested_stage *stages = table->chain->stages;
    struct dryi_nested_candidate c = {
        .range = find(table, s, e),
        .rest = find(table, e + 1, t),
        .shift = table->outputs[e],
        .time = get_quanta(table, stages[e + 1].work - stages[s].work),
    };
    if (is_priced(table, t))
        c.time += get_price(table, stages[e].output, c.shift);
    c.start = dryi_max32(dryi_max32(pass, c.range->lo), c.shift + c.rest->lo);
    return c;
}

/* Return the stage after the last that a range from s may have in a row to t. */
static uint32_t
get_last(const struct dryi_nested_table *table, uint32_t s, uint32_t t)
{
    uint32_t last = dryi_min32(table->chain->stages[s].fence, t);
    return last - s > table->window ? s + table->window : last;
}

static uint32_t
get_options(const struct dryi_nested_table *table, uint32_t s)
{
    const struct dryi_nested_stage *stages = table->chain->stages;
    return stages[s + 1].first - stages[s].first;
}

/* Return the slot from which on the candidate costs nothing; columns + 1 if none. */
static uint32_t
get_free(const struct dryi_nested_table *table, const struct dryi_nested_candidate *c)
{
    if (c->time > 0)
        return table->columns + 1;
    return dryi_max32(dryi_max32(c->start, c->rest->hi + c->shift),
                      c->range ? c->range->hi : 0);
}

/* Return whether a plan below the pruning's limit can have the range s to e. */
static bool
is_of_use(const struct dryi_nested_table *table, uint32_t s, uint32_t e, uint32_t t)
{
    const struct dryi_nested_pruning *pruning = table->pruning;
    if (!pruning || t + 1 < table->chain->count)
        return true;
    return pruning->from[s] + pruning->to[e] < pruning->sum_limit;
}

static void
add_candidate(struct dryi_nested_table *table, struct dryi_nested_row *row, bool is_whole,
              struct dryi_nested_candidate c)
{
    if (c.start > table->columns || c.start >= row->hi)
        return;
    row->lo = dryi_min32(row->lo, c.start);
    if (!is_whole)
        row->hi = dryi_min32(row->hi, get_free(table, &c));
    c.least = c.rest->last + (c.range ? c.range->last : 0);
    table->candidates[table->candidate_count++] = c;
}

/* Collect all candidates, and compute the row's lo and hi. */
static struct dryi_nested_row
gather(struct dryi_nested_table *table, uint32_t s, uint32_t t)
{
    const struct dryi_nested_stage *stages = table->chain->stages;
    struct dryi_nested_row row = {.lo = table->columns + 1, .hi = table->columns + 1};
    bool is_whole = is_priced(table, t);
    float most = t + 1 < table->chain->count ? table->most : FAR;
    table->candidate_count = 0;
    for (uint32_t k = 0; k < get_options(table, s); k++)
        add_candidate(table, &row, is_whole, make_saved(table, s, t, k));
    uint64_t pass = 0;
    uint32_t slots = 0;
    for (uint32_t e = s, end = get_last(table, s, t); e < end; e++) {
        if (get_quanta(table, stages[e + 1].work - stages[s].work) > most)
            break;
        uint64_t needed = stages[e].pass + (e > s ? stages[e - 1].output : 0);
        if (needed > pass || e == s) {
            pass = needed > pass ? needed : pass;
            slots = get_need(table, t, pass + stages[t].end);
            if (slots >= row.hi)
                break; /* every longer range needs at least as much */
        }
        if (is_of_use(table, s, e, t))
            add_candidate(table, &row, is_whole, make_range(table, s, e, t, slots));
    }
    row.lo = dryi_min32(row.lo, row.hi);
    return row;
}

static void
relax_both(float *restrict into, const float *restrict a, const float *restrict b,
           float time, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float sum = time + a[i] + b[i];
        into[i] = sum < into[i] ? sum : into[i];
    }
}

static void
relax_one(float *restrict into, const float *restrict a, float time, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float sum = time + a[i];
        into[i] = sum < into[i] ? sum : into[i];
    }
}

/* Return the address of m's cell. Requires row->lo <= m < row->hi. */
static float *
get_cell(const struct dryi_nested_table *table, const struct dryi_nested_row *row,
         uint32_t m)
{
    return table->cells + (row->at + m - row->lo);
}

/* Return the first slot in [from, to) where the row takes at most `time`; `to` if none. */
static uint32_t
find_time(const struct dryi_nested_table *table, const struct dryi_nested_row *row,
          uint32_t from, uint32_t to, float time)
{
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (*get_cell(table, row, middle) <= time)
            to = middle;
        else
            from = middle + 1;
    }
    return from;
}

/*
 * Apply the candidate to the row. Its two rows add at least `least`, so slots that
 * already have time + least or less are skipped.
 */
static void
relax(const struct dryi_nested_table *table, const struct dryi_nested_row *row,
      const struct dryi_nested_candidate *c)
{
    uint32_t rest_end = c->rest->hi + c->shift, range_end = c->range ? c->range->hi : 0;
    uint32_t m = c->start, end = find_time(table, row, m, row->hi, c->time + c->least);
    uint32_t both = dryi_min32(end, dryi_min32(rest_end, range_end));
    uint32_t one = dryi_min32(end, dryi_max32(rest_end, range_end));
    if (m < both) {
        relax_both(get_cell(table, row, m), get_cell(table, c->range, m),
                   get_cell(table, c->rest, m - c->shift), c->time, both - m);
        m = both;
    }
    if (m < one) {
        const float *from = rest_end > range_end ? get_cell(table, c->rest, m - c->shift)
                                                 : get_cell(table, c->range, m);
        relax_one(get_cell(table, row, m), from, c->time, one - m);
        m = one;
    }
    for (; m < end; m++)
        *get_cell(table, row, m) = c->time;
}

static void
count_bytes(struct dryi_nested_table *table, uint64_t more)
{
    table->bytes += more;
    if (table->bytes > table->bytes_peak)
        table->bytes_peak = table->bytes;
}

static bool
reserve(struct dryi_nested_table *table, uint64_t cells)
{
    uint64_t wanted = table->cell_capacity + table->cell_capacity / 4;
    wanted = wanted < CELLS_MIN ? CELLS_MIN : wanted;
    uint64_t free_budget = (table->bytes_max - table->bytes) / sizeof *table->cells;
    if (cells <= table->cell_capacity)
        return true;
    if (wanted > table->cell_capacity + free_budget)
        wanted = table->cell_capacity + free_budget;
    wanted = wanted < cells ? cells : wanted;
    size_t old = table->cell_capacity * sizeof *table->cells;
    float *grown = table->chain->memory.resize(table->chain->memory.self, table->cells,
                                               old, wanted * sizeof *table->cells);
    if (!grown)
        return false;
    count_bytes(table, (wanted - table->cell_capacity) * sizeof *table->cells);
    table->cells = grown;
    table->cell_capacity = wanted;
    return true;
}

/* Compute the row's cells from the collected candidates. */
static void
fill_row(struct dryi_nested_table *table, const struct dryi_nested_row *row)
{
    uint32_t width = row->hi - row->lo;
    if (width == 0)
        return;
    float *cells = table->cells + row->at;
    for (uint32_t i = 0; i < width; i++)
        cells[i] = FAR;
    for (size_t i = 0; i < table->candidate_count; i++)
        relax(table, row, &table->candidates[i]);
}

/* Trim cells of plans that are too slow: the row then begins after them. */
static void
trim_row(struct dryi_nested_table *table, struct dryi_nested_row *row)
{
    uint32_t width = row->hi - row->lo, cut = 0;
    if (width == 0)
        return;
    float *cells = table->cells + row->at;
    while (cut < width && cells[cut] > table->most)
        cut++;
    memmove(cells, cells + cut, (width - cut) * sizeof *cells);
    row->lo += cut;
}

static enum dry_status
make_row(struct dryi_nested_table *table, uint32_t s, uint32_t t,
         struct dryi_nested_row *out)
{
    if (!dryi_plan_go_on(table->chain->progress, 1))
        return DRY_ERR_CANCELLED;
    struct dryi_nested_row row = gather(table, s, t);
    row.at = table->cell_count;
    uint64_t cells = row.at + (row.hi - row.lo),
             free_budget = table->bytes_max - table->bytes;
    if (cells > table->cell_capacity + free_budget / sizeof *table->cells)
        return DRY_ERR_LIMIT;
    if (!reserve(table, cells))
        return DRY_ERR_MEMORY;
    fill_row(table, &row);
    if (t + 1 < table->chain->count)
        trim_row(table, &row);
    table->cell_count = row.at + (row.hi - row.lo);
    row.last = row.lo <= table->columns ? read_row(table, &row, table->columns) : FAR;
    *out = row;
    return DRY_OK;
}

/* --- windows ------------------------------------------------------------------------------- */

static void *
take(struct dryi_nested_table *table, uint64_t count, size_t element_bytes,
     enum dry_status *status)
{
    uint64_t bytes;
    if (__builtin_mul_overflow(count, element_bytes, &bytes) || bytes > PTRDIFF_MAX ||
        bytes > table->bytes_max - table->bytes) {
        *status = DRY_ERR_LIMIT;
        return NULL;
    }
    void *taken = dryi_memory_zalloc(&table->chain->memory, count, element_bytes);
    if (!taken)
        *status = DRY_ERR_MEMORY;
    else
        count_bytes(table, bytes);
    return taken;
}

static void
give(struct dryi_nested_table *table, void *old, uint64_t count, size_t element_bytes)
{
    if (old)
        table->bytes -= count * element_bytes;
    dryi_memory_free(&table->chain->memory, old, count, element_bytes);
}

/* Move the rows to a wider layout, so that longer ranges fit. */
static enum dry_status
spread(struct dryi_nested_table *table, uint32_t window)
{
    enum dry_status status = DRY_OK;
    uint64_t count = table->chain->count, old = table->window;
    struct dryi_nested_row *ranges = take(table, count * window, sizeof *ranges, &status);
    struct dryi_nested_candidate *candidates =
        take(table, DRY_STAGE_OPTIONS_MAX + 1 + window, sizeof *candidates, &status);
    if (status != DRY_OK) {
        give(table, ranges, count * window, sizeof *ranges);
        give(table, candidates, DRY_STAGE_OPTIONS_MAX + 1 + window, sizeof *candidates);
        return status;
    }
    for (uint64_t s = 0; s < count; s++) {
        for (uint64_t i = 0; i < old; i++)
            ranges[s * window + i] = table->ranges[s * old + i];
    }
    give(table, table->ranges, count * old, sizeof *ranges);
    give(table, table->candidates, DRY_STAGE_OPTIONS_MAX + 1 + old, sizeof *candidates);
    table->ranges = ranges;
    table->candidates = candidates;
    table->window = window;
    return DRY_OK;
}

/* Lower each promise to the least over this slot and the one before, which pays a slot's price. */
static void
lend(struct dryi_nested_table *table, struct dryi_nested_row *row)
{
    if (row->lo > table->columns)
        return;
    float *cells = get_cell(table, row, row->lo), promise = (float)table->promise;
    for (uint32_t i = row->hi - row->lo; i-- > 1;) {
        float less = cells[i - 1] - promise;
        cells[i] = less < cells[i] ? less : cells[i];
    }
    row->last = read_row(table, row, table->columns);
}

static enum dry_status
make_ends(struct dryi_nested_table *table)
{
    uint32_t count = (uint32_t)table->chain->count;
    enum dry_status status = DRY_OK;
    table->cell_count = table->range_cells;
    for (uint32_t s = count; s-- > 0 && status == DRY_OK;) {
        status = make_row(table, s, count - 1, &table->ends[s]);
        if (status == DRY_OK && table->promise > 0 && s > 0)
            lend(table, &table->ends[s]);
    }
    return status;
}

/*
 * Limit what useful ranges recompute inside: better plans recompute at most limit -
 * bound. Rounding adds up to two quanta a stage.
 */
static void
set_most(struct dryi_nested_table *table)
{
    const struct dryi_nested_pruning *pruning = table->pruning;
    if (!pruning)
        return;
    double most = (pruning->limit - pruning->bound) / (double)table->quantum;
    most += (double)table->window + 1;
    table->most = most < (double)FAR ? (float)most : FAR;
}

enum dry_status
dryi_nested_table_widen(struct dryi_nested_table *table, uint32_t window)
{
    const struct dryi_nested_stage *stages = table->chain->stages;
    uint32_t last = (uint32_t)table->chain->count - 1, old = table->window;
    enum dry_status status = window > old ? spread(table, window) : DRY_OK;
    if (status != DRY_OK)
        return status;
    set_most(table);
    table->cell_count = table->range_cells;
    for (uint32_t s = last; s-- > 0 && status == DRY_OK;) {
        uint32_t end = dryi_min32(dryi_min32(last, stages[s].fence),
                                  last - s > window ? s + window : last);
        for (uint32_t t = s + old; t < end && status == DRY_OK; t++)
            status = make_row(table, s, t, &table->ranges[(size_t)s * window + (t - s)]);
    }
    table->range_cells = table->cell_count;
    return status == DRY_OK ? make_ends(table) : status;
}

/* Return the slots that a size adds to the running sum: a run of sizes is rounded only once. */
static uint32_t
get_share(const struct dryi_nested_table *table, uint64_t before, uint64_t parts)
{
    if (table->rounding != DRYI_ROUND_NEAREST)
        return get_slots(table, parts);
    uint64_t half = table->unit / 2, from = before % table->unit + half;
    uint64_t slots = (from + parts) / table->unit - from / table->unit;
    return slots > table->columns ? table->columns + 1 : (uint32_t)slots;
}

static void
round_sizes(struct dryi_nested_table *table)
{
    const struct dryi_nested *chain = table->chain;
    uint64_t outputs = 0, saved = 0;
    for (size_t i = 0; i < chain->count; i++) {
        const struct dryi_nested_stage *stage = &chain->stages[i];
        table->outputs[i] = get_share(table, outputs, stage->output);
        for (uint32_t o = stage->first; o < stage[1].first; o++)
            table->held[o] = get_share(table, saved, get_held(table, &chain->options[o]));
        outputs += stage->output;
        saved += chain->options[stage->first].held;
    }
}

enum dry_status
dryi_nested_table_init(struct dryi_nested_table *table, const struct dryi_nested *chain,
                       enum dryi_nested_rounding rounding, uint64_t unit,
                       uint32_t columns, uint64_t bytes_max)
{
    enum dry_status status = DRY_OK;
    *table = (struct dryi_nested_table){.chain = chain,
                                        .rounding = rounding,
                                        .unit = unit,
                                        .quantum =
                                            chain->stages[chain->count].work / QUANTA + 1,
                                        .columns = columns,
                                        .most = FAR,
                                        .bytes_max = bytes_max};
    table->outputs = take(table, chain->count, sizeof *table->outputs, &status);
    table->held = take(table, chain->option_count, sizeof *table->held, &status);
    table->ends = take(table, chain->count + 1, sizeof *table->ends, &status);
    if (status != DRY_OK) {
        dryi_nested_table_finish(table);
        return status;
    }
    round_sizes(table);
    return DRY_OK;
}

void
dryi_nested_table_prune(struct dryi_nested_table *table,
                        const struct dryi_nested_pruning *pruning)
{
    DRYI_ASSERT(table->window == 0);
    table->pruning = pruning;
}

void
dryi_nested_table_finish(struct dryi_nested_table *table)
{
    if (!table->chain)
        return;
    size_t count = table->chain->count;
    give(table, table->outputs, count, sizeof *table->outputs);
    give(table, table->held, table->chain->option_count, sizeof *table->held);
    give(table, table->ends, count + 1, sizeof *table->ends);
    give(table, table->ranges, (uint64_t)count * table->window, sizeof *table->ranges);
    give(table, table->candidates, DRY_STAGE_OPTIONS_MAX + 1 + table->window,
         sizeof *table->candidates);
    give(table, table->cells, table->cell_capacity, sizeof *table->cells);
    *table = (struct dryi_nested_table){0};
}

float
dryi_nested_table_get(const struct dryi_nested_table *table, uint32_t column)
{
    const struct dryi_nested_row *row = &table->ends[0];
    return column < row->lo ? FAR : read_row(table, row, column);
}

float
dryi_nested_table_get_range(const struct dryi_nested_table *table, uint32_t s, uint32_t t)
{
    return find(table, s, t)->last;
}

enum dry_status
dryi_nested_table_promise(struct dryi_nested_table *table, uint32_t price)
{
    DRYI_ASSERT(table->rounding == DRYI_ROUND_DOWN && price > 0);
    table->promise = price;
    table->price = (float)price / (float)table->unit;
    return make_ends(table);
}

enum dry_status
dryi_nested_table_set_price(struct dryi_nested_table *table, double price)
{
    table->price = (float)(price / (double)table->quantum);
    return make_ends(table);
}

enum dry_status
dryi_nested_table_price(struct dryi_nested_table *table, uint32_t column)
{
    const struct dryi_nested_row *row = &table->ends[0];
    uint32_t around = table->columns / SLOPE_PART + 1;
    uint32_t from = dryi_max32(row->lo, column > around ? column - around : 0);
    uint32_t to = dryi_min32(table->columns, column + around);
    if (from < to)
        table->price = (read_row(table, row, from) - read_row(table, row, to)) /
                       ((float)(to - from) * (float)table->unit);
    return make_ends(table);
}

/* --- moves of the best plan ---------------------------------------------------------------- */

/* Return the time of the candidate in m slots; FAR: infeasible. */
static float
evaluate(const struct dryi_nested_table *table, const struct dryi_nested_candidate *c,
         uint32_t m)
{
    if (m < c->start)
        return FAR;
    float time = c->time;
    if (c->range)
        time += read_row(table, c->range, m);
    return time + read_row(table, c->rest, m - c->shift);
}

/* Find the first candidate whose time is the cell's. */
static bool
get_move(const void *self, uint32_t s, uint32_t t, uint64_t slots,
         struct dryi_nested_move *move)
{
    const struct dryi_nested_table *table = self;
    const struct dryi_nested_stage *stages = table->chain->stages;
    const struct dryi_nested_row *row = find(table, s, t);
    uint32_t m = (uint32_t)slots;
    if (m < row->lo || slots > table->columns)
        return false;
    float time = read_row(table, row, m);
    for (uint32_t k = 0; k < get_options(table, s); k++) {
        struct dryi_nested_candidate c = make_saved(table, s, t, k);
        if (evaluate(table, &c, m) == time) {
            *move = (struct dryi_nested_move){.option = k, .held = c.shift};
            return true;
        }
    }
    uint64_t pass = 0;
    for (uint32_t e = s, end = get_last(table, s, t); e < end; e++) {
        uint64_t needed = stages[e].pass + (e > s ? stages[e - 1].output : 0);
        pass = needed > pass ? needed : pass;
        struct dryi_nested_candidate c =
            make_range(table, s, e, t, get_need(table, t, pass + stages[t].end));
        if (evaluate(table, &c, m) == time) {
            *move =
                (struct dryi_nested_move){.is_range = true, .last = e, .held = c.shift};
            return true;
        }
    }
    return false;
}

struct dryi_nested_guide
dryi_nested_table_guide(const struct dryi_nested_table *table)
{
    return (struct dryi_nested_guide){get_move, table};
}
