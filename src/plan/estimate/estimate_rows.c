/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of an estimate, each with a name, bytes, the formula with its numbers, and its source.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "plan/estimate/estimate_inside.h"

static const char from_shapes[] = "shapes of the tensors";
static const char from_korthikanti[] = "Korthikanti et al. 2022, section 4";
static const char from_zero[] = "Rajbhandari et al. 2020, section 3";
static const char from_chen[] = "Chen et al. 2016";
static const char from_torch[] = "PyTorch";
static const char from_replay[] = "replayed";
static const char from_nobody[] = "assumed";

/* --- making rows -------------------------------------------------------------------------- */

/* Add a row, unless its bytes are 0. Returns NULL if none was added. */
static struct dry_estimate_row *
add_row(struct dry_estimate *e, enum dry_estimate_group group, const char *name,
        uint64_t bytes, const char *source)
{
    if (e->status != DRY_OK || bytes == 0)
        return NULL;
    if (!dryi_memory_grow(&e->memory, &e->rows, &e->row_capacity, e->row_count + 1,
                          sizeof *e->rows)) {
        e->status = dryi_fail_memory(e->err, "the rows of an estimate");
        return NULL;
    }
    struct dry_estimate_row *row = &e->rows[e->row_count++];
    *row = (struct dry_estimate_row){
        .group = group, .name = name, .bytes = bytes, .source = source};
    return row;
}

/* Add a row whose bytes are a sum of rounded terms, so the formula's value may differ slightly. */
static void
add_sum(struct dry_estimate *e, enum dry_estimate_group group, const char *name,
        uint64_t bytes, const char *expression)
{
    uint64_t value;
    struct dry_estimate_row *row = add_row(e, group, name, bytes, from_shapes);
    if (row)
        dryi_formula_eval(&e->symbols, expression, &value, row->formula);
}

static void
add_formula(struct dry_estimate *e, enum dry_estimate_group group, const char *name,
            const char *expression, const char *source)
{
    char text[DRY_FORMULA_BYTES];
    uint64_t value;
    dryi_formula_eval(&e->symbols, expression, &value, text);
    struct dry_estimate_row *row = add_row(e, group, name, value, source);
    if (row)
        memcpy(row->formula, text, sizeof text);
}

__attribute__((format(printf, 2, 3))) static void
explain(struct dry_estimate_row *row, const char *format, ...)
{
    va_list args;
    if (!row)
        return;
    va_start(args, format);
    vsnprintf(row->formula, sizeof row->formula, format, args);
    va_end(args);
}

static unsigned long long
ull(uint64_t x)
{
    return (unsigned long long)x;
}

/* --- bytes kept from step to step --------------------------------------------------------- */

/* Count the trained parameters of this device. */
static uint64_t
count_trained(const struct dry_estimate *e)
{
    uint64_t sum = 0;
    for (size_t u = 0; u < e->unit_count; u++) {
        const struct dryi_unit *unit = &e->units[u];
        uint64_t one = 0;
        for (size_t i = 0; i < unit->param_count; i++) {
            const struct dryi_param *p = &e->params[unit->param_first + i];
            one = dryi_sum(one, p->is_frozen ? 0 : p->elements);
        }
        sum = dryi_sum(sum, dryi_product(one, unit->count));
    }
    return sum;
}

static void
add_states(struct dry_estimate *e)
{
    static const char *const expressions[DRY_OPTIMIZER_COUNT] = {
        [DRY_OPTIMIZER_ADAMW] = "2 T u / Z",   [DRY_OPTIMIZER_ADAM] = "2 T u / Z",
        [DRY_OPTIMIZER_AMSGRAD] = "3 T u / Z", [DRY_OPTIMIZER_MOMENTUM] = "T u / Z",
        [DRY_OPTIMIZER_ADAGRAD] = "T u / Z",   [DRY_OPTIMIZER_RMSPROP] = "T u / Z",
        [DRY_OPTIMIZER_LION] = "T u / Z",
    };
    struct dryi_widths w = dryi_widths_get(e->setup.precision);
    uint64_t *v = e->symbols.values, trained = count_trained(e);
    uint64_t shares = dryi_is_sharded(&e->setup, DRYI_KEPT_STATES) ? e->setup.data : 1;
    uint64_t master = dryi_ceil_div(dryi_product(trained, w.master), shares);
    uint64_t states = e->summary.optimizer_bytes;
    states = states > master ? states - master : 0;
    v['T'] = trained;
    v['Z'] = shares;
    v['u'] = w.master;
    add_sum(e, DRY_GROUP_OPTIMIZER, "master weights", master, "T u / Z");
    v['u'] = w.state;
    const char *expression = expressions[e->setup.optimizer];
    if (expression) {
        add_sum(e, DRY_GROUP_OPTIMIZER, "states", states, expression);
        return;
    }
    static const char *const rules[DRY_OPTIMIZER_COUNT] = {
        [DRY_OPTIMIZER_ADAMW_8BIT] = "2n + 8n/256 a tensor; below 4096 8n",
        [DRY_OPTIMIZER_ADAFACTOR] = "4*(rows + columns); of vectors 4n",
        [DRY_OPTIMIZER_MUON] = "layers' matrices 1, all others 2",
    };
    explain(add_row(e, DRY_GROUP_OPTIMIZER, "states", states, from_shapes), "%s",
            rules[e->setup.optimizer] ? rules[e->setup.optimizer] : "");
}

