/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The search of rules with one number. plan_search.h explains it.
 *
 * Cost: a plan made and evaluated for each number that is tried, and the best made again.
 */
#include "plan/chain/plan_search.h"

#include "base/fail.h"

static bool
is_better(const struct dryi_plan_search *s, const struct dry_plan_cost *cost)
{
    const struct dry_plan_cost *best = &s->best_cost;
    if (s->prefers_time && cost->time_ns != best->time_ns)
        return cost->time_ns < best->time_ns;
    if (cost->peak_bytes != best->peak_bytes)
        return cost->peak_bytes < best->peak_bytes;
    return cost->time_ns < best->time_ns;
}

enum dry_status
dryi_plan_try(struct dryi_plan_search *s, uint64_t number, struct dry_plan_cost *cost)
{
    struct dryi_planning *p = s->p;
    dryi_plan_clear(p);
    if (!dryi_plan_go_on(p->progress, DRYI_PROGRESS_ROWS))
        return DRY_ERR_CANCELLED;
    if (!s->make(p, number))
        return dryi_fail_memory(p->err, "a plan");
    enum dry_status status = dryi_plan_price(p, cost);
    if (status != DRY_OK)
        return status;
    if (p->floor.bytes == 0 || cost->peak_bytes < p->floor.bytes)
        p->floor = (struct dryi_plan_floor){cost->peak_bytes, cost->peak_stage,
                                            cost->peak_phase};
    if (cost->peak_bytes > p->options.budget_bytes ||
        (s->has_best && !is_better(s, cost)))
        return DRY_OK;
    s->has_best = true;
    s->best = number;
    s->best_cost = *cost;
    return DRY_OK;
}

enum dry_status
dryi_plan_settle(struct dryi_plan_search *s)
{
    if (!s->has_best)
        return DRY_ERR_NO_SPACE;
    dryi_plan_clear(s->p);
    if (!s->make(s->p, s->best))
        return dryi_fail_memory(s->p->err, "a plan");
    return DRY_OK;
}
