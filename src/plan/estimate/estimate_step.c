/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Steps of training: the order in which units run forward and backward, and the optimizer's step.
 *
 * Two steps are run: the first makes the optimizer's states, the second already has them. With
 * several microbatches, each step has two rounds: the second already has gradients. The passes of
 * one unit are in estimate_training.c.
 *
 * Cost: two steps, each of dryi_flights() forwards and backwards of all instances a round.
 */
#include "base/fail.h"
#include "plan/estimate/estimate_training.h"

#define INSTANCES_MAX 1000000u /* limit of unit forwards in a step */

/* --- segments ----------------------------------------------------------------------------- */

/* A sequence of instances; if it is a segment, its first forward saves nothing. */
struct stretch {
    size_t first, count;
    bool is_segment;
};

/* Return the length in layers of the segment that begins at `layer`; 0 if none begins there. */
static size_t
segment_at(const struct dry_estimate *e, uint64_t layer, uint64_t layers)
{
    uint64_t each = dryi_segment_layers(e, layers);
    if (each == 0)
        return 0;
    if (e->setup.checkpointing == DRY_CHECKPOINTING_EVERY) {
        uint64_t every = e->setup.checkpoint_count ? e->setup.checkpoint_count : 2;
        return layer % every == 0;
    }
    return layer % each == 0 ? (size_t)(each < layers - layer ? each : layers - layer)
                             : 0;
}

static void
forward_segment(struct dryi_training *t, size_t first, size_t count)
{
    for (size_t i = 0; i < count && t->status == DRY_OK; i++) {
        size_t before = t->frame_count;
        dryi_training_forward(t, first + i, false);
        if (i > 0 && t->status == DRY_OK)
            dryi_training_drop(t, &t->frames[before - 1]); /* the previous output */
    }
}

static struct dryi_training_block
backward_segment(struct dryi_training *t, size_t first, size_t count,
                 struct dryi_training_block flow)
{
    for (size_t i = 0; i < count && t->status == DRY_OK; i++) {
        size_t ops = dryi_training_unit_at(t, first + count - 1 - i)->op_count;
        if (i == 0)
            dryi_training_drop(t, &t->frames[t->frame_count - 1]);
        t->frame_count -= ops;
    }
    t->ahead_last = first + count;
    for (size_t i = 0; i < count; i++)
        dryi_training_forward(t, first + i, true);
    for (size_t i = count; i-- > 0;)
        flow = dryi_training_backward(t, first + i, flow);
    return flow;
}

/* --- a chunk of the model ----------------------------------------------------------------- */

/*
 * The instances of chunk `c`: an equal part of the layers, and the units before or after
 * all layers.
 */
struct chunk {
    size_t first, first_layer, last_layer, last;
};

static bool
is_layer(const struct dryi_training *t, size_t instance)
{
    return dryi_training_unit_at(t, instance)->is_layer;
}

static struct chunk
chunk_at(const struct dryi_training *t, uint64_t c)
{
    uint64_t parts = t->e->setup.interleave;
    size_t low = 0, high = t->instance_count;
    while (low < high && !is_layer(t, low))
        low++;
    while (high > low && !is_layer(t, high - 1))
        high--;
    size_t layers = high - low;
    struct chunk chunk = {
        .first_layer = low + (size_t)(c * layers / parts),
        .last_layer = low + (size_t)((c + 1) * layers / parts),
    };
    chunk.first = c == 0 ? 0 : chunk.first_layer;
    chunk.last = c + 1 == parts ? t->instance_count : chunk.last_layer;
    return chunk;
}

static void
forward_layers(struct dryi_training *t, const struct chunk *c)
{
    size_t layers = c->last_layer - c->first_layer;
    for (size_t i = 0; i < layers && t->status == DRY_OK;) {
        size_t count = segment_at(t->e, i, layers);
        if (count)
            forward_segment(t, c->first_layer + i, count);
        else
            dryi_training_forward(t, c->first_layer + i, true);
        i += count ? count : 1;
    }
}

/* Run the layers backward, with the same segments as the forward. */
static struct dryi_training_block
backward_layers(struct dryi_training *t, const struct chunk *c,
                struct dryi_training_block flow)
{
    size_t layers = c->last_layer - c->first_layer;
    uint64_t each = dryi_segment_layers(t->e, layers);
    each = each && t->e->setup.checkpointing != DRY_CHECKPOINTING_EVERY ? each : 1;
    for (size_t end = layers; end > 0 && t->status == DRY_OK;) {
        size_t begin = (end - 1) / (size_t)each * (size_t)each;
        if (segment_at(t->e, begin, layers))
            flow = backward_segment(t, c->first_layer + begin, end - begin, flow);
        else
            flow = dryi_training_backward(t, c->first_layer + begin, flow);
        end = begin;
    }
    return flow;
}

