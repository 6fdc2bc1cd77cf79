/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Rules that leave nothing to choose: all is saved, every stage is a range, every n-th is.
 *
 * The last stage is always saved: its backward comes at once, so that a range of it alone
 * would run it twice and hold no byte less. So are stages that must not run twice.
 */
#include "base/fail.h"
#include "plan/chain/plan_state.h"

/* The list as it is, or nothing: it is the only plan of its kind, and the floor. */
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
