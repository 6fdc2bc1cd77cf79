/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The evaluation simulates a plan stage by stage, and counts every byte and every nanosecond by
 * the rules at the head of plan.h.
 *
 * A run is a list of neighbouring items: those of the plan, or those inside a range. Its forward
 * pass handles them in order, its backward pass in reverse. A range met during the backward pass
 * is a run of its own; after it, the pass continues with the item before the range. Links lead
 * from each item to its range and to the item before, so no stack is needed.
 *
 * J1  held is the frame's persistent and input bytes, the bytes of saved stages whose backward is
 *     to come, less what they have offloaded, and the outputs of ranges whose backward is to come.
 * J2  away[i] is what stage i has on the host; not 0 only between the forward of stage i + 1
 *     in the same run and its backward.
 *
 * Cost: every stage as often as it runs, at most DRYI_PLAN_RUNS_MAX in all.
 */
#include "base/assert.h"
#include "base/fail.h"
#include "base/memory.h"
#include "plan/chain/plan_state.h"

struct evaluation {
    const struct dry_chain *chain;
    const struct dry_stage *stages;
    const struct dry_plan_item *items;
    struct dryi_plan_link *links;
    const struct dry_plan_observer *observer;
    uint64_t *away;
    uint64_t held;      /* H of plan.h */
    uint64_t gradients; /* G of plan.h, during the current forward pass */
    uint64_t grads;     /* weights' gradients of stages whose backward is over */
    uint64_t leaving;   /* bytes of the stage before, offloaded while this one runs */
    enum dry_plan_phase forward_phase;
    bool is_too_long;
    struct dry_plan_cost cost;
};

/* --- steps -------------------------------------------------------------------------------- */

static void
tell(const struct evaluation *e, struct dry_plan_step step)
{
    step.time_ns = e->cost.time_ns;
    e->observer->step(e->observer->self, &step);
}

/*
 * Account for a step, whose time_ns is filled here. Inline, so that the struct is
 * optimized away if there is no observer.
 */
static inline void
take(struct evaluation *e, struct dry_plan_step step)
{
    struct dry_plan_cost *cost = &e->cost;
    if (step.needed_bytes > cost->peak_bytes) {
        cost->peak_bytes = step.needed_bytes;
        cost->peak_stage = step.stage;
        cost->peak_phase = step.phase;
    }
    if (e->observer)
        tell(e, step);
    cost->recomputed_count += step.phase == DRY_PHASE_RECOMPUTE;
    if (__builtin_add_overflow(cost->time_ns, step.duration_ns, &cost->time_ns) ||
        cost->time_ns > UINT64_MAX >> 1)
        e->is_too_long = true;
}

/*
 * Stage i has run, so stage i - 1's copy to the host is complete: its bytes no longer
 * count as held.
 */
static void
let_leave(struct evaluation *e, uint32_t i)
{
    if (!e->leaving)
        return;
    e->away[i - 1] = e->leaving;
    e->held -= e->leaving;
    e->leaving = 0;
}

static void
forward_saved(struct evaluation *e, uint32_t i, uint32_t option)
{
    const struct dry_stage *stage = &e->stages[i];
    uint64_t saved = dryi_stage_saved_by(stage, option);
    uint64_t tmp = dryi_stage_forward_tmp(stage, option);
    uint64_t needed = e->held + e->gradients + saved + tmp;
    let_leave(e, i);
    e->held += saved;
    e->leaving = dryi_stage_offload(stage, option);
    take(e, (struct dry_plan_step){.phase = e->forward_phase,
                                   .stage = i,
                                   .is_saved = true,
                                   .duration_ns = stage->forward_ns,
                                   .needed_bytes = needed,
                                   .held_bytes = e->held + e->gradients});
}

static void
forward_range(struct evaluation *e, uint32_t first, uint32_t last)
{
    uint64_t input = 0; /* the first stage's input is part of `held` */
    for (uint32_t i = first; i <= last; i++) {
        const struct dry_stage *stage = &e->stages[i];
        uint64_t bare = e->held + e->gradients;
        uint64_t needed = bare + input + stage->output_bytes + stage->forward_tmp_bytes;
        let_leave(e, i);
        bare = e->held + e->gradients;
        take(e, (struct dry_plan_step){.phase = e->forward_phase,
                                       .stage = i,
                                       .duration_ns = stage->forward_ns,
                                       .needed_bytes = needed,
                                       .held_bytes = bare + stage->output_bytes});
        input = stage->output_bytes;
    }
    e->held += input;
}

static void
backward_saved(struct evaluation *e, uint32_t i, uint32_t option)
{
    const struct dry_stage *stage = &e->stages[i];
    uint64_t below =
        i ? e->stages[i - 1].gradient_bytes : e->chain->frame.input_gradient_bytes;
    uint64_t back = i ? e->away[i - 1] : 0;
    uint64_t needed = e->held + back + e->grads + stage->gradient_bytes + below +
                      dryi_stage_backward_tmp(stage, option) + stage->grads_bytes;
    DRYI_ASSERT(e->away[i] == 0);
    if (i)
        e->away[i - 1] = 0;
    e->held = e->held + back - dryi_stage_saved_by(stage, option);
    e->grads += stage->grads_bytes;
    take(e, (struct dry_plan_step){.phase = DRY_PHASE_BACKWARD,
                                   .stage = i,
                                   .duration_ns = dryi_stage_backward_ns(stage, option),
                                   .needed_bytes = needed,
                                   .held_bytes = e->held + e->grads + below});
}

