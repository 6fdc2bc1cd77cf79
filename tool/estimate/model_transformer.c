/* SPDX-License-Identifier: Apache-2.0 */
/* Read the config.json of Transformers; see model_json.h. */
#include <string.h>

#include "base/term.h"
#include "estimate/model_family.h"
#include "estimate/model_reader.h"

/* --- the keys of Transformers ------------------------------------------------------------- */

static void
read_sizes(struct model_reader *r, struct dry_model *m)
{
    static const struct model_number numbers[] = {
        {{"num_hidden_layers", "n_layer", "num_layers", "n_layers"},
         MODEL_FIELD(layers),
         true},
        {{"hidden_size", "n_embd", "d_model", "n_embed"}, MODEL_FIELD(hidden), true},
        {{"num_attention_heads", "n_head", "num_heads", "n_heads"},
         MODEL_FIELD(heads),
         true},
        {{"vocab_size", NULL}, MODEL_FIELD(vocab), true},
        {{"num_key_value_heads", "n_kv_heads"}, MODEL_FIELD(kv_heads), false},
        {{"head_dim", NULL}, MODEL_FIELD(head_dim), false},
        {{"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"},
         MODEL_FIELD(ffn),
         false},
        {{"type_vocab_size", NULL}, MODEL_FIELD(token_types), false},
        {{"num_local_experts", "num_experts", "n_routed_experts"},
         MODEL_FIELD(experts),
         false},
        {{"num_experts_per_tok", NULL}, MODEL_FIELD(experts_per_token), false},
        {{"moe_intermediate_size", NULL}, MODEL_FIELD(expert_ffn), false},
        {{"shared_expert_intermediate_size", NULL}, MODEL_FIELD(shared_ffn), false},
        {{"first_k_dense_replace", NULL}, MODEL_FIELD(dense_layers), false},
        {{"q_lora_rank", NULL}, MODEL_FIELD(q_rank), false},
        {{"kv_lora_rank", NULL}, MODEL_FIELD(kv_rank), false},
        {{"qk_rope_head_dim", NULL}, MODEL_FIELD(rope_dim), false},
        {{"qk_nope_head_dim", NULL}, MODEL_FIELD(nope_dim), false},
        {{"v_head_dim", NULL}, MODEL_FIELD(value_dim), false},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        model_read_named(r, &numbers[i], m);
    if (m->ffn == 0)
        m->ffn = 4 * m->hidden;
}

/* Count the layers that attend to all tokens: as listed in "layer_types"; else every n-th
   in Gemma, every second in other families with windows, and Qwen's first layers. */
static void
read_global(struct model_reader *r, const struct model_family *f, struct dry_model *m)
{
    const json_t *types = model_get(r, "layer_types"), *type;
    uint64_t every = f->vocab == 262208 ? 6 : 2, first = 0;
    size_t index;
    if (m->window == 0)
        return;
    if (types && (!json_is_array(types) || json_array_size(types) != m->layers)) {
        model_refuse(r, "layer_types", "a list with a text for each layer", types);
        return;
    }
    json_array_foreach(types, index, type)
    {
        const char *name = json_string_value(type);
        m->global_layers += name && strcmp(name, "full_attention") == 0;
    }
    if (types)
        return;
    if (f->has_windows) {
        model_read_number(r, "sliding_window_pattern", &every);
        m->global_layers = every ? m->layers / every : 0;
    } else if (model_read_number(r, "max_window_layers", &first)) {
        m->global_layers = first < m->layers ? first : m->layers;
    }
}

/* Read the number of learned positions, the attention window, and the shared experts. */
static void
read_derived(struct model_reader *r, const struct model_family *f, struct dry_model *m)
{
    static const struct model_number positions = {
        {"n_positions", "max_position_embeddings", "n_ctx"},
        MODEL_FIELD(positions),
        true};
    static const struct model_number window = {
        {"sliding_window"}, MODEL_FIELD(window), false};
    uint64_t shared = 0;
    bool has_window = true;
    if (f->has_positions)
        model_read_named(r, &positions, m);
    model_read_bool(r, "use_sliding_window", &has_window);
    if (has_window)
        model_read_named(r, &window, m);
    read_global(r, f, m);
    if (model_read_number(r, "n_shared_experts", &shared) &&
        __builtin_mul_overflow(shared, m->expert_ffn, &m->shared_ffn))
        m->shared_ffn = UINT64_MAX; /* dry_estimate_create() refuses this */
    if (m->experts == 0)
        m->expert_ffn = m->shared_ffn = m->dense_layers = m->experts_per_token = 0;
}

static void
read_activation(struct model_reader *r, struct dry_model *m)
{
    static const struct {
        const char *name;
        enum dry_activation activation;
    } names[] = {
        {"gelu", DRY_ACT_GELU},
        {"gelu_pytorch_tanh", DRY_ACT_GELU},
        {"silu", DRY_ACT_SILU},
        {"swish", DRY_ACT_SILU},
        {"relu", DRY_ACT_RELU},
        {"gelu_new", DRY_ACT_GELU_COMPOSED},
        {"gelu_fast", DRY_ACT_GELU_COMPOSED},
        {"quick_gelu", DRY_ACT_QUICK_GELU},
    };
    static const char *const keys[] = {"hidden_act", "activation_function",
                                       "hidden_activation", "activation"};
    const char *name = NULL, *key = keys[0];
    for (size_t i = 0; i < sizeof keys / sizeof *keys && !name; i++) {
        name = model_read_text(r, keys[i]);
        key = keys[i];
    }
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i].name, name) == 0) {
            m->activation = names[i].activation;
            return;
        }
    }
    if (name)
        model_refuse(
            r, key,
            "gelu, gelu_pytorch_tanh, gelu_new, gelu_fast, quick_gelu, silu or relu",
            model_get(r, key));
}

