/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The units of a transformer: the embedding, layers, the head; and which of them this device has.
 */
#include "plan/estimate/estimate_inside.h"

/* --- before the layers -------------------------------------------------------------------- */

/* Build the unit that receives the previous stage's output. */
static void
build_receive(struct dry_estimate *e)
{
    struct dryi_unit *unit = dryi_unit_begin(e, "received");
    unit->count = e->setup.stage > 0;
    unit->model_count = 0;
    dryi_op_add(e, "nothing", "0");
    dryi_op_add(e, "received", "o b s h / c r");
    dryi_unit_end(e);
}

/* --- after the layers --------------------------------------------------------------------- */

static void
mark_loss(struct dry_estimate *e, uint32_t index)
{
    if (e->status == DRY_OK)
        dryi_op_at(e, index)->group = DRY_GROUP_LOSS;
}

/* Add the matrix of the head: the embedding's, a copy of it, or its own. */
static void
add_head_matrix(struct dry_estimate *e)
{
    bool is_here = e->setup.stage == 0;
    struct dryi_param head = {
        .name = "head",
        .rows = e->model.vocab,
        .cols = e->model.hidden,
        .split = e->setup.tensor,
        .is_frozen = e->setup.lora_rank > 0,
        .is_copy = e->model.is_tied,
        .is_linear = e->model.is_head_quantized && !e->model.is_tied,
    };
    struct dryi_param bias = {.name = "head bias",
                              .rows = e->model.vocab,
                              .split = e->setup.tensor,
                              .is_frozen = e->setup.lora_rank > 0};
    if (!e->model.is_tied || !is_here)
        dryi_param_add(e, &head);
    else if (e->status == DRY_OK)
        e->ops[e->op_count - 1].is_tied = e->setup.lora_rank == 0;
    if (e->model.has_head_bias)
        dryi_param_add(e, &bias);
}

/*
 * Build the logits, their fp32 copy for the loss, and the logarithms that the loss's
 * backward needs.
 */
static void
build_logits(struct dry_estimate *e, uint32_t input)
{
    uint32_t logits = dryi_op_add(e, "logits", "e b s V / c t");
    add_head_matrix(e);
    dryi_op_use(e, input, logits);
    if (e->setup.lora_rank == 0)
        dryi_op_save(e, input, logits);
    uint32_t read = logits;
    mark_loss(e, logits);
    if (e->symbols.values['e'] < 4) {
        read = dryi_op_add(e, "logits, fp32", "4 b s V / c t");
        mark_loss(e, read);
    }
    if (e->model.has_capped_logits) {
        uint32_t capped = dryi_op_add(e, "logits, capped", "4 b s V / c t");
        mark_loss(e, capped);
        dryi_op_save(e, capped, capped); /* tanh saves its result */
        dryi_op_use(e, read, capped);
    }
    uint32_t logarithms = dryi_op_add(e, "log-probabilities", "4 b s V / c t");
    mark_loss(e, logarithms);
    dryi_op_use(e, read, logarithms);
    dryi_op_save(e, logarithms, logarithms);
    uint32_t loss = dryi_op_add(e, "loss", "4");
    mark_loss(e, loss);
    if (e->status != DRY_OK)
        return;
    dryi_op_at(e, logits)->last_use = read == logits ? logarithms : read;
    dryi_op_at(e, logits)->saver = logits; /* the training program holds them */
}

/* Build BERT's matrix, activation and norm before the logits. */
static uint32_t
build_transform(struct dry_estimate *e, uint32_t input)
{
    static const struct dryi_norm_names names = {
        "head norm statistics", "head norm input, fp32", "head norm, normalized",
        "head norm output"};
    struct dryi_param matrix = {.name = "transform",
                                .rows = e->model.hidden,
                                .cols = e->model.hidden,
                                .is_frozen = e->setup.lora_rank > 0};
    struct dryi_param bias = {
        .name = "bias", .rows = e->model.hidden, .is_frozen = e->setup.lora_rank > 0};
    uint32_t dense = dryi_op_add(e, "transform", "e b s h / c r");
    dryi_param_add(e, &matrix);
    dryi_param_add(e, &bias);
    dryi_op_save(e, input, dense);
    uint32_t activation = dryi_op_add(e, "transform activation", "e b s h / c r");
    dryi_op_save(e, dense, activation);
    return dryi_build_norm(e, activation, &names);
}

