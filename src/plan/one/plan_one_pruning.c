/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Pruning finds the price of a byte, and which items can be part of a good plan. It keeps one
 * memory limit of all.
 *
 * When stage `at` runs backward, every plan holds what its items before it hold. The need of the
 * item that includes `at` comes on top, and the sum must be within the memory. Drop every other
 * limit and give this one a price (Lagrangian relaxation). For any price, the minimum of
 *
 *     time + price * (held before `at` + need at `at` - memory)
 *
 * over all lists of items is a lower bound. One pass each finds the minimum of the items from a
 * stage on, `rest`, and of those before it, `from`. Ranges from a stage end within its reach. Both
 * limits of the reach only move one way, so a monotonic queue holds its minimum.
 *
 * With both, the minimum over all lists with a given item is a sum of three numbers. If the sum is
 * not below the time of a known plan, no better plan has the item. Tables and searches skip it: of
 * hundreds of ranges from a stage, a few are left.
 *
 * Each list is a line as a function of the price. The lines of a list that exceeds the memory and
 * of one that does not meet at a price. That price is the best if no list is below it there.
 *
 * Cost: stages and options, times the number of prices tried.
 */
#include "plan/one/plan_one.h"

#include "base/fail.h"
#include "base/memory.h"

#define PRICES 48u
/* bounds the relative error of sums of 200,000 doubles and of their differences */
#define MARGIN 1e-10
#define PLAN_STEP 0x1p-20 /* first increase of the price, as a fraction of it */
#define PLAN_STEPS 8u
#define PRICE_MAX 0x1p60

/* The cost of a list of items as a line over the price. */
struct sum {
    double time, held; /* time includes held * price, except in find_price() */
};

/*
 * A monotonic queue of indices: the minimum, then those that succeed it when it leaves the reach.
 */
struct queue {
    size_t *at;
    size_t begin, end;
};

static void
push(struct queue *q, const double *values, size_t i)
{
    while (q->end > q->begin && values[q->at[q->end - 1]] >= values[i])
        q->end--;
    q->at[q->end++] = i;
}

/* --- the chain --------------------------------------------------------------------------- */

static void
set_sums(struct dryi_one_pruning *s)
{
    const struct dryi_one *one = s->one;
    uint64_t work = 0, saved = 0;
    for (size_t i = 0; i < one->count; i++) {
        s->work[i] = (double)work;
        s->saved[i] = (double)saved;
        work += one->stages[i].forward;
        saved += one->stages[i].saved;
    }
    s->work[one->count] = (double)work;
    s->saved[one->count] = (double)saved;
}

static bool
has_offload(const struct dryi_one *one)
{
    return one->row_count > one->count + 1;
}

/*
 * Set reach[i]: every range from stage i that fits ends before it. Longer ranges need
 * more, as do ranges with the same end that begin earlier.
 */
static void
set_reach(struct dryi_one_pruning *s)
{
    const struct dryi_one_stage *stages = s->one->stages;
    size_t end = s->one->count - !has_offload(s->one);
    uint64_t sum = 0; /* saved bytes of stages i to end - 1 */
    for (size_t i = end; i < s->one->count; i++)
        s->reach[i] = i;
    for (size_t i = end; i-- > 0;) {
        sum += stages[i].saved;
        while (end > i && (stages[i].is_fixed || sum + stages[end - 1].back > s->memory))
            sum -= stages[--end].saved;
        s->reach[i] = end;
    }
}

static void
set_blocks(struct dryi_one_pruning *s)
{
    for (size_t b = 0; b < s->one->count / DRYI_ONE_BLOCK; b++) {
        struct dryi_one_block *block = &s->blocks[b];
        *block = (struct dryi_one_block){0};
        for (size_t i = b * DRYI_ONE_BLOCK; i < (b + 1) * DRYI_ONE_BLOCK; i++)
            dryi_one_range_extend(&block->range, s->one, i, i == 0);
    }
}

/* --- the relaxation ---------------------------------------------------------------------- */

static bool
take_less(struct sum *best, double time, double held)
{
    if (time >= best->time)
        return false;
    *best = (struct sum){time, held};
    return true;
}

/* Return the bytes that an option adds to the limited sum. */
static double
get_held(const struct dryi_one_pruning *s, size_t i, size_t k)
{
    const struct dryi_one_option *o = &s->one->options[k];
    if (i > s->at)
        return 0;
    return i == s->at ? (double)o->need : (double)o->held;
}

