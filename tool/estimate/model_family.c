/* SPDX-License-Identifier: Apache-2.0 */
/* See model_family.h. */
#include "estimate/model_family.h"

#include <string.h>

#include "base/term.h"

/* --- keys of single families -------------------------------------------------------------- */

static void
read_all(struct model_reader *r, const struct model_number *numbers, size_t count,
         struct dry_model *m)
{
    for (size_t i = 0; i < count; i++)
        model_read_named(r, &numbers[i], m);
}

/* --- decoders ----------------------------------------------------------------------------- */

/* Read Falcon: one norm and one key head (7B), or two norms and several (40B), depending
   on the architecture. */
static void
read_falcon(struct model_reader *r, struct dry_model *m)
{
    bool has_bias = false, is_new = false, is_one = true, is_parallel = true;
    uint64_t norms = 0;
    model_read_bool(r, "bias", &has_bias);
    model_read_bool(r, "new_decoder_architecture", &is_new);
    model_read_bool(r, "multi_query", &is_one);
    model_read_bool(r, "parallel_attn", &is_parallel);
    model_read_number(r, "num_ln_in_parallel_attn", &norms);
    m->has_qkv_bias = m->has_out_bias = m->has_mlp_bias = has_bias;
    m->is_parallel = is_parallel || is_new;
    m->has_one_norm = m->is_parallel && (is_new ? norms == 1 : true);
    m->kv_heads = is_new || !is_one ? m->heads : 1;
    if (is_new)
        model_read_number(r, "num_kv_heads", &m->kv_heads);
}

/* Read OPT, whose position table has two extra rows. */
static void
read_opt(struct model_reader *r, struct dry_model *m)
{
    uint64_t width = m->hidden;
    bool has_bias = true, is_before = true;
    model_read_number(r, "word_embed_proj_dim", &width);
    model_read_bool(r, "enable_bias", &has_bias);
    model_read_bool(r, "do_layer_norm_before", &is_before);
    if (width != m->hidden)
        model_refuse(r, "word_embed_proj_dim", "hidden_size, without a projection",
                     model_get(r, "word_embed_proj_dim"));
    if (!is_before)
        model_refuse(r, "do_layer_norm_before", "true",
                     model_get(r, "do_layer_norm_before"));
    m->has_qkv_bias = m->has_out_bias = m->has_mlp_bias = has_bias;
    m->positions += 2;
}

/* Read Gemma. Logits are capped in Gemma 2 by default, and in others if the configuration
   has a number; an explicit null turns capping off. */
static void
read_gemma(struct model_reader *r, struct dry_model *m)
{
    const char *type = model_read_text(r, "model_type");
    bool is_second = type && strcmp(type, "gemma2") == 0;
    bool is_said = json_object_get(r->object, "final_logit_softcapping") != NULL;
    m->has_capped_logits =
        is_said ? model_get(r, "final_logit_softcapping") != NULL : is_second;
}

static void
read_cohere(struct model_reader *r, struct dry_model *m)
{
    bool has_norm = false;
    (void)m;
    model_read_bool(r, "use_qk_norm", &has_norm);
    if (has_norm)
        model_refuse(r, "use_qk_norm", "false", model_get(r, "use_qk_norm"));
}

static void
read_bigcode(struct model_reader *r, struct dry_model *m)
{
    bool is_one = true;
    model_read_bool(r, "multi_query", &is_one);
    m->kv_heads = is_one ? 1 : m->heads;
}

/* Refuse layers without experts in the middle of a model: they are not modelled. */
static void
read_sparse(struct model_reader *r, struct dry_model *m)
{
    uint64_t step = 1;
    const json_t *dense = model_get(r, "mlp_only_layers");
    model_read_number(r, "decoder_sparse_step", &step);
    if (step != 1)
        model_refuse(r, "decoder_sparse_step", "1", model_get(r, "decoder_sparse_step"));
    if (dense && (!json_is_array(dense) || json_array_size(dense)))
        model_refuse(r, "mlp_only_layers", "an empty list", dense);
    (void)m;
}

