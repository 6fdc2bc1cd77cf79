/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_KNAPSACK_H
#define DRY_KNAPSACK_H

/*
 * Decide which operations of a block keep their results for the backward, and which are
 * recomputed.
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
 * run. An item that is not kept is recomputed during the backward, from the block's
 * input, which is always held. The exact rules:
 *
 *   An item is run again if it is not kept and is wanted. It is wanted if the backward
 *   reads it, or if it is an input of an item that is run again. The backward reads all
 *   items but those with is_unread. Each is run again once. The cost is the sum of time_ns
 *   of the items run again; the bytes are those of the items kept.
 *
 * So an item that no backward reads may be worth keeping: items computed from it can then
 * be recomputed without its own inputs. If all items are read, inputs make no difference,
 * and this is the 0/1 knapsack: the most time kept within the budget. PyTorch's solvers
 * for torch._functorch's activation memory budget decide it the same way (runtime is
 * time_ns, memory is bytes).
 *
 * Ownership  The arrays are the caller's; no pointer to them is kept.
 * Errors     ARGUMENT: an input that does not come before its user, a tie to a later
 *            item, a group that is both always and never kept. LIMIT: sums above 63 bits,
 *            more items or inputs than the limits below. NO_SPACE: the items always kept
 *            exceed the budget. MEMORY.
 * Threads    Any thread may call; there is no state. The same input gives the same answer
 *            on every machine.
 * Units      Bytes, nanoseconds; any other unit also works.
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

/* The numbers of all enums here never change; new ones are appended. */
enum dry_keep_rule {
    DRY_KEEP_FREE,   /* kept if that is cheapest */
    DRY_KEEP_ALWAYS, /* must not run twice */
    /*
     * Never kept, and recomputed when wanted: views, and results that cost almost
     * nothing.
     */
    DRY_KEEP_NEVER,
};

struct dry_keep_item {
    uint64_t bytes;   /* held if the item is kept */
    uint64_t time_ns; /* time to recompute it */
    uint32_t group;   /* items of a group are kept together or not at all; 0: no group */
    /* n: the item is kept if and only if item n - 1 is, which must come earlier. For
       results written in place, or that share storage. 0: no tie. */
    uint32_t tied_to;
    uint32_t rule;  /* enum dry_keep_rule */
    bool is_unread; /* no backward reads it */
};

/* Item `from` is an input of item `to`, a later one. */
struct dry_keep_input {
    uint32_t from, to;
};

struct dry_keep_problem {
    const struct dry_keep_item *items;
    size_t item_count;
    /* In any order; an input given twice counts once. */
    const struct dry_keep_input *inputs;
    size_t input_count;
};

struct dry_keep_options {
    size_t struct_size; /* set by dry_keep_options_init() */
    const struct dry_memory *memory;
    uint64_t budget_bytes; /* limit for the items kept; UINT64_MAX, the default: none */
    /*
     * Limit on item visits by the search, about 3 * 10^8 a second; default 10^8. A search
     * that reaches the limit without a proof ends; bound_ns then says how far the answer
     * can be from the best.
     */
    uint64_t effort;
};

/* Set all options to their defaults. */
DRY_API void dry_keep_options_init_sized(struct dry_keep_options *options,
                                         size_t struct_size);
#define dry_keep_options_init(options)                                                   \
    dry_keep_options_init_sized(options, sizeof *(options))

/* The cost of a choice, and its proof. */
struct dry_keep_result {
    uint64_t kept_bytes, recompute_ns;
    uint64_t recomputed_bytes; /* sum over the recomputed items: an upper bound on what
                                  they hold at once */
    uint64_t kept_count, recomputed_count;
    uint64_t floor_bytes; /* the items that must be kept */
    /* Lower bound on the time of any choice within the budget; equal to recompute_ns if
       proved. */
    uint64_t bound_ns;
    uint64_t nodes; /* visited nodes of the search tree */
    bool is_proved; /* the search proved that no choice is better */
};

/*
 * Compute the cost of the choice `is_kept`, one byte per item, into *result, whose
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
 * The method is branch and bound. The bound is the fractional knapsack (Dantzig 1957) of
 * the items that are certainly wanted. If items depend on each other, it is a minimum cut
 * at the best price per byte. If the effort ends first and all items are read, dynamic
 * programming improves the answer. It divides the budget into 10,000 units; its choice is
 * evaluated exactly. Problems of some 60 free items are usually solved exactly, plain
 * knapsacks of some hundreds. Errors: ARGUMENT, LIMIT, NO_SPACE, MEMORY.
 */
DRY_API enum dry_status dry_keep_solve(const struct dry_keep_problem *problem,
                                       const struct dry_keep_options *options,
                                       bool *is_kept, struct dry_keep_result *result,
                                       struct dry_error *err);

/*
 * Solve the 0/1 knapsack alone: `count` items with bytes[count] and time_ns[count], and
 * no dependencies. Results and errors are those of dry_keep_solve(), without an error
 * text.
 */
DRY_API enum dry_status dry_keep_plain(const uint64_t *bytes, const uint64_t *time_ns,
                                       size_t count,
                                       const struct dry_keep_options *options,
                                       bool *is_kept, struct dry_keep_result *result);

/* --- the curve --------------------------------------------------------------------------- */

/* The caller's arrays for a curve. */
struct dry_keep_curve {
    struct dry_keep_result *points; /* array of `capacity` points, at least 2; filled by
                                       the call */
    bool *is_kept; /* the choice of point k begins at k * item_count; NULL: not wanted */
    size_t capacity;
    size_t count; /* number of points filled */
};

/*
 * Compute the curve of least time over budgets, into *curve. It goes from the items that
 * must be kept to the point beyond which keeping more gains nothing,
 * options->budget_bytes at most. The curve is the lower convex hull of the choices for 33
 * budgets in equal steps. It is thinned to `capacity` points: each step removes the point
 * that changes the hull's area the least. Points ascend in kept_bytes and descend in
 * recompute_ns.
 *
 * Each point converts to a dry_stage_option: saved_bytes = kept_bytes, the same
 * recompute_ns, and backward_tmp_bytes larger by at most recomputed_bytes. The effort is
 * shared by all budgets. Errors: ARGUMENT also for a `capacity` below 2; otherwise those
 * of dry_keep_solve().
 */
DRY_API enum dry_status dry_keep_curve(const struct dry_keep_problem *problem,
                                       const struct dry_keep_options *options,
                                       struct dry_keep_curve *curve,
                                       struct dry_error *err);

#ifdef __cplusplus
}
#endif

#endif
