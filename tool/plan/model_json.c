/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idea stands in model_json.h. A table of families says what configurations leave
 * unsaid; the first wrong value stays as the failure.
 */
#include "plan/model_json.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/fail.h"
#include "base/json_in.h"
#include "base/term.h"

#define NUMBER_MAX (INT64_C(1) << 40)
#define PATH_BYTES 64

/* An object under way, its path, and the first thing that was wrong. */
struct reader {
    json_t *object;
    char path[PATH_BYTES]; /* "", "text_config.", "layers[3]." */
    char unknown_family[MODEL_FAMILY_BYTES];
    struct dry_error *err;
    enum dry_status status;
};

/* --- values ------------------------------------------------------------------------------- */

/* Describe what was found, for a message; texts are cut. */
static void
describe(const json_t *value, char text[48])
{
    static const char *const kinds[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "nothing",
    };
    if (!value)
        snprintf(text, 48, "nothing");
    else if (json_is_integer(value))
        snprintf(text, 48, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        snprintf(text, 48, "%g, which is no integer", json_real_value(value));
    else if (json_is_string(value))
        snprintf(text, 48, "\"%.40s\"", json_string_value(value));
    else
        snprintf(text, 48, "%s", kinds[json_typeof(value)]);
}

static void
refuse(struct reader *r, const char *key, const char *expected, const json_t *found)
{
    char text[48];
    describe(found, text);
    if (r->status == DRY_OK)
        r->status = fail_at(r->err, DRY_ERR_FORMAT, DRY_NO_OFFSET,
                            "%s%s: expected %s, found %s", r->path, key, expected, text);
}

/* NULL where a key is missing or says null. */
static json_t *
get(const struct reader *r, const char *key)
{
    json_t *value = json_object_get(r->object, key);
    return value && !json_is_null(value) ? value : NULL;
}

static bool
read_number(struct reader *r, const char *key, uint64_t *number)
{
    const json_t *value = get(r, key);
    if (!value)
        return false;
    json_int_t found = json_is_integer(value) ? json_integer_value(value) : -1;
    if (found < 0 || found > NUMBER_MAX) {
        refuse(r, key, "a whole number from 0 to 2^40", value);
        return false;
    }
    *number = (uint64_t)found;
    return true;
}

static void
read_bool(struct reader *r, const char *key, bool *is)
{
    const json_t *value = get(r, key);
    if (value && !json_is_boolean(value))
        refuse(r, key, "true or false", value);
    else if (value)
        *is = json_is_true(value);
}

static const char *
read_text(struct reader *r, const char *key)
{
    const json_t *value = get(r, key);
    if (value && !json_is_string(value))
        refuse(r, key, "a text", value);
    return json_string_value(value);
}

/* A number that goes by one of several names; is_needed: of 1 or more. */
struct number {
    const char *keys[4];
    size_t offset; /* in struct dry_model */
    bool is_needed;
};

static void
read_named(struct reader *r, const struct number *n, struct dry_model *model)
{
    uint64_t value = 0;
    bool is_found = false;
    const char *key = n->keys[0];
    for (size_t i = 0; i < 4 && n->keys[i] && !is_found; i++) {
        is_found = read_number(r, n->keys[i], &value);
        key = is_found ? n->keys[i] : key;
    }
    if (is_found)
        memcpy((char *)model + n->offset, &value, sizeof value);
    if (n->is_needed && value == 0)
        refuse(r, key, "a whole number of 1 or more", get(r, key));
}

/* --- families ----------------------------------------------------------------------------- */

/* The things that Transformers' classes do and their configuration need not say. */
struct family {
    const char *type; /* of "model_type" */
    bool is_encoder, is_gated, is_rms, is_tied, has_bias, has_qkv_bias, has_positions;
    bool is_parallel, has_qk_norm, has_dropout, has_router_bias;
};

static const struct family families[] = {
    {.type = "llama", .is_gated = true, .is_rms = true},
    {.type = "mistral", .is_gated = true, .is_rms = true},
    {.type = "mixtral", .is_gated = true, .is_rms = true},
    {.type = "qwen2", .is_gated = true, .is_rms = true, .has_qkv_bias = true},
    {.type = "qwen3", .is_gated = true, .is_rms = true, .has_qk_norm = true},
    {.type = "qwen3_moe", .is_gated = true, .is_rms = true, .has_qk_norm = true},
    {.type = "deepseek_v2", .is_gated = true, .is_rms = true},
    {.type = "deepseek_v3", .is_gated = true, .is_rms = true, .has_router_bias = true},
    {.type = "gpt2",
     .is_tied = true,
     .has_bias = true,
     .has_positions = true,
     .has_dropout = true},
    {.type = "gpt_neox", .has_bias = true, .is_parallel = true},
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
};

/* Another type: as Llama where its keys say RMSNorm, else as GPT-2 without positions. */
static struct family
find_family(struct reader *r)
{
    const char *type = read_text(r, "model_type");
    const json_t *is_both = get(r, "is_encoder_decoder");
    if (is_both && json_is_true(is_both))
        refuse(r, "is_encoder_decoder", "an encoder or a decoder alone", is_both);
    for (size_t i = 0; type && i < sizeof families / sizeof *families; i++) {
        if (strcmp(families[i].type, type) == 0)
            return families[i];
    }
    if (type)
        term_make_printable(r->unknown_family, sizeof r->unknown_family, type,
                            strlen(type));
    bool is_rms = get(r, "rms_norm_eps") != NULL;
    return (struct family){.is_gated = is_rms, .is_rms = is_rms, .has_bias = !is_rms};
}

static void
apply_family(struct dry_model *m, const struct family *f)
{
    m->kind = f->is_encoder ? DRY_MODEL_ENCODER : DRY_MODEL_DECODER;
    m->norm = f->is_rms ? DRY_NORM_RMS : DRY_NORM_LAYER;
    m->activation = f->is_gated ? DRY_ACT_SILU : DRY_ACT_GELU;
    m->is_gated = f->is_gated;
    m->is_tied = f->is_tied;
    m->is_parallel = f->is_parallel;
    m->is_post_norm = m->has_embedding_norm = m->has_pooler = f->is_encoder;
    m->has_no_head = f->is_encoder;
    m->has_qkv_bias = f->has_bias || f->has_qkv_bias;
    m->has_out_bias = m->has_mlp_bias = f->has_bias;
    m->has_qk_norm = f->has_qk_norm;
    m->has_dropout = f->has_dropout;
    m->has_router_bias = f->has_router_bias;
}

/* --- the keys of Transformers ------------------------------------------------------------- */

#define FIELD(name) offsetof(struct dry_model, name)

static void
read_sizes(struct reader *r, struct dry_model *m)
{
    static const struct number numbers[] = {
        {{"num_hidden_layers", "n_layer", "num_layers", "n_layers"}, FIELD(layers), true},
        {{"hidden_size", "n_embd", "d_model", "dim"}, FIELD(hidden), true},
        {{"num_attention_heads", "n_head", "num_heads", "n_heads"}, FIELD(heads), true},
        {{"vocab_size", NULL}, FIELD(vocab), true},
        {{"num_key_value_heads", "n_kv_heads"}, FIELD(kv_heads), false},
        {{"head_dim", NULL}, FIELD(head_dim), false},
        {{"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"},
         FIELD(ffn),
         false},
        {{"type_vocab_size", NULL}, FIELD(token_types), false},
        {{"num_local_experts", "num_experts", "n_routed_experts"}, FIELD(experts), false},
        {{"num_experts_per_tok", NULL}, FIELD(experts_per_token), false},
        {{"moe_intermediate_size", NULL}, FIELD(expert_ffn), false},
        {{"shared_expert_intermediate_size", NULL}, FIELD(shared_ffn), false},
        {{"first_k_dense_replace", NULL}, FIELD(dense_layers), false},
        {{"q_lora_rank", NULL}, FIELD(q_rank), false},
        {{"kv_lora_rank", NULL}, FIELD(kv_rank), false},
        {{"qk_rope_head_dim", NULL}, FIELD(rope_dim), false},
        {{"qk_nope_head_dim", NULL}, FIELD(nope_dim), false},
        {{"v_head_dim", NULL}, FIELD(value_dim), false},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        read_named(r, &numbers[i], m);
    if (m->ffn == 0)
        m->ffn = 4 * m->hidden;
}

/* Learned positions; how far a layer looks back; experts that see all tokens. */
static void
read_derived(struct reader *r, const struct family *f, struct dry_model *m)
{
    static const struct number positions = {
        {"n_positions", "max_position_embeddings", "n_ctx"}, FIELD(positions), true};
    static const struct number window = {{"sliding_window"}, FIELD(window), false};
    uint64_t shared = 0;
    bool has_window = true;
    if (f->has_positions)
        read_named(r, &positions, m);
    read_bool(r, "use_sliding_window", &has_window);
    if (has_window)
        read_named(r, &window, m);
    if (read_number(r, "n_shared_experts", &shared) &&
        __builtin_mul_overflow(shared, m->expert_ffn, &m->shared_ffn))
        m->shared_ffn = UINT64_MAX; /* which an estimate refuses */
    if (m->experts == 0)
        m->expert_ffn = m->shared_ffn = m->dense_layers = m->experts_per_token = 0;
}

static void
read_activation(struct reader *r, struct dry_model *m)
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
        name = read_text(r, keys[i]);
        key = keys[i];
    }
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i].name, name) == 0) {
            m->activation = names[i].activation;
            return;
        }
    }
    if (name)
        refuse(r, key,
               "gelu, gelu_pytorch_tanh, gelu_new, gelu_fast, quick_gelu, silu or relu",
               get(r, key));
}

