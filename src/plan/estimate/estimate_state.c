/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes that stay from step to step: weights, gradients, the optimizer's state; and
 * how ZeRO (Rajbhandari et al., arXiv:1910.02054) shards them.
 */
#include "base/fail.h"
#include "base/sized.h"
#include "plan/estimate/estimate_inside.h"

#define SMALL_8BIT 4096u /* elements; bitsandbytes leaves smaller tensors in fp32 */
#define BLOCK_8BIT 256u  /* elements that share a scale */

struct dryi_widths
dryi_widths_get(enum dry_precision precision)
{
    static const struct dryi_widths widths[DRY_PRECISION_COUNT] = {
        [DRY_PRECISION_FP32] = {4, 4, 0, 4, 4, 4},
        [DRY_PRECISION_TF32] = {4, 4, 0, 4, 4, 4},
        [DRY_PRECISION_AMP] = {4, 4, 0, 4, 2, 4},
        [DRY_PRECISION_BF16] = {2, 2, 0, 2, 2, 2},
        [DRY_PRECISION_MIXED] = {2, 2, 4, 4, 2, 2},
        [DRY_PRECISION_MASTER] = {2, 4, 4, 4, 2, 2},
    };
    return widths[precision];
}

/* Megatron's gradients are one buffer, allocated before the first step. */
bool
dryi_has_static_grads(const struct dry_run_setup *setup)
{
    return setup->precision == DRY_PRECISION_MASTER;
}

/* --- states ------------------------------------------------------------------------------- */

/* Return the number of states of the parameter's size; 0 for optimizers with other rules. */
static uint64_t
count_states(enum dry_optimizer optimizer)
{
    static const uint64_t counts[DRY_OPTIMIZER_COUNT] = {
        [DRY_OPTIMIZER_ADAMW] = 2,   [DRY_OPTIMIZER_ADAM] = 2,
        [DRY_OPTIMIZER_AMSGRAD] = 3, [DRY_OPTIMIZER_MOMENTUM] = 1,
        [DRY_OPTIMIZER_ADAGRAD] = 1, [DRY_OPTIMIZER_RMSPROP] = 1,
        [DRY_OPTIMIZER_LION] = 1,    [DRY_OPTIMIZER_ADAMW_8BIT] = 2,
        [DRY_OPTIMIZER_MUON] = 2,
    };
    return counts[optimizer];
}

static size_t
add_8bit(const struct dryi_param *p, uint64_t sizes[DRYI_STATES_MAX], size_t count)
{
    for (int i = 0; i < 2; i++) {
        if (p->elements < SMALL_8BIT) {
            sizes[count++] = dryi_product(p->elements, 4);
            continue;
        }
        sizes[count++] = p->elements;
        sizes[count++] = dryi_product(dryi_ceil_div(p->elements, BLOCK_8BIT), 4);
    }
    return count;
}

/* Add the row and column sums of every matrix (Shazeer and Stern, arXiv:1804.04235). */
static size_t
add_adafactor(const struct dryi_param *p, uint64_t sizes[DRYI_STATES_MAX], size_t count)
{
    if (p->cols == 0) {
        sizes[count++] = dryi_product(p->elements, 4);
        return count;
    }
    uint64_t rows = dryi_product(p->rows, p->count),
             cols = dryi_product(p->cols, p->count);
    sizes[count++] = dryi_product(dryi_ceil_div(rows, p->split), 4);
    sizes[count++] = dryi_product(cols, 4);
    return count;
}

size_t
dryi_state_sizes(const struct dry_run_setup *setup, const struct dryi_param *param,
                 uint64_t sizes[DRYI_STATES_MAX])
{
    struct dryi_widths w = dryi_widths_get(setup->precision);
    size_t count = 0;
    if (param->is_frozen)
        return 0;
    if (w.master)
        sizes[count++] = dryi_product(param->elements, w.master);
    if (setup->optimizer == DRY_OPTIMIZER_ADAMW_8BIT)
        return add_8bit(param, sizes, count);
    if (setup->optimizer == DRY_OPTIMIZER_ADAFACTOR)
        return add_adafactor(param, sizes, count);
    uint64_t states = count_states(setup->optimizer);
    if (setup->optimizer == DRY_OPTIMIZER_MUON && param->is_hidden)
        states = 1;
    for (uint64_t i = 0; i < states; i++)
        sizes[count++] = dryi_product(param->elements, w.state);
    return count;
}

/* --- sums --------------------------------------------------------------------------------- */

bool
dryi_is_sharded(const struct dry_run_setup *setup, enum dryi_kept kept)
{
    static const uint32_t from[] = {
        [DRYI_KEPT_WEIGHTS] = 3, [DRYI_KEPT_GRADS] = 2, [DRYI_KEPT_STATES] = 1};
    return setup->data > 1 && setup->zero >= from[kept];
}

