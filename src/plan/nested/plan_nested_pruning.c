/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Pruning by a known plan: the relaxation of plan_one_pruning.c, for ranges of any length
 * whose inside costs nothing.
 *
 * When the last stage runs, a plan holds its saved stages, the outputs of its ranges, and
 * the need of that stage. Give these bytes a price and drop every other limit. The
 * minimum over all lists of items, and that over all lists with a given range, then bound
 * nested plans too. Recomputing inside a range only adds to them.
 *
 * So a plan that beats the known one has no range whose bound reaches the known plan's
 * time. Inside its ranges it recomputes at most the known plan's time less the minimum
 * over all lists. On chains of hundreds of stages that is a few stages' time, which keeps
 * the rows of ranges short.
 *
 * Cost: stages and options times PRICES, at most.
 */
#include "plan/nested/plan_nested.h"

#include "base/memory.h"

#define PRICES 48u
#define PRICE_MAX 0x1p60
/* Relative error of sums of 200,000 doubles and of their differences. */
#define MARGIN 1e-10
#define NEVER 1e300

struct line {
    double time, held; /* time does not include the price of `held` */
};

struct search {
    struct dryi_nested_pruning *pruning;
    double *rests; /* the least from each stage on, including the price of memory */
    /* Bytes held by the list that begins with a range that ends at the stage. */
    double *held;
    double price;
};

static struct line
save(const struct search *r, uint32_t s)
{
    const struct dryi_nested *chain = r->pruning->chain;
    struct line best = {NEVER, 0};
    for (uint32_t o = chain->stages[s].first; o < chain->stages[s + 1].first; o++) {
        double held = (double)dryi_nested_get_held(chain, s, &chain->options[o]);
        double time = (double)chain->options[o].redo + held * r->price;
        if (time < best.time)
            best = (struct line){time, held};
    }
    return best;
}

/* Set pruning->to and the rests at one price. Returns the line of the best list. */
static struct line
relax(struct search *r)
{
    const struct dryi_nested *chain = r->pruning->chain;
    double *to = r->pruning->to;
    struct line rest = {0, 0};
    /* `end`: the best range's last stage */
    uint32_t last = (uint32_t)chain->count - 1, end = last;
    for (uint32_t s = last + 1; s-- > 0;) {
        struct line best = save(r, s);
        best.time += rest.time;
        best.held += rest.held;
        double output = (double)chain->stages[s].output;
        to[s] = (double)chain->stages[s + 1].work + output * r->price + rest.time;
        r->held[s] = output + rest.held;
        if (chain->stages[s].fence <= s)
            end = last;
        else if (s < last && (end == last || to[s] < to[end]))
            end = s;
        double work = (double)chain->stages[s].work;
        if (end < last && to[end] - work < best.time)
            best = (struct line){to[end] - work, r->held[end]};
        r->rests[s] = best.time;
        rest = best;
    }
    rest.time -= rest.held * r->price;
    return rest;
}

/* Set pruning->from: the least up to every stage, less the work before it. */
static void
set_ways(const struct search *r)
{
    const struct dryi_nested *chain = r->pruning->chain;
    /* Over stages that a range may begin with. */
    double *from = r->pruning->from, best = NEVER;
    from[0] = 0;
    for (uint32_t s = 0; s + 1 < chain->count; s++) {
        const struct dryi_nested_stage *stage = &chain->stages[s];
        double work = (double)stage->work, behind = (double)stage[1].work;
        double saved = from[s] + work + save(r, s).time;
        best = from[s] < best ? from[s] : best;
        best = stage->fence <= s ? NEVER : best;
        double range = best + behind + (double)stage->output * r->price;
        from[s + 1] = (range < saved ? range : saved) - behind;
    }
}

/* Return a bound of the rounding errors of sums at this price. */
static double
get_slack(const struct search *r)
{
    const struct dryi_nested *chain = r->pruning->chain;
    double held = (double)chain->free_budget + (double)dryi_nested_get_all(chain);
    return ((double)chain->stages[chain->count].work + held * r->price) * MARGIN;
}

/* Find the price where the lines of two lists meet: one exceeds the memory, the other does not. */
static void
find_price(struct search *r)
{
    struct dryi_nested_pruning *pruning = r->pruning;
    double free_budget = (double)pruning->chain->free_budget, best = 0;
    struct line more = {0, (double)dryi_nested_get_all(pruning->chain)},
                less = {pruning->limit, free_budget};
    for (unsigned k = 0; k < PRICES; k++) {
        r->price = (less.time - more.time) / (more.held - less.held);
        if (!(r->price > 0 && r->price < PRICE_MAX))
            break;
        struct line line = relax(r);
        double sum = line.time + line.held * r->price, slack = get_slack(r);
        double bound = sum - free_budget * r->price - slack;
        if (bound > pruning->bound) {
            pruning->bound = bound;
            best = r->price;
        }
        if (sum >= less.time + less.held * r->price - slack)
            break;
        *(line.held > free_budget ? &more : &less) = line;
    }
    r->price = best;
}

bool
dryi_nested_pruning_init(struct dryi_nested_pruning *pruning,
                         const struct dryi_nested *chain, uint64_t limit_ns)
{
    const struct dry_memory *m = &chain->memory;
    *pruning = (struct dryi_nested_pruning){.chain = chain, .limit = (double)limit_ns};
    pruning->from = dryi_memory_zalloc(m, chain->count, sizeof *pruning->from);
    pruning->to = dryi_memory_zalloc(m, chain->count, sizeof *pruning->to);
    struct search r = {.pruning = pruning};
    r.rests = dryi_memory_zalloc(m, chain->count, sizeof *r.rests);
    r.held = dryi_memory_zalloc(m, chain->count, sizeof *r.held);
    bool is_fine = pruning->from && pruning->to && r.rests && r.held;
    if (is_fine) {
        find_price(&r);
        relax(&r);
        set_ways(&r);
        pruning->sum_limit =
            pruning->limit + (double)chain->free_budget * r.price + get_slack(&r);
    }
    dryi_memory_free(m, r.held, chain->count, sizeof *r.held);
    dryi_memory_free(m, r.rests, chain->count, sizeof *r.rests);
    if (!is_fine)
        dryi_nested_pruning_finish(pruning);
    return is_fine;
}

void
dryi_nested_pruning_finish(struct dryi_nested_pruning *pruning)
{
    if (!pruning->chain)
        return;
    const struct dry_memory *m = &pruning->chain->memory;
    dryi_memory_free(m, pruning->to, pruning->chain->count, sizeof *pruning->to);
    dryi_memory_free(m, pruning->from, pruning->chain->count, sizeof *pruning->from);
    *pruning = (struct dryi_nested_pruning){0};
}