/* Quantized matrices of this device, before ZeRO shards them. */
struct quantized {
    uint64_t elements, bytes;
};

static struct quantized
sum_quantized(const struct dry_estimate *e)
{
    struct quantized sum = {0, 0};
    for (size_t u = 0; u < e->unit_count; u++) {
        const struct dryi_unit *unit = &e->units[u];
        for (size_t i = 0; i < unit->param_count; i++) {
            const struct dryi_param *p = &e->params[unit->param_first + i];
            if (!dryi_is_quantized(&e->model, p))
                continue;
            uint64_t bytes = dryi_param_bytes(e, p, DRYI_KEPT_WEIGHTS);
            sum.bytes = dryi_sum(sum.bytes, dryi_product(bytes, unit->count));
            sum.elements = dryi_sum(sum.elements, dryi_product(p->elements, unit->count));
        }
    }
    return sum;
}

static void
add_kept(struct dry_estimate *e)
{
    struct dryi_widths w = dryi_widths_get(e->setup.precision);
    uint64_t *v = e->symbols.values;
    struct quantized q = sum_quantized(e);
    v['P'] = e->summary.device_parameter_count - q.elements;
    v['T'] = count_trained(e);
    v['u'] = w.weight;
    v['Z'] = dryi_is_sharded(&e->setup, DRYI_KEPT_WEIGHTS) ? e->setup.data : 1;
    uint64_t packed = dryi_ceil_div(q.bytes, v['Z']), all = e->summary.weight_bytes;
    packed = packed < all ? packed : all;
    add_sum(e, DRY_GROUP_WEIGHTS, "weights", all - packed, "P u / Z");
    if (q.elements)
        explain(add_row(e, DRY_GROUP_WEIGHTS, "weights, quantized", packed, from_shapes),
                "%s, %.3f bits of each of %llu",
                dry_quantization_name(e->model.quantization),
                8.0 * (double)q.bytes / (double)q.elements, ull(q.elements));
    if (e->setup.is_inference)
        return;
    v['u'] = w.grad;
    v['Z'] = dryi_is_sharded(&e->setup, DRYI_KEPT_GRADS) ? e->setup.data : 1;
    add_sum(e, DRY_GROUP_GRADIENTS, "gradients", e->summary.gradient_bytes, "T u / Z");
    add_states(e);
}

/* --- activations -------------------------------------------------------------------------- */

struct layers {
    uint64_t count;    /* layers on this device */
    uint64_t saved;    /* bytes that the largest layer saves */
    uint64_t input;    /* bytes that a checkpoint keeps */
    uint64_t segments; /* segments of a chunk, times `flights` */
    uint64_t longest;  /* layers of the longest segment */
    uint64_t whole;    /* layers that save everything, times `flights` */
    uint64_t flights;  /* chunk forwards whose activations exist at once */
};