/* A model has dropout if any probability is more than 0; without any: as its family. */
static void
read_dropout(struct reader *r, struct dry_model *m)
{
    static const char *const keys[] = {
        "resid_pdrop",         "attn_pdrop",        "embd_pdrop",
        "hidden_dropout_prob", "attention_dropout", "attention_probs_dropout_prob",
        "hidden_dropout",
    };
    bool is_said = false, is_positive = false;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *value = get(r, keys[i]);
        if (!value)
            continue;
        double p = json_is_number(value) ? json_number_value(value) : -1;
        if (p < 0 || p > 1) {
            refuse(r, keys[i], "a number from 0 to 1", value);
            return;
        }
        is_said = true;
        is_positive = is_positive || p > 0;
    }
    if (is_said)
        m->has_dropout = is_positive;
}

static void
read_switches(struct reader *r, struct dry_model *m)
{
    bool has_bias = m->has_qkv_bias && m->has_out_bias;
    read_bool(r, "tie_word_embeddings", &m->is_tied);
    read_bool(r, "mlp_bias", &m->has_mlp_bias);
    read_bool(r, "use_parallel_residual", &m->is_parallel);
    read_bool(r, "attention_bias", &has_bias);
    if (get(r, "attention_bias"))
        m->has_qkv_bias = m->has_out_bias = has_bias;
}

