/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention: the tensors that it makes and saves. It is multi-head with fewer keys than
 * queries (Ainslie et al., arXiv:2305.13245) or with latent keys (DeepSeek-V2,
 * arXiv:2405.04434). A fused kernel keeps one number for each row (Dao et al.,
 * arXiv:2205.14135); single operations keep the probabilities.
 */
#include "plan/estimate/estimate_inside.h"

/* --- queries, keys, values ---------------------------------------------------------------- */

/* Names and sizes of the tensors that a norm narrower than the hidden size saves. */
struct inner_norm {
    const char *statistics, *statistics_size;
    const char *wide, *wide_size;
    const char *normalized, *size;
};

/*
 * Add what such a norm saves. If it consists of single operations, it works on an fp32
 * copy of a narrower input. The copy is saved instead of the input. The output before the
 * weights is saved too, for the weights' gradient.
 */
static void
norm_inside(struct dry_estimate *e, uint32_t input, const struct inner_norm *n)
{
    bool is_composed = e->setup.has_composed_norm;
    bool is_wide = is_composed && e->symbols.values['e'] < 4;
    dryi_op_aux(e, n->statistics, n->statistics_size);
    if (is_wide)
        dryi_op_aux(e, n->wide, n->wide_size);
    if (is_composed && e->setup.lora_rank == 0)
        dryi_op_aux(e, n->normalized, n->size);
    if (!is_wide)
        dryi_op_save(e, input, input + 1);
}

static const struct inner_norm norm_queries = {
    "query norm statistics", "4 b s a / c t",       "queries, fp32",
    "4 b s a d / c t",       "queries, normalized", "e b s a d / c t"};
static const struct inner_norm norm_keys = {"key norm statistics", "4 b s g / c t",
                                            "keys, fp32",          "4 b s g d / c t",
                                            "keys, normalized",    "e b s g d / c t"};
static const struct inner_norm norm_query_latent = {
    "latent statistics",        "4 b s / c",  "query latent, fp32", "4 b s q / c",
    "query latent, normalized", "e b s q / c"};
static const struct inner_norm norm_latent = {"latent statistics",
                                              "4 b s / c",
                                              "key-value latent, fp32",
                                              "4 b s l / c",
                                              "key-value latent, normalized",
                                              "e b s l / c"};

static uint32_t
make_heads(struct dry_estimate *e, bool is_key)
{
    const char *size = is_key ? "e b s g d / c t" : "e b s a d / c t";
    const char *name = is_key ? "keys" : "queries";
    const struct dry_model *m = &e->model;
    struct dryi_linear linear = {
        .name = name,
        .in = m->hidden,
        .out = dryi_product(is_key ? m->kv_heads : m->heads, m->head_dim),
        .is_split_out = true,
        .has_bias = m->has_qkv_bias && !(is_key && m->has_no_key_bias),
        .target = is_key ? DRY_LORA_K : DRY_LORA_Q,
    };
    uint32_t index = dryi_op_add(
        e, m->has_qk_norm ? (is_key ? "keys, raw" : "queries, raw") : name, size);
    dryi_linear_add(e, &linear);
    if (!m->has_qk_norm)
        return index;
    struct dryi_param weight = {
        .name = "head norm", .rows = m->head_dim, .is_frozen = e->setup.lora_rank > 0};
    norm_inside(e, index, is_key ? &norm_keys : &norm_queries);
    uint32_t normed = dryi_op_add(e, name, size);
    dryi_param_add(e, &weight);
    dryi_op_use(e, index, normed);
    return normed;
}

static uint32_t
make_values(struct dry_estimate *e)
{
    struct dryi_linear linear = {
        .name = "values",
        .in = e->model.hidden,
        .out = dryi_product(e->model.kv_heads, e->model.head_dim),
        .is_split_out = true,
        .has_bias = e->model.has_qkv_bias,
        .target = DRY_LORA_V,
    };
    uint32_t index = dryi_op_add(e, "values", "e b s g d / c t");
    dryi_linear_add(e, &linear);
    return index;
}