/* Count the layers of the largest chunk, divided into segments as the step does. */
static struct layers
count_layers(const struct dry_estimate *e)
{
    struct layers l = {.flights = dryi_flights(e)};
    bool is_selective = e->setup.checkpointing == DRY_CHECKPOINTING_SELECTIVE;
    for (size_t u = 0; u < e->unit_count; u++) {
        const struct dryi_unit *unit = &e->units[u];
        if (!unit->is_layer || unit->count == 0)
            continue;
        uint64_t saved = dryi_unit_saved(e, unit, is_selective);
        l.count += unit->count;
        l.saved = saved > l.saved ? saved : l.saved;
        l.input = e->ops[unit->op_first].bytes;
    }
    uint64_t chunk = dryi_ceil_div(l.count, e->setup.interleave);
    uint64_t every = e->setup.checkpoint_count ? e->setup.checkpoint_count : 2;
    l.longest = dryi_segment_layers(e, chunk);
    if (l.longest == 0)
        l.whole = chunk * l.flights;
    else if (e->setup.checkpointing == DRY_CHECKPOINTING_EVERY) {
        l.segments = dryi_ceil_div(chunk, every) * l.flights;
        l.whole = chunk * l.flights - l.segments;
    } else {
        l.segments = dryi_ceil_div(chunk, l.longest) * l.flights;
    }
    return l;
}

/* Add what selective checkpointing recomputes, one layer at a time. */
static void
add_made_again(struct dry_estimate *e)
{
    uint64_t most = 0;
    for (size_t u = 0; u < e->unit_count; u++) {
        uint64_t all = dryi_unit_saved(e, &e->units[u], false);
        uint64_t rest = dryi_unit_saved(e, &e->units[u], true);
        most = all - rest > most ? all - rest : most;
    }
    if (e->setup.checkpointing == DRY_CHECKPOINTING_SELECTIVE)
        explain(add_row(e, DRY_GROUP_ACTIVATIONS, "recomputed, one layer's", most,
                        from_korthikanti),
                "scores and masks of one layer");
}

/* Add the layers that save everything: a row for each unit of layers. */
static void
add_whole_layers(struct dry_estimate *e, const struct layers *l)
{
    bool is_selective = e->setup.checkpointing == DRY_CHECKPOINTING_SELECTIVE;
    for (size_t u = 0; u < e->unit_count; u++) {
        const struct dryi_unit *unit = &e->units[u];
        if (!unit->is_layer || unit->count == 0 || l->whole == 0)
            continue;
        uint64_t saved = dryi_unit_saved(e, unit, is_selective);
        uint64_t times = dryi_product(unit->count, l->whole) / l->count;
        explain(add_row(e, DRY_GROUP_ACTIVATIONS,
                        u + 2 == e->unit_count    ? "layers, all saved"
                        : e->model.encoder_layers ? "encoder layers, all saved"
                                                  : "dense layers, all saved",
                        dryi_product(times, saved), from_korthikanti),
                "n*A = %llu*%llu", ull(times), ull(saved));
    }
}

static void
add_segments(struct dry_estimate *e, const struct layers *l)
{
    if (l->segments == 0)
        return;
    explain(add_row(e, DRY_GROUP_ACTIVATIONS, "inputs of segments kept",
                    dryi_product(l->segments - 1, l->input), from_chen),
            "(k-1)*a = %llu*%llu", ull(l->segments - 1), ull(l->input));
    explain(add_row(e, DRY_GROUP_ACTIVATIONS, "the recomputed segment",
                    dryi_product(l->longest, l->saved), from_chen),
            "g*A = %llu*%llu", ull(l->longest), ull(l->saved));
}

static const char *
name_end(const struct dry_estimate *e, size_t unit)
{
    if (unit == 0)
        return e->unit_count == 1 ? "network" : "embedding";
    return unit + 1 < e->unit_count ? e->units[unit].name : "final norm and head";
}

static void
add_activations(struct dry_estimate *e)
{
    struct layers l = count_layers(e);
    for (size_t u = 0; u < e->unit_count; u++) {
        const struct dryi_unit *unit = &e->units[u];
        uint64_t saved = dryi_unit_saved(e, unit, false);
        uint64_t times = u + 1 == e->unit_count ? 1 : e->summary.flight_count;
        if (unit->is_layer || unit->count == 0)
            continue;
        explain(add_row(e, DRY_GROUP_ACTIVATIONS, name_end(e, u),
                        dryi_product(saved, times), from_shapes),
                "n*A = %llu*%llu", ull(times), ull(saved));
    }
    if (l.count) {
        add_whole_layers(e, &l);
        add_segments(e, &l);
        add_made_again(e);
    }
    for (size_t i = 0; i < e->row_count; i++) {
        if (e->rows[i].group == DRY_GROUP_ACTIVATIONS)
            e->summary.activation_bytes =
                dryi_sum(e->summary.activation_bytes, e->rows[i].bytes);
    }
}

/* --- the loss ----------------------------------------------------------------------------- */

