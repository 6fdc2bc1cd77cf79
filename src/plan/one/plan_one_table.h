/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_ONE_TABLE_H
#define DRYI_PLAN_ONE_TABLE_H

/* Tables of lower bounds. How they are filled stands in plan_one_table.c. */

#include "plan/one/plan_one_pruning.h"

/*
 * Lower bounds by stage and memory left, in columns of a slot each.
 *
 * Column c of stage i is for all memories in (bytes - slot, bytes], where bytes is c * slot -
 * offsets[i]. Its cell V says
 *
 *     least(i, bytes - short) >= V + price * short / slot       for 0 <= short < slot
 *
 * price being what a slot is worth. A price of 0 says that bytes beyond a whole slot are a
 * present, and as many presents are made as a plan has ranges. With sizes of few slots that
 * is a poor bound. With about the right price they are paid for, and what is lost is only
 * what the true price differs.
 *
 * The grid of each stage is moved by what all before it save by option 0, so that saving
 * leaves nothing over.
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
    double inverse; /* of slot */
    size_t columns, stride;
    uint64_t top;      /* the last column's bytes where a stage's offset is 0 */
    double *cells;     /* by row; V, then lent */
    size_t capacity;   /* of cells */
    uint64_t *offsets; /* by stage, and of the end */
    double price;      /* a whole number */
    bool is_cut;       /* by one->longest */
};

/* The columns that it takes to have 0 bytes and `memory` in every row. */
size_t dryi_one_columns(uint64_t memory, uint64_t slot);

struct dryi_one_grid {
    uint64_t memory; /* the end of a column of the first stage, the last that matters */
    uint64_t slot;
    double price;                           /* of a slot: a whole number */
    const struct dryi_one_pruning *pruning; /* cells are of what passes it; NULL: all */
};

/* Fill a table. MEMORY, or CANCELLED by one->progress: nothing is left. */
enum dry_status dryi_one_table_init(struct dryi_one_table *t, const struct dryi_one *one,
                                    const struct dryi_one_grid *grid,
                                    struct dry_error *err);
void dryi_one_table_finish(struct dryi_one_table *t);

/* No plan from this row of the stage on, in so much memory, takes less. */
double dryi_one_bound(const struct dryi_one_table *t, size_t stage, size_t row,
                      uint64_t memory);

#endif