/* Return the least that a range from i over `at` adds: the bytes it has saved at `at`. */
static double
covered(const struct dryi_one_pruning *s, size_t i)
{
    return s->saved[s->at + 1] - s->saved[i] + (double)s->one->stages[s->at].back;
}

/* Find stage i's best option, and store it in items[i]. */
static struct sum
save(struct dryi_one_pruning *s, size_t i)
{
    struct sum best = {DRYI_ONE_NEVER, 0};
    for (size_t k = s->one->stages[i].option; k < dryi_one_option_end(s->one, i); k++) {
        double held = get_held(s, i, k);
        if (take_less(&best, (double)s->one->options[k].extra + held * s->price, held))
            s->items[i] = (struct dryi_one_choice){k, i};
    }
    return best;
}

/* Compute the minimum from every stage to `at` on. Stages after `at` cost nothing. */
static struct sum
set_rests(struct dryi_one_pruning *s)
{
    struct queue q = {.at = s->queue};
    struct sum behind = {0, 0};
    s->rest[s->at + 1] = 0;
    for (size_t i = s->at + 1; i-- > 0;) {
        struct sum best = save(s, i);
        best.time += behind.time;
        best.held += behind.held;
        if (i < s->at) {
            double output = (double)s->one->stages[i].output;
            s->to[i] = s->work[i + 1] + output * s->price + behind.time;
            s->held[i] = output + behind.held;
            push(&q, s->to, i);
        }
        while (q.begin < q.end && q.at[q.begin] >= s->reach[i])
            q.begin++;
        if (q.begin < q.end) {
            size_t e = q.at[q.begin];
            if (take_less(&best, s->to[e] - s->work[i], s->held[e]))
                s->items[i] = (struct dryi_one_choice){SIZE_MAX, e};
        }
        if (s->reach[i] > s->at) {
            double held = covered(s, i), time = s->work[s->at + 1] - s->work[i];
            if (take_less(&best, time + held * s->price, held))
                s->items[i] = (struct dryi_one_choice){SIZE_MAX, s->at};
        }
        s->rest[i] = best.time;
        behind = best;
    }
    return behind;
}

/*
 * Compute the minimum up to every stage, less the forward time of all stages before it,
 * and the values after `at`.
 */
static void
set_ways(struct dryi_one_pruning *s)
{
    struct queue q = {.at = s->queue};
    s->from[0] = 0;
    for (size_t i = 1; i <= s->at; i++) {
        const struct dryi_one_stage *before = &s->one->stages[i - 1];
        double best = s->from[i - 1] + s->work[i - 1] + save(s, i - 1).time;
        push(&q, s->from, i - 1);
        while (q.begin < q.end && s->reach[q.at[q.begin]] < i)
            q.begin++;
        if (q.begin < q.end) {
            double range = s->from[q.at[q.begin]] + s->work[i];
            range += (double)before->output * s->price;
            best = range < best ? range : best;
        }
        s->from[i] = best - s->work[i];
    }
    for (size_t i = 0; i <= s->at; i++)
        s->over[i] = s->from[i] + covered(s, i) * s->price;
    for (size_t i = s->at + 1; i < s->one->count; i++)
        s->over[i] = s->from[i] = s->rest[0] - s->work[i];
    for (size_t i = s->at; i < s->one->count; i++) {
        s->to[i] = s->work[i + 1];
        s->rest[i + 1] = 0;
    }
}

static void
set_block_ends(struct dryi_one_pruning *s)
{
    for (size_t b = 0; b < s->one->count / DRYI_ONE_BLOCK; b++) {
        double least = DRYI_ONE_NEVER;
        for (size_t i = b * DRYI_ONE_BLOCK; i < (b + 1) * DRYI_ONE_BLOCK; i++)
            least = s->to[i] < least ? s->to[i] : least;
        s->blocks[b].least = least;
    }
}

/* --- prices ------------------------------------------------------------------------------ */

/* Compute the bound at s->price. The slack covers rounding errors. */
static double
relax(struct dryi_one_pruning *s, struct sum *line)
{
    double memory = (double)s->memory * s->price;
    *line = set_rests(s);
    double slack = line->time + memory + s->work[s->one->count];
    s->slack = (slack + s->saved[s->one->count] * s->price) * MARGIN;
    double bound = line->time - memory;
    line->time -= line->held * s->price;
    return bound - s->slack;
}

