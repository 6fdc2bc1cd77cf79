/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_ONE_H
#define DRYI_PLAN_ONE_H

/*
 * Plans of one level: each stage saves, by one of its options, or lies in a range that keeps
 * its last output and saves everything when it runs again.
 *
 * Left to right, the items of a plan hold more and more, and whether an item is allowed
 * depends on what is held before it alone: held + need <= memory. So a suffix of the chain is
 * a problem of its own, with the memory that is left for it:
 *
 *     least(i, m) = min over options k of stage i:  extra(k) + least(i + 1, m - held(k))
 *                   over ranges i to e:  forward(i to e) + least(e + 1, m - output(e))
 *
 * each where m is at least the item's need. Time is counted as what comes on top of one
 * forward and one backward of all.
 *
 * What an option offloads is there while the next stage runs, so the state has one thing
 * more: which of the options that offload the stage before took. A stage has a row for each.
 *
 * A range that ends with the last stage is mostly left out: saving all of it needs as much and
 * takes less.
 *
 * Planning has four parts, a file each: the floors, exactly (plan_one_floor.c); what a byte is
 * worth, and which items are worth looking at (plan_one_sieve.c); a table of lower bounds
 * (plan_one_table.c); and a search in exact bytes that the table guides (plan_one_search.c).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/plan.h>

#include "plan/chain/chain_state.h"
#include "plan/chain/plan_watch.h"

struct dryi_one_option {
    uint64_t held; /* after the next stage's forward: saved without what is offloaded */
    uint64_t need; /* its forward's and its backward's, beyond what is held before */
    uint64_t extra;
    size_t row; /* the next stage's, with what this one offloads */
};

struct dryi_one_stage {
    uint64_t forward, output, saved, forward_tmp;
    uint64_t
        back; /* of the backward that follows a second forward: all but what is saved */
    uint64_t
        end; /* its gradient and the grads_bytes above: there while a range runs again
                      that ends here */
    bool is_fixed;
    size_t option; /* its first, which is itself */
    size_t row;    /* its first: nothing is on its way */
};

struct dryi_one {
    struct dry_memory memory;
    struct dryi_plan_watch *watch; /* is told of rows; NULL: nobody is */
    struct dryi_one_stage *stages; /* one more, for its row */
    struct dryi_one_option *options;
    uint64_t *moved;  /* by row: bytes on their way to the host while the stage runs */
    uint64_t *floors; /* by row: the least memory that some plan from there on fits */
    size_t count, option_count, row_count;
    uint64_t final_gradient;
    size_t longest; /* of ranges that are looked at: so that no chain takes for ever */
    bool
        is_cut; /* by that: what is said of all plans is true of those with such ranges */
    unsigned
        time_shift; /* times are in 2^shift ns, rounded down, so that doubles are exact */
};

enum dry_status dryi_one_init(struct dryi_one *one, const struct dry_chain *chain,
                              const struct dry_memory *memory, struct dry_error *err);
/* Zeroed is fine. */
void dryi_one_finish(struct dryi_one *one);

/* Options of a stage: from its first to before this. */
static inline size_t
dryi_one_option_end(const struct dryi_one *one, size_t stage)
{
    return one->stages[stage + 1].option;
}

static inline uint64_t
dryi_one_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* A range that grows at its end. */
struct dryi_one_range {
    uint64_t moved; /* bytes of the stage before, on their way while the first one runs */
    uint64_t first; /* the forward pass that keeps the output alone */
    uint64_t again; /* the second, but for the end's gradients */
    uint64_t back;  /* the backward */
    uint64_t sum;   /* saved by all of it */
    uint64_t need;  /* of it as it is */
    uint64_t at_least; /* of it and of every longer one */
    uint64_t time;
    size_t count;
};

/* One stage more; it is the range's first if nothing is in it yet. */
static inline void
dryi_one_range_extend(struct dryi_one_range *r, const struct dryi_one *one, size_t stage,
                      bool is_first)
{
    const struct dryi_one_stage *s = &one->stages[stage];
    uint64_t moved = is_first ? r->moved : 0;
    uint64_t before = is_first ? 0 : s[-1].output;
    r->first = dryi_one_max(r->first, one->final_gradient + before + s->output +
                                          s->forward_tmp + moved);
    r->again = dryi_one_max(r->again, r->sum + s->saved + s->forward_tmp);
    r->sum += s->saved;
    r->back = dryi_one_max(r->back, r->sum + s->back + moved);
    r->at_least = dryi_one_max(r->first, r->back);
    r->need = dryi_one_max(r->at_least, r->again + s->end);
    r->time += s->forward;
    r->count++;
}

