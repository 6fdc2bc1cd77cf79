/* SPDX-License-Identifier: Apache-2.0 */

#include "cases/model.h"

#define BF16 2
#define FP32 4
#define MODULE "_call_impl@torch/nn/modules/module.py:1786; "
#define WRAPPED "_wrapped_call_impl@torch/nn/modules/module.py:1775; "
#define LINEAR "forward@torch/nn/modules/linear.py:134; " MODULE
#define BLOCK MODULE "forward@model/transformer.py:118; " WRAPPED

/* One operation of a layer: quarters of a unit it makes, and whether backward needs it. */
struct op {
    const char *frames;
    unsigned quarters;
    bool is_saved;
};

static const struct op layer_ops[] = {
    {"layer_norm@torch/nn/functional.py:2935; forward@model/block.py:41; " BLOCK, 4,
     true},
    {LINEAR "forward@model/attention.py:63; " BLOCK, 12, true},
    {"scaled_dot_product_attention@model/attention.py:77; " BLOCK, 4, true},
    {LINEAR "forward@model/attention.py:84; " BLOCK, 4, false},
    {"add@model/block.py:44; " BLOCK, 4, true},
    {"layer_norm@torch/nn/functional.py:2935; forward@model/block.py:46; " BLOCK, 4,
     true},
    {LINEAR "forward@model/mlp.py:29; " BLOCK, 16, true},
    {"gelu@model/mlp.py:30; " BLOCK, 16, true},
    {LINEAR "forward@model/mlp.py:31; " BLOCK, 4, false},
    {"add@model/block.py:48; " BLOCK, 4, true},
};
#define OP_COUNT (sizeof layer_ops / sizeof *layer_ops)

#define EMBED "embedding@torch/nn/functional.py:2546; forward@model/transformer.py:104"
#define HEAD LINEAR "forward@model/transformer.py:126"
#define LOSS "cross_entropy@torch/nn/functional.py:3494; compute_loss@train.py:51"

uint64_t
model_unit(const struct model *m)
{
    return m->batch * m->length * m->hidden * BF16;
}

static uint64_t
weight_bytes(const struct model *m, unsigned which)
{
    static const unsigned squares[WEIGHTS] = {3, 1, 4, 4};
    return squares[which] * m->hidden * m->hidden * BF16;
}

static uint64_t
embedding_bytes(const struct model *m)
{
    return m->vocab * m->hidden * BF16;
}

static void
forget(uint32_t *tensors, size_t count)
{
    for (size_t i = 0; i < count; i++)
        tensors[i] = NO_TENSOR;
}

void
model_load(struct program *p, struct model *m)
{
    for (unsigned l = 0; l < LAYERS_MAX; l++) {
        forget(m->saved[l], SAVED_MAX);
        forget(m->grads[l], WEIGHTS + 1);
    }
    m->embedding_grad = m->input = m->logits = m->loss = NO_TENSOR;
    program_in(p, "build_model@train.py:23; main@train.py:96; <module>@train.py:168");
    program_at(p, "to@torch/nn/modules/module.py:1371; _apply@torch/nn/modules/"
                  "module.py:942; convert@torch/nn/modules/module.py:1357");
    program_keep(p, program_take(p, embedding_bytes(m)));
    for (unsigned l = 0; l < m->layers; l++) {
        for (unsigned w = 0; w < WEIGHTS; w++)
            program_keep(p, program_take(p, weight_bytes(m, w)));
        program_keep(p, program_take(p, m->hidden * BF16)); /* norms */
        program_keep(p, program_take(p, m->hidden * BF16));
    }
    program_keep(p, program_take(p, embedding_bytes(m)));
    program_in(p, "train_step@train.py:58; main@train.py:131; <module>@train.py:168");
}

/* --- forward ------------------------------------------------------------------------------ */

static void
forward_layer(struct program *p, struct model *m, unsigned layer)
{
    uint64_t quarter = model_unit(m) / 4;
    uint32_t last_temporary = NO_TENSOR;
    size_t count = 0;
    for (size_t i = 0; i < OP_COUNT; i++) {
        program_at(p, layer_ops[i].frames);
        uint32_t made = program_take(p, layer_ops[i].quarters * quarter);
        program_give(p, last_temporary);
        last_temporary = layer_ops[i].is_saved ? NO_TENSOR : made;
        if (layer_ops[i].is_saved)
            m->saved[layer][count++] = made;
    }
    program_at(p, "scaled_dot_product_attention@model/attention.py:77; " BLOCK);
    m->saved[layer][count] = program_take(p, m->batch * m->heads * m->length * FP32);
}

