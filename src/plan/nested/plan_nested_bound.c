/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Three lower bounds of every plan's time; the best counts.
 *
 * The table with all sizes rounded down allows every possible plan, and more. So its time is a
 * bound, which is exact if slots are as fine as sizes. Over thousands of sizes it is loose.
 *
 * When the last stage runs, every plan holds its saved stages and its ranges' outputs. The last
 * stage's own need comes on top, and the sum is within the memory. Drop every other limit and give
 * this one a price instead (Lagrangian relaxation). For any price, the minimum of
 *
 *     recomputation + price * (held + need of the last stage - memory)
 *
 * over all lists of saved stages and ranges is a bound, found in one pass over the chain. The
 * table gives a range's recomputation inside, for all of the memory. The best price is that at
 * which the best list holds just the memory. The bound is then at most one item off.
 *
 * With such a price the table makes promises (plan_nested.h): bounds in which plans pay for what
 * rounding drops. They know all limits, and are loosest if the true price varies along the chain.
 *
 * Cost: PRICES times stages * window, and three times the rows to the chain's end.
 */
#include "plan/nested/plan_nested.h"

#include "base/assert.h"
#include "base/memory.h"

#define PRICES 48u
#define EXACT_BELOW 0x1p24 /* sums of whole floats are exact below 2^24 */
/* Relative error of sums of 200,000 doubles and of their differences. */
#define MARGIN 1e-10
#define EXTRA_MAX 0x1p62

/* The best list from a stage on: its time, including the price, and what it holds. */
struct rest {
    double time, held;
};

struct bound {
    const struct dryi_nested_table *table;
    struct rest *rests;
    double price;
};

static void
take_less(const struct bound *b, struct rest *best, double time, double held,
          const struct rest *rest)
{
    double paid = held * b->price;
    time += rest->time;
    time += paid;
    if (time < best->time)
        *best = (struct rest){time, held + rest->held};
}

static void
bound_rest(const struct bound *b, uint32_t s)
{
    const struct dryi_nested *chain = b->table->chain;
    const struct dryi_nested_stage *stages = chain->stages;
    struct rest best = {EXTRA_MAX, 0};
    for (uint32_t o = stages[s].first; o < stages[s + 1].first; o++)
        take_less(b, &best, (double)chain->options[o].redo,
                  (double)dryi_nested_get_held(chain, s, &chain->options[o]),
                  &b->rests[s + 1]);
    uint32_t last = (uint32_t)chain->count - 1, end = stages[s].fence;
    end = end > last ? last : end;
    end = end - s > b->table->window ? s + b->table->window : end;
    for (uint32_t e = s; e < end; e++) {
        double inside = (double)dryi_nested_table_get_range(b->table, s, e);
        double time = (double)(stages[e + 1].work - stages[s].work);
        inside *= (double)b->table->quantum;
        time += inside * (1 - (double)chain->count * 0x1p-22);
        take_less(b, &best, time, (double)stages[e].output, &b->rests[e + 1]);
    }
    b->rests[s] = best;
}

/* Compute the bound for one price. *held: what the best list holds. */
static double
relax(const struct bound *b, double *held)
{
    uint32_t count = (uint32_t)b->table->chain->count;
    b->rests[count] = (struct rest){0, 0};
    for (uint32_t s = count; s-- > 0;)
        bound_rest(b, s);
    *held = b->rests[0].held;
    double free_budget = (double)b->table->chain->free_budget * b->price;
    double time = b->rests[0].time - free_budget;
    return time - (b->rests[0].time + free_budget) * MARGIN;
}

/*
 * Find the best bound over prices: double or halve until two prices enclose the memory,
 * then bisect.
 */
static double
search(struct bound *b)
{
    const struct dryi_nested *chain = b->table->chain;
    double free_budget = (double)chain->free_budget, low = 0, high = 0, best = 0,
           best_price = 0;
    b->price = (1 + (double)chain->stages[chain->count].work) / (1 + free_budget);
    for (unsigned i = 0;
         i < PRICES && dryi_plan_go_on(chain->progress, DRYI_PROGRESS_ROWS); i++) {
        double held, time = relax(b, &held);
        if (time > best) {
            best = time;
            best_price = b->price;
        }
        if (held > free_budget)
            low = b->price;
        else
            high = b->price;
        if (low > 0 && high > 0)
            b->price = low + (high - low) / 2;
        else
            b->price = low > 0 ? 2 * b->price : b->price / 2;
    }
    b->price = best_price;
    return best;
}

/*
 * Return the rounding error of a sum of floats. Each may have been rounded twice for every stage.
 */
static double
get_error(const struct dryi_nested_table *table, double most)
{
    return most < EXACT_BELOW ? 0 : most * (double)table->chain->count * 0x1p-22;
}

static double
get_table_bound(const struct dryi_nested_table *table)
{
    uint32_t column = (uint32_t)(table->chain->free_budget / table->unit);
    double time = (double)dryi_nested_table_get(table, column);
    return (time - get_error(table, time)) * (double)table->quantum;
}

/* Compute the bound by promises at a price in ns a part; 0: no promise is possible. */
static enum dry_status
get_promise(struct dryi_nested_table *table, double price, double *bound)
{
    double slot = price * (double)table->unit / (double)table->quantum;
    *bound = 0;
    if (slot < 1 || slot >= EXACT_BELOW)
        return DRY_OK;
    enum dry_status status = dryi_nested_table_promise(table, (uint32_t)slot);
    if (status != DRY_OK)
        return status == DRY_ERR_LIMIT ? DRY_OK : status;
    double promise = (double)table->promise, cell;
    uint64_t rest = table->columns * table->unit - table->chain->free_budget;
    cell = (double)dryi_nested_table_get(table, table->columns);
    double paid = promise * ((double)rest / (double)table->unit);
    double most = cell + promise * (double)table->chain->count;
    *bound = (cell + paid - 1 - get_error(table, most)) * (double)table->quantum;
    return DRY_OK;
}

bool
dryi_nested_find_price(const struct dryi_nested_table *table, double *price)
{
    const struct dryi_nested *chain = table->chain;
    struct bound b = {.table = table};
    b.rests = dryi_memory_zalloc(&chain->memory, chain->count + 1, sizeof *b.rests);
    if (!b.rests)
        return false;
    search(&b);
    *price = b.price;
    dryi_memory_free(&chain->memory, b.rests, chain->count + 1, sizeof *b.rests);
    return true;
}

enum dry_status
dryi_nested_bound(struct dryi_nested_table *table, uint64_t *extra_ns)
{
    static const double shares[] = {1, 0.5, 2};
    const struct dryi_nested *chain = table->chain;
    struct bound b = {.table = table};
    b.rests = dryi_memory_zalloc(&chain->memory, chain->count + 1, sizeof *b.rests);
    if (!b.rests)
        return DRY_ERR_MEMORY;
    double best = get_table_bound(table), bound = search(&b);
    enum dry_status status = DRY_OK;
    for (size_t i = 0; table->unit > 1 && status == DRY_OK && i < 3; i++) {
        best = bound > best ? bound : best;
        status = get_promise(table, b.price * shares[i], &bound);
    }
    best = bound > best ? bound : best;
    *extra_ns = best < 0 ? 0 : (uint64_t)(best < EXTRA_MAX ? best : EXTRA_MAX);
    dryi_memory_free(&chain->memory, b.rests, chain->count + 1, sizeof *b.rests);
    return status;
}
