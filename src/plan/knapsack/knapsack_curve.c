/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The curve of the knapsack: solutions for budgets in equal steps, their lower convex
 * hull (Andrew 1979), reduced to the points that matter most.
 *
 * Cost: BUDGETS knapsacks, which share the effort.
 */
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "plan/knapsack/knapsack_state.h"

#define BUDGETS 33u

struct curve {
    struct dry_memory memory;
    const struct dry_keep_problem *problem;
    struct dry_keep_options options;
    struct dry_keep_result results[BUDGETS];
    uint32_t hull[BUDGETS]; /* indices of results, ascending in bytes */
    size_t hull_count;
    bool *is_kept; /* the item is kept within the budget; one row per budget */
};

static enum dry_status
solve_one(struct curve *c, size_t n, uint64_t budget, struct dry_error *err)
{
    c->options.budget_bytes = budget;
    return dry_keep_solve(c->problem, &c->options,
                          c->is_kept + n * c->problem->item_count, &c->results[n], err);
}

/* Solve for all budgets, the largest first: it determines the range of the curve. */
static enum dry_status
solve_all(struct curve *c, struct dry_error *err)
{
    const struct dry_keep_result *last = &c->results[BUDGETS - 1];
    c->options.effort /= BUDGETS;
    enum dry_status status = solve_one(c, BUDGETS - 1, c->options.budget_bytes, err);
    for (size_t n = 0; n + 1 < BUDGETS && status == DRY_OK; n++) {
        uint64_t range = last->kept_bytes - last->floor_bytes;
        uint64_t part = (uint64_t)((dryi_wide)range * n / (BUDGETS - 1));
        status = solve_one(c, n, last->floor_bytes + part, err);
    }
    return status;
}

static bool
is_before(const struct dry_keep_result *a, const struct dry_keep_result *b)
{
    return a->kept_bytes != b->kept_bytes ? a->kept_bytes < b->kept_bytes
                                          : a->recompute_ns < b->recompute_ns;
}

static void
sort_points(const struct curve *c, uint32_t *order)
{
    for (uint32_t n = 0; n < BUDGETS; n++) {
        uint32_t at = n;
        for (; at > 0 && is_before(&c->results[n], &c->results[order[at - 1]]); at--)
            order[at] = order[at - 1];
        order[at] = n;
    }
}

/*
 * Return twice the area of the triangle that b cuts off below the line from a to c; 0 if
 * b is on the line or above. Bytes grow and time falls from a to b to c.
 */
static dryi_wide
area_below(const struct dry_keep_result *a, const struct dry_keep_result *b,
           const struct dry_keep_result *c)
{
    dryi_wide steep =
        (dryi_wide)(a->recompute_ns - b->recompute_ns) * (c->kept_bytes - a->kept_bytes);
    dryi_wide flat =
        (dryi_wide)(a->recompute_ns - c->recompute_ns) * (b->kept_bytes - a->kept_bytes);
    return steep > flat ? steep - flat : 0;
}

static dryi_wide
area_at(const struct curve *c, size_t at)
{
    return area_below(&c->results[c->hull[at - 1]], &c->results[c->hull[at]],
                      &c->results[c->hull[at + 1]]);
}

/* Compute the hull (Andrew 1979). Points no faster than the one before are left out. */
static void
make_hull(struct curve *c)
{
    uint32_t order[BUDGETS];
    sort_points(c, order);
    for (size_t n = 0; n < BUDGETS; n++) {
        const struct dry_keep_result *point = &c->results[order[n]];
        if (c->hull_count > 0 &&
            point->recompute_ns >= c->results[c->hull[c->hull_count - 1]].recompute_ns)
            continue;
        c->hull[c->hull_count++] = order[n];
        while (c->hull_count > 2 && area_at(c, c->hull_count - 2) == 0) {
            c->hull_count--;
            c->hull[c->hull_count - 1] = order[n];
        }
    }
}

/* Remove the points with the least area until `capacity` remain. Both ends stay. */
static void
thin_hull(struct curve *c, size_t capacity)
{
    while (c->hull_count > capacity) {
        size_t least = 1;
        for (size_t at = 2; at + 1 < c->hull_count; at++) {
            if (area_at(c, at) < area_at(c, least))
                least = at;
        }
        c->hull_count--;
        memmove(c->hull + least, c->hull + least + 1,
                (c->hull_count - least) * sizeof *c->hull);
    }
}

static void
report(const struct curve *c, struct dry_keep_curve *curve)
{
    size_t count = c->problem->item_count;
    curve->count = c->hull_count;
    for (size_t at = 0; at < c->hull_count; at++) {
        curve->points[at] = c->results[c->hull[at]];
        if (curve->is_kept && count > 0)
            memcpy(curve->is_kept + at * count, c->is_kept + c->hull[at] * count,
                   count * sizeof *c->is_kept);
    }
}

enum dry_status
dry_keep_curve(const struct dry_keep_problem *problem,
               const struct dry_keep_options *options, struct dry_keep_curve *curve,
               struct dry_error *err)
{
    struct curve c = {.problem = problem};
    dry_keep_options_init(&c.options);
    enum dry_status status = dryi_sized_take(&c.options, sizeof c.options, options, err);
    if (status != DRY_OK)
        return status;
    if (curve->capacity < 2)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "a curve has room for %zu points, not 2",
                         curve->capacity);
    if (problem->item_count > DRY_KEEP_ITEMS_MAX)
        return dryi_fail(err, DRY_ERR_LIMIT, "%zu items, more than %u",
                         problem->item_count, DRY_KEEP_ITEMS_MAX);
    c.memory = dryi_memory_or_default(c.options.memory);
    c.is_kept = dryi_memory_zalloc(&c.memory, problem->item_count + 1, BUDGETS);
    if (!c.is_kept)
        return dryi_fail_memory(err, "a curve of items to keep");
    status = solve_all(&c, err);
    if (status == DRY_OK) {
        make_hull(&c);
        thin_hull(&c, curve->capacity);
        report(&c, curve);
    }
    dryi_memory_free(&c.memory, c.is_kept, problem->item_count + 1, BUDGETS);
    return status;
}
