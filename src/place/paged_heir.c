/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Heirs: a block whose place the plan gives whole to one later request of its stream is neither
 * merged when it is freed nor cut out again for that request. It waits, known by the step of
 * the plan that comes for it. Nobody else was to have it before; should somebody need memory all
 * the same, for the program does something else, whatever waits is ordinary free memory first.
 */

#include "base/assert.h"
#include "base/memory.h"
#include "place/paged_state.h"

bool
dryi_paged_heirs_begin(struct dryi_paged *p, uint32_t step_count)
{
    struct plan *plan = &p->plan;
    dryi_paged_heirs_release(p);
    dryi_memory_free(&p->memory, plan->waiting, plan->step_count, sizeof *plan->waiting);
    plan->step_count = 0;
    plan->waiting = dryi_memory_zalloc(&p->memory, step_count, sizeof *plan->waiting);
    if (!plan->waiting)
        return false;
    plan->step_count = step_count;
    for (uint32_t i = 0; i < step_count; i++)
        plan->waiting[i] = NONE;
    return true;
}

void
dryi_paged_heir_release(struct dryi_paged *p, uint32_t block)
{
    dryi_paged_heir_pop(p, p->blocks[block].bin_next);
    p->blocks[block].state = BLOCK_FREE;
    dryi_paged_block_settle(p, block);
}

bool
dryi_paged_heirs_release(struct dryi_paged *p)
{
    const struct plan *plan = &p->plan;
    bool any = plan->waiting_count > 0;
    for (uint32_t i = 0; plan->waiting_count > 0; i++) {
        DRYI_ASSERT(i < plan->step_count);
        if (plan->waiting[i] != NONE)
            dryi_paged_heir_release(p, plan->waiting[i]);
    }
    return any;
}

const char *
dryi_paged_heirs_check(const struct dryi_paged *p, uint32_t count)
{
    const struct plan *plan = &p->plan;
    uint32_t waiting = 0;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        if (plan->waiting[i] == NONE)
            continue;
        const struct block *b = &p->blocks[plan->waiting[i]];
        const struct shelf *s = p->shelves[b->shelf];
        if (b->state != BLOCK_HEIR || b->bin_next != i || b->span != plan->span ||
            s->arena != 0 ||
            (dryi_forecast_is_planned(p->hints) && !dryi_paged_is_heirs_place(p, s, b)))
            return "P8: a block that waits for its heir is of the plan";
        waiting++;
    }
    return waiting == plan->waiting_count && waiting == count
               ? NULL
               : "P8: what waits for its heir is known";
}
