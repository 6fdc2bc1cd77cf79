/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A layer of a transformer: the tensors that it makes and saves. They follow Korthikanti
 * et al. (arXiv:2205.05198, section 4.1) tensor by tensor. Other norms, gated MLPs and
 * experts are added in the same way.
 */
#include "plan/estimate/estimate_inside.h"

/* --- norms -------------------------------------------------------------------------------- */

/*
 * Add what a norm of single operations saves: an fp32 copy if the input is narrower, and the
 * output before the weights, for their gradient. Returns whether the input itself is saved.
 */
static bool
add_composed(struct dry_estimate *e, const struct dryi_norm_names *names)
{
    bool is_wide = e->symbols.values['o'] >= 4;
    if (!is_wide)
        dryi_op_aux(e, names->wide, "4 b s h / c r");
    if (e->setup.lora_rank == 0)
        dryi_op_aux(e, names->normalized, "e b s h / c r");
    return is_wide;
}

uint32_t
dryi_build_norm(struct dry_estimate *e, uint32_t input,
                const struct dryi_norm_names *names)
{
    bool is_rms = e->model.norm == DRY_NORM_RMS;
    bool is_kept = true;
    dryi_op_aux(e, names->statistics, is_rms ? "4 b s / c r" : "8 b s / c r");
    if (is_rms && e->setup.has_composed_norm)
        is_kept = add_composed(e, names);
    uint32_t output = dryi_op_add(e, names->output, "o b s h / c r");
    struct dryi_param weight = {
        .name = "norm", .rows = e->model.hidden, .is_frozen = e->setup.lora_rank > 0};
    dryi_param_add(e, &weight);
    if (!is_rms && !e->model.has_no_norm_bias)
        dryi_param_add(e, &weight);
    dryi_op_use(e, input, output);
    if (is_kept)
        dryi_op_save(e, input, output);
    return output;
}

uint32_t
dryi_build_cast(struct dry_estimate *e, uint32_t index, const char *name)
{
    if (e->symbols.values['o'] == e->symbols.values['e'])
        return index;
    uint32_t cast = dryi_op_add(e, name, "e b s h / c r");
    dryi_op_use(e, index, cast);
    return cast;
}

/* --- MLPs --------------------------------------------------------------------------------- */

/* Names and sizes of one MLP: dense, of experts, or shared by all tokens. */
struct mlp {
    const char *gate, *up, *activation, *parts, *product;
    /* formulas; parts: what composed activations save */
    const char *size, *parts_3, *parts_1;
    uint64_t width, count; /* width of the matrices; count 0: no experts */
};

static void
add_in(struct dry_estimate *e, const struct mlp *mlp, const char *name, uint32_t target)
{
    struct dryi_linear linear = {
        .name = name,
        .in = e->model.hidden,
        .out = mlp->width,
        .is_split_out = true,
        .has_bias = e->model.has_mlp_bias,
        .target = target,
        .count = mlp->count,
    };
    dryi_linear_add(e, &linear);
}

static void
add_down(struct dry_estimate *e, const struct mlp *mlp)
{
    struct dryi_linear linear = {
        .name = "mlp down",
        .in = mlp->width,
        .out = e->model.hidden,
        .has_bias = e->model.has_mlp_bias,
        .target = DRY_LORA_DOWN,
        .count = mlp->count,
    };
    dryi_linear_add(e, &linear);
}

/* Build the activation after the first matrix, and what it saves. */
static uint32_t
activate(struct dry_estimate *e, const struct mlp *mlp, uint32_t input)
{
    enum dry_activation kind = e->model.activation;
    if (kind == DRY_ACT_GELU_COMPOSED)
        dryi_op_aux(e, mlp->parts, mlp->parts_3);
    if (kind == DRY_ACT_QUICK_GELU)
        dryi_op_aux(e, mlp->parts, mlp->parts_1);
    uint32_t output = dryi_op_add(e, mlp->activation, mlp->size);
    dryi_op_use(e, input, output);
    if (kind != DRY_ACT_RELU)
        dryi_op_save(e, input, output);
    else
        dryi_op_save(e, output, output);
    return output;
}