void
model_forward(struct program *p, struct model *m)
{
    program_begin_scope(p, "forward");
    program_at(p, "to@data/loader.py:37");
    m->input = program_take(p, m->batch * m->length * 8);
    program_at(p, EMBED);
    uint32_t hidden = program_take(p, model_unit(m));
    for (unsigned l = 0; l < m->layers && !program_is_over(p); l++)
        forward_layer(p, m, l);
    program_at(p, HEAD);
    m->logits = program_take(p, m->batch * m->length * m->vocab * BF16);
    program_give(p, hidden);
    program_end_scope(p, "forward");
    program_at(p, LOSS);
    m->loss = program_take(p, FP32);
}

/* --- backward ----------------------------------------------------------------------------- */

static void
backward_layer(struct program *p, struct model *m, unsigned layer)
{
    static const unsigned linears[WEIGHTS] = {1, 3, 6, 8}; /* in layer_ops */
    uint64_t unit = model_unit(m);
    uint32_t grad = NO_TENSOR;
    for (size_t w = WEIGHTS; w-- > 0;) {
        program_at_backward_of(p, layer_ops[linears[w]].frames);
        uint32_t next = program_take(p, w >= 2 ? 4 * unit : unit);
        program_give(p, grad);
        grad = next;
        m->grads[layer][w] = program_take(p, weight_bytes(m, (unsigned)w));
        program_give_all(p, &m->saved[layer][2 * w], 2);
    }
    m->grads[layer][WEIGHTS] = program_take(p, m->hidden * BF16);
    program_give_all(p, m->saved[layer], SAVED_MAX);
    program_give(p, grad);
}

void
model_backward(struct program *p, struct model *m)
{
    uint64_t logits = m->batch * m->length * m->vocab * BF16;
    program_begin_scope(p, "backward");
    program_at_backward_of(p, LOSS);
    uint32_t wide = program_take(p, logits);
    program_give(p, m->logits);
    m->embedding_grad = program_take(p, embedding_bytes(m));
    program_give(p, wide);
    for (unsigned l = m->layers; l-- > 0 && !program_is_over(p);)
        backward_layer(p, m, l);
    program_give(p, m->loss);
    program_give(p, m->input);
    program_end_scope(p, "backward");
}

/* --- the optimizer ------------------------------------------------------------------------ */

static void
make_state(struct program *p, uint64_t weights_bytes)
{
    uint64_t bytes = weights_bytes / BF16 * FP32;
    program_keep(p, program_take(p, bytes)); /* exp_avg */
    program_keep(p, program_take(p, bytes)); /* exp_avg_sq */
}

void
model_optimize(struct program *p, struct model *m)
{
    program_begin_scope(p, "Optimizer.step#AdamW.step");
    program_at(p, "_init_group@torch/optim/adam.py:179; step@torch/optim/adam.py:227; "
                  "wrapper@torch/optim/optimizer.py:493");
    for (unsigned l = 0; l < m->layers && m->has_optimizer && !m->has_state; l++) {
        for (unsigned w = 0; w < WEIGHTS; w++)
            make_state(p, weight_bytes(m, w));
    }
    m->has_state = true;
    program_at(p, "_multi_tensor_adam@torch/optim/adam.py:720; step@torch/optim/"
                  "adam.py:243; wrapper@torch/optim/optimizer.py:493");
    for (unsigned l = 0; l < m->layers && !program_is_over(p); l++)
        program_give(p, program_take(p, weight_bytes(m, 2)));
    program_end_scope(p, "Optimizer.step#AdamW.step");
    program_at(p, "zero_grad@torch/optim/optimizer.py:1003");
    for (unsigned l = 0; l < m->layers; l++)
        program_give_all(p, m->grads[l], WEIGHTS + 1);
    program_give(p, m->embedding_grad);
}

void
model_step(struct program *p, struct model *m)
{
    model_forward(p, m);
    model_backward(p, m);
    model_optimize(p, m);
    program_wait(p, 40000);
}