static void
add_pooler(struct dry_estimate *e, uint32_t input)
{
    struct dryi_param matrix = {.name = "pooler",
                                .rows = e->model.hidden,
                                .cols = e->model.hidden,
                                .is_frozen = e->setup.lora_rank > 0};
    struct dryi_param bias = {
        .name = "bias", .rows = e->model.hidden, .is_frozen = e->setup.lora_rank > 0};
    uint32_t pooled = dryi_op_add(e, "pooled", "e b h");
    dryi_param_add(e, &matrix);
    dryi_param_add(e, &bias);
    dryi_op_use(e, input, pooled);
    dryi_op_save(e, pooled, pooled); /* tanh saves its result */
    if (e->setup.lora_rank == 0)
        dryi_op_save(e, input, pooled); /* the first token is a view of all */
}

static void
build_head(struct dry_estimate *e)
{
    static const struct dryi_norm_names names = {
        "final norm statistics", "final norm input, fp32", "final norm, normalized",
        "final norm output"};
    struct dryi_unit *unit = dryi_unit_begin(e, "head");
    unit->count = e->setup.stage == e->setup.pipeline - 1;
    uint32_t at = dryi_op_add(e, "input", "o b s h / c r");
    if (!e->model.is_post_norm)
        at = dryi_build_norm(e, at, &names);
    at = dryi_build_cast(e, at, "head input, cast");
    if (e->model.has_pooler)
        add_pooler(e, at);
    if (e->model.has_mlm_head)
        at = build_transform(e, at);
    uint64_t tokens = e->symbols.values['s'];
    if (e->model.patch)
        e->symbols.values['s'] = 1; /* only the first token's state classifies an image */
    if (!e->model.has_no_head)
        build_logits(e, at);
    else
        dryi_op_add(e, "loss", "4");
    e->symbols.values['s'] = tokens;
    dryi_unit_end(e);
}

/* --- layers of this stage ----------------------------------------------------------------- */

/*
 * Count this stage's layers. Chunk i of the layers is at stage i mod p; the first chunks
 * have one layer more.
 */
static void
count_layers(const struct dry_estimate *e, uint64_t *dense, uint64_t *all)
{
    uint64_t chunks = e->setup.pipeline * e->setup.interleave;
    uint64_t each = e->model.layers / chunks, more = e->model.layers % chunks;
    *dense = *all = 0;
    for (uint64_t c = e->setup.stage; c < chunks; c += e->setup.pipeline) {
        uint64_t first = c * each + (c < more ? c : more);
        uint64_t count = each + (c < more);
        uint64_t last = first + count, limit = e->model.dense_layers;
        *all += count;
        *dense += last <= limit ? count : first < limit ? limit - first : 0;
    }
}

static void
build_layers(struct dry_estimate *e, const char *name, enum dryi_layer kind,
             uint64_t count, uint64_t model_count)
{
    struct dryi_unit *unit = dryi_unit_begin(e, name);
    unit->is_layer = true;
    unit->has_cache = e->model.kind == DRY_MODEL_DECODER;
    unit->count = count;
    unit->model_count = model_count;
    dryi_build_layer(e, kind);
    dryi_unit_end(e);
}

/* Build an encoder before a decoder. Its tokens are the source's. */
static void
build_encoder(struct dry_estimate *e)
{
    uint64_t *v = e->symbols.values, tokens = v['s'], ffn = e->model.ffn;
    v['s'] = v['M'];
    v['f'] = e->model.ffn = e->model.encoder_ffn;
    dryi_build_embedding(e);
    build_layers(e, "encoder layer", DRYI_LAYER_PLAIN, e->model.encoder_layers,
                 e->model.encoder_layers);
    e->units[e->unit_count - 1].has_cache = false;
    v['s'] = tokens;
    v['f'] = e->model.ffn = ffn;
    dryi_build_bridge(e);
    build_layers(e, "decoder layer", DRYI_LAYER_CROSS, e->model.layers, e->model.layers);
    build_head(e);
}

void
dryi_build_transformer(struct dry_estimate *e)
{
    uint64_t dense, all, total = e->model.layers;
    uint64_t model_dense = e->model.experts ? e->model.dense_layers : total;
    if (e->model.encoder_layers) {
        build_encoder(e);
        return;
    }
    count_layers(e, &dense, &all);
    if (e->model.experts == 0)
        dense = all;
    dryi_build_embedding(e);
    build_receive(e);
    if (model_dense)
        build_layers(e, "layer", DRYI_LAYER_PLAIN, dense, model_dense);
    if (model_dense < total)
        build_layers(e, "expert layer", DRYI_LAYER_EXPERTS, all - dense,
                     total - model_dense);
    build_head(e);
}