uint64_t
dryi_param_bytes(const struct dry_estimate *e, const struct dryi_param *param,
                 enum dryi_kept kept)
{
    struct dryi_widths w = dryi_widths_get(e->setup.precision);
    uint64_t sizes[DRYI_STATES_MAX], sum = 0;
    if (kept == DRYI_KEPT_WEIGHTS && dryi_is_quantized(&e->model, param))
        return dryi_ceil_div(dryi_quantized_bytes(&e->model, param), param->split);
    if (kept == DRYI_KEPT_WEIGHTS)
        return dryi_product(param->elements, param->is_wide ? 4 : w.weight);
    if (kept == DRYI_KEPT_GRADS)
        return param->is_frozen ? 0 : dryi_product(param->elements, w.grad);
    size_t count = dryi_state_sizes(&e->setup, param, sizes);
    for (size_t i = 0; i < count; i++)
        sum = dryi_sum(sum, sizes[i]);
    return sum;
}

/*
 * Return the devices that shard experts: expert parallelism leaves fewer that hold the same ones.
 */
static uint64_t
expert_group(const struct dry_run_setup *setup)
{
    return setup->data > setup->expert ? setup->data / setup->expert : 1;
}

uint64_t
dryi_unit_bytes(const struct dry_estimate *e, const struct dryi_unit *unit,
                enum dryi_kept kept)
{
    uint64_t dense = 0, experts = 0;
    for (size_t i = 0; i < unit->param_count; i++) {
        const struct dryi_param *p = &e->params[unit->param_first + i];
        uint64_t bytes = dryi_param_bytes(e, p, kept);
        if (p->is_expert)
            experts = dryi_sum(experts, bytes);
        else
            dense = dryi_sum(dense, bytes);
    }
    if (!dryi_is_sharded(&e->setup, kept))
        return dryi_sum(dense, experts);
    return dryi_sum(dryi_ceil_div(dense, e->setup.data),
                    dryi_ceil_div(experts, expert_group(&e->setup)));
}

uint64_t
dryi_cast_bytes(const struct dry_estimate *e, const struct dryi_unit *unit)
{
    struct dryi_widths w = dryi_widths_get(e->setup.precision);
    bool is_table = e->unit_count > 1 && unit == &e->units[0] && !e->model.is_tied;
    uint64_t sum = 0;
    for (size_t i = 0; i < unit->param_count && !is_table; i++) {
        const struct dryi_param *p = &e->params[unit->param_first + i];
        bool is_cast = p->cols && !dryi_is_quantized(&e->model, p);
        sum = dryi_sum(sum, is_cast ? p->elements : 0);
    }
    return e->setup.precision == DRY_PRECISION_AMP ? dryi_product(sum, w.activation) : 0;
}

enum dry_status
dry_setup_state_bytes(const struct dry_run_setup *setup, uint64_t parameter_count,
                      struct dry_state_bytes *bytes, struct dry_error *err)
{
    struct dry_run_setup s;
    enum dry_status status = dryi_setup_take(&s, setup, err);
    if (status != DRY_OK)
        return status;
    if (s.optimizer == DRY_OPTIMIZER_ADAFACTOR)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "adafactor: its states go by the shapes of the matrices");
    if (s.data == 0 || s.zero > 3)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "data: expected 1 or more, zero: 0 to 3");
    struct dryi_widths w = dryi_widths_get(s.precision);
    struct dryi_param p = {.rows = parameter_count,
                           .cols = 1,
                           .count = 1,
                           .split = 1,
                           .elements = parameter_count,
                           .is_hidden = true};
    uint64_t sizes[DRYI_STATES_MAX], states = 0;
    size_t count = dryi_state_sizes(&s, &p, sizes);
    for (size_t i = 0; i < count; i++)
        states = dryi_sum(states, sizes[i]);
    if (dryi_sum(states, dryi_product(parameter_count, w.weight + w.grad)) >=
        DRYI_SUM_MAX)
        return dryi_fail(err, DRY_ERR_LIMIT, "%llu parameters: more than 2^62 bytes",
                         (unsigned long long)parameter_count);
    const struct dry_state_bytes all = {
        .weights = dryi_ceil_div(parameter_count * w.weight,
                                 dryi_is_sharded(&s, DRYI_KEPT_WEIGHTS) ? s.data : 1),
        .gradients = dryi_ceil_div(parameter_count * w.grad,
                                   dryi_is_sharded(&s, DRYI_KEPT_GRADS) ? s.data : 1),
        .optimizer =
            dryi_ceil_div(states, dryi_is_sharded(&s, DRYI_KEPT_STATES) ? s.data : 1),
    };
    return dryi_sized_give(bytes, &all, sizeof all);
}
