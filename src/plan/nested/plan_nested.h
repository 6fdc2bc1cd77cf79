/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_NESTED_H
#define DRYI_PLAN_NESTED_H

/*
 * The parts of the nested planner.
 *
 *   chain   the stages in the numbers that the rest computes with
 *   least   the least memory that every range can be turned back in, exactly
 *   pruning which ranges a plan can have that is better than one at hand
 *   table   how much is recomputed in so much memory, on a grid of slots
 *   bound   how much at least is, whatever the grid
 *   walk    from either of the two to the items of a plan
 *
 * Everywhere C(s, t, m) is the problem of turning back the stages s to t. The input of s is
 * there, the gradient of t's output too, and `m` is what the device has beyond what is held
 * for others. Memory is counted with the gradients of the weights. The gradients that are
 * there when stage t begins are part of the needs of t; so a part of the problem gets the
 * same `m` less what is held.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/chain/plan_state.h"

/* --- chain --------------------------------------------------------------------------------- */

/* All bytes in units of dryi_nested.part. */
struct dryi_nested_stage {
    uint64_t output; /* what a range that ends here holds */
    uint64_t pass;   /* its forward, when nothing is saved: output and temporaries */
    uint64_t
        end; /* while a range that ends here runs: its gradient, those of weights above */
    uint64_t work;  /* forward ns of all stages before */
    uint32_t fence; /* the first stage from here on that must not run twice */
    uint32_t first; /* its options: to the next stage's */
};

struct dryi_nested_option {
    uint64_t held;
    uint64_t light; /* held, without what is away on the host */
    uint64_t keep;  /* its forward needs this, and the `end` */
    uint64_t back;  /* its backward needs this */
    uint64_t redo;  /* ns */
};

struct dryi_nested {
    struct dry_memory memory;
    struct dryi_plan_progress *progress; /* is told of rows */
    size_t count, option_count;
    struct dryi_nested_stage *stages;   /* one more than count */
    struct dryi_nested_option *options; /* of stage 0, of stage 1, ... */
    uint64_t part;                      /* bytes: all sizes are multiples of it */
    uint64_t room; /* of the budget, in parts, for all that the plan decides about */
};

/* Add up the chain of a planning; false: no memory. */
bool dryi_nested_init(struct dryi_nested *n, const struct dryi_planning *p);
void dryi_nested_finish(struct dryi_nested *n);
/* The memory that saving every stage as it is takes, in parts. */
uint64_t dryi_nested_get_all(const struct dryi_nested *n);

/* --- least --------------------------------------------------------------------------------- */

/* The least memory of every range of at most `window` stages, and of all that reach the end. */
struct dryi_nested_least {
    const struct dryi_nested *chain;
    uint32_t window;
    uint64_t *ranges; /* by first stage and length - 1 */
    uint64_t *ends;   /* by first stage; 0 for none */
};

#define DRYI_NESTED_NEVER UINT64_MAX

/* Find the least memory of all ranges. DRY_ERR_MEMORY, DRY_ERR_CANCELLED: nothing is there. */
enum dry_status dryi_nested_least_init(struct dryi_nested_least *l,
                                       const struct dryi_nested *chain, uint32_t window);
void dryi_nested_least_finish(struct dryi_nested_least *l);
/*
 * The least memory of the whole chain, in parts; NEVER: no range can hold what must not run
 * twice.
 */
uint64_t dryi_nested_least_get(const struct dryi_nested_least *l);

/* --- pruning ------------------------------------------------------------------------------- */

/*
 * Pruning with a plan at hand: only items that pass can be part of a plan that takes less
 * (plan_nested_pruning.c). Times are ns beyond what all plans take.
 */
struct dryi_nested_pruning {
    const struct dryi_nested *chain;
    double limit;      /* of the plan at hand */
    double bound;      /* no plan takes less */
    double enough;     /* limit, as sums of from[] and to[] are */
    double *from, *to; /* by stage: lists before a range's first, and behind its last */
};

/* Make the pruning with a plan of `limit_ns` beyond what all take. False: no memory. */
bool dryi_nested_pruning_init(struct dryi_nested_pruning *pruning,
                              const struct dryi_nested *chain, uint64_t limit_ns);
/* Give everything back; the pruning may be zeroed. */
void dryi_nested_pruning_finish(struct dryi_nested_pruning *pruning);

/* --- table --------------------------------------------------------------------------------- */

enum dryi_nested_rounding { DRYI_ROUND_DOWN, DRYI_ROUND_NEAREST, DRYI_ROUND_UP };

/*
 * A row: C(s, t, m) by m in slots. It is infeasible below `lo`, or of no use; nothing is
 * recomputed from `hi` on.
 */
struct dryi_nested_row {
    uint64_t at; /* its cells, of the slots between */
    uint32_t lo, hi;
    float last; /* in the last slot: the least of the row */
};

