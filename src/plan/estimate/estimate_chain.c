/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts a unit to a stage of a chain: its temporary bytes beyond what
 * <drystone/plan.h> charges by its rules, and its FLOPs.
 *
 * Cost: a pass over its operations.
 */
#include "plan/estimate/estimate_inside.h"

/*
 * Return whether the unit saves the tensor. Tensors of the loss do not count: they end
 * with the loss.
 */
static bool
is_saved(const struct dryi_op *op)
{
    return op->saver != DRYI_NO_OP && op->group == DRY_GROUP_ACTIVATIONS;
}

/* Return the peak of what the forward makes and does not save, without the unit's output. */
static uint64_t
walk_forward(const struct dryi_op *ops, uint32_t count)
{
    uint64_t live = 0, most = 0;
    for (uint32_t k = 1; k + 1 < count; k++) {
        live = dryi_sum(live, is_saved(&ops[k]) ? 0 : ops[k].bytes);
        most = live > most ? live : most;
        for (uint32_t j = ops[k].first_dead; j != DRYI_NO_OP; j = ops[j].next_dead)
            live -= j > 0 && ops[j].saver == DRYI_NO_OP ? ops[j].bytes : 0;
    }
    return most;
}

/* Return the peak of the gradients of tensors made inside, plus what the loss saved. */
static uint64_t
walk_backward(const struct dryi_op *ops, uint32_t count)
{
    uint64_t live = 0, most;
    for (uint32_t k = 1; k < count; k++)
        live = dryi_sum(live, ops[k].group == DRY_GROUP_LOSS &&
                                      ops[k].saver != DRYI_NO_OP && k + 1 < count
                                  ? ops[k].bytes
                                  : 0);
    most = live;
    for (uint32_t k = count - 1; k > 0; k--) {
        for (uint32_t j = ops[k].first_dead; j != DRYI_NO_OP; j = ops[j].next_dead)
            live = dryi_sum(live, j ? ops[j].grad_bytes : 0);
        most = live > most ? live : most;
        live -= k + 1 < count ? ops[k].grad_bytes : 0;
        for (uint32_t j = ops[k].first_saved; j != DRYI_NO_OP; j = ops[j].next_saved)
            live -= ops[j].group == DRY_GROUP_LOSS ? ops[j].bytes : 0;
    }
    return most;
}

/* Return the FLOPs of matrices: two for each output element and column of its matrix. */
static uint64_t
count_flops(const struct dry_estimate *e, const struct dryi_unit *unit)
{
    const uint64_t *v = e->symbols.values;
    uint64_t sum = 0;
    for (size_t i = 1; i < unit->op_count; i++) {
        const struct dryi_op *op = &e->ops[unit->op_first + i];
        uint64_t columns = op->is_tied ? v['h'] : 0, split = 1;
        if (op->param_count) {
            const struct dryi_param *p = &e->params[unit->param_first + op->param_first];
            columns = p->cols;
            split = p->is_split_in ? e->setup.tensor : 1;
        }
        sum = dryi_sum(sum, dryi_product(2 * (op->bytes / v['e']), columns) / split);
    }
    return sum;
}

/* Return the FLOPs of queries with keys and of probabilities with values. */
static uint64_t
count_scores(const struct dry_estimate *e)
{
    char text[DRY_FORMULA_BYTES];
    uint64_t flops;
    dryi_formula_eval(&e->symbols,
                      e->model.kv_rank ? "4 b s s a y / c t" : "4 b s s a d / c t",
                      &flops, text);
    return flops;
}

void
dryi_unit_chain(const struct dry_estimate *e, const struct dryi_unit *unit,
                struct dry_estimate_unit *shown)
{
    const struct dryi_op *ops = e->ops + unit->op_first;
    uint32_t count = (uint32_t)unit->op_count;
    struct dryi_widths w = dryi_widths_get(e->setup.precision);
    uint64_t whole = dryi_product(unit->local, w.activation);
    bool is_first = unit == &e->units[0] && e->unit_count > 1;
    shown->saves_input = ops[0].saver != DRYI_NO_OP;
    shown->output_bytes = ops[count - 1].bytes;
    shown->grads_bytes = dryi_unit_bytes(e, unit, DRYI_KEPT_GRADS);
    shown->forward_tmp_bytes = walk_forward(ops, count);
    shown->backward_tmp_bytes = walk_backward(ops, count);
    shown->forward_flops = is_first ? 0 : count_flops(e, unit);
    if (unit->is_layer)
        shown->forward_flops = dryi_sum(shown->forward_flops, count_scores(e));
    if (dryi_is_sharded(&e->setup, DRYI_KEPT_WEIGHTS)) {
        shown->forward_tmp_bytes = dryi_sum(shown->forward_tmp_bytes, 2 * whole);
        shown->backward_tmp_bytes = dryi_sum(shown->backward_tmp_bytes, 2 * whole);
    }
    if (dryi_is_sharded(&e->setup, DRYI_KEPT_GRADS))
        shown->backward_tmp_bytes = dryi_sum(shown->backward_tmp_bytes, whole);
}