/* Build an MLP up to the input of its last matrix, which keeps that input. */
static uint32_t
build_inner(struct dry_estimate *e, const struct mlp *mlp, uint32_t input)
{
    bool is_gated = e->model.is_gated, is_kept = dryi_keeps_input(e, DRY_LORA_DOWN);
    uint32_t first = dryi_op_add(e, is_gated ? mlp->gate : mlp->up, mlp->size);
    add_in(e, mlp, is_gated ? "mlp gate" : "mlp up",
           is_gated ? DRY_LORA_GATE : DRY_LORA_UP);
    uint32_t up = first;
    if (is_gated) {
        up = dryi_op_add(e, mlp->up, mlp->size);
        add_in(e, mlp, "mlp up", DRY_LORA_UP);
    }
    dryi_op_use(e, input, up);
    if (dryi_keeps_input(e, DRY_LORA_GATE | DRY_LORA_UP))
        dryi_op_save(e, input, first);
    uint32_t last = activate(e, mlp, first);
    if (is_gated) {
        uint32_t product = dryi_op_add(e, mlp->product, mlp->size);
        dryi_op_use(e, last, product);
        dryi_op_use(e, up, product);
        dryi_op_save(e, up, product);
        dryi_op_save(e, last, product);
        last = product;
    }
    if (is_kept)
        dryi_op_save(e, last, last + 1);
    return last;
}

static uint32_t
build_dense(struct dry_estimate *e, uint32_t input)
{
    static const struct mlp names = {
        "mlp gate",      "mlp up",          "mlp activation", "mlp parts", "mlp product",
        "e b s f / c t", "3 e b s f / c t", "e b s f / c t",  0,           0};
    struct mlp mlp = names;
    mlp.width = e->model.ffn;
    build_inner(e, &mlp, input);
    uint32_t output = dryi_op_add(e, "mlp output", "e b s h / c r");
    add_down(e, &mlp);
    dryi_build_adapters(e, DRY_LORA_GATE | DRY_LORA_UP | DRY_LORA_DOWN);
    return output;
}

/* --- experts ------------------------------------------------------------------------------ */

/* Build the router: probabilities and choices in fp32, and three lists of int64. */
static void
build_router(struct dry_estimate *e, uint32_t input)
{
    struct dryi_param router = {.name = "router",
                                .rows = e->model.experts,
                                .cols = e->model.hidden,
                                .is_frozen = e->setup.lora_rank > 0};
    struct dryi_param bias = {.name = "router bias", .rows = e->model.experts};
    bias.is_frozen = router.is_frozen;
    bias.is_wide = e->model.is_router_bias_wide;
    uint32_t logits = dryi_op_add(e, "router logits", "e b s E / c");
    dryi_param_add(e, &router);
    if (e->model.has_router_bias)
        dryi_param_add(e, &bias);
    dryi_op_use(e, input, logits);
    if (e->setup.lora_rank == 0)
        dryi_op_save(e, input, logits);
    dryi_op_aux(e, "router probabilities", "4 b s E / c");
    dryi_op_aux(e, "router choices", "28 b s k / c");
    dryi_op_aux(e, "router sums", "4 b s / c");
    dryi_op_aux(e, "router weights", "e b s k / c");
}

/* Weight the shared experts' output by the sigmoid of one number for each token (Qwen2-MoE). */
static uint32_t
weigh_shared(struct dry_estimate *e, uint32_t input, uint32_t output)
{
    struct dryi_param gate = {.name = "shared expert gate",
                              .rows = 1,
                              .cols = e->model.hidden,
                              .is_frozen = e->setup.lora_rank > 0};
    dryi_op_aux(e, "shared expert gates", "e b s / c");
    uint32_t weighted = dryi_op_add(e, "shared output, weighted", "e b s h / c r");
    dryi_param_add(e, &gate);
    dryi_op_use(e, input, weighted);
    dryi_op_use(e, output, weighted);
    dryi_op_save(e, output, weighted);
    return weighted;
}

