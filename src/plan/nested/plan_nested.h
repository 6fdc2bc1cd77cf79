/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_NESTED_H
#define DRYI_PLAN_NESTED_H

/*
 * The files of the nested planner.
 *
 *   chain   the stages, in the numbers that the rest computes with
 *   least   the least memory that every range can be turned back in, exactly
 *   pruning which ranges a plan can have that beats a known plan
 *   table   the least recomputation for each memory, on a grid of slots
 *   bound   a lower bound of the recomputation, whatever the grid
 *   walk    converts the result of `least` or `table` to the items of a plan
 *
 * C(s, t, m) is the problem of turning back stages s to t. The input of s and the
 * gradient of t's output are in memory. `m` is what the device has beyond the bytes held
 * for others. It includes the gradients of the weights. Gradients that exist when stage t
 * begins are part of t's needs, so a subproblem gets the same `m` less the held bytes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/chain/plan_state.h"

/* --- chain --------------------------------------------------------------------------------- */

/* A stage; all bytes are in units of dryi_nested.part. */
struct dryi_nested_stage {
    uint64_t output; /* held by a range that ends here */
    uint64_t pass; /* need of its forward when nothing is saved: output and temporaries */
    /* Held while a range that ends here runs: its gradient, and the weights' gradients above. */
    uint64_t end;
    uint64_t work;  /* forward time of all stages before, in ns */
    uint32_t fence; /* the first stage from here on that must not run twice */
    /* Index of its first option; the last precedes the next stage's first. */
    uint32_t first;
};

struct dryi_nested_option {
    uint64_t held;
    uint64_t light; /* held, less the offloaded bytes */
    uint64_t keep;  /* need of its forward, without `end` */
    uint64_t back;  /* need of its backward */
    uint64_t redo;  /* recomputation time, in ns */
};

struct dryi_nested {
    struct dry_memory memory;
    struct dryi_plan_progress *progress; /* counts rows */
    size_t count, option_count;
    struct dryi_nested_stage *stages;   /* `count` + 1 elements */
    struct dryi_nested_option *options; /* grouped by stage */
    uint64_t part;                      /* bytes in a unit; divides all sizes */
    uint64_t free_budget; /* budget left for what the plan decides, in parts */
};

/* Sum up the chain of a planning. Returns false if memory ran out. */
bool dryi_nested_init(struct dryi_nested *n, const struct dryi_planning *p);
void dryi_nested_finish(struct dryi_nested *n);
/* Return the memory in parts that saving every stage as it is needs. */
uint64_t dryi_nested_get_all(const struct dryi_nested *n);
/* Return the parts that an option of stage s holds. For the last stage that is its need. */
uint64_t dryi_nested_get_held(const struct dryi_nested *n, uint32_t s,
                              const struct dryi_nested_option *o);

/* --- least --------------------------------------------------------------------------------- */

/*
 * The least memory of every range of at most `window` stages, and of all ranges to the
 * chain's end.
 */
struct dryi_nested_least {
    const struct dryi_nested *chain;
    uint32_t window;
    uint64_t *ranges; /* indexed by first stage and length - 1 */
    uint64_t *ends;   /* indexed by first stage; 0: not computed */
};

#define DRYI_NESTED_NEVER UINT64_MAX

/* Compute the least memory of all ranges. DRY_ERR_MEMORY, DRY_ERR_CANCELLED: *l is freed. */
enum dry_status dryi_nested_least_init(struct dryi_nested_least *l,
                                       const struct dryi_nested *chain, uint32_t window);
void dryi_nested_least_finish(struct dryi_nested_least *l);
/*
 * Return the least memory of the whole chain, in parts. DRYI_NESTED_NEVER: stages that
 * must not run twice rule out every plan.
 */
uint64_t dryi_nested_least_get(const struct dryi_nested_least *l);

/* --- pruning ------------------------------------------------------------------------------- */

/*
 * Pruning by a known plan: a plan that takes less time has only items that pass
 * (plan_nested_pruning.c). Times are ns beyond what all plans take.
 */
struct dryi_nested_pruning {
    const struct dryi_nested *chain;
    double limit;     /* time of the known plan */
    double bound;     /* no plan takes less */
    double sum_limit; /* `limit`, to compare with sums of from[] and to[] */
    /* The least up to each stage as a range's first, and from it on as a range's last. */
    double *from, *to;
};

/*
 * Compute the pruning for a plan of `limit_ns` beyond what all plans take. Returns false
 * if memory ran out.
 */
bool dryi_nested_pruning_init(struct dryi_nested_pruning *pruning,
                              const struct dryi_nested *chain, uint64_t limit_ns);
/* Free the pruning's memory; the pruning may be zeroed. */
void dryi_nested_pruning_finish(struct dryi_nested_pruning *pruning);

/* --- table --------------------------------------------------------------------------------- */

enum dryi_nested_rounding { DRYI_ROUND_DOWN, DRYI_ROUND_NEAREST, DRYI_ROUND_UP };

/*
 * A row: C(s, t, m) by m in slots. Below `lo` it is infeasible, or too slow to be useful.
 * Nothing is recomputed from `hi` on.
 */
