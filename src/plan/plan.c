/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Make a plan of a chain within a budget: call the planner of the method, and evaluate
 * its result again. So a planner's bug cannot return a plan that exceeds the budget.
 */
#include <drystone/plan.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/memory.h"
#include "plan/chain/plan_state.h"

struct dry_plan {
    struct dry_memory memory;
    struct dry_plan_summary summary;
    struct dry_plan_item *items;
    size_t count, capacity;
};

struct method {
    const char *name;
    enum dry_status (*plan)(struct dryi_planning *p);
    enum dry_plan_class plan_class;
};

static const struct method methods[] = {
    [DRY_METHOD_ONE_LEVEL] = {"one-level", dryi_plan_one_level, DRY_CLASS_ONE_LEVEL},
    [DRY_METHOD_NESTED] = {"nested", dryi_plan_nested, DRY_CLASS_NESTED},
    [DRY_METHOD_NONE] = {"none", dryi_plan_none, DRY_CLASS_RULE},
    [DRY_METHOD_BLOCK] = {"block", dryi_plan_block, DRY_CLASS_RULE},
    [DRY_METHOD_EVERY] = {"every", dryi_plan_every, DRY_CLASS_RULE},
    [DRY_METHOD_SQRT] = {"sqrt", dryi_plan_sqrt, DRY_CLASS_RULE},
    [DRY_METHOD_GREEDY] = {"greedy", dryi_plan_greedy, DRY_CLASS_RULE},
    [DRY_METHOD_REVOLVE] = {"revolve", dryi_plan_revolve, DRY_CLASS_RULE},
};
_Static_assert(sizeof methods / sizeof *methods == DRY_METHOD_COUNT, "a row a method");

/* --- names -------------------------------------------------------------------------------- */

const char *
dry_phase_name(enum dry_plan_phase phase)
{
    static const char *const names[] = {
        [DRY_PHASE_FORWARD] = "forward",
        [DRY_PHASE_RECOMPUTE] = "recompute",
        [DRY_PHASE_BACKWARD] = "backward",
        [DRY_PHASE_STEP] = "step",
    };
    return (unsigned)phase < DRY_PHASE_COUNT ? names[phase] : "unknown phase";
}

const char *
dry_method_name(enum dry_plan_method method)
{
    return (unsigned)method < DRY_METHOD_COUNT ? methods[method].name : "unknown method";
}

const char *
dry_plan_class_name(enum dry_plan_class plan_class)
{
    static const char *const names[] = {
        [DRY_CLASS_RULE] = "rule",
        [DRY_CLASS_ONE_LEVEL] = "one-level-optimal",
        [DRY_CLASS_NESTED] = "nested-optimal",
        [DRY_CLASS_OPTIMAL] = "optimal",
    };
    return (unsigned)plan_class < DRY_CLASS_COUNT ? names[plan_class] : "unknown class";
}

/* --- planning ----------------------------------------------------------------------------- */

/* Raise the floor to the optimizer's step, whose need is the same in every plan. */
static void
raise_floor_to_step(struct dryi_planning *p)
{
    const struct dry_chain_frame *frame = &p->chain->frame;
    uint64_t step = frame->persistent_bytes + p->grads_from[0] + frame->step_bytes;
    if (step > p->floor.bytes)
        p->floor = (struct dryi_plan_floor){step, p->count, DRY_PHASE_STEP};
}

static enum dry_status
refuse(const struct dryi_planning *p)
{
    const struct dryi_plan_floor *floor = &p->floor;
    const char *method = dry_method_name(p->options.method);
    unsigned long long budget = p->options.budget_bytes, least = floor->bytes;
    if (floor->phase == DRY_PHASE_STEP)
        return dryi_fail(p->err, DRY_ERR_NO_SPACE,
                         "no plan (%s) fits %llu bytes: the least budget is %llu bytes, "
                         "for the optimizer's step",
                         method, budget, least);
    const char *name = p->stages[floor->stage].name;
    return dryi_fail(p->err, DRY_ERR_NO_SPACE,
                     "no plan (%s) fits %llu bytes: the least budget is %llu bytes, for "
                     "the %s of stage %llu (%.60s)",
                     method, budget, least, dry_phase_name(floor->phase),
                     (unsigned long long)floor->stage, name ? name : "no name");
}

/* Hash the stages one by one: neighbours that are saved alike may be one item or several. */
static uint64_t
hash_saved(uint64_t hash, const struct dry_plan_item *item)
{
    for (uint64_t i = item->first; i <= item->last; i++) {
        hash = dryi_plan_hash_word(hash, (uint64_t)item->kind << 32 | i);
        hash = dryi_plan_hash_word(hash, item->option);
    }
    return hash;
}

