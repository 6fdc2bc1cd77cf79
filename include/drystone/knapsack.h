/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_KNAPSACK_H
#define DRY_KNAPSACK_H

/*
 * Decide which operations of a block keep their results for the backward, and which run
 * again.
 *
 *     struct dry_keep_item items[] = {{.bytes = 32 << 20, .time_ns = 900000}, ...};
 *     struct dry_keep_problem problem = {.items = items, .item_count = 7};
 *     struct dry_keep_options options;
 *     struct dry_keep_result result;
 *     bool is_kept[7];
 *     dry_keep_options_init(&options);
 *     options.budget_bytes = 100 << 20;
 *     if (dry_keep_solve(&problem, &options, is_kept, &result, &err) == DRY_OK) ...
 *
 * An item is the result of an operation; items are in the order in which the operations
 * run. An item that is not kept is run again during the backward, from the block's input,
 * which is always there. Exactly:
 *
 *   An item is run again if it is not kept and is wanted. It is wanted if the backward
 *   reads it, or if it is an input of an item that is run again. The backward reads all
 *   items but those with is_unread. Each is run again once. The cost is the sum of time_ns
 *   of the items run again; the bytes are those of the items kept.
 *
 * So an item that no backward reads may be worth keeping: an item made of it can then be
 * made again without its own inputs. If all items are read, inputs make no difference,
 * and this is the 0/1 knapsack: the most time kept within the budget. PyTorch's solvers
 * for torch._functorch's activation memory budget decide it the same way (runtime is
 * time_ns, memory is bytes).
 *
 * Ownership  The arrays are the caller's; nothing is held.
 * Errors     ARGUMENT: an input that does not come before its user, a tie to a later
 *            item, a group that is both always and never kept. LIMIT: sums beyond 63
 *            bits, more items or inputs than below. NO_SPACE: the items always kept
 *            exceed the budget. MEMORY.
 * Threads    Any; there is no state. The same input gives the same answer, on every
 *            machine.
 * Units      Bytes, nanoseconds; any other unit does as well.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>
#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DRY_KEEP_ITEMS_MAX 1000000u
#define DRY_KEEP_INPUTS_MAX 10000000u

/* The numbers of all enums here are fixed for ever; new ones are only appended. */
/* A rule for one item. */
enum dry_keep_rule {
    DRY_KEEP_FREE,   /* kept if that is best */
    DRY_KEEP_ALWAYS, /* always kept: must not run twice */
    /*
     * Never kept, and run again when it is wanted: views, and results that cost almost
     * nothing.
     */
    DRY_KEEP_NEVER,
};

/* The result of one operation. */
struct dry_keep_item {
    uint64_t bytes;   /* held if the item is kept */
    uint64_t time_ns; /* the time of running it again */
    uint32_t group;   /* items of one group are all kept or none; 0: no group */
    /*
     * n: the item is kept if and only if item n - 1 is, an earlier one: it is written in
     * place, or shares its storage. 0: no tie.
     */
    uint32_t tied_to;
    uint32_t rule;  /* enum dry_keep_rule */
    bool is_unread; /* true: no backward reads it */
};

/* Item `from` is an input of item `to`, a later one. */
struct dry_keep_input {
    uint32_t from, to;
};

/* Items, and what each is made of. */
struct dry_keep_problem {
    const struct dry_keep_item *items;
    size_t item_count;
    /* In any order; an input given twice counts once. */
    const struct dry_keep_input *inputs;
    size_t input_count;
};

/* Options of the solvers. */
struct dry_keep_options {
    size_t struct_size; /* set by dry_keep_options_init() */
    const struct dry_memory *memory;
    uint64_t budget_bytes; /* for the items kept; UINT64_MAX, the default: no limit */
    /*
     * Most looks at items by the search, about 3 * 10^8 a second; default 10^8. A search
     * that has not proved its answer by then ends, and bound_ns says how far off the
     * answer can be.
     */
    uint64_t effort;
};