static void
add_loss(struct dry_estimate *e)
{
    const struct dryi_unit *unit = &e->units[e->unit_count - 1];
    for (size_t i = 0; unit->count && i < unit->op_count; i++) {
        const struct dryi_op *op = &e->ops[unit->op_first + i];
        if (op->group != DRY_GROUP_LOSS || op->bytes <= 4)
            continue;
        struct dry_estimate_row *row =
            add_row(e, DRY_GROUP_LOSS, op->name, op->bytes, from_torch);
        if (row)
            memcpy(row->formula, op->formula, sizeof row->formula);
    }
    if (unit->count && e->model.kind != DRY_MODEL_CONV && !e->model.has_no_head)
        add_formula(e, DRY_GROUP_LOSS, "gradients of the logits",
                    e->model.patch ? "2 4 b V / t" : "2 4 b s V / c t", from_torch);
}

/* --- temporary bytes ---------------------------------------------------------------------- */

static const struct dryi_unit *
largest_unit(const struct dry_estimate *e)
{
    const struct dryi_unit *largest = &e->units[0];
    for (size_t u = 1; u < e->unit_count; u++) {
        if (e->units[u].count && e->units[u].local > largest->local)
            largest = &e->units[u];
    }
    return largest;
}

static void
add_cast(struct dry_estimate *e)
{
    uint64_t bytes = 0;
    for (size_t u = 0; u < e->unit_count; u++)
        bytes = dryi_sum(
            bytes, dryi_product(dryi_cast_bytes(e, &e->units[u]), e->units[u].count));
    explain(
        add_row(e, DRY_GROUP_TEMPORARY, "weights cast by autocast", bytes, from_torch),
        "matrices, 2*%llu", ull(bytes / 2));
}

static void
add_gathered(struct dry_estimate *e)
{
    struct dryi_widths w = dryi_widths_get(e->setup.precision);
    uint64_t *v = e->symbols.values;
    v['U'] = largest_unit(e)->local;
    v['u'] = w.activation < w.weight ? w.activation : w.weight;
    if (dryi_is_sharded(&e->setup, DRYI_KEPT_WEIGHTS))
        add_formula(e, DRY_GROUP_TEMPORARY, "weights gathered, two units", "2 U u",
                    from_zero);
    else
        add_cast(e);
    v['U'] = largest_unit(e)->local;
    v['u'] = w.grad;
    if (dryi_is_sharded(&e->setup, DRYI_KEPT_GRADS) && !e->setup.is_inference)
        add_formula(e, DRY_GROUP_TEMPORARY, "a unit's gradients, whole", "U u",
                    from_zero);
}

static void
add_moments(struct dry_estimate *e)
{
    const struct dry_estimate_summary *s = &e->summary;
    const struct dry_run_setup *setup = &e->setup;
    uint64_t *v = e->symbols.values;
    add_gathered(e);
    if (setup->data > 1 && setup->zero == 0 && !setup->has_bucket_view &&
        !dryi_has_static_grads(setup) && !setup->is_inference)
        explain(add_row(e, DRY_GROUP_TEMPORARY, "buckets of DDP", s->gradient_bytes,
                        from_torch),
                "as the gradients");
    v['B'] = setup->workspace_bytes;
    v['n'] = setup->is_inference ? 1 : 2;
    add_formula(e, DRY_GROUP_TEMPORARY, "workspaces of cuBLAS", "n B", from_torch);
    uint64_t widened = dryi_widened_bytes(e);
    explain(add_row(e, DRY_GROUP_TEMPORARY, "a matrix, widened", widened, from_shapes),
            "the largest, to multiply with it");
    uint64_t update = s->phases[DRY_ESTIMATE_STEP].parts[DRY_GROUP_TEMPORARY];
    uint64_t others = dryi_sum(dryi_product(setup->workspace_bytes, 2), widened);
    if (!setup->is_inference && update > others)
        explain(add_row(e, DRY_GROUP_TEMPORARY, "the optimizer's step", update - others,
                        from_replay),
                "%s, at its peak", dry_step_kind_name(setup->step));
    const struct dry_estimate_peak *peak = &s->phases[s->peak_phase];
    if (s->fits && s->reserved_bytes > peak->requested_bytes)
        explain(add_row(e, DRY_GROUP_TEMPORARY, "allocator: rounding, cache",
                        s->reserved_bytes - peak->requested_bytes, from_replay),
                "reserved - requested");
}