/* "BertForMaskedLM", "LlamaModel": what stands behind the last layer. */
static void
read_architecture(struct reader *r, struct dry_model *m)
{
    const json_t *list = get(r, "architectures");
    if (!list)
        return;
    const char *name = json_string_value(json_array_get(list, 0));
    if (!json_is_array(list) || (json_array_size(list) && !name)) {
        refuse(r, "architectures", "a list of texts", list);
        return;
    }
    size_t length = name ? strlen(name) : 0;
    if (length > 5 && strcmp(name + length - 5, "Model") == 0 && !strstr(name, "LMHead"))
        m->has_no_head = true;
    if (name && m->kind == DRY_MODEL_ENCODER && strstr(name, "MaskedLM")) {
        m->has_mlm_head = m->has_head_bias = true;
        m->has_no_head = m->has_pooler = false;
    }
}

/* --- our own object ----------------------------------------------------------------------- */

static void
enter(struct reader *r, json_t *object, const char *path)
{
    r->object = object;
    snprintf(r->path, sizeof r->path, "%s", path);
}

static void
read_kinds(struct reader *r, struct dry_model *m)
{
    const char *kind = read_text(r, "kind"), *norm = read_text(r, "norm");
    if (kind && strcmp(kind, "decoder") != 0 && strcmp(kind, "encoder") != 0)
        refuse(r, "kind", "decoder or encoder", get(r, "kind"));
    else if (kind)
        m->kind = kind[0] == 'd' ? DRY_MODEL_DECODER : DRY_MODEL_ENCODER;
    if (norm && strcmp(norm, "layer") != 0 && strcmp(norm, "rms") != 0)
        refuse(r, "norm", "layer or rms", get(r, "norm"));
    else if (norm)
        m->norm = norm[0] == 'l' ? DRY_NORM_LAYER : DRY_NORM_RMS;
}