/* Read dropout: present if a probability is positive; without keys, as in the family. */
static void
read_dropout(struct model_reader *r, struct dry_model *m)
{
    static const char *const keys[] = {
        "resid_pdrop",         "attn_pdrop",        "embd_pdrop",
        "hidden_dropout_prob", "attention_dropout", "attention_probs_dropout_prob",
        "hidden_dropout",
    };
    bool is_said = false, is_positive = false;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *value = model_get(r, keys[i]);
        if (!value)
            continue;
        double p = json_is_number(value) ? json_number_value(value) : -1;
        if (p < 0 || p > 1) {
            model_refuse(r, keys[i], "a number from 0 to 1", value);
            return;
        }
        is_said = true;
        is_positive = is_positive || p > 0;
    }
    if (is_said)
        m->has_dropout = is_positive;
}

static void
read_switches(struct model_reader *r, struct dry_model *m)
{
    bool has_bias = m->has_qkv_bias && m->has_out_bias;
    model_read_bool(r, "tie_word_embeddings", &m->is_tied);
    model_read_bool(r, "mlp_bias", &m->has_mlp_bias);
    model_read_bool(r, "use_parallel_residual", &m->is_parallel);
    model_read_bool(r, "attention_bias", &has_bias);
    if (model_get(r, "attention_bias"))
        m->has_qkv_bias = m->has_out_bias = has_bias;
}

/* Add a note if the model's head is not one that the estimate models. */
static void
note_head(struct model_reader *r, const char *name)
{
    static const char *const known[] = {"ForCausalLM",
                                        "LMHeadModel",
                                        "Model",
                                        "ForMaskedLM",
                                        "ForConditionalGeneration",
                                        "ForImageClassification"};
    char text[48];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strstr(name, known[i]))
            return;
    }
    term_make_printable(text, sizeof text, name, strlen(name));
    model_note(r, "the own head of %s", text);
}

/* Read the class, such as "BertForMaskedLM" or "LlamaModel", which tells what follows the
   last layer. */
static void
read_architecture(struct model_reader *r, struct dry_model *m)
{
    const json_t *list = model_get(r, "architectures");
    if (!list)
        return;
    const char *name = json_string_value(json_array_get(list, 0));
    if (!json_is_array(list) || (json_array_size(list) && !name)) {
        model_refuse(r, "architectures", "a list of texts", list);
        return;
    }
    size_t length = name ? strlen(name) : 0;
    if (length > 5 && strcmp(name + length - 5, "Model") == 0 && !strstr(name, "LMHead"))
        m->has_no_head = true;
    if (name && m->kind == DRY_MODEL_ENCODER && strstr(name, "MaskedLM")) {
        m->has_mlm_head = m->has_head_bias = true;
        m->has_no_head = m->has_pooler = false;
    }
    if (name)
        note_head(r, name);
}

