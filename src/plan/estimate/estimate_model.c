/* SPDX-License-Identifier: Apache-2.0 */
/* Models and setups: names, defaults, and fields that contradict each other. */
#include <string.h>

#include "base/fail.h"
#include "base/sized.h"
#include "plan/estimate/estimate_inside.h"

/* --- names -------------------------------------------------------------------------------- */

static const char *
get_name(const char *const *names, size_t count, size_t index)
{
    return index < count ? names[index] : "unknown";
}

const char *
dry_model_kind_name(enum dry_model_kind kind)
{
    static const char *const names[DRY_MODEL_KIND_COUNT] = {"decoder", "encoder", "conv"};
    return get_name(names, DRY_MODEL_KIND_COUNT, (size_t)kind);
}

const char *
dry_conv_kind_name(enum dry_conv_kind kind)
{
    static const char *const names[DRY_CONV_KIND_COUNT] = {
        "conv",       "norm", "relu",   "silu",    "maxpool", "avgpool",
        "globalpool", "add",  "concat", "flatten", "linear",  "dropout"};
    return get_name(names, DRY_CONV_KIND_COUNT, (size_t)kind);
}

const char *
dry_precision_name(enum dry_precision precision)
{
    static const char *const names[DRY_PRECISION_COUNT] = {"fp32", "tf32",  "amp",
                                                           "bf16", "mixed", "megatron"};
    return get_name(names, DRY_PRECISION_COUNT, (size_t)precision);
}

const char *
dry_optimizer_name(enum dry_optimizer optimizer)
{
    static const char *const names[DRY_OPTIMIZER_COUNT] = {
        "adamw",     "adam",    "amsgrad", "sgd",  "momentum", "adamw-8bit",
        "adafactor", "adagrad", "rmsprop", "lion", "muon"};
    return get_name(names, DRY_OPTIMIZER_COUNT, (size_t)optimizer);
}

const char *
dry_step_kind_name(enum dry_step_kind step)
{
    static const char *const names[DRY_STEP_KIND_COUNT] = {"foreach", "fused", "loop"};
    return get_name(names, DRY_STEP_KIND_COUNT, (size_t)step);
}

const char *
dry_attention_name(enum dry_attention attention)
{
    static const char *const names[DRY_ATTENTION_COUNT] = {"flash", "eager",
                                                           "eager-fp32"};
    return get_name(names, DRY_ATTENTION_COUNT, (size_t)attention);
}

const char *
dry_checkpointing_name(enum dry_checkpointing checkpointing)
{
    static const char *const names[DRY_CHECKPOINTING_COUNT] = {"none", "selective",
                                                               "full", "every", "sqrt"};
    return get_name(names, DRY_CHECKPOINTING_COUNT, (size_t)checkpointing);
}

const char *
dry_group_name(enum dry_estimate_group group)
{
    static const char *const names[DRY_GROUP_COUNT] = {
        "weights", "gradients", "optimizer", "activations", "loss",
        "cache",   "temporary", "outside",   "reference"};
    return get_name(names, DRY_GROUP_COUNT, (size_t)group);
}

const char *
dry_estimate_phase_name(enum dry_estimate_phase phase)
{
    static const char *const names[DRY_ESTIMATE_PHASE_COUNT] = {"load", "forward", "loss",
                                                                "backward", "step"};
    return get_name(names, DRY_ESTIMATE_PHASE_COUNT, (size_t)phase);
}

const char *
dry_quantization_name(enum dry_quantization quantization)
{
    static const char *const names[DRY_QUANTIZATION_COUNT] = {
        "none",      "awq", "gptq",   "nf4",    "nf4-double", "int8",
        "fp8-block", "row", "tensor", "packed", "mxfp4"};
    return get_name(names, DRY_QUANTIZATION_COUNT, (size_t)quantization);
}

/* --- numbers ------------------------------------------------------------------------------ */

/* A field with the range that it must be in. */
struct field {
    const char *name;
    uint64_t value, low, high;
};

static enum dry_status
check_fields(const struct field *fields, size_t count, struct dry_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const struct field *f = &fields[i];
        if (f->value < f->low || f->value > f->high)
            return dryi_fail(err, f->value > f->high ? DRY_ERR_LIMIT : DRY_ERR_ARGUMENT,
                             "%s: expected %llu to %llu, found %llu", f->name,
                             (unsigned long long)f->low, (unsigned long long)f->high,
                             (unsigned long long)f->value);
    }
    return DRY_OK;
}

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define MAX DRYI_NUMBER_MAX