static void
forward_chunk(struct dryi_training *t, const struct chunk *c, bool is_last)
{
    dryi_training_begin_phase(t, DRY_ESTIMATE_FORWARD);
    t->ahead_last = is_last ? c->last : c->last_layer;
    for (size_t i = c->first; i < c->first_layer; i++)
        dryi_training_forward(t, i, true);
    forward_layers(t, c);
    dryi_training_begin_phase(t, DRY_ESTIMATE_LOSS);
    for (size_t i = c->last_layer; is_last && i < c->last; i++)
        dryi_training_forward(t, i, true);
}

static void
backward_chunk(struct dryi_training *t, const struct chunk *c, bool is_last)
{
    struct dryi_training_block flow = {DRYI_NO_BLOCK, DRY_GROUP_TEMPORARY, 0};
    size_t tail = is_last ? c->last : c->last_layer;
    /* Its gradient comes from the next stage. */
    if (tail == c->last_layer && tail > c->first) {
        const struct dryi_unit *unit = dryi_training_unit_at(t, tail - 1);
        flow = dryi_training_take(t, t->e->ops[unit->op_first + unit->op_count - 1].bytes,
                                  DRY_GROUP_TEMPORARY);
    }
    for (size_t i = tail; i > c->last_layer; i--)
        flow = dryi_training_backward(t, i - 1, flow);
    dryi_training_begin_phase(t, DRY_ESTIMATE_BACKWARD);
    flow = backward_layers(t, c, flow);
    for (size_t i = c->first_layer; i > c->first; i--)
        flow = dryi_training_backward(t, i - 1, flow);
    dryi_training_drop(t, &flow);
}

/* --- the optimizer ------------------------------------------------------------------------ */

static void
load_states(struct dryi_training *t)
{
    const struct dry_estimate *e = t->e;
    bool is_sharded = dryi_is_sharded(&e->setup, DRYI_KEPT_STATES);
    for (size_t i = 0; i < t->instance_count && !t->has_states; i++) {
        const struct dryi_unit *unit = dryi_training_unit_at(t, i);
        if (is_sharded) {
            dryi_training_take(t, dryi_unit_bytes(e, unit, DRYI_KEPT_STATES),
                               DRY_GROUP_OPTIMIZER);
            continue;
        }
        for (size_t p = 0; p < unit->param_count; p++) {
            uint64_t sizes[DRYI_STATES_MAX];
            size_t count =
                dryi_state_sizes(&e->setup, &e->params[unit->param_first + p], sizes);
            for (size_t k = 0; k < count; k++)
                dryi_training_take(t, sizes[k], DRY_GROUP_OPTIMIZER);
        }
    }
    t->has_states = true;
}

/* Return the bytes of the tensor that Adam and similar optimizers compute a step in. */
static uint64_t
step_bytes(const struct dryi_training *t, const struct dryi_param *p)
{
    struct dryi_widths w = dryi_widths_get(t->e->setup.precision);
    uint64_t shares =
        dryi_is_sharded(&t->e->setup, DRYI_KEPT_STATES) ? t->e->setup.data : 1;
    if (p->is_frozen)
        return 0;
    return dryi_ceil_div(dryi_product(p->elements, w.state), shares);
}

static bool
needs_temporaries(enum dry_optimizer optimizer)
{
    return optimizer != DRY_OPTIMIZER_SGD && optimizer != DRY_OPTIMIZER_MOMENTUM &&
           optimizer != DRY_OPTIMIZER_ADAMW_8BIT && optimizer != DRY_OPTIMIZER_LION;
}

static void
update(struct dryi_training *t)
{
    const struct dry_estimate *e = t->e;
    bool is_foreach = e->setup.step == DRY_STEP_FOREACH &&
                      e->setup.optimizer != DRY_OPTIMIZER_ADAFACTOR &&
                      e->setup.optimizer != DRY_OPTIMIZER_MUON;
    size_t base = t->frame_count;
    if (e->setup.step == DRY_STEP_FUSED || !needs_temporaries(e->setup.optimizer))
        return;
    for (size_t i = 0; i < t->instance_count; i++) {
        const struct dryi_unit *unit = dryi_training_unit_at(t, i);
        for (size_t p = 0; p < unit->param_count && t->status == DRY_OK; p++) {
            struct dryi_training_block live = dryi_training_take(
                t, step_bytes(t, &e->params[unit->param_first + p]), DRY_GROUP_TEMPORARY);
            if (is_foreach && dryi_training_grow_frames(t, 1))
                t->frames[t->frame_count - 1] = live;
            else
                dryi_training_drop(t, &live);
        }
    }
    while (t->frame_count > base)
        dryi_training_drop(t, &t->frames[--t->frame_count]);
}

static void
step(struct dryi_training *t)
{
    dryi_training_begin_phase(t, DRY_ESTIMATE_STEP);
    load_states(t);
    update(t);
    for (size_t i = 0; i < t->slot_count && !dryi_has_static_grads(&t->e->setup); i++)
        dryi_training_drop(t, &t->grads[i]);
}

/* --- the loop ----------------------------------------------------------------------------- */

/*
 * Run the forwards whose activations exist at once, then their backwards. The last
 * forward has the loss.
 */
