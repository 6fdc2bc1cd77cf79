/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sets up the input of a planner. The options are checked, times are summed from the
 * front and gradients from the back. The planner's memory is the budget less the bytes
 * that every plan holds. This file is separate from plan.c because the nested planner
 * sets up a one-level planning.
 */
#include <drystone/plan.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "plan/chain/plan_state.h"

/* --- options ------------------------------------------------------------------------------ */

void
dry_plan_options_init_sized(struct dry_plan_options *options, size_t struct_size)
{
    const struct dry_plan_options defaults = {
        .method = DRY_METHOD_ONE_LEVEL,
        .budget_bytes = UINT64_MAX,
        .every = 2,
        .slots = 500,
        .table_bytes_max = UINT64_C(256) << 20,
    };
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

static enum dry_status
check_options(const struct dry_plan_options *options, struct dry_error *err)
{
    if ((unsigned)options->method >= DRY_METHOD_COUNT)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "method is %u; there are %d",
                         (unsigned)options->method, DRY_METHOD_COUNT);
    if (options->every == 0)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "every is 0; 1 is every stage");
    if (options->slots == 0)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "slots is 0");
    if (options->slots > DRYI_PLAN_SLOTS_MAX)
        return dryi_fail(err, DRY_ERR_LIMIT, "slots is %u; at most %u are allowed",
                         options->slots, DRYI_PLAN_SLOTS_MAX);
    return DRY_OK;
}

/* --- planning ----------------------------------------------------------------------------- */

static bool
make_sums(struct dryi_planning *p)
{
    size_t size = p->count + (size_t)1;
    p->forward_before = dryi_memory_zalloc(&p->memory, size, sizeof *p->forward_before);
    p->backward_before = dryi_memory_zalloc(&p->memory, size, sizeof *p->backward_before);
    p->grads_from = dryi_memory_zalloc(&p->memory, size, sizeof *p->grads_from);
    if (!p->forward_before || !p->backward_before || !p->grads_from)
        return false;
    for (uint32_t i = 0; i < p->count; i++) {
        p->forward_before[i + 1] = p->forward_before[i] + p->stages[i].forward_ns;
        p->backward_before[i + 1] = p->backward_before[i] + p->stages[i].backward_ns;
    }
    for (uint32_t i = p->count; i-- > 0;)
        p->grads_from[i] = p->grads_from[i + 1] + p->stages[i].grads_bytes;
    return true;
}

static void
set_free_budget(struct dryi_planning *p)
{
    uint64_t budget = p->options.budget_bytes;
    const struct dry_chain_frame *frame = &p->chain->frame;
    p->base_bytes = frame->persistent_bytes + frame->input_bytes;
    p->free_budget_bytes = budget > p->base_bytes ? budget - p->base_bytes : 0;
    if (budget == UINT64_MAX)
        p->free_budget_bytes = UINT64_MAX;
}

enum dry_status
dryi_planning_init(struct dryi_planning *p, const struct dry_chain *chain,
                   const struct dry_plan_options *options, struct dry_error *err)
{
    *p = (struct dryi_planning){.chain = chain, .err = err};
    dry_plan_options_init(&p->options);
    enum dry_status status =
        dryi_sized_take(&p->options, sizeof p->options, options, err);
    p->memory = dryi_memory_or_default(p->options.memory);
    if (status == DRY_OK)
        status = check_options(&p->options, err);
    if (status != DRY_OK)
        return status;
    if (chain->count == 0)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "the chain has no stages");
    p->stages = chain->stages;
    p->kinds = chain->kinds;
    p->count = (uint32_t)chain->count;
    p->base_ns = p->bound_ns = chain->time_sum;
    set_free_budget(p);
    return make_sums(p) ? DRY_OK : dryi_fail_memory(err, "a plan");
}

void
dryi_planning_finish(struct dryi_planning *p)
{
    size_t size = p->count + (size_t)1;
    dryi_memory_free(&p->memory, p->forward_before, size, sizeof *p->forward_before);
    dryi_memory_free(&p->memory, p->backward_before, size, sizeof *p->backward_before);
    dryi_memory_free(&p->memory, p->grads_from, size, sizeof *p->grads_from);
    dryi_memory_free(&p->memory, p->list.items, p->list.capacity, sizeof *p->list.items);
}