static void
read_ours(struct reader *r, struct dry_model *m)
{
    json_t *ours = get(r, "drystone");
    bool has_head = !m->has_no_head;
    if (!ours)
        return;
    if (!json_is_object(ours)) {
        refuse(r, "drystone", "an object", ours);
        return;
    }
    enter(r, ours, "drystone.");
    read_kinds(r, m);
    read_activation(r, m);
    read_number(r, "positions", &m->positions);
    read_bool(r, "gated", &m->is_gated);
    read_bool(r, "tied", &m->is_tied);
    read_bool(r, "parallel", &m->is_parallel);
    read_bool(r, "post_norm", &m->is_post_norm);
    read_bool(r, "qkv_bias", &m->has_qkv_bias);
    read_bool(r, "out_bias", &m->has_out_bias);
    read_bool(r, "mlp_bias", &m->has_mlp_bias);
    read_bool(r, "head_bias", &m->has_head_bias);
    read_bool(r, "qk_norm", &m->has_qk_norm);
    read_bool(r, "embedding_norm", &m->has_embedding_norm);
    read_bool(r, "pooler", &m->has_pooler);
    read_bool(r, "dropout", &m->has_dropout);
    read_bool(r, "head", &has_head);
    m->has_no_head = !has_head;
}

static void
read_transformer(struct reader *r, struct dry_model *m)
{
    json_t *text = get(r, "text_config"), *outer = r->object;
    if (json_is_object(text) && !get(r, "hidden_size"))
        enter(r, text, "text_config.");
    struct family family = find_family(r);
    apply_family(m, &family);
    read_sizes(r, m);
    read_derived(r, &family, m);
    read_activation(r, m);
    read_dropout(r, m);
    read_switches(r, m);
    read_architecture(r, m);
    enter(r, outer, "");
    read_ours(r, m);
}

/* --- lists of layers ---------------------------------------------------------------------- */

static void
read_source(struct reader *r, const char *key, int64_t *layer)
{
    const json_t *value = get(r, key);
    if (!value)
        return;
    json_int_t found = json_is_integer(value) ? json_integer_value(value) : -2;
    if (found < DRY_CONV_IMAGES || found > DRY_CONV_LAYERS_MAX)
        refuse(r, key, "a layer, from 0, or -1 for the images", value);
    else
        *layer = found;
}

static void
read_layer(struct reader *r, struct dry_conv_layer *l)
{
    const char *type = read_text(r, "type");
    unsigned kind = 0;
    *l = (struct dry_conv_layer){.from = DRY_CONV_PREVIOUS, .with = DRY_CONV_PREVIOUS};
    while (type && kind < DRY_CONV_KIND_COUNT &&
           strcmp(dry_conv_kind_name((enum dry_conv_kind)kind), type) != 0)
        kind++;
    if (!type || kind == DRY_CONV_KIND_COUNT) {
        refuse(r, "type",
               "conv, norm, relu, silu, maxpool, avgpool, globalpool, add, "
               "concat, flatten, linear or dropout",
               get(r, "type"));
        return;
    }
    l->kind = (enum dry_conv_kind)kind;
    read_source(r, "from", &l->from);
    read_source(r, "with", &l->with);
    read_number(r, "channels", &l->channels);
    read_number(r, "kernel", &l->kernel);
    read_number(r, "stride", &l->stride);
    read_number(r, "padding", &l->padding);
    read_number(r, "groups", &l->groups);
    read_number(r, "dilation", &l->dilation);
    read_bool(r, "bias", &l->has_bias);
    bool has_matrix = l->kind == DRY_CONV_CONV || l->kind == DRY_CONV_LINEAR;
    if (has_matrix && l->channels == 0)
        refuse(r, "channels", "a whole number of 1 or more", get(r, "channels"));
}