static void
add_outside(struct dry_estimate *e)
{
    const struct dry_run_setup *s = &e->setup;
    uint64_t *v = e->symbols.values;
    explain(add_row(e, DRY_GROUP_OUTSIDE, "context of the driver", s->context_bytes,
                    from_nobody),
            "%llu", ull(s->context_bytes));
    v['B'] = s->communication_bytes;
    v['n'] = s->communication_bytes
                 ? (e->summary.outside_bytes - s->context_bytes) / s->communication_bytes
                 : 0;
    add_formula(e, DRY_GROUP_OUTSIDE, "buffers of communication", "n B", from_nobody);
}

/* --- formulas from the literature --------------------------------------------------------- */

/* Return the root by Newton's method: the library does not link the math library. */
static double
square_root(double x)
{
    double root = x > 1 ? x : 1;
    for (int i = 0; i < 64; i++)
        root = (root + x / root) / 2;
    return root;
}

static bool
is_korthikanti(const struct dry_estimate *e)
{
    const struct dry_model *m = &e->model;
    return e->symbols.values['e'] == 2 && e->symbols.values['o'] == 2 &&
           e->setup.attention == DRY_ATTENTION_EAGER && dryi_has_dropout(e) &&
           m->kv_rank == 0 && m->kv_heads == m->heads && m->experts == 0 &&
           !m->is_gated && m->norm == DRY_NORM_LAYER && m->ffn == 4 * m->hidden &&
           e->setup.context == 1 && m->activation == DRY_ACT_GELU && !m->is_parallel &&
           e->setup.lora_rank == 0 && m->head_dim * m->heads == m->hidden;
}

/* Add the bytes of a layer by table 2 of Korthikanti et al. */
static void
add_korthikanti(struct dry_estimate *e)
{
    const uint64_t *v = e->symbols.values;
    uint64_t sbh = dryi_product(dryi_product(v['s'], v['b']), v['h']);
    uint64_t scores = dryi_product(dryi_product(dryi_product(5, v['a']), v['s']),
                                   dryi_product(v['s'], v['b']));
    bool is_selective = e->setup.checkpointing == DRY_CHECKPOINTING_SELECTIVE;
    bool is_full = dryi_segment_layers(e, 1) != 0;
    uint64_t kept = is_selective ? 0 : scores, t = v['t'], bytes;
    const char *text = "sbh(34 + 5as/h)";
    if (is_full) {
        bytes = dryi_product(2, sbh);
        text = "2sbh";
    } else if (v['r'] > 1) {
        bytes = dryi_sum(dryi_product(34, sbh), kept) / t;
        text = is_selective ? "34sbh/t" : "sbh/t(34 + 5as/h)";
    } else {
        bytes =
            dryi_sum(dryi_product(10, sbh), dryi_sum(dryi_product(24, sbh), kept) / t);
        if (t > 1 || is_selective)
            text = is_selective ? "sbh(10 + 24/t)" : "sbh(10 + 24/t + 5as/(ht))";
    }
    explain(add_row(e, DRY_GROUP_REFERENCE, "Korthikanti et al., a layer", bytes,
                    "arXiv:2205.05198, table 2"),
            "%s", text);
}

static void
add_references(struct dry_estimate *e)
{
    static const char left_out[] =
        "leaves out what layers make inside, the logits and all gradients";
    if (e->setup.is_inference || e->model.kind == DRY_MODEL_CONV)
        return;
    add_formula(e, DRY_GROUP_REFERENCE, "L*B*S*H*bytes", "N b s h e", left_out);
    uint64_t one =
        dryi_product(dryi_product(e->symbols.values['b'], e->symbols.values['s']),
                     dryi_product(e->symbols.values['h'], e->symbols.values['e']));
    double root = square_root((double)e->model.layers) * (double)one;
    if (root < (double)DRYI_SUM_MAX)
        explain(add_row(e, DRY_GROUP_REFERENCE, "sqrt(L)*B*S*H*bytes", (uint64_t)root,
                        "leaves out the segment that is recomputed, too"),
                "sqrt(%llu)*%llu", ull(e->model.layers), ull(one));
    if (is_korthikanti(e))
        add_korthikanti(e);
}

/* --- inference ---------------------------------------------------------------------------- */

