/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A decoder's attention to its encoder: keys and values are computed from the source's
 * tokens (M), which the unit between both stacks keeps.
 */
#include "plan/estimate/estimate_inside.h"

/*
 * Build cross queries, keys or values. The input of keys and values is the encoder's
 * states, which the bridge saves for all layers.
 */
static uint32_t
make_one(struct dry_estimate *e, const char *name, const char *size, bool has_bias,
         uint32_t target)
{
    struct dryi_linear linear = {
        .name = name,
        .in = e->model.hidden,
        .out = dryi_product(e->model.heads, e->model.head_dim),
        .is_split_out = true,
        .has_bias = has_bias,
        .target = target,
    };
    uint32_t index = dryi_op_add(e, name, size);
    dryi_linear_add(e, &linear);
    return index;
}

uint32_t
dryi_build_cross(struct dry_estimate *e, uint32_t input)
{
    bool has_bias = e->model.has_qkv_bias;
    struct dryi_heads h;
    h.queries = make_one(e, "cross queries", "e b s a d / c t", has_bias, DRY_LORA_Q);
    dryi_op_use(e, input, h.queries);
    if (dryi_keeps_input(e, DRY_LORA_Q))
        dryi_op_save(e, input, h.queries);
    h.keys = make_one(e, "cross keys", "e b M a d / c t",
                      has_bias && !e->model.has_no_key_bias, DRY_LORA_K);
    h.values = make_one(e, "cross values", "e b M a d / c t", has_bias, DRY_LORA_V);
    return dryi_build_product(e, &h, true);
}

uint64_t
dryi_source_tokens(const struct dry_estimate *e)
{
    return e->model.source ? e->model.source : e->setup.sequence;
}

uint64_t
dryi_cross_cache_bytes(const struct dry_estimate *e)
{
    char text[DRY_FORMULA_BYTES];
    uint64_t bytes;
    dryi_formula_eval(&e->symbols, "2 a d M e Q / t", &bytes, text);
    return e->model.encoder_layers ? bytes : 0;
}