/*
 * May the range go on to this stage? One that ends with the last is of use only where it is
 * its first stage that bytes are on their way: they are gone when it runs again.
 */
static inline bool
dryi_one_can_repeat(const struct dryi_one *one, size_t stage,
                    const struct dryi_one_range *range)
{
    return stage < one->count && !one->stages[stage].is_fixed &&
           range->count < one->longest && (stage + 1 < one->count || range->moved > 0);
}

/* An item: what a plan does from a stage on. */
struct dryi_one_choice {
    size_t option; /* of dryi_one.options; SIZE_MAX: a range */
    size_t last;   /* of the range; else the stage */
};

struct dryi_one_cost {
    uint64_t need;  /* the most */
    uint64_t extra; /* shifted as times are */
};

struct dryi_one_cost dryi_one_judge(const struct dryi_one *one,
                                    const struct dryi_one_choice *choices, size_t count);

/* --- floors ------------------------------------------------------------------------------ */

/* Fills one->floors. */
void dryi_one_set_floors(struct dryi_one *one);
/* A plan that fits one->floors[0]; choices has room for every stage. */
size_t dryi_one_floor_plan(struct dryi_one *one, struct dryi_one_choice *choices);

/* --- the sieve --------------------------------------------------------------------------- */

#define DRYI_ONE_NEVER 1e300
#define DRYI_ONE_SUMS 7u
#define DRYI_ONE_BLOCK ((size_t)32)

/* So many stages, as what a range that goes on over all of them adds. */
struct dryi_one_block {
    struct dryi_one_range range;
    double least; /* of `to` */
};

/*
 * Lower bounds of plans with a given item, with a price for memory and without a grid
 * (plan_one_sieve.c). Those of which it is not below a limit pass no more.
 *
 * V1  from[i] + to[e], or over[i] + to[e] from e = at on, is not more than any plan with a
 *     range i to e takes, and price * memory + slack.
 * V2  reach[i] does not fall with i. Ranges from i that fit end before it.
 */
struct dryi_one_sieve {
    const struct dryi_one *one;
    uint64_t memory;
    size_t at;            /* the stage with the limit */
    double price;         /* of a byte */
    double bound;         /* no plan takes less */
    double limit;         /* of plans that are looked for */
    double enough;        /* the same, as of V1 */
    double slack;         /* what sums of doubles may be wrong by */
    double *sums;         /* all of those below, by stage, and of the end */
    double *work, *saved; /* of all stages before */
    double *from,
        *over;    /* the least before a range's first stage; `over` of one over `at` */
    double *to;   /* its end's time, what it holds, and the least behind it */
    double *held; /* at `to`, in bytes */
    double *rest; /* the least from a stage on */
    size_t *reach, *queue;
    struct dryi_one_choice *items; /* the first of the least from a stage on */
    struct dryi_one_block *blocks;
};

/* What is known already. */
struct dryi_one_ends {
    uint64_t memory;
    uint64_t all_need;                /* of saving everything: more than memory */
    uint64_t floor_need, floor_extra; /* of a plan that fits */
};

enum dry_status dryi_one_sieve_init(struct dryi_one_sieve *s, const struct dryi_one *one,
                                    struct dry_error *err);
void dryi_one_sieve_finish(struct dryi_one_sieve *s);
/* Finds the price, the bound, and what V1 says. No limit yet. */
void dryi_one_sieve_set(struct dryi_one_sieve *s, const struct dryi_one_ends *ends);
/* Only plans that take less are looked for from now on. */
void dryi_one_sieve_limit(struct dryi_one_sieve *s, double limit);
/*
 * A plan that fits, of items that are the least at about the price; `choices` has room for every
 * stage. 0: none was found.
 */
size_t dryi_one_sieve_plan(struct dryi_one_sieve *s, struct dryi_one_choice *choices);
/* Is option k of stage i, of dryi_one.options, of use? */
bool dryi_one_sieve_option(const struct dryi_one_sieve *s, size_t i, size_t k);

