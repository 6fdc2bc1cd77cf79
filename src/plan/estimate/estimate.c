/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An estimate from end to end: units, a step, rows; and the search for the largest value
 * that fits. estimate_inside.h explains the method.
 *
 * Cost: that of a step (estimate_step.c). A search makes about two estimates for each bit
 * of its answer.
 */
#include <drystone/estimate.h>

#include <string.h>

#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "plan/estimate/estimate_inside.h"

/* --- symbols ------------------------------------------------------------------------------ */

/*
 * Set the values of the letters in formulas. Inference runs the forward for one prompt at a time.
 * Key heads beyond the tensor-parallel degree cannot be split, so every device has at least one.
 */
static void
set_symbols(struct dry_estimate *e)
{
    const struct dry_model *m = &e->model;
    const struct dry_run_setup *s = &e->setup;
    struct dryi_widths w = dryi_widths_get(s->precision);
    uint64_t *v = e->symbols.values;
    for (size_t i = 0; i < 128; i++)
        v[i] = 1;
    v['e'] = w.activation;
    v['o'] = w.residual;
    v['w'] = m->value_dim;
    v['b'] = s->is_inference ? 1 : s->batch;
    v['s'] = m->kind == DRY_MODEL_CONV ? 1 : s->sequence;
    v['h'] = m->hidden;
    v['a'] = m->heads;
    v['g'] = dryi_max(m->kv_heads, s->tensor);
    v['d'] = m->head_dim;
    v['f'] = m->ffn;
    v['V'] = m->vocab;
    v['t'] = s->tensor;
    v['r'] = s->has_sequence_parallel ? s->tensor : 1;
    v['c'] = s->context;
    v['m'] = s->mask_bytes;
    v['E'] = m->experts;
    v['k'] = m->experts_per_token;
    v['x'] = m->expert_ffn;
    v['F'] = m->shared_ffn;
    v['q'] = m->q_rank;
    v['l'] = m->kv_rank;
    v['j'] = m->kv_rank + m->rope_dim;
    v['y'] = m->rope_dim + m->nope_dim;
    v['z'] = m->nope_dim + m->value_dim;
    v['R'] = s->lora_rank;
    v['Q'] = s->requests;
    v['M'] = dryi_source_tokens(e);
    v['C'] = dryi_max(m->channels, m->audio_channels);
    v['H'] = m->height;
    v['W'] = m->width;
    v['N'] = m->layers;
}

/* --- building ----------------------------------------------------------------------------- */

static void
build(struct dry_estimate *e)
{
    e->op_count = e->param_count = e->unit_count = 0;
    if (e->model.kind == DRY_MODEL_CONV)
        dryi_build_conv(e);
    else
        dryi_build_transformer(e);
}

/* Estimate what a stage holds, well enough to find the fullest. */
static uint64_t
weigh(const struct dry_estimate *e)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < e->unit_count; i++) {
        const struct dryi_unit *u = &e->units[i];
        uint64_t one = 0, saved = dryi_unit_saved(e, u, false);
        for (int kept = DRYI_KEPT_WEIGHTS; kept <= DRYI_KEPT_STATES; kept++)
            one = dryi_sum(one, dryi_unit_bytes(e, u, (enum dryi_kept)kept));
        saved = dryi_product(saved, dryi_flights(e)) / e->setup.interleave;
        for (size_t k = 0; k < u->op_count && !u->is_layer; k++)
            saved = dryi_sum(saved, e->ops[u->op_first + k].bytes);
        sum = dryi_sum(sum, dryi_product(dryi_sum(one, saved), u->count));
    }
    return sum;
}

static void
choose_stage(struct dry_estimate *e)
{
    uint64_t most = 0, worst = 0;
    if (e->setup.stage != DRY_STAGE_WORST)
        return;
    for (uint64_t i = 0; i < e->setup.pipeline && e->status == DRY_OK; i++) {
        e->setup.stage = i;
        if (e->setup.pipeline > 1)
            build(e);
        uint64_t weight = e->setup.pipeline > 1 && e->status == DRY_OK ? weigh(e) : 0;
        worst = weight > most ? i : worst;
        most = dryi_max(most, weight);
    }
    e->setup.stage = worst;
}

