/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The curve of bytes and time: a plan for each of many budgets, without dominated plans.
 * Every point has tables that suit its budget: one table for all budgets would give the
 * smallest budgets only a few slots.
 */
#include <drystone/plan.h>

#include "base/fail.h"
#include "base/sized.h"

#define SLOTS_MAX 128u /* limits the time of each of the many points */

struct curve {
    const struct dry_chain *chain;
    struct dry_plan_options options;
    struct dry_plan_point *points;
    size_t count;
    bool (*progress)(void *self, uint64_t done, uint64_t total);
    void *progress_self;
    uint64_t done, total; /* numbers of plans */
    struct dry_error *err;
};

/* Report the number of complete plans, whatever the progress of the current one. */
static bool
note_plan(void *self, uint64_t done, uint64_t total)
{
    const struct curve *c = self;
    (void)done;
    (void)total;
    return c->progress(c->progress_self, c->done, c->total);
}

static enum dry_status
make_point(struct curve *c, uint64_t budget, struct dry_plan_summary *summary)
{
    struct dry_plan_options options = c->options;
    options.budget_bytes = budget;
    options.progress = c->progress ? note_plan : NULL;
    options.progress_self = c;
    struct dry_plan *plan;
    enum dry_status status = dry_plan_create(c->chain, &options, &plan, c->err);
    if (status != DRY_OK)
        return status;
    *summary = *dry_plan_get_summary(plan);
    dry_plan_destroy(plan);
    c->done++;
    return DRY_OK;
}

/* Add a point if no other dominates it. Budgets rise, so any that do were added before. */
static void
add_point(struct curve *c, const struct dry_plan_summary *summary)
{
    const struct dry_plan_cost *cost = &summary->cost;
    if (c->count > 0 && c->points[c->count - 1].cost.time_ns <= cost->time_ns)
        return;
    while (c->count > 0 && c->points[c->count - 1].cost.peak_bytes >= cost->peak_bytes)
        c->count--;
    c->points[c->count++] = (struct dry_plan_point){*cost, summary->method};
}

static enum dry_status
draw(struct curve *c, size_t capacity)
{
    struct dry_plan_summary top, summary;
    enum dry_status status = make_point(c, c->options.budget_bytes, &top);
    if (status != DRY_OK)
        return status;
    uint64_t low = top.floor_bytes, beyond = top.cost.peak_bytes - low;
    for (size_t k = 0; k + 1 < capacity; k++) {
        uint64_t parts = capacity - 1;
        uint64_t budget = low + beyond / parts * k + beyond % parts * k / parts;
        status = make_point(c, budget, &summary);
        if (status != DRY_OK)
            return status;
        add_point(c, &summary);
    }
    add_point(c, &top);
    return DRY_OK;
}

enum dry_status
dry_plan_curve(const struct dry_chain *chain, const struct dry_plan_options *options,
               struct dry_plan_point *points, size_t capacity, size_t *count,
               struct dry_error *err)
{
    struct curve c = {.chain = chain, .points = points, .err = err};
    dry_plan_options_init(&c.options);
    enum dry_status status = dryi_sized_take(&c.options, sizeof c.options, options, err);
    if (status != DRY_OK)
        return status;
    if (c.options.method != DRY_METHOD_ONE_LEVEL && c.options.method != DRY_METHOD_NESTED)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "curves are of the methods one-level and nested");
    if (capacity == 0)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "a curve of 0 points");
    if (c.options.slots > SLOTS_MAX)
        c.options.slots = SLOTS_MAX;
    c.progress = c.options.progress;
    c.progress_self = c.options.progress_self;
    c.total = capacity;
    status = draw(&c, capacity);
    if (status == DRY_OK)
        *count = c.count;
    return status;
}
