/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Rules. Some have no parameter: everything is saved, every stage is a range, or every n-th is.
 *
 * Two rules have one number to choose (Chen, Xu, Zhang and Guestrin 2016, arXiv:1604.06174): equal
 * ranges, by their number, and ranges that end where their outputs exceed a threshold. Within a
 * budget the best number takes the least time; without a budget it needs the fewest bytes. The
 * paper chooses by a formula, about the square root of the number of stages. Here every number is
 * evaluated in bytes, the second run of a range included. If stages save many times their output,
 * far more ranges than the square root are best.
 *
 * The last piece is always saved: its backward comes at once, so a range would run it twice
 * without needing less. Stages that must not run twice are saved and divide their range. Longer
 * pieces come before shorter ones, because the least memory is held there.
 *
 * Cost: a plan made and evaluated for each number that is tried; in chains of more than
 * DRYI_PLAN_TRY_ALL_MAX stages some numbers are skipped.
 */
#include "base/fail.h"
#include "plan/chain/plan_search.h"

/* --- rules without a parameter ------------------------------------------------------------ */

/* Evaluate the list. It is the only plan of its rule, so its peak is the floor. */
static enum dry_status
settle(struct dryi_planning *p, bool has_memory)
{
    struct dry_plan_cost cost;
    if (!has_memory)
        return dryi_fail_memory(p->err, "a plan");
    enum dry_status status = dryi_plan_price(p, &cost);
    if (status != DRY_OK)
        return status;
    p->floor =
        (struct dryi_plan_floor){cost.peak_bytes, cost.peak_stage, cost.peak_phase};
    return cost.peak_bytes > p->options.budget_bytes ? DRY_ERR_NO_SPACE : DRY_OK;
}

enum dry_status
dryi_plan_none(struct dryi_planning *p)
{
    return settle(p, dryi_plan_push_save(p, 0, p->count - 1, 0));
}

static enum dry_status
plan_every(struct dryi_planning *p, uint32_t every)
{
    bool has_memory = true;
    for (uint32_t i = 0; i < p->count && has_memory; i++) {
        bool is_range = (i + 1) % every == 0 && i + 1 < p->count;
        has_memory =
            is_range ? dryi_plan_push_cut(p, i, i) : dryi_plan_push_save(p, i, i, 0);
    }
    return settle(p, has_memory);
}

enum dry_status
dryi_plan_block(struct dryi_planning *p)
{
    return plan_every(p, 1);
}

enum dry_status
dryi_plan_every(struct dryi_planning *p)
{
    return plan_every(p, p->options.every);
}

/* --- rules with one number ---------------------------------------------------------------- */

/* Thresholds to try differ by at least 1/FINE_PARTS, or 1/COARSE_PARTS in long chains. */
#define FINE_PARTS 256u
#define COARSE_PARTS 16u

static uint64_t
get_parts(const struct dryi_planning *p)
{
    return p->count <= DRYI_PLAN_TRY_ALL_MAX ? FINE_PARTS : COARSE_PARTS;
}

/* --- sqrt --------------------------------------------------------------------------------- */

static bool
make_equal(struct dryi_planning *p, uint64_t pieces)
{
    uint32_t count = (uint32_t)pieces, first = 0;
    uint32_t length = p->count / count, longer = p->count % count;
    for (uint32_t k = 0; k + 1 < count; k++) {
        uint32_t last = first + length - 1 + (k < longer);
        if (!dryi_plan_push_cut(p, first, last))
            return false;
        first = last + 1;
    }
    return dryi_plan_push_save(p, first, p->count - 1, 0);
}

/*
 * Return the next number of pieces to try; for long chains, the fewest whose longest
 * piece is 1/COARSE_PARTS shorter. A result above the count of stages ends the search.
 */
static uint32_t
next_count(const struct dryi_planning *p, uint32_t pieces)
{
    uint32_t count = p->count, longest = (count + pieces - 1) / pieces;
    if (count <= DRYI_PLAN_TRY_ALL_MAX)
        return pieces + 1;
    uint32_t shorter = longest - longest / COARSE_PARTS - (longest < COARSE_PARTS);
    return shorter ? (count + shorter - 1) / shorter : count + 1;
}

enum dry_status
dryi_plan_sqrt(struct dryi_planning *p)
{
    struct dryi_plan_search search = {
        .p = p, .make = make_equal, .prefers_time = p->free_budget_bytes != UINT64_MAX};
    for (uint32_t k = 1; k <= p->count; k = next_count(p, k)) {
        struct dry_plan_cost cost;
        enum dry_status status = dryi_plan_try(&search, k, &cost);
        if (status != DRY_OK)
            return status;
    }
    return dryi_plan_settle(&search);
}

/* --- greedy ------------------------------------------------------------------------------- */

static bool
make_greedy(struct dryi_planning *p, uint64_t threshold)
{
    uint32_t first = 0;
    uint64_t sum = 0;
    for (uint32_t i = 0; i + 1 < p->count; i++) {
        sum += p->stages[i].output_bytes;
        if (sum <= threshold)
            continue;
        if (!dryi_plan_push_cut(p, first, i))
            return false;
        first = i + 1;
        sum = 0;
    }
    return dryi_plan_push_save(p, first, p->count - 1, 0);
}

/* Return the next threshold that changes the ranges; UINT64_MAX: there are no ranges. */
static uint64_t
next_threshold(const struct dryi_planning *p, uint64_t threshold)
{
    uint64_t sum = 0, next = UINT64_MAX;
    for (uint32_t i = 0; i + 1 < p->count; i++) {
        sum += p->stages[i].output_bytes;
        if (sum <= threshold)
            continue;
        next = sum < next ? sum : next;
        sum = 0;
    }
    uint64_t far = threshold + threshold / get_parts(p);
    return next < far ? far : next;
}

enum dry_status
dryi_plan_greedy(struct dryi_planning *p)
{
    struct dryi_plan_search search = {
        .p = p, .make = make_greedy, .prefers_time = p->free_budget_bytes != UINT64_MAX};
    uint64_t threshold = 0;
    while (threshold != UINT64_MAX) {
        struct dry_plan_cost cost;
        enum dry_status status = dryi_plan_try(&search, threshold, &cost);
        if (status != DRY_OK)
            return status;
        threshold = next_threshold(p, threshold);
    }
    return dryi_plan_settle(&search);
}