static void
read_layers(struct reader *r, json_t *list, struct model_json *json)
{
    size_t count = json_array_size(list);
    json_t *outer = r->object;
    if (count == 0 || count > DRY_CONV_LAYERS_MAX) {
        r->status =
            fail_at(r->err, count ? DRY_ERR_LIMIT : DRY_ERR_FORMAT, DRY_NO_OFFSET,
                    "layers: expected 1 to %u, found %zu", DRY_CONV_LAYERS_MAX, count);
        return;
    }
    json->conv = calloc(count, sizeof *json->conv);
    if (!json->conv) {
        r->status =
            fail_at(r->err, DRY_ERR_MEMORY, DRY_NO_OFFSET, "no memory for layers");
        return;
    }
    for (size_t i = 0; i < count && r->status == DRY_OK; i++) {
        char path[PATH_BYTES];
        json_t *layer = json_array_get(list, i);
        snprintf(path, sizeof path, "layers[%zu].", i);
        enter(r, layer, path);
        if (json_is_object(layer))
            read_layer(r, &json->conv[i]);
        else
            refuse(r, "type", "an object around it", layer);
    }
    enter(r, outer, "");
    json->model.conv = json->conv;
    json->model.conv_count = count;
}

static void
read_conv(struct reader *r, json_t *list, struct model_json *json)
{
    static const struct number numbers[] = {
        {{"channels", NULL}, FIELD(channels), true},
        {{"height", NULL}, FIELD(height), true},
        {{"width", NULL}, FIELD(width), true},
    };
    json->model.kind = DRY_MODEL_CONV;
    read_layers(r, list, json);
    for (size_t i = 0; i < 3 && r->status == DRY_OK; i++)
        read_named(r, &numbers[i], &json->model);
}

/* --- files -------------------------------------------------------------------------------- */

enum dry_status
model_json_parse(const char *text, size_t length, struct model_json *json,
                 struct dry_error *err)
{
    json_t *root;
    *json = (struct model_json){0};
    dry_model_init(&json->model);
    enum dry_status status = json_in_parse(text, length, &root, err);
    if (status != DRY_OK)
        return status;
    struct reader r = {.object = root, .err = err};
    json_t *list = json_is_object(root) ? get(&r, "layers") : NULL;
    const char *format = json_string_value(json_object_get(root, "format"));
    if (!json_is_object(root))
        r.status = fail_at(err, DRY_ERR_FORMAT, DRY_NO_OFFSET,
                           "expected an object, the configuration of a model");
    else if (format && strncmp(format, "ckpt-", 5) == 0)
        r.status = fail_at(err, DRY_ERR_FORMAT, DRY_NO_OFFSET,
                           "format: expected the configuration of a model, found "
                           "\"%.40s\", which drystone plan reads",
                           format);
    else if (json_is_array(list))
        read_conv(&r, list, json);
    else
        read_transformer(&r, &json->model);
    json_decref(root);
    memcpy(json->unknown_family, r.unknown_family, sizeof json->unknown_family);
    return r.status;
}

enum dry_status
model_json_read(const char *path, struct model_json *json, struct dry_error *err)
{
    char *text;
    size_t length;
    *json = (struct model_json){0};
    enum dry_status status = json_in_read_file(path, &text, &length, err);
    if (status != DRY_OK)
        return status;
    status = model_json_parse(text, length, json, err);
    free(text);
    return status;
}

void
model_json_finish(struct model_json *json)
{
    free(json->conv);
    *json = (struct model_json){0};
}