static uint64_t
hash_range(uint64_t hash, const struct dry_plan_item *item)
{
    hash = dryi_plan_hash_word(hash, (uint64_t)item->kind << 32 | item->first);
    return dryi_plan_hash_word(hash,
                               (uint64_t)(item->inner_count > 0) << 32 | item->last);
}

uint64_t
dry_plan_hash(const struct dry_chain *chain, const struct dry_plan_item *items,
              size_t count)
{
    uint64_t hash = chain->hash;
    for (size_t i = 0; i < count; i++)
        hash = items[i].kind == DRY_PLAN_SAVE ? hash_saved(hash, &items[i])
                                              : hash_range(hash, &items[i]);
    return hash;
}

static struct dry_plan_summary
summarize(const struct dryi_planning *p, const struct dry_plan_cost *cost)
{
    enum dry_plan_class plan_class = methods[p->options.method].plan_class;
    return (struct dry_plan_summary){
        .method = p->options.method,
        .plan_class = cost->extra_ns == 0 ? DRY_CLASS_OPTIMAL : plan_class,
        .cost = *cost,
        .budget_bytes = p->options.budget_bytes,
        .bound_ns = p->bound_ns,
        .floor_bytes = p->floor.bytes,
        .floor_stage = p->floor.stage,
        .floor_phase = p->floor.phase,
        .slots = p->slots,
        .window = p->window,
        .table_bytes = p->table_bytes,
        .hash = dry_plan_hash(p->chain, p->list.items, p->list.count),
    };
}

/* Make the plan from the planner's list, if the evaluation confirms that it fits. */
static enum dry_status
hand_out(struct dryi_planning *p, struct dry_plan **plan)
{
    struct dry_plan_cost cost;
    enum dry_status status = dryi_plan_price(p, &cost);
    if (status != DRY_OK)
        return status;
    DRYI_ASSERT(cost.peak_bytes <= p->options.budget_bytes);
    DRYI_ASSERT(cost.time_ns >= p->bound_ns && p->bound_ns >= p->base_ns);
    DRYI_ASSERT(cost.peak_bytes >= p->floor.bytes);
    if (cost.peak_bytes > p->options.budget_bytes)
        return refuse(p);
    struct dry_plan *made = dryi_memory_zalloc(&p->memory, 1, sizeof *made);
    if (!made)
        return dryi_fail_memory(p->err, "a plan");
    made->memory = p->memory;
    made->summary = summarize(p, &cost);
    made->items = p->list.items;
    made->count = p->list.count;
    made->capacity = p->list.capacity;
    p->list = (struct dryi_plan_list){0};
    *plan = made;
    return DRY_OK;
}

static enum dry_status
plan_by_method(struct dryi_planning *p, struct dry_plan **plan)
{
    enum dry_status status = methods[p->options.method].plan(p);
    if (p->progress->is_cancelled)
        return dryi_fail(p->err, DRY_ERR_CANCELLED, "cancelled by the progress callback");
    if (status != DRY_OK && status != DRY_ERR_NO_SPACE)
        return status;
    raise_floor_to_step(p);
    if (status == DRY_ERR_NO_SPACE || p->floor.bytes > p->options.budget_bytes)
        return refuse(p);
    return hand_out(p, plan);
}

enum dry_status
dry_plan_create(const struct dry_chain *chain, const struct dry_plan_options *options,
                struct dry_plan **plan, struct dry_error *err)
{
    struct dryi_planning p;
    enum dry_status status = dryi_planning_init(&p, chain, options, err);
    struct dryi_plan_progress progress = {.tell = p.options.progress,
                                          .self = p.options.progress_self};
    p.progress = &progress;
    if (status == DRY_OK && progress.tell && progress.tell(progress.self, 0, 0))
        status = dryi_fail(err, DRY_ERR_CANCELLED, "cancelled by the progress callback");
    if (status == DRY_OK)
        status = plan_by_method(&p, plan);
    dryi_planning_finish(&p);
    return status;
}

void
dry_plan_destroy(struct dry_plan *plan)
{
    if (!plan)
        return;
    struct dry_memory memory = plan->memory;
    dryi_memory_free(&memory, plan->items, plan->capacity, sizeof *plan->items);
    dryi_memory_free(&memory, plan, 1, sizeof *plan);
}

const struct dry_plan_summary *
dry_plan_get_summary(const struct dry_plan *plan)
{
    return &plan->summary;
}

const struct dry_plan_item *
dry_plan_get_items(const struct dry_plan *plan, size_t *count)
{
    *count = plan->count;
    return plan->items;
}
