/* SPDX-License-Identifier: Apache-2.0 */
/* The idea stands in model_family.h. */
#include "plan/model_family.h"

#include <string.h>

#include "base/term.h"

static const struct model_family families[] = {
    {.type = "llama", .is_gated = true, .is_rms = true},
    {.type = "mistral", .is_gated = true, .is_rms = true},
    {.type = "mixtral", .is_gated = true, .is_rms = true},
    {.type = "phi3", .is_gated = true, .is_rms = true},
    {.type = "granite", .is_gated = true, .is_rms = true},
    {.type = "qwen2", .is_gated = true, .is_rms = true, .has_qkv_bias = true},
    {.type = "qwen2_moe",
     .is_gated = true,
     .is_rms = true,
     .has_qkv_bias = true,
     .has_shared_gate = true,
     .read_rest = model_read_sparse},
    {.type = "qwen3", .is_gated = true, .is_rms = true, .has_qk_norm = true},
    {.type = "qwen3_moe",
     .is_gated = true,
     .is_rms = true,
     .has_qk_norm = true,
     .read_rest = model_read_sparse},
    {.type = "deepseek_v2",
     .is_gated = true,
     .is_rms = true,
     .read_rest = model_read_deepseek},
    {.type = "deepseek_v3",
     .is_gated = true,
     .is_rms = true,
     .has_router_bias = true,
     .read_rest = model_read_deepseek},
    {.type = "gpt_oss",
     .is_gated = true,
     .is_rms = true,
     .has_bias = true,
     .has_router_bias = true,
     .has_sinks = true,
     .has_windows = true,
     .head_dim = 64},
    {.type = "gemma",
     .is_gated = true,
     .is_rms = true,
     .is_tied = true,
     .head_dim = 256,
     .read_rest = model_read_gemma},
    {.type = "gemma2",
     .is_gated = true,
     .is_rms = true,
     .is_tied = true,
     .has_own_output_norms = true,
     .has_windows = true,
     .heads = 8,
     .kv_heads = 4,
     .head_dim = 256,
     .vocab = 256000,
     .read_rest = model_read_gemma},
    {.type = "gemma3_text",
     .is_gated = true,
     .is_rms = true,
     .is_tied = true,
     .has_own_output_norms = true,
     .has_qk_norm = true,
     .has_windows = true,
     .heads = 8,
     .kv_heads = 4,
     .head_dim = 256,
     .vocab = 262208,
     .read_rest = model_read_gemma},
    {.type = "gpt2",
     .is_tied = true,
     .has_bias = true,
     .has_positions = true,
     .has_dropout = true},
    {.type = "gpt_bigcode",
     .is_tied = true,
     .has_bias = true,
     .has_positions = true,
     .has_dropout = true,
     .read_rest = model_read_bigcode},
    {.type = "starcoder2",
     .is_tied = true,
     .has_bias = true,
     .read_rest = model_read_starcoder},
    {.type = "stablelm", .is_gated = true, .read_rest = model_read_stablelm},
    {.type = "gpt_neox", .has_bias = true, .is_parallel = true},
    {.type = "phi",
     .has_bias = true,
     .is_parallel = true,
     .has_one_norm = true,
     .has_head_bias = true},
    {.type = "cohere",
     .is_gated = true,
     .is_tied = true,
     .is_parallel = true,
     .has_one_norm = true,
     .has_no_norm_bias = true,
     .read_rest = model_read_cohere},
    {.type = "falcon",
     .is_tied = true,
     .is_parallel = true,
     .has_one_norm = true,
     .read_rest = model_read_falcon},
    {.type = "bloom", .is_tied = true, .has_bias = true, .has_embedding_norm = true},
    {.type = "opt",
     .is_tied = true,
     .has_bias = true,
     .has_positions = true,
     .has_dropout = true,
     .activation = DRY_ACT_RELU,
     .read_rest = model_read_opt},
    {.type = "bert",
     .is_encoder = true,
     .is_tied = true,
     .has_bias = true,
     .has_positions = true,
     .has_dropout = true},
    {.type = "roberta",
     .is_encoder = true,
     .is_tied = true,
     .has_bias = true,
     .has_positions = true,
     .has_dropout = true},
    {.type = "vit",
     .is_encoder = true,
     .is_pre_norm = true,
     .has_bias = true,
     .read_sizes = model_size_vit,
     .read_rest = model_read_vit},
    {.type = "t5",
     .is_rms = true,
     .is_tied = true,
     .has_dropout = true,
     .has_encoder = true,
     .read_sizes = model_size_t5,
     .read_rest = model_read_t5},
    {.type = "whisper",
     .is_tied = true,
     .has_bias = true,
     .has_encoder = true,
     .read_sizes = model_size_whisper},
};

struct model_family
model_family_find(struct model_reader *r)
{
    const char *type = model_read_text(r, "model_type");
    const json_t *is_both = model_get(r, "is_encoder_decoder");
    const struct model_family *found = NULL;
    for (size_t i = 0; type && i < sizeof families / sizeof *families; i++) {
        if (strcmp(families[i].type, type) == 0)
            found = &families[i];
    }
    if (is_both && json_is_true(is_both) && !(found && found->has_encoder))
        model_refuse(r, "is_encoder_decoder",
                     "an encoder or a decoder alone, or t5 or whisper", is_both);
    if (found)
        return *found;
    if (type)
        term_make_printable(r->unknown_family, sizeof r->unknown_family, type,
                            strlen(type));
    bool is_rms = model_get(r, "rms_norm_eps") != NULL;
    return (struct model_family){
        .is_gated = is_rms, .is_rms = is_rms, .has_bias = !is_rms};
}

void
model_family_apply(const struct model_family *f, struct dry_model *m)
{
    bool is_behind = f->is_encoder && !f->is_pre_norm;
    bool is_gelu = f->read_rest == model_read_gemma || !f->is_gated;
    m->kind = f->is_encoder ? DRY_MODEL_ENCODER : DRY_MODEL_DECODER;
    m->norm = f->is_rms ? DRY_NORM_RMS : DRY_NORM_LAYER;
    m->activation = f->activation ? f->activation : is_gelu ? DRY_ACT_GELU : DRY_ACT_SILU;
    m->is_gated = f->is_gated;
    m->is_tied = f->is_tied;
    m->is_parallel = f->is_parallel;
    m->is_post_norm = is_behind;
    m->has_embedding_norm = is_behind || f->has_embedding_norm;
    m->has_no_head = m->has_pooler = f->is_encoder;
    m->has_head_bias = f->has_head_bias;
    m->has_qkv_bias = f->has_bias || f->has_qkv_bias;
    m->has_out_bias = m->has_mlp_bias = f->has_bias;
    m->has_qk_norm = f->has_qk_norm;
    m->has_dropout = f->has_dropout;
    m->has_router_bias = f->has_router_bias;
    m->has_one_norm = f->has_one_norm;
    m->has_no_norm_bias = f->has_no_norm_bias;
    m->has_own_output_norms = f->has_own_output_norms;
    m->has_sinks = f->has_sinks;
    m->has_shared_gate = f->has_shared_gate;
    m->heads = f->heads;
    m->kv_heads = f->kv_heads;
    m->head_dim = f->head_dim;
    m->vocab = f->vocab;
}