/* Add a row for layers with a window, and one for layers without. */
static void
add_caches(struct dry_estimate *e)
{
    const struct dry_model *m = &e->model;
    uint64_t *v = e->symbols.values, sequence = v['s'], layers = v['N'];
    bool is_bounded = m->window && m->window < sequence;
    uint64_t global = is_bounded ? m->global_layers : m->layers;
    const char *size = m->kv_rank ? "N j s e Q" : "2 N g d s e Q / t";
    if (m->kind != DRY_MODEL_DECODER)
        return;
    v['N'] = global;
    if (global)
        add_formula(e, DRY_GROUP_CACHE, "keys and values", size, from_shapes);
    v['N'] = m->layers - global;
    v['s'] = is_bounded ? m->window : sequence;
    if (m->layers > global)
        add_formula(e, DRY_GROUP_CACHE,
                    global ? "keys and values, windows" : "keys and values", size,
                    from_shapes);
    v['s'] = sequence;
    v['N'] = layers;
    if (m->encoder_layers)
        add_formula(e, DRY_GROUP_CACHE, "keys and values, source", "2 N a d M e Q / t",
                    from_shapes);
    for (size_t i = 0; i < e->row_count; i++) {
        if (e->rows[i].group == DRY_GROUP_CACHE)
            e->summary.cache_bytes = dryi_sum(e->summary.cache_bytes, e->rows[i].bytes);
    }
}

static void
add_inference(struct dry_estimate *e)
{
    uint64_t *v = e->symbols.values;
    uint64_t sequence = v['s'];
    add_caches(e);
    if (!e->model.has_no_head)
        add_formula(e, DRY_GROUP_LOSS, "logits of one token", "4 Q V / t", from_torch);
    const struct dry_estimate_peak *peak = &e->summary.phases[DRY_ESTIMATE_FORWARD];
    uint64_t prompt =
        peak->parts[DRY_GROUP_TEMPORARY] + peak->parts[DRY_GROUP_ACTIVATIONS];
    uint64_t others = dryi_sum(e->setup.workspace_bytes, dryi_widened_bytes(e));
    if (prompt > others)
        explain(add_row(e, DRY_GROUP_TEMPORARY, "a prompt on its way", prompt - others,
                        from_replay),
                "a layer's, of %llu token%s", ull(sequence), sequence == 1 ? "" : "s");
}

/* --- units -------------------------------------------------------------------------------- */

static void
show_tensors(struct dry_estimate *e, const struct dryi_unit *unit)
{
    for (size_t i = 0; i + 1 < unit->op_count && e->status == DRY_OK; i++) {
        const struct dryi_op *op = &e->ops[unit->op_first + i];
        if (op->saver == DRYI_NO_OP || op->group == DRY_GROUP_LOSS)
            continue;
        if (!dryi_memory_grow(&e->memory, &e->tensors, &e->tensor_capacity,
                              e->tensor_count + 1, sizeof *e->tensors)) {
            e->status = dryi_fail_memory(e->err, "the tensors of an estimate");
            return;
        }
        struct dry_estimate_tensor *t = &e->tensors[e->tensor_count++];
        *t = (struct dry_estimate_tensor){.name = op->name, .bytes = op->bytes};
        memcpy(t->formula, op->formula, sizeof t->formula);
    }
}

static void
show_units(struct dry_estimate *e)
{
    size_t firsts[DRYI_UNITS_MAX + 1];
    for (size_t u = 0; u < e->unit_count; u++) {
        firsts[u] = e->tensor_count;
        show_tensors(e, &e->units[u]);
    }
    firsts[e->unit_count] = e->tensor_count;
    for (size_t u = 0; u < e->unit_count; u++) {
        const struct dryi_unit *unit = &e->units[u];
        e->shown_units[u] = (struct dry_estimate_unit){
            .name = unit->name,
            .count = unit->count,
            .parameter_count = unit->params,
            .saved_bytes = dryi_unit_saved(e, unit, false),
            .input_bytes = e->ops[unit->op_first].bytes,
            .tensors = e->tensors ? e->tensors + firsts[u] : NULL,
            .tensor_count = firsts[u + 1] - firsts[u],
        };
        dryi_unit_chain(e, unit, &e->shown_units[u]);
    }
}

void
dryi_estimate_rows(struct dry_estimate *e)
{
    add_kept(e);
    if (e->setup.is_inference) {
        add_inference(e);
    } else {
        add_activations(e);
        add_loss(e);
    }
    add_moments(e);
    add_outside(e);
    add_references(e);
    show_units(e);
}