/* Add a note for vision and audio models, which the estimate does not cover. */
static void
note_towers(struct model_reader *r)
{
    static const char *const keys[] = {"vision_config", "audio_config"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (json_is_object(model_get(r, keys[i])))
            model_note(r, "the model of %s and what joins it to the text", keys[i]);
    }
}

/* --- our own object ----------------------------------------------------------------------- */

static void
read_kinds(struct model_reader *r, struct dry_model *m)
{
    const char *kind = model_read_text(r, "kind"), *norm = model_read_text(r, "norm");
    if (kind && strcmp(kind, "decoder") != 0 && strcmp(kind, "encoder") != 0)
        model_refuse(r, "kind", "decoder or encoder", model_get(r, "kind"));
    else if (kind)
        m->kind = kind[0] == 'd' ? DRY_MODEL_DECODER : DRY_MODEL_ENCODER;
    if (norm && strcmp(norm, "layer") != 0 && strcmp(norm, "rms") != 0)
        model_refuse(r, "norm", "layer or rms", model_get(r, "norm"));
    else if (norm)
        m->norm = norm[0] == 'l' ? DRY_NORM_LAYER : DRY_NORM_RMS;
}

static void
read_ours(struct model_reader *r, struct dry_model *m)
{
    json_t *ours = model_get(r, "drystone");
    bool has_head = !m->has_no_head;
    if (!ours)
        return;
    if (!json_is_object(ours)) {
        model_refuse(r, "drystone", "an object", ours);
        return;
    }
    model_enter(r, ours, "drystone.");
    read_kinds(r, m);
    read_activation(r, m);
    model_read_number(r, "positions", &m->positions);
    model_read_bool(r, "gated", &m->is_gated);
    model_read_bool(r, "tied", &m->is_tied);
    model_read_bool(r, "parallel", &m->is_parallel);
    model_read_bool(r, "post_norm", &m->is_post_norm);
    model_read_bool(r, "qkv_bias", &m->has_qkv_bias);
    model_read_bool(r, "out_bias", &m->has_out_bias);
    model_read_bool(r, "mlp_bias", &m->has_mlp_bias);
    model_read_bool(r, "head_bias", &m->has_head_bias);
    model_read_bool(r, "qk_norm", &m->has_qk_norm);
    model_read_bool(r, "embedding_norm", &m->has_embedding_norm);
    model_read_bool(r, "pooler", &m->has_pooler);
    model_read_bool(r, "dropout", &m->has_dropout);
    model_read_bool(r, "head", &has_head);
    m->has_no_head = !has_head;
}

/* Refuse configurations of Diffusers: their keys and some layers are not supported. */
static void
refuse_diffusers(struct model_reader *r)
{
    const json_t *name = model_get(r, "_class_name");
    if (json_is_string(name) && !model_get(r, "model_type"))
        model_refuse(r, "_class_name", "a configuration of Transformers", name);
}

void
model_read_transformer(struct model_reader *r, struct dry_model *m)
{
    json_t *text = model_get(r, "text_config"), *outer = r->object;
    refuse_diffusers(r);
    note_towers(r);
    if (json_is_object(text) && !model_get(r, "hidden_size"))
        model_enter(r, text, "text_config.");
    struct model_family family = model_family_find(r);
    model_family_apply(&family, m);
    if (family.read_sizes)
        family.read_sizes(r, m);
    else
        read_sizes(r, m);
    if (!family.has_encoder && !family.read_sizes)
        read_derived(r, &family, m);
    read_activation(r, m);
    read_dropout(r, m);
    read_switches(r, m);
    if (family.read_rest)
        family.read_rest(r, m);
    if (r->object != outer)
        model_read_quantization(r, m);
    model_enter(r, outer, "");
    model_read_bool(r, "tie_word_embeddings", &m->is_tied);
    model_read_quantization(r, m);
    read_architecture(r, m);
    read_ours(r, m);
}
