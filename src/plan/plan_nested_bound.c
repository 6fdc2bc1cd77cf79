/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What no plan can be faster than, two ways.
 *
 * The table with all sizes rounded down allows whatever is possible, and more: its time is a
 * bound, and exact where slots are as fine as sizes. Over a thousand sizes it is loose.
 *
 * When the last stage runs, every plan holds what its saved stages and its ranges' outputs hold,
 * and the last stage's own need beside it: that is within the room. Leave every other limit
 * away and give this one a price instead (Lagrangian relaxation): for any price, the least of
 *
 *     what runs again + price * (held + need of the last stage - room)
 *
 * over all lists of saved stages and ranges is a bound, and one pass over the chain finds it. What a
 * range runs again inside is taken from the table, for all the memory there is. With the price
 * at which the least holds just the room, only the one item that does not fit is lost.
 *
 * Cost: PRICES times stages * window.
 */
#include "plan/plan_nested.h"

#include "base/assert.h"
#include "base/memory.h"

#define PRICES 48u
#define EXACT_BELOW 0x1p24f /* sums of whole floats */
#define MARGIN 1e-10 /* of sums of 200,000 doubles and what they are differences of */
#define EXTRA_MAX 0x1p62

/* The least of the chain from a stage on, and what it holds. */
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

/* The last stage holds what it needs at most. */
static double
get_held(const struct bound *b, uint32_t s, const struct dryi_nested_option *o)
{
    const struct dryi_nested *chain = b->table->chain;
    if (s + 1 < chain->count)
        return (double)o->light;
    uint64_t need = o->keep + chain->stages[s].end;
    return (double)(need > o->back ? need : o->back);
}

static void
look_at(const struct bound *b, uint32_t s)
{
    const struct dryi_nested *chain = b->table->chain;
    const struct dryi_nested_stage *stages = chain->stages;
    struct rest best = {EXTRA_MAX, 0};
    for (uint32_t o = stages[s].first; o < stages[s + 1].first; o++)
        take_less(b, &best, (double)chain->options[o].redo,
                  get_held(b, s, &chain->options[o]), &b->rests[s + 1]);
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

/* Of one price; *held is what its least list holds. */
static double
relax(const struct bound *b, double *held)
{
    uint32_t count = (uint32_t)b->table->chain->count;
    b->rests[count] = (struct rest){0, 0};
    for (uint32_t s = count; s-- > 0;)
        look_at(b, s);
    *held = b->rests[0].held;
    double room = (double)b->table->chain->room * b->price;
    double time = b->rests[0].time - room;
    return time - (b->rests[0].time + room) * MARGIN;
}

/* The best over prices: twice or half until the room lies between, then by halves. */
static double
search(struct bound *b)
{
    const struct dryi_nested *chain = b->table->chain;
    double room = (double)chain->room, low = 0, high = 0, best = 0;
    b->price = (1 + (double)chain->stages[chain->count].work) / (1 + room);
    for (unsigned i = 0; i < PRICES; i++) {
        double held, time = relax(b, &held);
        best = time > best ? time : best;
        if (held > room)
            low = b->price;
        else
            high = b->price;
        if (low > 0 && high > 0)
            b->price = low + (high - low) / 2;
        else
            b->price = low > 0 ? 2 * b->price : b->price / 2;
    }
    return best;
}

/* Of floats, each of which may have been rounded twice for every stage there is. */
static double
get_table_bound(const struct dryi_nested_table *table)
{
    uint32_t column = (uint32_t)(table->chain->room / table->unit);
    float time = dryi_nested_table_get(table, column);
    double error = time < EXACT_BELOW ? 0 : (double)table->chain->count * 0x1p-22;
    return (double)time * (double)table->quantum * (1 - error);
}

bool
dryi_nested_bound(const struct dryi_nested_table *table, uint64_t *extra_ns)
{
    const struct dryi_nested *chain = table->chain;
    struct bound b = {.table = table};
    b.rests = dryi_memory_zalloc(&chain->memory, chain->count + 1, sizeof *b.rests);
    if (!b.rests)
        return false;
    double by_table = get_table_bound(table), by_price = search(&b);
    double bound = by_table > by_price ? by_table : by_price;
    *extra_ns = bound > 0 && bound < EXTRA_MAX ? (uint64_t)bound : 0;
    dryi_memory_free(&chain->memory, b.rests, chain->count + 1, sizeof *b.rests);
    return true;
}
