/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_KNAPSACK_H
#define DRY_KNAPSACK_H

/*
 * Which operations of a block keep their results for the backward, and which are run again.
 *
 *     struct dry_keep_item items[] = {{.bytes = 32 << 20, .time_ns = 900000}, ...};
 *     struct dry_keep_problem problem = {.items = items, .item_count = 7};
 *     struct dry_keep_options options;
 *     struct dry_keep_result result;
 *     uint8_t is_kept[7];
 *     dry_keep_options_init(&options);
 *     options.budget_bytes = 100 << 20;
 *     if (dry_keep_solve(&problem, &options, is_kept, &result, &err) == DRY_OK) ...
 *
 * Items are results of operations, in the order in which these run. What is not kept is run
 * again during the backward, from the block's input, which is always there. Exactly:
 *
 *   An item is run again if it is not kept and either the backward reads it (all are read but
 *   those with is_unread) or it is an input of an item that is run again. Each is run again
 *   once. The cost is the sum of time_ns of what is run again, and the bytes are those of what
 *   is kept.
 *
 * So an item that no backward reads may be worth keeping: what was made of it can then be made
 * again without its own inputs. Where all items are read, inputs make no difference, and this
 * is the 0/1 knapsack: the most time kept within the budget, as PyTorch's solvers for
 * torch._functorch's activation memory budget decide it (runtime is time_ns, memory is bytes).
 *
 * Ownership  The caller's arrays; nothing is held.
 * Errors     ARGUMENT: an input that does not come before its user, a tie to a later item, a
 *            group that is both always and never kept. LIMIT: sums beyond 63 bits, more items
 *            or inputs than below. NO_SPACE: what is always kept exceeds the budget. MEMORY.
 * Threads    Any; no state. The same input gives the same answer, on every machine.
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
enum dry_keep_rule {
    DRY_KEEP_FREE,   /* as is best */
    DRY_KEEP_ALWAYS, /* must not run twice */
    DRY_KEEP_NEVER,  /* is run again where it is needed: views, what is next to free */
};

struct dry_keep_item {
    uint64_t bytes;   /* held if it is kept */
    uint64_t time_ns; /* to run it again */
    uint32_t group;   /* items of the same group are all kept or none; 0: of no group */
    uint32_t
        tied_to; /* n: kept if and only if item n - 1, an earlier one, is: what is written
                         in place, or shares its storage; 0: to none */
    uint32_t rule;      /* enum dry_keep_rule */
    uint32_t is_unread; /* 1: no backward reads it */
};

/* Item `from` is an input of item `to`, a later one. */
struct dry_keep_input {
    uint32_t from, to;
};

struct dry_keep_problem {
    const struct dry_keep_item *items;
    size_t item_count;
    const struct dry_keep_input *inputs; /* in any order; twice is once */
    size_t input_count;
};

struct dry_keep_options {
    size_t struct_size; /* set by dry_keep_options_init() */
    const struct dry_memory *memory;
    uint64_t budget_bytes; /* for what is kept; UINT64_MAX, the default: no limit */
    /*
     * Looks at items by the search, about 3 * 10^8 a second; default 10^8. It ends a search
     * that has not proved its answer by then, and the bound says how far off it can be.
     */
    uint64_t effort;
};

DRY_API void dry_keep_options_init(struct dry_keep_options *options);

struct dry_keep_result {
    uint64_t kept_bytes, recompute_ns;
    uint64_t recomputed_bytes; /* of what is run again: there at once at the most */
    uint64_t kept_count, recomputed_count;
    uint64_t floor_bytes; /* of what must be kept */
    uint64_t
        bound_ns;   /* no choice within the budget takes less; recompute_ns if proved */
    uint64_t nodes; /* of the search */
    bool is_proved; /* nothing is better */
};

/* What a choice costs; floor_bytes, bound_ns, nodes and is_proved are 0. Time: O(items + inputs). */
DRY_API enum dry_status dry_keep_judge(const struct dry_keep_problem *problem,
                                       const uint8_t *is_kept,
                                       const struct dry_memory *memory,
                                       struct dry_keep_result *result,
                                       struct dry_error *err);

/*
 * The choice within the budget that takes the least time, into is_kept[item_count], 0 or 1.
 * Branch and bound by the fractional knapsack (Dantzig 1957) of the items whose need is
 * certain, and where items depend on each other by a minimum cut at the best price of a byte.
 * What that does not settle within the effort is, where all items are read, filled in by a
 * table over a grid of 10,000 parts of the budget, and judged exactly. Problems of some 60 free
 * items are settled as a rule, plain ones of some hundreds. options NULL: no limit, all is kept
 * that helps.
 */
DRY_API enum dry_status dry_keep_solve(const struct dry_keep_problem *problem,
                                       const struct dry_keep_options *options,
                                       uint8_t *is_kept, struct dry_keep_result *result,
                                       struct dry_error *err);

/* The 0/1 knapsack alone: bytes[count] and time_ns[count], nothing else. */
DRY_API enum dry_status dry_keep_plain(const uint64_t *bytes, const uint64_t *time_ns,
                                       size_t count,
                                       const struct dry_keep_options *options,
                                       uint8_t *is_kept, struct dry_keep_result *result);

/* --- the curve --------------------------------------------------------------------------- */

struct dry_keep_curve {
    struct dry_keep_result *points; /* room for `capacity`, 2 at least; filled */
    uint8_t *is_kept; /* point k's choice begins at k * item_count; NULL: not wanted */
    size_t capacity;
    size_t count; /* filled: how many there are */
};

/*
 * From what must be kept to where nothing is gained by keeping more (options->budget_bytes at
 * most): the lower convex hull of the choices for 33 budgets in equal steps, thinned to
 * `capacity` points, of which each time the one is left out that changes the hull's area the
 * least. Ascending in kept_bytes, descending in recompute_ns. Each is a dry_stage_option:
 * saved_bytes = kept_bytes, recompute_ns, and at most recomputed_bytes more of
 * backward_tmp_bytes. The effort is for all budgets together.
 */
DRY_API enum dry_status dry_keep_curve(const struct dry_keep_problem *problem,
                                       const struct dry_keep_options *options,
                                       struct dry_keep_curve *curve,
                                       struct dry_error *err);

#ifdef __cplusplus
}
#endif

#endif