static void
optimizer_step(struct evaluation *e)
{
    const struct dry_chain_frame *frame = &e->chain->frame;
    take(e, (struct dry_plan_step){.phase = DRY_PHASE_STEP,
                                   .stage = (uint32_t)e->chain->count,
                                   .needed_bytes = frame->persistent_bytes + e->grads +
                                                   frame->step_bytes,
                                   .held_bytes = frame->persistent_bytes});
}

/* --- runs --------------------------------------------------------------------------------- */

static void
forward_item(struct evaluation *e, const struct dry_plan_item *item)
{
    if (item->kind == DRY_PLAN_CHECKPOINT) {
        forward_range(e, item->first, item->last);
        return;
    }
    for (uint32_t i = item->first; i <= item->last; i++)
        forward_saved(e, i, item->option);
}

static void
forward_run(struct evaluation *e, uint32_t begin, uint32_t end)
{
    for (uint32_t at = begin; at < end; at += 1 + e->items[at].inner_count)
        forward_item(e, &e->items[at]);
    e->leaving = 0; /* no stage runs after the last, so its bytes stay on the device */
}

static void
backward_stages(struct evaluation *e, const struct dry_plan_item *item)
{
    for (uint32_t i = item->last + 1; i-- > item->first;)
        backward_saved(e, i, item->option);
}

/*
 * Run the range forward again. Returns its last inner item, from which the backward
 * continues; DRYI_NO_ITEM if the range has none and is complete.
 */
static uint32_t
enter_range(struct evaluation *e, uint32_t at)
{
    const struct dry_plan_item *range = &e->items[at];
    const struct dry_stage *last = &e->stages[range->last];
    e->held -= last->output_bytes;
    e->gradients = last->gradient_bytes + e->grads;
    e->forward_phase = DRY_PHASE_RECOMPUTE;
    if (range->inner_count) {
        forward_run(e, at + 1, at + 1 + range->inner_count);
        return e->links[at].last_inner;
    }
    for (uint32_t i = range->first; i <= range->last; i++)
        forward_saved(e, i, 0);
    backward_stages(e, range);
    return DRYI_NO_ITEM;
}

/* Return the item whose backward follows this one's: the item before it, or before its range. */
static uint32_t
step_back(const struct evaluation *e, uint32_t at)
{
    while (at != DRYI_NO_ITEM && e->links[at].prev == DRYI_NO_ITEM)
        at = e->links[at].parent;
    return at == DRYI_NO_ITEM ? DRYI_NO_ITEM : e->links[at].prev;
}

static void
carry_out(struct evaluation *e, uint32_t count)
{
    const struct dry_chain_frame *frame = &e->chain->frame;
    uint32_t at = 0;
    for (uint32_t next = 0; next < count; next += 1 + e->items[next].inner_count)
        at = next;
    e->held = frame->persistent_bytes + frame->input_bytes;
    e->gradients = e->stages[e->chain->count - 1].gradient_bytes;
    forward_run(e, 0, count);
    e->cost.held_bytes = e->held + e->gradients;
    while (at != DRYI_NO_ITEM) {
        uint32_t inner = DRYI_NO_ITEM;
        if (e->items[at].kind == DRY_PLAN_CHECKPOINT)
            inner = enter_range(e, at);
        else
            backward_stages(e, &e->items[at]);
        at = inner != DRYI_NO_ITEM ? inner : step_back(e, at);
    }
    DRYI_ASSERT(e->held == frame->persistent_bytes + frame->input_bytes);
    optimizer_step(e);
}

static enum dry_status
evaluate_linked(struct evaluation *e, uint32_t count, struct dry_plan_cost *cost,
                struct dry_error *err)
{
    enum dry_status status = dryi_plan_check(e->chain, e->items, count, e->links, err);
    if (status != DRY_OK)
        return status;
    carry_out(e, count);
    if (e->is_too_long)
        return dryi_fail(err, DRY_ERR_LIMIT, "the plan's time is more than 63 bits");
    e->cost.base_ns = e->chain->time_sum;
    e->cost.extra_ns = e->cost.time_ns - e->cost.base_ns;
    *cost = e->cost;
    return DRY_OK;
}

static enum dry_status
evaluate(struct evaluation *e, size_t count, const struct dry_memory *memory,
         struct dry_plan_cost *cost, struct dry_error *err)
{
    if (e->chain->count == 0)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "the chain has no stages");
    if (count == 0)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "the plan has no items");
    if (count > INT32_MAX)
        return dryi_fail(err, DRY_ERR_LIMIT, "the plan has %zu items, %d are allowed",
                         count, INT32_MAX);
    e->links = dryi_memory_zalloc(memory, count, sizeof *e->links);
    e->away = dryi_memory_zalloc(memory, e->chain->count, sizeof *e->away);
    enum dry_status status = e->links && e->away
                                 ? evaluate_linked(e, (uint32_t)count, cost, err)
                                 : dryi_fail_memory(err, "a plan's evaluation");
    dryi_memory_free(memory, e->links, count, sizeof *e->links);
    dryi_memory_free(memory, e->away, e->chain->count, sizeof *e->away);
    return status;
}

enum dry_status
dry_plan_evaluate(const struct dry_chain *chain, const struct dry_plan_item *items,
                  size_t count, const struct dry_plan_observer *observer,
                  struct dry_plan_cost *cost, struct dry_error *err)
{
    struct evaluation e = {
        .chain = chain, .stages = chain->stages, .items = items, .observer = observer};
    return evaluate(&e, count, &chain->memory, cost, err);
}

enum dry_status
dryi_plan_observe(const struct dryi_planning *p, const struct dry_plan_observer *observer,
                  struct dry_plan_cost *cost)
{
    struct evaluation e = {.chain = p->chain,
                           .stages = p->stages,
                           .items = p->list.items,
                           .observer = observer};
    return evaluate(&e, p->list.count, &p->memory, cost, p->err);
}
