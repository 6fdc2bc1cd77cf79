/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_ONE_TABLE_H
#define DRYI_PLAN_ONE_TABLE_H

#include "plan/one/plan_one_pruning.h"

/*
 * Lower bounds by stage and memory left, in columns that are one slot wide. plan_one_table.c says
 * how they are computed.
 *
 * Column c of stage i is for all memories in (bytes - slot, bytes], where bytes is c * slot -
 * offsets[i]. Its cell V says
 *
 *     least(i, bytes - short) >= V + price * short / slot       for 0 <= short < slot
 *
 * where price is the worth of a slot. Without a price, bytes beyond a whole slot are free, once
 * for every range of the plan. If sizes are only a few slots, that bound is poor. With a price, a
 * plan pays for these bytes, and the bound loses only by the difference from the true price.
 *
 * Each stage's grid is shifted by what all stages before it save by option 0, so that saving by it
 * leaves no bytes over.
 *
 * T1  Cells are whole numbers of at most 53 bits, or at least DRYI_ONE_NEVER: there no plan
 *     fits. With pruning they are of the items that pass it.
 * T2  A row of V falls from left to right. Its last cell is there twice.
 * T3  lent[c] = min(V[c], V[c - 1] - price): what a candidate that leaves bytes over has to
 *     reckon with.
 */
struct dryi_one_table {
    const struct dryi_one *one;
    const struct dryi_one_pruning *pruning;
    uint64_t slot;
    double inverse; /* 1.0 / slot */
    size_t columns, stride;
    uint64_t top;      /* bytes of the last column where a stage's offset is 0 */
    double *cells;     /* rows of V, each followed by lent */
    size_t capacity;   /* number of elements of `cells` */
    uint64_t *offsets; /* shift of each stage's grid, and of the end, in bytes */
    double price;      /* time of a slot, a whole number */
    bool is_cut;       /* `one->longest` cut ranges off */
};

/* Return how many columns every row needs to represent 0 to `memory` bytes. */
size_t dryi_one_columns(uint64_t memory, uint64_t slot);

struct dryi_one_grid {
    uint64_t memory; /* the right end of the first stage's last column */
    uint64_t slot;
    double price; /* time of a slot, a whole number */
    /* Cells bound plans of items that pass; NULL: all plans. */
    const struct dryi_one_pruning *pruning;
};

/* Compute a table. DRY_ERR_MEMORY or DRY_ERR_CANCELLED by one->progress: *t is zeroed. */
enum dry_status dryi_one_table_init(struct dryi_one_table *t, const struct dryi_one *one,
                                    const struct dryi_one_grid *grid,
                                    struct dry_error *err);
void dryi_one_table_finish(struct dryi_one_table *t);

/* Return a lower bound of the time from this row of the stage on, in `memory` bytes. */
double dryi_one_bound(const struct dryi_one_table *t, size_t stage, size_t row,
                      uint64_t memory);

#endif