static struct dryi_heads
make_grouped(struct dry_estimate *e, uint32_t input)
{
    struct dryi_heads h;
    uint32_t first = (uint32_t)e->units[e->unit_count - 1].op_count;
    h.queries = make_heads(e, false);
    h.keys = make_heads(e, true);
    h.values = make_values(e);
    dryi_op_use(e, input, h.values);
    if (dryi_keeps_input(e, DRY_LORA_Q | DRY_LORA_K | DRY_LORA_V))
        dryi_op_save(e, input, first);
    if (!e->setup.has_repeated_kv || e->model.kv_heads == e->model.heads)
        return h;
    uint32_t keys = dryi_op_add(e, "keys, repeated", "e b s a d / c t");
    uint32_t values = dryi_op_add(e, "values, repeated", "e b s a d / c t");
    dryi_op_use(e, h.queries, keys);
    dryi_op_use(e, h.keys, keys);
    dryi_op_use(e, h.values, values);
    h.keys = keys;
    h.values = values;
    return h;
}

/* --- latent ------------------------------------------------------------------------------- */

static void
add_latent_norm(struct dry_estimate *e, uint64_t width)
{
    struct dryi_param weight = {
        .name = "latent norm", .rows = width, .is_frozen = e->setup.lora_rank > 0};
    dryi_param_add(e, &weight);
}

static void
add_matrix(struct dry_estimate *e, uint64_t in, uint64_t out, bool is_split)
{
    struct dryi_param matrix = {.name = "latent",
                                .rows = out,
                                .cols = in,
                                .split = is_split ? e->setup.tensor : 1,
                                .is_frozen = e->setup.lora_rank > 0,
                                .is_hidden = true,
                                .is_linear = true};
    dryi_param_add(e, &matrix);
}

/* Build the queries, directly or through a latent. The first operation saves `input`. */
static uint32_t
make_latent_queries(struct dry_estimate *e, uint32_t input)
{
    const struct dry_model *m = &e->model;
    uint64_t width = dryi_product(m->heads, m->rope_dim + m->nope_dim);
    uint32_t raw;
    if (m->q_rank) {
        uint32_t latent = dryi_op_add(e, "query latent", "e b s q / c");
        add_matrix(e, m->hidden, m->q_rank, false);
        norm_inside(e, latent, &norm_query_latent);
        uint32_t normed = dryi_op_add(e, "query latent, normed", "e b s q / c");
        add_latent_norm(e, m->q_rank);
        raw = dryi_op_add(e, "queries, raw", "e b s a y / c t");
        add_matrix(e, m->q_rank, width, true);
        dryi_op_use(e, latent, normed);
        dryi_op_save(e, normed, raw);
        dryi_op_save(e, input, latent);
    } else {
        raw = dryi_op_add(e, "queries, raw", "e b s a y / c t");
        add_matrix(e, m->hidden, width, true);
        dryi_op_save(e, input, raw);
    }
    return dryi_op_add(e, "queries", "e b s a y / c t");
}

static struct dryi_heads
make_latent(struct dry_estimate *e, uint32_t input)
{
    const struct dry_model *m = &e->model;
    struct dryi_heads h;
    h.queries = make_latent_queries(e, input);
    uint32_t latent = dryi_op_add(e, "key-value latent", "e b s j / c");
    add_matrix(e, m->hidden, m->kv_rank + m->rope_dim, false);
    norm_inside(e, latent, &norm_latent);
    uint32_t normed = dryi_op_add(e, "key-value latent, normed", "e b s l / c");
    add_latent_norm(e, m->kv_rank);
    h.values = dryi_op_add(e, "keys and values", "e b s a z / c t");
    add_matrix(e, m->kv_rank, dryi_product(m->heads, m->nope_dim + m->value_dim), true);
    h.keys = dryi_op_add(e, "keys", "e b s a y / c t");
    dryi_op_use(e, input, latent);
    dryi_op_use(e, latent, h.keys);
    dryi_op_save(e, normed, h.values);
    if (e->setup.attention == DRY_ATTENTION_FLASH)
        return h; /* values are a view */
    uint32_t both = h.values;
    h.values = dryi_op_add(e, "values", "e b s a w / c t");
    dryi_op_use(e, both, h.values);
    return h;
}

/* --- the product -------------------------------------------------------------------------- */

static uint32_t
make_again(struct dry_estimate *e, uint32_t index)
{
    if (e->status == DRY_OK)
        dryi_op_at(e, index)->is_made_again = true;
    return index;
}