/* Find the best price between a line that exceeds the memory and one that does not. */
static void
find_price(struct dryi_one_pruning *s, const struct dryi_one_ends *ends)
{
    struct sum more = {0, (double)ends->all_need},
               less = {(double)ends->floor_extra, (double)ends->floor_need};
    double price = 0;
    s->bound = 0;
    for (unsigned k = 0; k < PRICES; k++) {
        struct sum line;
        s->price = (less.time - more.time) / (more.held - less.held);
        if (!(s->price > 0 && s->price < PRICE_MAX))
            break;
        double bound = relax(s, &line);
        if (bound > s->bound) {
            s->bound = bound;
            price = s->price;
        }
        double expected = less.time + less.held * s->price;
        if (line.time + line.held * s->price >= expected - s->slack)
            break; /* no line is below the two */
        *(line.held > (double)s->memory ? &more : &less) = line;
    }
    s->price = price;
}

/* Return the stage that needs most when everything is saved; the last if tied. */
static size_t
find_peak(const struct dryi_one *one)
{
    uint64_t held = 0, most = 0;
    size_t peak = 0;
    for (size_t i = 0; i < one->count; i++) {
        const struct dryi_one_option *o = &one->options[one->stages[i].option];
        if (held + o->need >= most) {
            most = held + o->need;
            peak = i;
        }
        held += one->stages[i].saved;
    }
    return peak;
}

static void
prepare(struct dryi_one_pruning *s)
{
    struct sum line;
    relax(s, &line);
    set_ways(s);
    set_block_ends(s);
}

void
dryi_one_pruning_set(struct dryi_one_pruning *s, const struct dryi_one_ends *ends)
{
    s->memory = ends->memory;
    set_reach(s);
    s->at = find_peak(s->one);
    find_price(s, ends);
    if (s->at + 1 < s->one->count) {
        double price = s->price, bound = s->bound;
        size_t at = s->at;
        s->at = s->one->count - 1;
        find_price(s, ends);
        if (bound >= s->bound) {
            s->at = at;
            s->price = price;
            s->bound = bound;
        }
    }
    prepare(s);
    /* Times of plans are whole, so the bound may be rounded up. */
    double whole = (double)(uint64_t)s->bound;
    s->bound = s->bound > whole ? whole + 1 : whole;
    dryi_one_pruning_limit(s, DRYI_ONE_NEVER);
}

/* Write the best list of items; stages after `at` are saved. */
static size_t
collect(struct dryi_one_pruning *s, struct dryi_one_choice *choices)
{
    size_t count = 0, i = 0;
    for (; i < s->one->count; i = choices[count++].last + 1) {
        if (i > s->at)
            save(s, i);
        choices[count] = s->items[i];
    }
    return count;
}

/* Write the best plan at a price. Returns 0 if it does not fit the memory. */
static size_t
plan_at(struct dryi_one_pruning *s, double price, struct dryi_one_choice *choices)
{
    struct sum line;
    s->price = price;
    relax(s, &line);
    size_t count = collect(s, choices);
    return dryi_one_evaluate(s->one, choices, count).need <= s->memory ? count : 0;
}

/*
 * Raise the price until the plan also fits the limits that were dropped. Then bisect to
 * the least such price.
 */
size_t
dryi_one_pruning_plan(struct dryi_one_pruning *s, struct dryi_one_choice *choices)
{
    double price = s->price, more = PLAN_STEP, low = 0, high = 0;
    for (unsigned k = 0; k < PLAN_STEPS && high <= 0; k++) {
        if (plan_at(s, price * (1 + more), choices) > 0)
            high = more;
        else
            low = more;
        more *= 8;
    }
    for (unsigned k = 0; k < PLAN_STEPS && low > 0 && high > 0; k++) {
        double middle = (low + high) / 2;
        if (plan_at(s, price * (1 + middle), choices) > 0)
            high = middle;
        else
            low = middle;
    }
    size_t count = high > 0 ? plan_at(s, price * (1 + high), choices) : 0;
    s->price = price;
    prepare(s);
    return count;
}