/* --- models ------------------------------------------------------------------------------- */

void
dry_model_init_sized(struct dry_model *model, size_t struct_size)
{
    const struct dry_model defaults = {0};
    dryi_sized_init(model, struct_size, &defaults, sizeof defaults);
}

static enum dry_status
check_conv(const struct dry_model *m, struct dry_error *err)
{
    const struct field fields[] = {
        {"layers", m->conv_count, 1, DRY_CONV_LAYERS_MAX},
        {"channels", m->channels, 1, MAX},
        {"height", m->height, 1, MAX},
        {"width", m->width, 1, MAX},
    };
    enum dry_status status = check_fields(fields, COUNT_OF(fields), err);
    if (status == DRY_OK && !m->conv)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "conv: NULL");
    for (size_t i = 0; i < m->conv_count && status == DRY_OK; i++) {
        const struct dry_conv_layer *l = &m->conv[i];
        const struct field layer[] = {
            {"type", (uint64_t)l->kind, 0, DRY_CONV_KIND_COUNT - 1},
            {"channels", l->channels,
             l->kind == DRY_CONV_CONV || l->kind == DRY_CONV_LINEAR, MAX},
            {"kernel", l->kernel, 0, MAX},
            {"stride", l->stride, 0, MAX},
            {"padding", l->padding, 0, MAX},
            {"groups", l->groups, 0, MAX},
            {"dilation", l->dilation, 0, MAX},
        };
        struct dry_error why;
        status = check_fields(layer, COUNT_OF(layer), &why);
        if (status != DRY_OK)
            return dryi_fail(err, status, "layers[%zu].%s", i, why.text);
    }
    return status;
}

static void
complete(struct dry_model *m)
{
    m->kv_heads = m->kv_heads ? m->kv_heads : m->heads;
    if (m->head_dim == 0 && m->heads)
        m->head_dim = m->hidden / m->heads;
    m->expert_ffn = m->expert_ffn ? m->expert_ffn : m->ffn;
    m->encoder_ffn = m->encoder_ffn ? m->encoder_ffn : m->ffn;
    if (m->experts && m->dense_layers > m->layers)
        m->dense_layers = m->layers;
}

static enum dry_status
check_enums(const struct dry_model *m, struct dry_error *err)
{
    const struct field fields[] = {
        {"kind", (uint64_t)m->kind, 0, DRY_MODEL_KIND_COUNT - 1},
        {"norm", (uint64_t)m->norm, 0, DRY_NORM_RMS},
        {"activation", (uint64_t)m->activation, 0, DRY_ACT_COUNT - 1},
        {"quantization", (uint64_t)m->quantization, 0, DRY_QUANTIZATION_COUNT - 1},
    };
    return check_fields(fields, COUNT_OF(fields), err);
}

static enum dry_status
check_numbers(const struct dry_model *m, struct dry_error *err)
{
    bool has_experts = m->experts > 0;
    const struct field fields[] = {
        {"layers", m->layers, 1, DRY_MODEL_LAYERS_MAX},
        {"hidden", m->hidden, 1, MAX},
        {"vocab", m->vocab, m->patch == 0 || !m->has_no_head, MAX},
        {"heads", m->heads, 1, MAX},
        {"kv_heads", m->kv_heads, 1, MAX},
        {"head_dim", m->head_dim, m->kv_rank == 0, MAX},
        {"ffn", m->ffn, !has_experts || m->dense_layers > 0, MAX},
        {"positions", m->positions, 0, MAX},
        {"token_types", m->token_types, 0, MAX},
        {"window", m->window, 0, MAX},
        {"experts", m->experts, 0, MAX},
        {"experts_per_token", m->experts_per_token, has_experts,
         has_experts ? m->experts : MAX},
        {"expert_ffn", m->expert_ffn, has_experts, MAX},
        {"shared_ffn", m->shared_ffn, 0, MAX},
        {"q_rank", m->q_rank, 0, MAX},
        {"kv_rank", m->kv_rank, 0, MAX},
        {"rope_dim", m->rope_dim, 0, MAX},
        {"nope_dim", m->nope_dim, m->kv_rank > 0, MAX},
        {"value_dim", m->value_dim, m->kv_rank > 0, MAX},
        {"global_layers", m->global_layers, 0, m->layers},
        {"encoder_layers", m->encoder_layers, 0, DRY_MODEL_LAYERS_MAX},
        {"encoder_ffn", m->encoder_ffn, m->encoder_layers > 0, MAX},
        {"source", m->source, 0, MAX},
        {"audio_channels", m->audio_channels, 0, MAX},
        {"position_buckets", m->position_buckets, 0, MAX},
        {"quantization_group", m->quantization_group, 0, MAX},
        {"quantization_rows", m->quantization_rows, 0, MAX},
        {"quantization_cols", m->quantization_cols, 0, MAX},
    };
    return check_fields(fields, COUNT_OF(fields), err);
}

