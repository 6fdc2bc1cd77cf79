/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that assemble units: operations, parameters, and the lists that a step walks. */
#include <string.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/memory.h"
#include "plan/estimate/estimate_inside.h"

struct dryi_unit *
dryi_unit_begin(struct dry_estimate *e, const char *name)
{
    DRYI_ASSERT(e->unit_count < DRYI_UNITS_MAX);
    struct dryi_unit *unit = &e->units[e->unit_count++];
    *unit = (struct dryi_unit){
        .name = name,
        .op_first = e->op_count,
        .param_first = e->param_count,
        .count = 1,
        .model_count = 1,
    };
    return unit;
}

static struct dryi_unit *
last_unit(struct dry_estimate *e)
{
    return &e->units[e->unit_count - 1];
}

/* --- operations --------------------------------------------------------------------------- */

static void
fail_sum(struct dry_estimate *e, const char *name)
{
    if (e->status == DRY_OK)
        e->status = dryi_fail(e->err, DRY_ERR_LIMIT, "%s: more than 2^62 bytes", name);
}

uint32_t
dryi_op_add(struct dry_estimate *e, const char *name, const char *expression)
{
    struct dryi_unit *unit = last_unit(e);
    if (e->status == DRY_OK && !dryi_memory_grow(&e->memory, &e->ops, &e->op_capacity,
                                                 e->op_count + 1, sizeof *e->ops))
        e->status = dryi_fail_memory(e->err, "the operations of a model");
    if (e->status != DRY_OK)
        return 0;
    uint32_t index = (uint32_t)unit->op_count;
    struct dryi_op *op = &e->ops[e->op_count];
    *op = (struct dryi_op){
        .name = name,
        .last_use = index + 1,
        .saver = DRYI_NO_OP,
        .param_first = (uint32_t)unit->param_count,
        .group = DRY_GROUP_ACTIVATIONS,
        .first_dead = DRYI_NO_OP,
        .next_dead = DRYI_NO_OP,
        .first_saved = DRYI_NO_OP,
        .next_saved = DRYI_NO_OP,
    };
    if (!dryi_formula_eval(&e->symbols, expression, &op->bytes, op->formula))
        fail_sum(e, name);
    op->grad_bytes = op->bytes;
    e->op_count++;
    unit->op_count++;
    return index;
}

struct dryi_op *
dryi_op_at(struct dry_estimate *e, uint32_t index)
{
    return &e->ops[last_unit(e)->op_first + index];
}

void
dryi_op_use(struct dry_estimate *e, uint32_t index, uint32_t by)
{
    if (e->status == DRY_OK && dryi_op_at(e, index)->last_use < by)
        dryi_op_at(e, index)->last_use = by;
}

void
dryi_op_save(struct dry_estimate *e, uint32_t index, uint32_t saver)
{
    if (e->status == DRY_OK)
        dryi_op_at(e, index)->saver = saver;
}

uint32_t
dryi_op_aux(struct dry_estimate *e, const char *name, const char *expression)
{
    uint32_t index = dryi_op_add(e, name, expression);
    if (e->status != DRY_OK)
        return 0;
    struct dryi_op *op = dryi_op_at(e, index);
    op->grad_bytes = 0;
    op->is_aux = true;
    op->last_use = index;
    op->saver = index;
    return index;
}

/*
 * Enter the operation into the lists by last use and by saver. A last use after the
 * unit's last operation counts as that one.
 */
static void
end_op(struct dry_estimate *e, const struct dryi_unit *unit, uint32_t index)
{
    struct dryi_op *ops = e->ops + unit->op_first, *op = &ops[index];
    uint32_t last = (uint32_t)unit->op_count - 1;
    if (index == last)
        op->last_use = DRYI_NO_OP;
    else if (op->last_use > last)
        op->last_use = last;
    if (op->last_use != DRYI_NO_OP) {
        op->next_dead = ops[op->last_use].first_dead;
        ops[op->last_use].first_dead = index;
    }
    if (op->saver != DRYI_NO_OP && index != last) {
        DRYI_ASSERT(op->saver <= last);
        op->next_saved = ops[op->saver].first_saved;
        ops[op->saver].first_saved = index;
    }
}