static uint32_t
build_shared(struct dry_estimate *e, uint32_t input)
{
    static const struct mlp names = {"shared gate",
                                     "shared up",
                                     "shared activation",
                                     "shared parts",
                                     "shared product",
                                     "e b s F / c t",
                                     "3 e b s F / c t",
                                     "e b s F / c t",
                                     0,
                                     0};
    struct mlp mlp = names;
    mlp.width = e->model.shared_ffn;
    build_inner(e, &mlp, input);
    uint32_t output = dryi_op_add(e, "shared output", "e b s h / c r");
    add_down(e, &mlp);
    return e->model.has_shared_gate ? weigh_shared(e, input, output) : output;
}

/*
 * Build the experts. Every token goes to k experts on any device: on average k tokens for
 * each of its own.
 */
static uint32_t
build_experts(struct dry_estimate *e, uint32_t input)
{
    static const struct mlp names = {"expert gates",
                                     "expert ups",
                                     "expert activations",
                                     "expert parts",
                                     "expert products",
                                     "e b s k x / c t",
                                     "3 e b s k x / c t",
                                     "e b s k x / c t",
                                     0,
                                     0};
    struct mlp mlp = names;
    mlp.width = e->model.expert_ffn;
    mlp.count = e->model.experts;
    uint32_t shared = 0;
    build_router(e, input);
    if (e->model.shared_ffn)
        shared = build_shared(e, input);
    uint32_t tokens = dryi_op_add(e, "expert inputs", "e b s k h / c");
    dryi_op_use(e, input, tokens);
    build_inner(e, &mlp, tokens);
    uint32_t outputs = dryi_op_add(e, "expert outputs", "e b s k h / c");
    add_down(e, &mlp);
    uint32_t weighted = dryi_op_add(e, "expert outputs, weighted", "e b s k h / c");
    dryi_op_save(e, outputs, weighted);
    uint32_t sum = dryi_op_add(e, "mlp output", "e b s h / c r");
    if (e->setup.has_index_add)
        dryi_op_save(e, weighted, sum);
    if (e->model.shared_ffn)
        dryi_op_use(e, shared, sum);
    return sum;
}

static uint32_t
build_mlp(struct dry_estimate *e, uint32_t input, bool has_experts)
{
    uint32_t output = has_experts ? build_experts(e, input) : build_dense(e, input);
    if (dryi_has_dropout(e))
        dryi_op_aux(e, "mlp mask", "m b s h / c r");
    return output;
}

/* --- layers ------------------------------------------------------------------------------- */

static const struct dryi_norm_names norm_1 = {"norm 1 statistics", "norm 1 input, fp32",
                                              "norm 1, normalized", "norm 1 output"};
static const struct dryi_norm_names norm_2 = {"norm 2 statistics", "norm 2 input, fp32",
                                              "norm 2, normalized", "norm 2 output"};

static const struct dryi_norm_names norm_cross = {
    "cross norm statistics", "cross norm input, fp32", "cross norm, normalized",
    "cross norm output"};
static const struct dryi_norm_names norm_attention = {
    "attention norm statistics", "attention norm input, fp32", "attention, normalized",
    "attention, normed"};
static const struct dryi_norm_names norm_mlp = {
    "mlp norm statistics", "mlp norm input, fp32", "mlp, normalized", "mlp, normed"};

/* Build the norm after attention or the MLP, for models that have one (Gemma 2). */
static uint32_t
norm_output(struct dry_estimate *e, uint32_t made, const struct dryi_norm_names *names)
{
    return e->model.has_own_output_norms ? dryi_build_norm(e, made, names) : made;
}

static uint32_t
add_residual(struct dry_estimate *e, uint32_t input, uint32_t made)
{
    uint32_t sum = dryi_op_add(e, "residual", "o b s h / c r");
    dryi_op_use(e, input, sum);
    dryi_op_use(e, made, sum);
    return sum;
}