struct dryi_nested_row {
    uint64_t at; /* index of its cells, which cover slots lo to hi - 1 */
    uint32_t lo, hi;
    float last; /* value in the last slot, which is the row's least */
};

struct dryi_nested_candidate;

struct dryi_nested_table {
    const struct dryi_nested *chain;
    enum dryi_nested_rounding rounding;
    uint64_t unit;    /* parts in a slot */
    uint64_t quantum; /* ns in 1.0 of a cell */
    uint32_t columns; /* the last slot; slots count from 0 */
    float price;      /* quanta per held part that rounding left out, for ends; 0: none */
    /* Quanta a slot; 0: cells are times. See dryi_nested_table_promise(). */
    uint32_t promise;
    uint32_t window;
    const struct dryi_nested_pruning *pruning; /* NULL: all items pass */
    float most; /* the most that a useful range recomputes inside, in quanta */
    uint64_t bytes, bytes_peak, bytes_max;

    uint32_t *outputs, *held; /* sizes in slots: outputs by stage, held by option */
    struct dryi_nested_row *ranges;
    /* One more than stages; in the last, no stage is left. */
    struct dryi_nested_row *ends;
    float *cells; /* recomputation time: first of the ranges, then of the ends */
    uint64_t range_cells, cell_count, cell_capacity;
    struct dryi_nested_candidate *candidates; /* scratch for one row */
    size_t candidate_count;
};

/*
 * Restrict the table to items that pass the pruning, and to plans that take less than its
 * limit. The caller keeps the pruning alive. Cells of slower plans may hold any value not
 * below the limit. Requires that no window was added yet.
 */
void dryi_nested_table_prune(struct dryi_nested_table *table,
                             const struct dryi_nested_pruning *pruning);
/* Initialize an empty table; dryi_nested_table_widen() adds windows. */
enum dry_status dryi_nested_table_init(struct dryi_nested_table *table,
                                       const struct dryi_nested *chain,
                                       enum dryi_nested_rounding rounding, uint64_t unit,
                                       uint32_t columns, uint64_t bytes_max);
void dryi_nested_table_finish(struct dryi_nested_table *table);
/*
 * Add ranges of up to `window` stages. DRY_ERR_LIMIT: it would exceed bytes_max, and the
 * table can only be finished.
 */
enum dry_status dryi_nested_table_widen(struct dryi_nested_table *table, uint32_t window);
/*
 * Set a price for the bytes that rounding loses, and recompute the ends with it. The
 * price is the slope of the cells around `column`, in quanta a part.
 */
enum dry_status dryi_nested_table_price(struct dryi_nested_table *table, uint32_t column);
/* Set a known price, in ns a part. */
enum dry_status dryi_nested_table_set_price(struct dryi_nested_table *table,
                                            double price);
/*
 * Turn the cells of the ends into promises. Requires that sizes are rounded down. The
 * promise of slot c: with `short` parts less than c slots, all plans take at least the
 * cell plus price * short / unit. Held bytes below a slot are paid for. So a promise
 * loses by rounding only the error of the price, which is in quanta a slot.
 */
enum dry_status dryi_nested_table_promise(struct dryi_nested_table *table,
                                          uint32_t price);
/* Return the time of the whole chain, in quanta; a value above all times: infeasible. */
float dryi_nested_table_get(const struct dryi_nested_table *table, uint32_t column);

/* Return the time of a range in all of the memory. */
float dryi_nested_table_get_range(const struct dryi_nested_table *table, uint32_t s,
                                  uint32_t t);

/* --- bound ----------------------------------------------------------------------------------- */

/*
 * Find the price of a part of memory, in ns, independent of the grid. Returns false if
 * memory ran out.
 */
bool dryi_nested_find_price(const struct dryi_nested_table *table, double *price);
/*
 * Find a lower bound of every plan's time, in ns beyond what all plans take. `table` has
 * sizes rounded down, and holds promises afterwards. Errors: DRY_ERR_MEMORY.
 */
enum dry_status dryi_nested_bound(struct dryi_nested_table *table, uint64_t *extra_ns);

/* --- walk ---------------------------------------------------------------------------------- */

/* The first move of a solution of C(s, t, m). */
struct dryi_nested_move {
    bool is_range;
    uint32_t last;   /* the range's last stage */
    uint32_t option; /* the saved stage's option, from 0 */
    uint64_t held;   /* bytes it holds from then on, in the guide's unit */
};

struct dryi_nested_guide {
    /*
     * Find the first move; `m` is in the guide's own unit. Returns false if C(s, t, m) is
     * infeasible, which only the whole chain may be.
     */
    bool (*get_move)(const void *self, uint32_t s, uint32_t t, uint64_t m,
                     struct dryi_nested_move *move);
    const void *self;
};

struct dryi_nested_guide dryi_nested_least_guide(const struct dryi_nested_least *l);
struct dryi_nested_guide dryi_nested_table_guide(const struct dryi_nested_table *table);

/*
 * Write the guide's plan into p->list, which is emptied first. DRY_ERR_NO_SPACE:
 * infeasible in m.
 */
enum dry_status dryi_nested_walk(struct dryi_planning *p, uint32_t window,
                                 struct dryi_nested_guide guide, uint64_t m);

#endif