struct dryi_nested_candidate;

struct dryi_nested_table {
    const struct dryi_nested *chain;
    enum dryi_nested_rounding rounding;
    uint64_t unit;    /* parts in a slot */
    uint64_t quantum; /* ns in 1 of a cell */
    uint32_t columns; /* slots: 0 to this */
    float price; /* in the ends: quanta a part that is held and in no slot; 0: none */
    uint32_t
        promise; /* quanta a slot; 0: cells are times. See dryi_nested_table_promise() */
    uint32_t window;
    const struct dryi_nested_pruning *pruning; /* NULL: all passes */
    float most; /* what a range recomputes inside, at most, where that is of use */
    uint64_t bytes, bytes_peak, bytes_max;

    uint32_t *outputs, *held; /* of stages, of options, in slots */
    struct dryi_nested_row *ranges;
    struct dryi_nested_row *ends; /* one more than stages: nothing is left to do */
    float *cells; /* time of what runs again; of the ranges, then of the ends */
    uint64_t range_cells, cell_count, cell_capacity;
    struct dryi_nested_candidate *candidates; /* of one row */
    size_t candidate_count;
};

/*
 * Keep only what passes the pruning, which stays the caller's, and plans that take less
 * than its limit. For plans that take more, cells may say anything that is no less than the
 * limit.
 * Requires that no window was added yet.
 */
void dryi_nested_table_prune(struct dryi_nested_table *table,
                             const struct dryi_nested_pruning *pruning);
/* Make an empty table; dryi_nested_table_widen() adds windows. */
enum dry_status dryi_nested_table_init(struct dryi_nested_table *table,
                                       const struct dryi_nested *chain,
                                       enum dryi_nested_rounding rounding, uint64_t unit,
                                       uint32_t columns, uint64_t bytes_max);
void dryi_nested_table_finish(struct dryi_nested_table *table);
/*
 * Add ranges of up to `window` stages. DRY_ERR_LIMIT: more than bytes_max; the table is
 * spoilt.
 */
enum dry_status dryi_nested_table_widen(struct dryi_nested_table *table, uint32_t window);
/*
 * Set a price for what sizes lose by rounding. It costs in the ends, from now on, what memory
 * is worth there: as many quanta a part as the cells fall by around this column.
 */
enum dry_status dryi_nested_table_price(struct dryi_nested_table *table, uint32_t column);
/* Set a price that is known, in ns a part. */
enum dry_status dryi_nested_table_set_price(struct dryi_nested_table *table,
                                            double price);
/*
 * Make the cells of the ends promises; the table has sizes rounded down. The promise of slot
 * c says that with `short` parts less than c slots all plans take at least the cell and price
 * * short / unit. Bytes held of less than a slot are paid for. So a promise loses by rounding
 * only what the price, in quanta a slot, is wrong by.
 */
enum dry_status dryi_nested_table_promise(struct dryi_nested_table *table,
                                          uint32_t price);
/* The time of the whole chain, in quanta; more than any time: infeasible. */
float dryi_nested_table_get(const struct dryi_nested_table *table, uint32_t column);

/* The time of a range, in all the memory there is. */
float dryi_nested_table_get_range(const struct dryi_nested_table *table, uint32_t s,
                                  uint32_t t);

/* --- bound ----------------------------------------------------------------------------------- */

/* Find what a part of memory is worth, in ns, whatever the grid. False: no memory. */
bool dryi_nested_find_price(const struct dryi_nested_table *table, double *price);
/*
 * Find a time that no plan falls below, in ns beyond what all take. `table` has sizes rounded
 * down, and makes promises afterwards. DRY_ERR_MEMORY.
 */
enum dry_status dryi_nested_bound(struct dryi_nested_table *table, uint64_t *extra_ns);

/* --- walk ---------------------------------------------------------------------------------- */

/* The move that comes first in C(s, t, m). */
struct dryi_nested_move {
    bool is_range;
    uint32_t last;   /* of the range */
    uint32_t option; /* of the saved stage, from 0 */
    uint64_t held;   /* from then on */
};

struct dryi_nested_guide {
    /* `m` in the guide's own unit; false: infeasible, which must be so from the start only. */
    bool (*get_move)(const void *self, uint32_t s, uint32_t t, uint64_t m,
                     struct dryi_nested_move *move);
    const void *self;
};

struct dryi_nested_guide dryi_nested_least_guide(const struct dryi_nested_least *l);
struct dryi_nested_guide dryi_nested_table_guide(const struct dryi_nested_table *table);

/*
 * Write the guide's plan into p->list, which is emptied first. DRY_ERR_NO_SPACE: infeasible
 * in m.
 */
enum dry_status dryi_nested_walk(struct dryi_planning *p, uint32_t window,
                                 struct dryi_nested_guide guide, uint64_t m);

#endif