/* --- the summary -------------------------------------------------------------------------- */

static uint64_t
sum_trained(const struct dry_estimate *e, const struct dryi_unit *u)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < u->param_count; i++) {
        const struct dryi_param *p = &e->params[u->param_first + i];
        if (!p->is_frozen && !p->is_copy)
            sum = dryi_sum(sum, dryi_product(dryi_product(p->rows, p->cols ? p->cols : 1),
                                             p->count));
    }
    return sum;
}

static void
count_parameters(struct dry_estimate *e)
{
    struct dry_estimate_summary *s = &e->summary;
    for (size_t i = 0; i < e->unit_count; i++) {
        const struct dryi_unit *u = &e->units[i];
        uint64_t n = u->model_count;
        s->parameter_count = dryi_sum(s->parameter_count, dryi_product(u->params, n));
        s->active_parameter_count =
            dryi_sum(s->active_parameter_count, dryi_product(u->active_count, n));
        s->trained_count = dryi_sum(s->trained_count, dryi_product(sum_trained(e, u), n));
        s->device_parameter_count =
            dryi_sum(s->device_parameter_count, dryi_product(u->local, u->count));
    }
    if (s->parameter_count >= DRYI_SUM_MAX / 16 && e->status == DRY_OK)
        e->status = dryi_fail(e->err, DRY_ERR_LIMIT, "more than 2^58 parameters");
}

static uint64_t
outside_bytes(const struct dry_run_setup *s)
{
    const uint64_t sizes[] = {s->data, s->tensor, s->pipeline, s->context, s->expert};
    uint64_t degrees = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        degrees += sizes[i] > 1;
    return dryi_sum(s->context_bytes, degrees * s->communication_bytes);
}

static void
sum_kept(struct dry_estimate *e)
{
    struct dry_estimate_summary *s = &e->summary;
    for (size_t i = 0; i < e->unit_count; i++) {
        const struct dryi_unit *u = &e->units[i];
        uint64_t bytes[3];
        for (int k = 0; k < 3; k++)
            bytes[k] = dryi_product(dryi_unit_bytes(e, u, (enum dryi_kept)k), u->count);
        s->weight_bytes = dryi_sum(s->weight_bytes, bytes[DRYI_KEPT_WEIGHTS]);
        if (e->setup.is_inference)
            continue;
        s->gradient_bytes = dryi_sum(s->gradient_bytes, bytes[DRYI_KEPT_GRADS]);
        s->optimizer_bytes = dryi_sum(s->optimizer_bytes, bytes[DRYI_KEPT_STATES]);
    }
    s->stage = e->setup.stage;
    s->flight_count = dryi_ceil_div(dryi_flights(e), e->setup.interleave);
    s->outside_bytes = outside_bytes(&e->setup);
}

/* --- create ------------------------------------------------------------------------------- */

static enum dry_status
take_options(struct dry_estimate *e, const struct dry_model *model,
             const struct dry_run_setup *setup, struct dry_error *err)
{
    if (!model)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "no model");
    dry_model_init(&e->model);
    enum dry_status status = dryi_sized_take(&e->model, sizeof e->model, model, err);
    if (status == DRY_OK)
        status = dryi_setup_take(&e->setup, setup, err);
    if (status == DRY_OK)
        status = dryi_model_check(&e->model, err);
    return status == DRY_OK ? dryi_setup_check(&e->setup, &e->model, err) : status;
}

static void
work(struct dry_estimate *e)
{
    set_symbols(e);
    choose_stage(e);
    if (e->status == DRY_OK)
        build(e);
    if (e->status == DRY_OK) {
        count_parameters(e);
        sum_kept(e);
    }
    if (e->status == DRY_OK)
        dryi_estimate_step(e);
    if (e->status == DRY_OK)
        dryi_estimate_rows(e);
}