void
dryi_one_pruning_limit(struct dryi_one_pruning *s, double limit)
{
    s->limit = limit;
    s->sum_limit = limit + (double)s->memory * s->price + s->slack;
}

bool
dryi_one_pruning_option(const struct dryi_one_pruning *s, size_t i, size_t k)
{
    double time = (double)s->one->options[k].extra + get_held(s, i, k) * s->price;
    return s->from[i] + s->work[i] + time + s->rest[i + 1] < s->sum_limit;
}

/* --- walks ------------------------------------------------------------------------------- */

/* Skip a block of stages in which no useful range ends. */
static bool
skip(struct dryi_one_walk *w)
{
    const struct dryi_one_pruning *s = w->pruning;
    size_t end = w->next + DRYI_ONE_BLOCK;
    if (w->next % DRYI_ONE_BLOCK != 0 || w->next == w->first || end > s->reach[w->first])
        return false;
    const struct dryi_one_block *block = &s->blocks[w->next / DRYI_ONE_BLOCK];
    const double *from = end <= s->at ? s->from : s->over;
    if ((w->next < s->at && end > s->at) || from[w->first] + block->least < s->sum_limit)
        return false;
    struct dryi_one_range *r = &w->range;
    r->first = dryi_max(r->first, block->range.first);
    r->again = dryi_max(r->again, r->sum + block->range.again);
    r->back = dryi_max(r->back, r->sum + block->range.back);
    r->sum += block->range.sum;
    r->at_least = dryi_max(r->first, r->back);
    r->time += block->range.time;
    r->count += DRYI_ONE_BLOCK;
    w->next = end;
    return true;
}

bool
dryi_one_walk_on(struct dryi_one_walk *w)
{
    const struct dryi_one_pruning *s = w->pruning;
    while (dryi_one_can_repeat(w->one, w->next, &w->range)) {
        if (s && skip(w)) {
            if (w->range.at_least > w->memory)
                return false;
            continue;
        }
        size_t e = w->next++;
        dryi_one_range_extend(&w->range, w->one, e, e == w->first);
        if (w->range.at_least > w->memory)
            return false;
        if (!s || (e < s->at ? s->from : s->over)[w->first] + s->to[e] < s->sum_limit)
            return true;
    }
    return false;
}

/* --- create and finish ------------------------------------------------------------------- */

enum dry_status
dryi_one_pruning_init(struct dryi_one_pruning *s, const struct dryi_one *one,
                      struct dry_error *err)
{
    const struct dry_memory *m = &one->memory;
    *s = (struct dryi_one_pruning){.one = one};
    s->sums = dryi_memory_zalloc(m, one->count + 1, DRYI_ONE_SUMS * sizeof *s->sums);
    s->reach = dryi_memory_zalloc(m, one->count, sizeof *s->reach);
    s->queue = dryi_memory_zalloc(m, one->count, sizeof *s->queue);
    s->blocks = dryi_memory_zalloc(m, one->count / DRYI_ONE_BLOCK + 1, sizeof *s->blocks);
    s->items = dryi_memory_zalloc(m, one->count, sizeof *s->items);
    if (!s->items || !s->sums || !s->reach || !s->queue || !s->blocks) {
        dryi_one_pruning_finish(s);
        return dryi_fail_memory(err, "a plan's prices");
    }
    double **parts[DRYI_ONE_SUMS] = {&s->work, &s->saved, &s->from, &s->over,
                                     &s->to,   &s->held,  &s->rest};
    for (size_t i = 0; i < DRYI_ONE_SUMS; i++)
        *parts[i] = s->sums + i * (one->count + 1);
    set_sums(s);
    set_blocks(s);
    return DRY_OK;
}

void
dryi_one_pruning_finish(struct dryi_one_pruning *s)
{
    if (!s->one)
        return;
    const struct dry_memory *m = &s->one->memory;
    size_t count = s->one->count;
    dryi_memory_free(m, s->items, count, sizeof *s->items);
    dryi_memory_free(m, s->blocks, count / DRYI_ONE_BLOCK + 1, sizeof *s->blocks);
    dryi_memory_free(m, s->queue, count, sizeof *s->queue);
    dryi_memory_free(m, s->reach, count, sizeof *s->reach);
    dryi_memory_free(m, s->sums, count + 1, DRYI_ONE_SUMS * sizeof *s->sums);
    *s = (struct dryi_one_pruning){0};
}
