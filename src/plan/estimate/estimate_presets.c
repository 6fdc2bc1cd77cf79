/* SPDX-License-Identifier: Apache-2.0 */
/* Models known by name, from the configurations that their authors publish. */
#include <string.h>

#include "base/sized.h"
#include "plan/estimate/estimate_inside.h"

struct preset {
    const char *name;
    void (*fill)(struct dry_model *model, const struct preset *preset);
    uint64_t layers, hidden, heads, kv_heads, ffn, vocab;
};

static void
fill_sizes(struct dry_model *m, const struct preset *p)
{
    m->layers = p->layers;
    m->hidden = p->hidden;
    m->heads = p->heads;
    m->kv_heads = p->kv_heads;
    m->ffn = p->ffn;
    m->vocab = p->vocab;
}

static void
fill_gpt2(struct dry_model *m, const struct preset *p)
{
    fill_sizes(m, p);
    m->positions = 1024;
    m->activation = DRY_ACT_GELU_COMPOSED;
    m->is_tied = m->has_dropout = true;
    m->has_qkv_bias = m->has_out_bias = m->has_mlp_bias = true;
}

static void
fill_llama(struct dry_model *m, const struct preset *p)
{
    fill_sizes(m, p);
    m->norm = DRY_NORM_RMS;
    m->activation = DRY_ACT_SILU;
    m->is_gated = true;
}

static void
fill_qwen2(struct dry_model *m, const struct preset *p)
{
    fill_llama(m, p);
    m->has_qkv_bias = true;
}

static void
fill_mixtral(struct dry_model *m, const struct preset *p)
{
    fill_llama(m, p);
    m->experts = 8;
    m->experts_per_token = 2;
}

static void
fill_pythia(struct dry_model *m, const struct preset *p)
{
    fill_sizes(m, p);
    m->is_parallel = true;
    m->has_qkv_bias = m->has_out_bias = m->has_mlp_bias = true;
}

static void
fill_bert(struct dry_model *m, const struct preset *p)
{
    fill_sizes(m, p);
    m->kind = DRY_MODEL_ENCODER;
    m->positions = 512;
    m->token_types = 2;
    m->is_post_norm = m->has_embedding_norm = m->has_pooler = m->has_no_head = true;
    m->has_qkv_bias = m->has_out_bias = m->has_mlp_bias = m->has_dropout = true;
}

static void
fill_deepseek(struct dry_model *m, const struct preset *p)
{
    fill_llama(m, p);
    m->experts = 256;
    m->experts_per_token = 8;
    m->expert_ffn = 2048;
    m->shared_ffn = 2048;
    m->dense_layers = 3;
    m->q_rank = 1536;
    m->kv_rank = 512;
    m->rope_dim = 64;
    m->nope_dim = m->value_dim = 128;
    m->has_router_bias = m->is_router_bias_wide = true;
}

static const struct preset presets[] = {
    {"gpt2", fill_gpt2, 12, 768, 12, 12, 3072, 50257},
    {"gpt2-medium", fill_gpt2, 24, 1024, 16, 16, 4096, 50257},
    {"gpt2-large", fill_gpt2, 36, 1280, 20, 20, 5120, 50257},
    {"gpt2-xl", fill_gpt2, 48, 1600, 25, 25, 6400, 50257},
    {"llama-2-7b", fill_llama, 32, 4096, 32, 32, 11008, 32000},
    {"llama-2-13b", fill_llama, 40, 5120, 40, 40, 13824, 32000},
    {"llama-2-70b", fill_llama, 80, 8192, 64, 8, 28672, 32000},
    {"llama-3-8b", fill_llama, 32, 4096, 32, 8, 14336, 128256},
    {"llama-3-70b", fill_llama, 80, 8192, 64, 8, 28672, 128256},
    {"mistral-7b", fill_llama, 32, 4096, 32, 8, 14336, 32000},
    {"mixtral-8x7b", fill_mixtral, 32, 4096, 32, 8, 14336, 32000},
    {"qwen2-7b", fill_qwen2, 28, 3584, 28, 4, 18944, 152064},
    {"pythia-160m", fill_pythia, 12, 768, 12, 12, 3072, 50304},
    {"bert-base", fill_bert, 12, 768, 12, 12, 3072, 30522},
    {"bert-large", fill_bert, 24, 1024, 16, 16, 4096, 30522},
    {"deepseek-v3", fill_deepseek, 61, 7168, 128, 128, 18432, 129280},
};
#define PRESET_COUNT (sizeof presets / sizeof *presets)

enum dry_status
dry_model_find(const char *name, struct dry_model *model)
{
    for (size_t i = 0; i < PRESET_COUNT; i++) {
        if (strcmp(presets[i].name, name) == 0) {
            struct dry_model found;
            dry_model_init(&found);
            presets[i].fill(&found, &presets[i]);
            return dryi_sized_give(model, &found, sizeof found);
        }
    }
    return DRY_ERR_ARGUMENT;
}

const char *
dry_model_get_name(size_t index)
{
    return index < PRESET_COUNT ? presets[index].name : NULL;
}