/* Check the fields of images, sound and an encoder against each other. */
static enum dry_status
check_source(const struct dry_model *m, struct dry_error *err)
{
    uint64_t least = m->patch ? 1 : 0;
    const struct field fields[] = {
        {"patch", m->patch, 0, MAX},
        {"channels", m->channels, least, MAX},
        {"height", m->height, m->patch, MAX},
        {"width", m->width, m->patch, MAX},
    };
    enum dry_status status = check_fields(fields, COUNT_OF(fields), err);
    if (status != DRY_OK)
        return status;
    if (m->audio_channels && (m->encoder_layers == 0 || m->source == 0))
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "audio_channels: an encoder and its source are needed");
    if (m->patch && m->encoder_layers)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "patch: of one stack of layers only");
    if (m->encoder_layers && (m->experts || m->is_parallel || m->is_post_norm ||
                              m->kv_rank || m->kind != DRY_MODEL_DECODER))
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "encoder_layers: of a decoder with norms before its sums, "
                         "without experts and latent keys");
    return DRY_OK;
}

/*
 * Check the heads of a model as the caller gave it, before it is completed. Requires
 * numbers within their limits.
 */
static enum dry_status
check_heads(const struct dry_model *m, struct dry_error *err)
{
    unsigned long long hidden = m->hidden, heads = m->heads, kv_heads = m->kv_heads;
    if (m->kv_rank || heads == 0)
        return DRY_OK;
    if (m->head_dim == 0 && hidden % heads != 0)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "hidden, %llu, is no multiple of heads, %llu, and head_dim is "
                         "not said",
                         hidden, heads);
    if (kv_heads && heads % kv_heads != 0)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "heads, %llu, are no multiple of kv_heads, %llu", heads,
                         kv_heads);
    return DRY_OK;
}

enum dry_status
dryi_model_check(struct dry_model *m, struct dry_error *err)
{
    enum dry_status status = check_enums(m, err);
    if (status != DRY_OK || m->kind == DRY_MODEL_CONV)
        return status == DRY_OK ? check_conv(m, err) : status;
    struct dry_model said = *m;
    complete(m);
    status = check_numbers(m, err);
    if (status == DRY_OK)
        status = check_heads(&said, err);
    if (status == DRY_OK)
        status = check_source(m, err);
    if (status == DRY_OK)
        status = dryi_quantization_check(m, err);
    if (status == DRY_OK && m->is_parallel && m->is_post_norm)
        status = dryi_fail(err, DRY_ERR_ARGUMENT,
                           "a parallel layer has its norms before the sums");
    return status;
}

/* --- setups ------------------------------------------------------------------------------- */

void
dry_run_setup_init_sized(struct dry_run_setup *setup, size_t struct_size)
{
    const struct dry_run_setup defaults = {
        .batch = 1,
        .sequence = 2048,
        .accumulation = 1,
        .data = 1,
        .tensor = 1,
        .pipeline = 1,
        .context = 1,
        .expert = 1,
        .interleave = 1,
        .stage = DRY_STAGE_WORST,
        .mask_bytes = 1,
        .requests = 1,
        .lora_targets = DRY_LORA_Q | DRY_LORA_V,
        .context_bytes = UINT64_C(512) << 20,
        .communication_bytes = UINT64_C(256) << 20,
        .workspace_bytes = 8519680,
    };
    dryi_sized_init(setup, struct_size, &defaults, sizeof defaults);
}

enum dry_status
dryi_setup_take(struct dry_run_setup *to, const struct dry_run_setup *from,
                struct dry_error *err)
{
    dry_run_setup_init(to);
    enum dry_status status = dryi_sized_take(to, sizeof *to, from, err);
    if (status != DRY_OK)
        return status;
    const struct field fields[] = {
        {"precision", (uint64_t)to->precision, 0, DRY_PRECISION_COUNT - 1},
        {"optimizer", (uint64_t)to->optimizer, 0, DRY_OPTIMIZER_COUNT - 1},
        {"step", (uint64_t)to->step, 0, DRY_STEP_KIND_COUNT - 1},
        {"attention", (uint64_t)to->attention, 0, DRY_ATTENTION_COUNT - 1},
        {"checkpointing", (uint64_t)to->checkpointing, 0, DRY_CHECKPOINTING_COUNT - 1},
    };
    return check_fields(fields, COUNT_OF(fields), err);
}