/* Build scores, probabilities and their mask. Returns what the values are multiplied with. */
static uint32_t
make_probabilities(struct dry_estimate *e, const struct dryi_heads *h, bool is_cross)
{
    const char *size = is_cross ? "e b a s M / c t" : "e b a s s / c t";
    const char *wide_size = is_cross ? "4 b a s M / c t" : "4 b a s s / c t";
    const char *mask_size = is_cross ? "m b a s M / c t" : "m b a s s / c t";
    bool is_wide =
        e->setup.attention == DRY_ATTENTION_EAGER_FP32 && e->symbols.values['e'] < 4;
    bool is_dropped = dryi_has_dropout(e);
    uint32_t scores = dryi_op_add(e, "scores", size);
    dryi_op_save(e, h->queries, scores);
    dryi_op_save(e, h->keys, scores);
    dryi_op_use(e, h->queries, scores);
    dryi_op_use(e, h->keys, scores);
    uint32_t softmax =
        make_again(e, dryi_op_add(e, is_wide ? "probabilities, fp32" : "probabilities",
                                  is_wide ? wide_size : size));
    dryi_op_save(e, softmax, softmax);
    uint32_t last = softmax;
    if (is_wide) {
        last = make_again(e, dryi_op_add(e, "probabilities", size));
        if (!is_dropped)
            dryi_op_save(e, last, last + 1);
    }
    if (is_dropped) {
        make_again(e, dryi_op_aux(e, "probability mask", mask_size));
        uint32_t dropped = make_again(e, dryi_op_add(e, "probabilities, dropped", size));
        dryi_op_use(e, last, dropped);
        dryi_op_save(e, dropped, dropped + 1);
        last = dropped;
    }
    return last;
}

/* Add the mask of the attention's output, after the projection. */
static void
add_output_mask(struct dry_estimate *e)
{
    if (dryi_has_dropout(e))
        dryi_op_aux(e, "attention mask", "m b s h / c r");
}

static uint32_t
make_context(struct dry_estimate *e, const struct dryi_heads *h, bool is_cross)
{
    struct dryi_param sinks = {.name = "sinks",
                               .rows = e->model.heads,
                               .split = e->setup.tensor,
                               .is_frozen = e->setup.lora_rank > 0};
    const char *size = e->model.kv_rank ? "e b s a w / c t" : "e b s a d / c t";
    bool is_flash = e->setup.attention == DRY_ATTENTION_FLASH;
    if (is_flash)
        dryi_op_aux(e, "log-sum-exp", "4 b s a / c t");
    else
        make_probabilities(e, h, is_cross);
    uint32_t context = dryi_op_add(e, "context", size);
    if (e->model.has_sinks)
        dryi_param_add(e, &sinks);
    dryi_op_use(e, h->values, context);
    dryi_op_save(e, h->values, context);
    if (is_flash) {
        dryi_op_use(e, h->queries, context);
        dryi_op_use(e, h->keys, context);
        dryi_op_save(e, h->queries, context);
        dryi_op_save(e, h->keys, context);
        dryi_op_save(e, context, context);
    } else if (dryi_keeps_input(e, DRY_LORA_O)) {
        dryi_op_save(e, context, context + 1);
    }
    return context;
}

uint32_t
dryi_build_product(struct dry_estimate *e, const struct dryi_heads *heads, bool is_cross)
{
    const struct dry_model *m = &e->model;
    dryi_build_adapters(e, DRY_LORA_Q | DRY_LORA_K | DRY_LORA_V | DRY_LORA_O);
    make_context(e, heads, is_cross);
    uint32_t output = dryi_op_add(e, "attention output", "e b s h / c r");
    struct dryi_linear linear = {
        .name = "attention output",
        .in = dryi_product(m->heads, m->kv_rank ? m->value_dim : m->head_dim),
        .out = m->hidden,
        .has_bias = m->has_out_bias,
        .target = DRY_LORA_O,
    };
    dryi_linear_add(e, &linear);
    add_output_mask(e);
    return output;
}

uint32_t
dryi_build_attention(struct dry_estimate *e, uint32_t input)
{
    struct dryi_heads h =
        e->model.kv_rank ? make_latent(e, input) : make_grouped(e, input);
    return dryi_build_product(e, &h, false);
}