void
dryi_unit_end(struct dry_estimate *e)
{
    struct dryi_unit *unit = last_unit(e);
    if (e->status != DRY_OK)
        return;
    for (size_t i = 0; i < unit->op_count; i++)
        end_op(e, unit, (uint32_t)i);
    for (size_t i = 0; i < unit->param_count; i++) {
        const struct dryi_param *p = &e->params[unit->param_first + i];
        uint64_t whole = dryi_product(p->rows, p->cols ? p->cols : 1);
        uint64_t all = dryi_product(whole, p->count);
        uint64_t met = p->is_expert ? e->model.experts_per_token : p->count;
        unit->local = dryi_sum(unit->local, p->elements);
        if (p->is_copy)
            continue;
        unit->params = dryi_sum(unit->params, all);
        unit->active_count = dryi_sum(unit->active_count, dryi_product(whole, met));
    }
    if (unit->params >= DRYI_SUM_MAX)
        fail_sum(e, unit->name);
}

uint64_t
dryi_unit_saved(const struct dry_estimate *e, const struct dryi_unit *unit,
                bool is_selective)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < unit->op_count; i++) {
        const struct dryi_op *op = &e->ops[unit->op_first + i];
        bool is_output = i + 1 == unit->op_count;
        bool is_dropped = is_selective && op->is_made_again;
        if (op->saver != DRYI_NO_OP && !is_output && !is_dropped &&
            op->group == DRY_GROUP_ACTIVATIONS)
            sum = dryi_sum(sum, op->bytes);
    }
    return sum;
}

/* --- parameters --------------------------------------------------------------------------- */

void
dryi_param_add(struct dry_estimate *e, const struct dryi_param *param)
{
    struct dryi_unit *unit = last_unit(e);
    if (e->status == DRY_OK &&
        !dryi_memory_grow(&e->memory, &e->params, &e->param_capacity, e->param_count + 1,
                          sizeof *e->params))
        e->status = dryi_fail_memory(e->err, "the parameters of a model");
    if (e->status != DRY_OK)
        return;
    struct dryi_param *p = &e->params[e->param_count++];
    *p = *param;
    p->count = p->count ? p->count : 1;
    p->split = p->split ? p->split : 1;
    uint64_t whole = dryi_product(p->rows, p->cols ? p->cols : 1);
    p->elements = dryi_ceil_div(dryi_product(whole, p->count), p->split);
    unit->param_count++;
    if (unit->op_count)
        dryi_op_at(e, (uint32_t)unit->op_count - 1)->param_count++;
}

bool
dryi_has_dropout(const struct dry_estimate *e)
{
    return e->model.has_dropout && !e->setup.has_no_dropout;
}

bool
dryi_keeps_input(const struct dry_estimate *e, uint32_t targets)
{
    return e->setup.lora_rank == 0 || (e->setup.lora_targets & targets) != 0;
}

/* Add LoRA's adapter: A is rank x in, B is out x rank. The one at the split side is split too. */
static void
add_adapter(struct dry_estimate *e, const struct dryi_linear *l)
{
    uint64_t rank = e->setup.lora_rank, t = e->setup.tensor;
    struct dryi_param a = {.name = "adapter A",
                           .rows = rank,
                           .cols = l->in,
                           .split = l->is_split_out ? 1 : t};
    struct dryi_param b = {.name = "adapter B",
                           .rows = l->out,
                           .cols = rank,
                           .split = l->is_split_out ? t : 1};
    dryi_param_add(e, &a);
    dryi_param_add(e, &b);
}

void
dryi_build_adapters(struct dry_estimate *e, uint32_t targets)
{
    uint32_t chosen = targets & e->setup.lora_targets;
    if (e->setup.lora_rank == 0 || chosen == 0)
        return;
    e->symbols.values['n'] = (uint64_t)__builtin_popcount(chosen);
    dryi_op_aux(e, "adapters", "n e b s R / c");
}

void
dryi_linear_add(struct dry_estimate *e, const struct dryi_linear *l)
{
    bool is_expert = l->count > 0, has_lora = e->setup.lora_rank > 0;
    uint64_t t = e->setup.tensor;
    struct dryi_param matrix = {
        .name = l->name,
        .rows = l->out,
        .cols = l->in,
        .count = l->count,
        .split = is_expert ? dryi_product(t, e->setup.expert) : t,
        .is_expert = is_expert,
        .is_frozen = has_lora,
        .is_hidden = last_unit(e)->is_layer,
        .is_split_in = !l->is_split_out,
        .is_linear = true,
    };
    dryi_param_add(e, &matrix);
    if (l->has_bias) {
        struct dryi_param bias = {.name = "bias",
                                  .rows = l->out,
                                  .count = l->count,
                                  .split = dryi_product(l->is_split_out ? t : 1,
                                                        is_expert ? e->setup.expert : 1),
                                  .is_expert = is_expert,
                                  .is_frozen = has_lora};
        dryi_param_add(e, &bias);
    }
    if (has_lora && !is_expert && (e->setup.lora_targets & l->target))
        add_adapter(e, l);
}