/* Ranges from a stage, longer and longer. */
struct dryi_one_walk {
    const struct dryi_one *one;
    const struct dryi_one_sieve *sieve; /* NULL: all pass */
    size_t first, next;                 /* next: the range ends before it */
    uint64_t memory;                    /* none that needs more */
    struct dryi_one_range range;
};

/* To the next that passes; false: there is none. */
bool dryi_one_walk_on(struct dryi_one_walk *walk);

/* --- tables ------------------------------------------------------------------------------ */

/*
 * Lower bounds by stage and memory left, in columns of a slot each.
 *
 * Column c of stage i is for all memories in (bytes - slot, bytes], where bytes is
 * c * slot - offsets[i]. Its cell V says
 *
 *     least(i, bytes - short) >= V + price * short / slot       for 0 <= short < slot
 *
 * price being what a slot is worth. A price of 0 says that bytes beyond a
 * whole slot are a present, and as many presents are made as a plan has ranges: with sizes
 * of few slots that is a poor bound. With about the right price they are paid for, and what
 * is lost is only what the true price differs.
 *
 * The grid of each stage is moved by what all before it save by option 0, so that saving
 * leaves nothing over.
 *
 * T1  Cells are whole numbers of at most 53 bits, or at least DRYI_ONE_NEVER: there no plan
 *     fits. With a sieve they are of the items that pass it.
 * T2  A row of V falls from left to right. Its last cell is there twice.
 * T3  lent[c] = min(V[c], V[c - 1] - price): what a candidate that leaves bytes over has to
 *     reckon with.
 */
struct dryi_one_table {
    const struct dryi_one *one;
    const struct dryi_one_sieve *sieve;
    uint64_t slot;
    double inverse; /* of slot */
    size_t columns, stride;
    uint64_t top;      /* the last column's bytes where a stage's offset is 0 */
    double *cells;     /* by row; V, then lent */
    size_t capacity;   /* of cells */
    uint64_t *offsets; /* by stage, and of the end */
    double price;      /* a whole number */
    bool is_cut;       /* by one->longest */
};

/* Columns that it takes to have 0 bytes and `memory` in every row. */
size_t dryi_one_columns(uint64_t memory, uint64_t slot);

struct dryi_one_grid {
    uint64_t memory; /* the end of a column of the first stage, the last that matters */
    uint64_t slot;
    double price;                       /* of a slot: a whole number */
    const struct dryi_one_sieve *sieve; /* cells are of what passes it; NULL: all */
};

enum dry_status dryi_one_table_init(struct dryi_one_table *t, const struct dryi_one *one,
                                    const struct dryi_one_grid *grid,
                                    struct dry_error *err);
void dryi_one_table_finish(struct dryi_one_table *t);

/* No plan from this row of the stage on, in so much memory, takes less. */
double dryi_one_bound(const struct dryi_one_table *t, size_t stage, size_t row,
                      uint64_t memory);

/* --- search ------------------------------------------------------------------------------ */

struct dryi_one_plan {
    struct dryi_one_choice *choices;
    size_t count;
    struct dryi_one_cost cost;
    bool is_least; /* proved: the search left nothing out */
};

/*
 * Puts a plan for so much memory in the place of *plan, which fits it, if one is found that
 * takes less, and less than `limit`. The table has a sieve. width: how many ways to come to a
 * stage are kept, 1 at least.
 */
enum dry_status dryi_one_search(const struct dryi_one_table *t, uint64_t memory,
                                size_t width, double limit, struct dryi_one_plan *plan,
                                struct dry_error *err);
/* What a row takes for each way that is kept. */
size_t dryi_one_way_bytes(void);

/* --- equal stages ------------------------------------------------------------------------ */

/* All but the last the same, with no choice but to save or to lie in a range? */
bool dryi_one_is_equal(const struct dry_chain *chain);
/*
 * The best plan of such a chain, where it takes less than plan->cost.extra, which is one that
 * fits; `ends` has room for every stage. One walk over the stages.
 */
void dryi_one_plan_equal(const struct dryi_one *one, uint64_t memory, size_t *ends,
                         struct dryi_one_plan *plan);

#endif