/* Set all options to their defaults. */
DRY_API void dry_keep_options_init_sized(struct dry_keep_options *options,
                                         size_t struct_size);
#define dry_keep_options_init(options)                                                   \
    dry_keep_options_init_sized(options, sizeof *(options))

/* A choice's cost, and its proof. */
struct dry_keep_result {
    uint64_t kept_bytes, recompute_ns;
    uint64_t recomputed_bytes; /* of the items run again: at most all are there at once */
    uint64_t kept_count, recomputed_count;
    uint64_t floor_bytes; /* of the items that must be kept */
    /* No choice within the budget takes less; equal to recompute_ns if proved. */
    uint64_t bound_ns;
    uint64_t nodes; /* nodes that the search visited */
    bool is_proved; /* no choice is better */
};

/*
 * Compute the cost of the choice `is_kept`, one byte an item, into *result; its
 * floor_bytes, bound_ns, nodes and is_proved are 0. A `memory` of NULL is malloc. Time:
 * O(items + inputs). Errors: ARGUMENT, LIMIT, MEMORY.
 */
DRY_API enum dry_status dry_keep_evaluate(const struct dry_keep_problem *problem,
                                          const bool *is_kept,
                                          const struct dry_memory *memory,
                                          struct dry_keep_result *result,
                                          struct dry_error *err);

/*
 * Find the choice within the budget that takes the least time. The choice goes to
 * is_kept[item_count], 0 or 1 for each item; its cost goes to *result. With `options`
 * NULL there is no limit, and every item that helps is kept.
 *
 * The method is branch and bound, by the fractional knapsack (Dantzig 1957) of the items
 * that are certainly wanted. If items depend on each other, the bound is a minimum cut at
 * the best price of a byte. If the effort ends first and all items are read, a table
 * fills in the rest. The table lies over a grid of 10,000 parts of the budget, and its
 * choice is evaluated exactly. Problems of some 60 free items are solved to the end as a
 * rule, plain ones of some hundreds. Errors: ARGUMENT, LIMIT, NO_SPACE, MEMORY.
 */
DRY_API enum dry_status dry_keep_solve(const struct dry_keep_problem *problem,
                                       const struct dry_keep_options *options,
                                       bool *is_kept, struct dry_keep_result *result,
                                       struct dry_error *err);

/*
 * Solve the 0/1 knapsack alone: `count` items with bytes[count] and time_ns[count], and
 * nothing else. Results and errors are those of dry_keep_solve(), without a text.
 */
DRY_API enum dry_status dry_keep_plain(const uint64_t *bytes, const uint64_t *time_ns,
                                       size_t count,
                                       const struct dry_keep_options *options,
                                       bool *is_kept, struct dry_keep_result *result);

/* --- the curve --------------------------------------------------------------------------- */

/* Room for the points of a curve. */
struct dry_keep_curve {
    struct dry_keep_result *points; /* room for `capacity` points, 2 at least; filled */
    bool *is_kept; /* point k's choice begins at k * item_count; NULL: not wanted */
    size_t capacity;
    size_t count; /* filled: the number of points */
};

/*
 * Compute the curve of least time over budgets, into *curve. It goes from the items that
 * must be kept to the point beyond which keeping more gains nothing,
 * options->budget_bytes at most. The curve is the lower convex hull of the choices for 33
 * budgets in equal steps. It is thinned to `capacity` points: each time, the point is
 * left out that changes the hull's area the least. Points ascend in kept_bytes and
 * descend in recompute_ns.
 *
 * Each point is a dry_stage_option: saved_bytes = kept_bytes, recompute_ns, and at most
 * recomputed_bytes more of backward_tmp_bytes. The effort is for all budgets together.
 * Errors: ARGUMENT also for a `capacity` below 2; otherwise those of dry_keep_solve().
 */
DRY_API enum dry_status dry_keep_curve(const struct dry_keep_problem *problem,
                                       const struct dry_keep_options *options,
                                       struct dry_keep_curve *curve,
                                       struct dry_error *err);

#ifdef __cplusplus
}
#endif

#endif