/* Build attention and MLP of the same input (GPT-NeoX), with one norm (Falcon) or two. */
static void
build_beside(struct dry_estimate *e, uint32_t input, bool has_experts)
{
    uint32_t normed = dryi_build_norm(e, input, &norm_1);
    normed = dryi_build_cast(e, normed, "norm 1 output, cast");
    uint32_t attention = dryi_build_attention(e, normed);
    uint32_t first_saver = e->status == DRY_OK ? dryi_op_at(e, input)->saver : 0;
    if (!e->model.has_one_norm) {
        normed = dryi_build_norm(e, input, &norm_2);
        if (first_saver != DRYI_NO_OP)
            /* The earlier saver's backward comes last. */
            dryi_op_save(e, input, first_saver);
        normed = dryi_build_cast(e, normed, "norm 2 output, cast");
    }
    uint32_t saver =
        e->status == DRY_OK && e->model.has_one_norm ? dryi_op_at(e, normed)->saver : 0;
    uint32_t mlp = build_mlp(e, normed, has_experts);
    if (e->model.has_one_norm && saver != DRYI_NO_OP)
        dryi_op_save(e, normed, saver);
    uint32_t output = dryi_op_add(e, "output", "o b s h / c r");
    dryi_op_use(e, input, output);
    dryi_op_use(e, mlp, output);
    dryi_op_use(e, attention, output);
}

/*
 * Build x + attention(norm(x)), then the same with the MLP (GPT-2). A decoder's attention
 * to its encoder is in between.
 */
static void
build_before(struct dry_estimate *e, uint32_t input, enum dryi_layer kind)
{
    uint32_t normed = dryi_build_norm(e, input, &norm_1);
    normed = dryi_build_cast(e, normed, "norm 1 output, cast");
    uint32_t made = norm_output(e, dryi_build_attention(e, normed), &norm_attention);
    uint32_t sum = add_residual(e, input, made);
    if (kind == DRYI_LAYER_CROSS) {
        normed = dryi_build_norm(e, sum, &norm_cross);
        normed = dryi_build_cast(e, normed, "cross norm output, cast");
        sum = add_residual(e, sum, dryi_build_cross(e, normed));
    }
    normed = dryi_build_norm(e, sum, &norm_2);
    normed = dryi_build_cast(e, normed, "norm 2 output, cast");
    made = build_mlp(e, normed, kind == DRYI_LAYER_EXPERTS);
    made = norm_output(e, made, &norm_mlp);
    uint32_t output = dryi_op_add(e, "output", "o b s h / c r");
    dryi_op_use(e, sum, output);
    dryi_op_use(e, made, output);
}

/* Build norm(x + attention(x)), then the same with the MLP (BERT). */
static void
build_behind(struct dry_estimate *e, uint32_t input, bool has_experts)
{
    uint32_t read = dryi_build_cast(e, input, "input, cast");
    uint32_t attention = dryi_build_attention(e, read);
    uint32_t sum = dryi_op_add(e, "residual", "o b s h / c r");
    dryi_op_use(e, input, sum);
    dryi_op_use(e, attention, sum);
    uint32_t normed = dryi_build_norm(e, sum, &norm_1);
    read = dryi_build_cast(e, normed, "norm 1 output, cast");
    uint32_t mlp = build_mlp(e, read, has_experts);
    uint32_t sum_2 = dryi_op_add(e, "residual 2", "o b s h / c r");
    dryi_op_use(e, normed, sum_2);
    dryi_op_use(e, mlp, sum_2);
    dryi_build_norm(e, sum_2, &norm_2);
}

void
dryi_build_layer(struct dry_estimate *e, enum dryi_layer kind)
{
    uint32_t input = dryi_op_add(e, "input", "o b s h / c r");
    if (e->model.is_post_norm)
        build_behind(e, input, kind == DRYI_LAYER_EXPERTS);
    else if (e->model.is_parallel)
        build_beside(e, input, kind == DRYI_LAYER_EXPERTS);
    else
        build_before(e, input, kind);
}