static enum dry_status
check_degrees(const struct dry_run_setup *s, struct dry_error *err)
{
    const struct field fields[] = {
        {"batch", s->batch, 1, MAX},
        {"sequence", s->sequence, 1, MAX},
        {"accumulation", s->accumulation, 1, MAX},
        {"checkpoint_count", s->checkpoint_count, 0, MAX},
        {"zero", s->zero, 0, 3},
        {"data", s->data, 1, MAX},
        {"tensor", s->tensor, 1, MAX},
        {"pipeline", s->pipeline, 1, DRY_MODEL_LAYERS_MAX},
        {"context", s->context, 1, MAX},
        {"expert", s->expert, 1, MAX},
        {"interleave", s->interleave, 1, DRY_MODEL_LAYERS_MAX},
        {"requests", s->requests, 1, MAX},
        {"lora_rank", s->lora_rank, 0, MAX},
        {"mask_bytes", s->mask_bytes, 1, 8},
        {"context_bytes", s->context_bytes, 0, DRYI_SUM_MAX},
        {"communication_bytes", s->communication_bytes, 0, MAX},
        {"workspace_bytes", s->workspace_bytes, 0, MAX},
    };
    return check_fields(fields, COUNT_OF(fields), err);
}

static enum dry_status
check_conv_setup(const struct dry_run_setup *s, struct dry_error *err)
{
    if (s->checkpointing != DRY_CHECKPOINTING_NONE)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "checkpointing %s: of transformers only; a list of layers is a "
                         "chain for a plan",
                         dry_checkpointing_name(s->checkpointing));
    if (s->is_inference || s->lora_rank)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "a KV cache and adapters are of transformers only");
    if (s->tensor > 1 || s->pipeline > 1 || s->context > 1 || s->expert > 1 ||
        s->interleave > 1)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "of a list of layers only the data are shared among devices");
    return DRY_OK;
}

static enum dry_status
check_against(const struct dry_run_setup *s, const struct dry_model *m,
              struct dry_error *err)
{
    const struct field fields[] = {
        {"tensor (heads)", s->tensor, 1, m->heads},
        {"context (sequence)", s->context, 1, s->sequence},
        {"expert (experts)", s->expert, 1, m->experts ? m->experts : 1},
        {"sequence (learned positions)", s->sequence, 1,
         m->positions ? m->positions : MAX},
        {"pipeline (layers)", s->pipeline, 1, m->layers},
        {"interleave (layers)", s->interleave, 1, m->layers / s->pipeline},
    };
    struct dry_error why;
    if (check_fields(fields, COUNT_OF(fields), &why) != DRY_OK)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "%s", why.text);
    if (s->expert > s->data)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "expert %llu: experts are spread over the data-parallel group, "
                         "which has %llu",
                         (unsigned long long)s->expert, (unsigned long long)s->data);
    if (s->stage != DRY_STAGE_WORST && s->stage >= s->pipeline)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "stage %llu: there are %llu, from 0",
                         (unsigned long long)s->stage, (unsigned long long)s->pipeline);
    if (s->interleave > 1 && s->pipeline == 1)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "interleave: of a pipeline only");
    if (m->encoder_layers && (s->pipeline > 1 || s->context > 1))
        return dryi_fail(err, DRY_ERR_ARGUMENT, "%s: of one stack of layers only",
                         s->pipeline > 1 ? "pipeline" : "context");
    if (m->quantization && !s->is_inference && s->lora_rank == 0)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "lora_rank: quantized weights are not trained themselves; "
                         "adapters are, or there is inference");
    if (s->is_inference && s->pipeline > 1)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "pipeline: of training only; inference has tensor");
    return DRY_OK;
}

enum dry_status
dryi_setup_check(struct dry_run_setup *s, const struct dry_model *m,
                 struct dry_error *err)
{
    enum dry_status status = check_degrees(s, err);
    if (status != DRY_OK)
        return status;
    if (m->kind == DRY_MODEL_CONV)
        return check_conv_setup(s, err);
    return check_against(s, m, err);
}