enum dry_status
dry_estimate_create(const struct dry_model *model, const struct dry_run_setup *setup,
                    const struct dry_memory *memory, struct dry_estimate **estimate,
                    struct dry_error *err)
{
    struct dry_memory used = dryi_memory_or_default(memory);
    struct dry_estimate *e = dryi_memory_zalloc(&used, 1, sizeof *e);
    if (!e)
        return dryi_fail_memory(err, "an estimate");
    e->memory = used;
    e->err = err;
    e->status = take_options(e, model, setup, err);
    if (e->status == DRY_OK)
        work(e);
    e->err = NULL;
    enum dry_status status = e->status;
    if (status == DRY_OK)
        *estimate = e;
    else
        dry_estimate_destroy(e);
    return status;
}

void
dry_estimate_destroy(struct dry_estimate *e)
{
    if (!e)
        return;
    struct dry_memory memory = e->memory;
    dryi_memory_free(&memory, e->ops, e->op_capacity, sizeof *e->ops);
    dryi_memory_free(&memory, e->params, e->param_capacity, sizeof *e->params);
    dryi_memory_free(&memory, e->tensors, e->tensor_capacity, sizeof *e->tensors);
    dryi_memory_free(&memory, e->rows, e->row_capacity, sizeof *e->rows);
    dryi_memory_free(&memory, e, 1, sizeof *e);
}

const struct dry_estimate_summary *
dry_estimate_get_summary(const struct dry_estimate *estimate)
{
    return &estimate->summary;
}

const struct dry_estimate_row *
dry_estimate_get_rows(const struct dry_estimate *estimate, size_t *count)
{
    *count = estimate->row_count;
    return estimate->rows;
}

const struct dry_estimate_unit *
dry_estimate_get_units(const struct dry_estimate *estimate, size_t *count)
{
    *count = estimate->unit_count;
    return estimate->shown_units;
}

/* --- what fits ---------------------------------------------------------------------------- */

struct search {
    const struct dry_model *model;
    struct dry_run_setup setup;
    enum dry_fit what;
    uint64_t step, most;
};

static enum dry_status
try_value(struct search *s, uint64_t units, bool *fits, struct dry_error *err)
{
    struct dry_estimate *estimate = NULL;
    uint64_t value = units * s->step;
    if (s->what == DRY_FIT_BATCH)
        s->setup.batch = value;
    else if (s->what == DRY_FIT_SEQUENCE)
        s->setup.sequence = value;
    else
        s->setup.requests = value;
    enum dry_status status =
        dry_estimate_create(s->model, &s->setup, NULL, &estimate, err);
    *fits = estimate && estimate->summary.fits;
    dry_estimate_destroy(estimate);
    return status == DRY_ERR_LIMIT && units > 1 ? DRY_OK : status;
}

/* Find the largest value that fits: double until one fails, then bisect. */
static enum dry_status
search(struct search *s, uint64_t *value, struct dry_error *err)
{
    uint64_t low = 0, high = 1, last = s->most / s->step;
    bool fits = true;
    enum dry_status status = DRY_OK;
    while (status == DRY_OK && fits && high <= last) {
        status = try_value(s, high, &fits, err);
        low = fits ? high : low;
        high = fits ? high * 2 : high;
    }
    high = high > last ? last + 1 : high;
    while (status == DRY_OK && high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        status = try_value(s, middle, &fits, err);
        low = fits ? middle : low;
        high = fits ? high : middle;
    }
    if (status == DRY_OK)
        *value = low * s->step;
    return status;
}

enum dry_status
dry_estimate_fit(const struct dry_model *model, const struct dry_run_setup *setup,
                 enum dry_fit what, uint64_t step, uint64_t *value, struct dry_error *err)
{
    struct search s = {.model = model, .what = what, .step = step ? step : 1};
    s.most = DRYI_NUMBER_MAX;
    enum dry_status status = dryi_setup_take(&s.setup, setup, err);
    if (status != DRY_OK)
        return status;
    if (!model || (unsigned)what > DRY_FIT_REQUESTS || s.setup.capacity_bytes == 0 ||
        s.step > DRYI_NUMBER_MAX)
        return dryi_fail(
            err, DRY_ERR_ARGUMENT,
            "what fits: a model, what to look for and a capacity are needed");
    if (what == DRY_FIT_SEQUENCE && model->positions)
        s.most = model->positions;
    if (what == DRY_FIT_SEQUENCE)
        s.step = dryi_max(s.step, s.setup.context);
    return search(&s, value, err);
}