static void
read_deepseek(struct model_reader *r, struct dry_model *m)
{
    uint64_t further = 0, step = 1;
    m->is_router_bias_wide = m->has_router_bias;
    model_read_number(r, "moe_layer_freq", &step);
    if (step != 1)
        model_refuse(r, "moe_layer_freq", "1", model_get(r, "moe_layer_freq"));
    if (model_read_number(r, "num_nextn_predict_layers", &further) && further)
        model_note(r,
                   "%llu layer%s that predict%s further tokens, which Transformers "
                   "does not load",
                   (unsigned long long)further, further == 1 ? "" : "s",
                   further == 1 ? "s" : "");
}

static void
read_stablelm(struct model_reader *r, struct dry_model *m)
{
    bool has_norm = false;
    model_read_bool(r, "use_qkv_bias", &m->has_qkv_bias);
    model_read_bool(r, "qk_layernorm", &has_norm);
    if (has_norm)
        model_refuse(r, "qk_layernorm", "false", model_get(r, "qk_layernorm"));
    m->has_one_norm = m->is_parallel;
}

static void
read_starcoder(struct model_reader *r, struct dry_model *m)
{
    bool has_bias = true;
    model_read_bool(r, "use_bias", &has_bias);
    m->has_qkv_bias = m->has_out_bias = m->has_mlp_bias = has_bias;
}

/* --- images ------------------------------------------------------------------------------- */

static void
size_vit(struct model_reader *r, struct dry_model *m)
{
    static const struct model_number numbers[] = {
        {{"num_hidden_layers"}, MODEL_FIELD(layers), true},
        {{"hidden_size"}, MODEL_FIELD(hidden), true},
        {{"num_attention_heads"}, MODEL_FIELD(heads), true},
        {{"intermediate_size"}, MODEL_FIELD(ffn), true},
        {{"image_size"}, MODEL_FIELD(height), true},
        {{"patch_size"}, MODEL_FIELD(patch), true},
        {{"num_channels"}, MODEL_FIELD(channels), true},
    };
    m->height = 224;
    m->patch = 16;
    m->channels = 3;
    read_all(r, numbers, sizeof numbers / sizeof *numbers, m);
    m->width = m->height;
    if (r->status == DRY_OK && m->patch <= m->height)
        m->positions = (m->height / m->patch) * (m->width / m->patch) + 1;
}

/* Read ViT. The number of labels is the size of a map; Transformers' default is 2. */
static void
read_vit(struct model_reader *r, struct dry_model *m)
{
    const json_t *map = model_get(r, "id2label");
    const json_t *list = model_get(r, "architectures");
    const char *name = json_string_value(json_array_get(list, 0));
    model_read_bool(r, "qkv_bias", &m->has_qkv_bias);
    m->is_tied = false;
    if (!name || !strstr(name, "ForImageClassification"))
        return;
    m->vocab = json_object_size(map) ? json_object_size(map) : 2;
    model_read_number(r, "num_labels", &m->vocab);
    m->has_pooler = m->has_no_head = false;
    m->has_head_bias = true;
}

/* --- encoders with a decoder -------------------------------------------------------------- */

static void
size_t5(struct model_reader *r, struct dry_model *m)
{
    static const struct model_number numbers[] = {
        {{"num_layers"}, MODEL_FIELD(encoder_layers), true},
        {{"num_decoder_layers", "num_layers"}, MODEL_FIELD(layers), true},
        {{"d_model"}, MODEL_FIELD(hidden), true},
        {{"num_heads"}, MODEL_FIELD(heads), true},
        {{"d_kv"}, MODEL_FIELD(head_dim), true},
        {{"d_ff"}, MODEL_FIELD(ffn), true},
        {{"vocab_size"}, MODEL_FIELD(vocab), true},
        {{"relative_attention_num_buckets"}, MODEL_FIELD(position_buckets), true},
    };
    m->position_buckets = 32;
    read_all(r, numbers, sizeof numbers / sizeof *numbers, m);
    m->encoder_ffn = m->ffn;
}