static void
train_round(struct dryi_training *t, uint64_t flights)
{
    uint64_t parts = t->e->setup.interleave;
    for (uint64_t i = 0; i < flights && t->status == DRY_OK; i++) {
        struct chunk c = chunk_at(t, parts - 1 - (flights - 1 - i) % parts);
        forward_chunk(t, &c, i + 1 == flights);
    }
    for (uint64_t i = flights; i-- > 0 && t->status == DRY_OK;) {
        struct chunk c = chunk_at(t, parts - 1 - (flights - 1 - i) % parts);
        backward_chunk(t, &c, i + 1 == flights);
    }
}

static void
train(struct dryi_training *t)
{
    const struct dry_estimate *e = t->e;
    uint64_t flights = dryi_flights(e);
    uint64_t wanted = dryi_product(e->setup.accumulation, e->setup.interleave);
    uint64_t rounds = wanted > flights ? 2 : 1;
    dryi_training_load_weights(t);
    dryi_training_load_grads(t);
    dryi_training_take(t, e->setup.workspace_bytes, DRY_GROUP_TEMPORARY);
    dryi_training_take(t, e->setup.workspace_bytes, DRY_GROUP_TEMPORARY);
    dryi_training_take(t, dryi_widened_bytes(e), DRY_GROUP_TEMPORARY);
    for (int i = 0; i < 2; i++) {
        for (uint64_t round = 0; round < rounds; round++)
            train_round(t, flights);
        step(t);
    }
}

/* Allocate the keys and values of every layer that caches them; layers with a window come first. */
static void
take_caches(struct dryi_training *t)
{
    const struct dry_estimate *e = t->e;
    uint64_t layer = 0, local = e->model.layers - e->model.global_layers;
    for (size_t i = 0; i < t->instance_count; i++) {
        if (!dryi_training_unit_at(t, i)->has_cache)
            continue;
        bool is_global = layer++ >= local;
        dryi_training_take(t, dryi_cache_bytes(e, is_global), DRY_GROUP_CACHE);
        dryi_training_take(t, dryi_cross_cache_bytes(e), DRY_GROUP_CACHE);
    }
}

/* Run inference: allocate weights and cache, and run one request's prompt through the layers. */
static void
infer(struct dryi_training *t)
{
    struct dry_estimate *e = t->e;
    dryi_training_load_weights(t);
    dryi_training_take(t, e->setup.workspace_bytes, DRY_GROUP_TEMPORARY);
    dryi_training_take(t, dryi_widened_bytes(e), DRY_GROUP_TEMPORARY);
    take_caches(t);
    dryi_training_begin_phase(t, DRY_ESTIMATE_FORWARD);
    t->ahead_last = t->instance_count;
    for (size_t i = 0; i < t->instance_count && t->status == DRY_OK; i++) {
        size_t before = t->frame_count;
        if (!is_layer(t, i) && i > 0 && i + 1 == t->instance_count)
            break; /* the head reads only the last token */
        dryi_training_forward(t, i, false);
        if (before && t->status == DRY_OK)
            dryi_training_drop(t, &t->frames[before - 1]);
    }
    struct dryi_training_block logits =
        dryi_training_take(t, dryi_token_logits(e), DRY_GROUP_LOSS);
    dryi_training_drop(t, &logits);
}

/* --- the summary ---------------------------------------------------------------------- */

static void
sum_up(struct dry_estimate *e)
{
    struct dry_estimate_summary *s = &e->summary;
    for (int i = 0; i < DRY_ESTIMATE_PHASE_COUNT; i++) {
        const struct dry_estimate_peak *p = &s->phases[i];
        if (p->allocated_bytes > s->allocated_bytes) {
            s->allocated_bytes = p->allocated_bytes;
            s->peak_phase = (enum dry_estimate_phase)i;
        }
        if (p->reserved_bytes > s->reserved_bytes)
            s->reserved_bytes = p->reserved_bytes;
    }
    s->device_bytes = dryi_sum(s->reserved_bytes, s->outside_bytes);
}

void
dryi_estimate_step(struct dry_estimate *e)
{
    struct dryi_training t;
    uint64_t instances = 0;
    for (size_t u = 0; u < e->unit_count; u++)
        instances += e->units[u].count;
    if (dryi_product(instances, dryi_flights(e)) > INSTANCES_MAX) {
        e->status =
            dryi_fail(e->err, DRY_ERR_LIMIT,
                      "%llu layers with %llu microbatches under way are too many",
                      (unsigned long long)instances, (unsigned long long)dryi_flights(e));
        return;
    }
    e->status = dryi_training_init(&t, e);
    if (e->status != DRY_OK)
        return;
    if (e->setup.is_inference)
        infer(&t);
    else
        train(&t);
    dryi_training_end_phase(&t);
    sum_up(e);
    e->summary.fits = t.status != DRY_ERR_NO_SPACE;
    if (t.status != DRY_OK && t.status != DRY_ERR_NO_SPACE)
        e->status = dryi_fail_memory(e->err, "a step of training");
    dryi_training_finish(&t);
}