static void
read_t5(struct model_reader *r, struct dry_model *m)
{
    const char *name = model_read_text(r, "feed_forward_proj");
    const json_t *rate = model_get(r, "dropout_rate");
    if (rate)
        m->has_dropout = json_number_value(rate) > 0;
    m->is_gated = name && strcmp(name, "gated-gelu") == 0;
    m->activation = m->is_gated ? DRY_ACT_GELU_COMPOSED : DRY_ACT_RELU;
    if (name && !m->is_gated && strcmp(name, "relu") != 0)
        model_refuse(r, "feed_forward_proj", "relu or gated-gelu",
                     model_get(r, "feed_forward_proj"));
    model_note(r, "the bias of positions in the scores: Transformers computes T5's "
                  "attention as with --attention eager-fp32");
}

static void
size_whisper(struct model_reader *r, struct dry_model *m)
{
    static const struct model_number numbers[] = {
        {{"encoder_layers"}, MODEL_FIELD(encoder_layers), true},
        {{"decoder_layers"}, MODEL_FIELD(layers), true},
        {{"d_model"}, MODEL_FIELD(hidden), true},
        {{"decoder_attention_heads"}, MODEL_FIELD(heads), true},
        {{"encoder_ffn_dim"}, MODEL_FIELD(encoder_ffn), true},
        {{"decoder_ffn_dim"}, MODEL_FIELD(ffn), true},
        {{"vocab_size"}, MODEL_FIELD(vocab), true},
        {{"max_source_positions"}, MODEL_FIELD(source), true},
        {{"max_target_positions"}, MODEL_FIELD(positions), true},
        {{"num_mel_bins"}, MODEL_FIELD(audio_channels), true},
    };
    uint64_t heads = 0;
    read_all(r, numbers, sizeof numbers / sizeof *numbers, m);
    m->has_no_key_bias = true;
    if (model_read_number(r, "encoder_attention_heads", &heads) && heads != m->heads)
        model_refuse(r, "encoder_attention_heads", "as many as the decoder's",
                     model_get(r, "encoder_attention_heads"));
}

/* --- all of them -------------------------------------------------------------------------- */

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
     .read_rest = read_sparse},
    {.type = "qwen3", .is_gated = true, .is_rms = true, .has_qk_norm = true},
    {.type = "qwen3_moe",
     .is_gated = true,
     .is_rms = true,
     .has_qk_norm = true,
     .read_rest = read_sparse},
    {.type = "deepseek_v2", .is_gated = true, .is_rms = true, .read_rest = read_deepseek},
    {.type = "deepseek_v3",
     .is_gated = true,
     .is_rms = true,
     .has_router_bias = true,
     .read_rest = read_deepseek},
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
     .read_rest = read_gemma},
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
     .read_rest = read_gemma},
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
     .read_rest = read_gemma},
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
     .read_rest = read_bigcode},
    {.type = "starcoder2",
     .is_tied = true,
     .has_bias = true,
     .read_rest = read_starcoder},
    {.type = "stablelm", .is_gated = true, .read_rest = read_stablelm},
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
     .read_rest = read_cohere},
    {.type = "falcon",
     .is_tied = true,
     .is_parallel = true,
     .has_one_norm = true,
     .read_rest = read_falcon},
    {.type = "bloom", .is_tied = true, .has_bias = true, .has_embedding_norm = true},
    {.type = "opt",
     .is_tied = true,
     .has_bias = true,
     .has_positions = true,
     .has_dropout = true,
     .activation = DRY_ACT_RELU,
     .read_rest = read_opt},
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
     .read_sizes = size_vit,
     .read_rest = read_vit},
    {.type = "t5",
     .is_rms = true,
     .is_tied = true,
     .has_dropout = true,
     .has_encoder = true,
     .read_sizes = size_t5,
     .read_rest = read_t5},
    {.type = "whisper",
     .is_tied = true,
     .has_bias = true,
     .has_encoder = true,
     .read_sizes = size_whisper},
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
    bool is_gelu = f->read_rest == read_gemma || !f->is_gated;
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
