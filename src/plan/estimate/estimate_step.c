/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Steps of training, request by request, through PyTorch's allocator on a simulated device.
 *
 * The device's units stand in a row of instances. A forward pushes a frame, a handle an
 * operation; a backward pops it. Two steps are run: the first makes the optimizer's states, the
 * second meets them. With more microbatches than one, so are two rounds: the second meets
 * gradients.
 */
#include <string.h>

#include <drystone/sim.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/memory.h"
#include "place/torch/torch.h"
#include "plan/estimate/estimate_inside.h"

#define INSTANCES_MAX 1000000u /* forwards of units, in all of a step */

/* Something that is there, and what it counts for. */
struct live {
    dryi_block block;
    enum dry_estimate_group group;
    uint64_t bytes;
};

struct machine {
    struct dry_estimate *e;
    struct dry_sim *sim;
    struct dryi_torch *torch;
    enum dry_status status; /* NO_SPACE: it does not fit */
    uint64_t now, parts[DRY_GROUP_COUNT];
    struct dry_estimate_peak *peak; /* of the phase under way */

    struct live *frames; /* handles of operations, a frame a forward */
    size_t frame_count, frame_capacity;
    struct live *flows; /* gradients, by operation of the unit under way */
    size_t flow_count;

    uint32_t *unit_of; /* by instance */
    size_t instance_count;
    struct live *gathered; /* by instance: its weights, whole (ZeRO 3) */
    size_t *slot_of;       /* by instance: where its gradients begin */
    struct live *grads; /* by slot: a parameter's, or the unit's where they are shared */
    size_t slot_count;
    struct live workspaces[2];
    bool has_states;
    size_t ahead_last; /* weights are gathered ahead up to here */
};

/* --- requests ----------------------------------------------------------------------------- */

static void
note_peak(struct machine *m)
{
    if (m->now <= m->peak->requested_bytes)
        return;
    m->peak->requested_bytes = m->now;
    memcpy(m->peak->parts, m->parts, sizeof m->parts);
}

static struct live
take(struct machine *m, uint64_t bytes, enum dry_estimate_group group)
{
    struct live live = {DRYI_NO_BLOCK, group, bytes};
    if (m->status != DRY_OK || bytes == 0)
        return live;
    enum dry_status status = dryi_torch_alloc(m->torch, bytes, 0, &live.block);
    if (status == DRY_ERR_ARGUMENT)
        status = DRY_ERR_NO_SPACE; /* more than any device has */
    m->status = status;
    if (status != DRY_OK)
        return (struct live){DRYI_NO_BLOCK, group, 0};
    m->now += bytes;
    m->parts[group] += bytes;
    note_peak(m);
    return live;
}

static void
drop(struct machine *m, struct live *live)
{
    if (live->block == DRYI_NO_BLOCK)
        return;
    enum dry_status status = dryi_torch_free(m->torch, live->block);
    if (m->status == DRY_OK)
        m->status = status;
    m->now -= live->bytes;
    m->parts[live->group] -= live->bytes;
    live->block = DRYI_NO_BLOCK;
}

/* --- phases ------------------------------------------------------------------------------- */

static void
end_phase(struct machine *m)
{
    struct dry_stats stats;
    dryi_torch_get_stats(m->torch, &stats);
    uint64_t allocated = (uint64_t)stats.allocated_bytes.all.peak;
    uint64_t reserved = (uint64_t)stats.reserved_bytes.all.peak;
    if (m->peak->allocated_bytes < allocated)
        m->peak->allocated_bytes = allocated;
    if (m->peak->reserved_bytes < reserved)
        m->peak->reserved_bytes = reserved;
    dryi_torch_reset_stats(m->torch, true, false);
}

static void
begin_phase(struct machine *m, enum dry_estimate_phase phase)
{
    end_phase(m);
    m->peak = &m->e->summary.phases[phase];
    note_peak(m);
}

/* --- weights ------------------------------------------------------------------------------ */

static const struct dryi_unit *
unit_at(const struct machine *m, size_t instance)
{
    return &m->e->units[m->unit_of[instance]];
}

static void
load_weights(struct machine *m)
{
    const struct dry_estimate *e = m->e;
    bool is_sharded = dryi_is_sharded(&e->setup, DRYI_KEPT_WEIGHTS);
    for (size_t i = 0; i < m->instance_count; i++) {
        const struct dryi_unit *unit = unit_at(m, i);
        if (is_sharded) {
            take(m, dryi_unit_bytes(e, unit, DRYI_KEPT_WEIGHTS), DRY_GROUP_WEIGHTS);
            continue;
        }
        for (size_t p = 0; p < unit->param_count; p++)
            take(
                m,
                dryi_param_bytes(e, &e->params[unit->param_first + p], DRYI_KEPT_WEIGHTS),
                DRY_GROUP_WEIGHTS);
    }
}

/* All weights of a unit, in the width that they are computed with. */
static uint64_t
whole_bytes(const struct dry_estimate *e, const struct dryi_unit *unit)
{
    struct dryi_widths w = dryi_widths_of(e->setup.precision);
    return dryi_product(unit->local, w.activation < w.weight ? w.activation : w.weight);
}

static bool
gathers(const struct machine *m)
{
    return dryi_is_sharded(&m->e->setup, DRYI_KEPT_WEIGHTS);
}

/* Autocast computes with narrower copies, which stay until the backward is over. */
static bool
casts(const struct machine *m)
{
    return m->e->setup.precision == DRY_PRECISION_AMP && !gathers(m);
}

static void
make_whole(struct machine *m, size_t instance)
{
    const struct dryi_unit *unit = unit_at(m, instance);
    uint64_t bytes = gathers(m) ? whole_bytes(m->e, unit) : dryi_cast_bytes(m->e, unit);
    if (m->gathered[instance].block == DRYI_NO_BLOCK)
        m->gathered[instance] = take(m, bytes, DRY_GROUP_TEMPORARY);
}

/* Weights of this instance and, where they are gathered, ahead of time of the next one. */
static void
gather(struct machine *m, size_t instance, size_t next)
{
    if (gathers(m) || casts(m))
        make_whole(m, instance);
    if (gathers(m) && next < m->ahead_last)
        make_whole(m, next);
}

/* --- gradients ---------------------------------------------------------------------------- */

/* A slot that is taken is added to, as are gradients that have a place of their own. */
static void
add_grad(struct machine *m, struct live *slot, uint64_t bytes)
{
    if (slot->block != DRYI_NO_BLOCK || dryi_has_static_grads(&m->e->setup)) {
        struct live more = take(m, bytes, DRY_GROUP_TEMPORARY);
        drop(m, &more);
        return;
    }
    bool is_shared = dryi_is_sharded(&m->e->setup, DRYI_KEPT_GRADS);
    *slot = take(m, bytes, is_shared ? DRY_GROUP_TEMPORARY : DRY_GROUP_GRADIENTS);
}

static void
add_param_grads(struct machine *m, size_t instance, const struct dryi_op *op)
{
    const struct dry_estimate *e = m->e;
    const struct dryi_unit *unit = unit_at(m, instance);
    for (uint32_t i = 0; i < op->param_count; i++) {
        size_t index = op->param_first + i;
        uint64_t bytes =
            dryi_param_bytes(e, &e->params[unit->param_first + index], DRYI_KEPT_GRADS);
        add_grad(m, &m->grads[m->slot_of[instance] + index], bytes);
    }
    if (op->is_tied)
        add_grad(
            m, &m->grads[m->slot_of[0]],
            dryi_param_bytes(e, &e->params[e->units[0].param_first], DRYI_KEPT_GRADS));
}

/* Summed over the group: what is left of them here is the unit's share. */
static void
share_grads(struct machine *m, size_t instance)
{
    const struct dryi_unit *unit = unit_at(m, instance);
    struct live *slots = &m->grads[m->slot_of[instance]];
    if (!dryi_is_sharded(&m->e->setup, DRYI_KEPT_GRADS))
        return;
    struct live *share = &slots[unit->param_count];
    if (share->block == DRYI_NO_BLOCK)
        *share =
            take(m, dryi_unit_bytes(m->e, unit, DRYI_KEPT_GRADS), DRY_GROUP_GRADIENTS);
    for (size_t i = 0; i < unit->param_count; i++)
        drop(m, &slots[i]);
}

/* Megatron's, from the beginning; DDP's buckets, unless gradients are views of them. */
static void
load_grads(struct machine *m)
{
    const struct dry_estimate *e = m->e;
    bool has_buckets = e->setup.data > 1 && e->setup.zero == 0 &&
                       !e->setup.has_bucket_view && !dryi_has_static_grads(&e->setup);
    for (size_t i = 0; i < m->instance_count; i++) {
        const struct dryi_unit *unit = unit_at(m, i);
        uint64_t bytes = dryi_unit_bytes(e, unit, DRYI_KEPT_GRADS);
        if (has_buckets)
            take(m, bytes, DRY_GROUP_TEMPORARY);
        if (dryi_has_static_grads(&e->setup))
            m->grads[m->slot_of[i] + unit->param_count] =
                take(m, bytes, DRY_GROUP_GRADIENTS);
    }
}

/* --- forward ------------------------------------------------------------------------------ */

static bool
grow_frames(struct machine *m, size_t count)
{
    if (!dryi_memory_grow(&m->e->memory, &m->frames, &m->frame_capacity,
                          m->frame_count + count, sizeof *m->frames)) {
        m->status = DRY_ERR_MEMORY;
        return false;
    }
    for (size_t i = 0; i < count; i++)
        m->frames[m->frame_count + i].block = DRYI_NO_BLOCK;
    m->frame_count += count;
    return true;
}

static bool
is_kept(const struct machine *m, const struct dryi_op *op)
{
    bool is_dropped =
        op->is_made_again && m->e->setup.checkpointing == DRY_CHECKPOINTING_SELECTIVE;
    return op->saver != DRYI_NO_OP && !is_dropped;
}

static enum dry_estimate_group
group_of(const struct dryi_op *op, bool is_saved)
{
    if (op->group == DRY_GROUP_LOSS)
        return DRY_GROUP_LOSS;
    return is_saved ? DRY_GROUP_ACTIVATIONS : DRY_GROUP_TEMPORARY;
}

/* What was used for the last time by operation `at`, and is not for the backward. */
static void
drop_dead(struct machine *m, const struct dryi_op *ops, struct live *frame, uint32_t at,
          bool saves)
{
    for (uint32_t j = ops[at].first_dead; j != DRYI_NO_OP; j = ops[j].next_dead) {
        if (!saves || !is_kept(m, &ops[j]))
            drop(m, &frame[j]);
    }
}

/* One unit's forward; without `saves` its output alone is left. */
static void
forward(struct machine *m, size_t instance, bool saves)
{
    const struct dryi_unit *unit = unit_at(m, instance);
    const struct dryi_op *ops = m->e->ops + unit->op_first;
    if (m->status != DRY_OK || !grow_frames(m, unit->op_count))
        return;
    gather(m, instance, instance + 1);
    struct live *frame = m->frames + m->frame_count - unit->op_count;
    for (uint32_t k = instance == 0 ? 0 : 1; k < unit->op_count; k++) {
        bool is_output = k + 1 == unit->op_count;
        if (!ops[k].is_aux || saves)
            frame[k] =
                take(m, ops[k].bytes,
                     group_of(&ops[k], is_output || (saves && is_kept(m, &ops[k]))));
        drop_dead(m, ops, frame, k, saves);
    }
    if (gathers(m) || !saves)
        drop(m, &m->gathered[instance]);
}

/* --- backward ----------------------------------------------------------------------------- */

/* Selective checkpointing: what the operation's backward needs is made once more. */
static void
make_again(struct machine *m, const struct dryi_op *ops, struct live *frame, uint32_t at)
{
    if (m->e->setup.checkpointing != DRY_CHECKPOINTING_SELECTIVE)
        return;
    for (uint32_t j = at; j-- > 0 && ops[j].is_made_again;) {
        if (ops[j].saver != DRYI_NO_OP && frame[j].block == DRYI_NO_BLOCK)
            frame[j] = take(m, ops[j].bytes, DRY_GROUP_ACTIVATIONS);
    }
}

/* The gradients of what `at` was the last to use. */
static void
make_flows(struct machine *m, const struct dryi_op *ops, uint32_t at)
{
    for (uint32_t j = ops[at].first_dead; j != DRYI_NO_OP; j = ops[j].next_dead)
        m->flows[j] = take(m, ops[j].grad_bytes, group_of(&ops[j], false));
}

static void
drop_saved(struct machine *m, const struct dryi_op *ops, struct live *frame, uint32_t at)
{
    for (uint32_t j = ops[at].first_saved; j != DRYI_NO_OP; j = ops[j].next_saved)
        drop(m, &frame[j]);
}

/* One unit's backward, from the gradient of its output to that of its input. */
static struct live
backward(struct machine *m, size_t instance, struct live flow)
{
    const struct dryi_unit *unit = unit_at(m, instance);
    const struct dryi_op *ops = m->e->ops + unit->op_first;
    uint32_t last = (uint32_t)unit->op_count - 1;
    if (m->status != DRY_OK)
        return flow;
    DRYI_ASSERT(m->frame_count >= unit->op_count);
    struct live *frame = m->frames + m->frame_count - unit->op_count;
    for (size_t i = 0; i < unit->op_count; i++)
        m->flows[i].block = DRYI_NO_BLOCK;
    gather(m, instance, instance - 1); /* before the first: beyond all */
    m->flows[last] = flow;
    drop(m, &frame[last]);
    for (uint32_t k = last; k > 0; k--) {
        make_again(m, ops, frame, k);
        make_flows(m, ops, k);
        add_param_grads(m, instance, &ops[k]);
        drop(m, &m->flows[k]);
        drop_saved(m, ops, frame, k);
    }
    for (uint32_t k = instance == 0 ? 0 : 1; k <= last; k++)
        drop(m, &frame[k]);
    share_grads(m, instance);
    if (gathers(m) || casts(m))
        drop(m, &m->gathered[instance]);
    m->frame_count -= unit->op_count;
    return m->flows[0];
}

/* --- segments ----------------------------------------------------------------------------- */

/* A stretch of instances: run forward once without saving, if it is a segment. */
struct stretch {
    size_t first, count;
    bool is_segment;
};

/* Is this layer, so many behind the first, the beginning of a segment; how long is that? */
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
forward_segment(struct machine *m, size_t first, size_t count)
{
    for (size_t i = 0; i < count && m->status == DRY_OK; i++) {
        size_t before = m->frame_count;
        forward(m, first + i, false);
        if (i > 0 && m->status == DRY_OK)
            drop(m, &m->frames[before - 1]); /* the last one's output */
    }
}

static struct live
backward_segment(struct machine *m, size_t first, size_t count, struct live flow)
{
    for (size_t i = 0; i < count && m->status == DRY_OK; i++) {
        size_t ops = unit_at(m, first + count - 1 - i)->op_count;
        if (i == 0)
            drop(m, &m->frames[m->frame_count - 1]);
        m->frame_count -= ops;
    }
    m->ahead_last = first + count;
    for (size_t i = 0; i < count; i++)
        forward(m, first + i, true);
    for (size_t i = count; i-- > 0;)
        flow = backward(m, first + i, flow);
    return flow;
}

/* --- a chunk of the model ----------------------------------------------------------------- */

/* The instances of chunk `c`: layers in equal parts, the ends at the ends. */
struct chunk {
    size_t first, first_layer, last_layer, last;
};

static bool
is_layer(const struct machine *m, size_t instance)
{
    return unit_at(m, instance)->is_layer;
}

static struct chunk
chunk_at(const struct machine *m, uint64_t c)
{
    uint64_t parts = m->e->setup.interleave;
    size_t low = 0, high = m->instance_count;
    while (low < high && !is_layer(m, low))
        low++;
    while (high > low && !is_layer(m, high - 1))
        high--;
    size_t layers = high - low;
    struct chunk chunk = {
        .first_layer = low + (size_t)(c * layers / parts),
        .last_layer = low + (size_t)((c + 1) * layers / parts),
    };
    chunk.first = c == 0 ? 0 : chunk.first_layer;
    chunk.last = c + 1 == parts ? m->instance_count : chunk.last_layer;
    return chunk;
}

static void
forward_layers(struct machine *m, const struct chunk *c)
{
    size_t layers = c->last_layer - c->first_layer;
    for (size_t i = 0; i < layers && m->status == DRY_OK;) {
        size_t count = segment_at(m->e, i, layers);
        if (count)
            forward_segment(m, c->first_layer + i, count);
        else
            forward(m, c->first_layer + i, true);
        i += count ? count : 1;
    }
}

/* From the last layer to the first: where segments begin is found again for each. */
static struct live
backward_layers(struct machine *m, const struct chunk *c, struct live flow)
{
    size_t layers = c->last_layer - c->first_layer;
    uint64_t each = dryi_segment_layers(m->e, layers);
    each = each && m->e->setup.checkpointing != DRY_CHECKPOINTING_EVERY ? each : 1;
    for (size_t end = layers; end > 0 && m->status == DRY_OK;) {
        size_t begin = (end - 1) / (size_t)each * (size_t)each;
        if (segment_at(m->e, begin, layers))
            flow = backward_segment(m, c->first_layer + begin, end - begin, flow);
        else
            flow = backward(m, c->first_layer + begin, flow);
        end = begin;
    }
    return flow;
}

static void
forward_chunk(struct machine *m, const struct chunk *c, bool is_last)
{
    begin_phase(m, DRY_ESTIMATE_FORWARD);
    m->ahead_last = is_last ? c->last : c->last_layer;
    for (size_t i = c->first; i < c->first_layer; i++)
        forward(m, i, true);
    forward_layers(m, c);
    begin_phase(m, DRY_ESTIMATE_LOSS);
    for (size_t i = c->last_layer; is_last && i < c->last; i++)
        forward(m, i, true);
}

static void
backward_chunk(struct machine *m, const struct chunk *c, bool is_last)
{
    struct live flow = {DRYI_NO_BLOCK, DRY_GROUP_TEMPORARY, 0};
    size_t tail = is_last ? c->last : c->last_layer;
    if (tail == c->last_layer && tail > c->first) { /* of the stage behind this one */
        const struct dryi_unit *unit = unit_at(m, tail - 1);
        flow = take(m, m->e->ops[unit->op_first + unit->op_count - 1].bytes,
                    DRY_GROUP_TEMPORARY);
    }
    for (size_t i = tail; i > c->last_layer; i--)
        flow = backward(m, i - 1, flow);
    begin_phase(m, DRY_ESTIMATE_BACKWARD);
    flow = backward_layers(m, c, flow);
    for (size_t i = c->first_layer; i > c->first; i--)
        flow = backward(m, i - 1, flow);
    drop(m, &flow);
}

/* --- the optimizer ------------------------------------------------------------------------ */

static void
load_states(struct machine *m)
{
    const struct dry_estimate *e = m->e;
    bool is_sharded = dryi_is_sharded(&e->setup, DRYI_KEPT_STATES);
    for (size_t i = 0; i < m->instance_count && !m->has_states; i++) {
        const struct dryi_unit *unit = unit_at(m, i);
        if (is_sharded) {
            take(m, dryi_unit_bytes(e, unit, DRYI_KEPT_STATES), DRY_GROUP_OPTIMIZER);
            continue;
        }
        for (size_t p = 0; p < unit->param_count; p++) {
            uint64_t sizes[DRYI_STATES_MAX];
            size_t count =
                dryi_state_sizes(&e->setup, &e->params[unit->param_first + p], sizes);
            for (size_t k = 0; k < count; k++)
                take(m, sizes[k], DRY_GROUP_OPTIMIZER);
        }
    }
    m->has_states = true;
}

/* What the step computes with: of Adam and its like a tensor as large as a state. */
static uint64_t
step_bytes(const struct machine *m, const struct dryi_param *p)
{
    struct dryi_widths w = dryi_widths_of(m->e->setup.precision);
    uint64_t shares =
        dryi_is_sharded(&m->e->setup, DRYI_KEPT_STATES) ? m->e->setup.data : 1;
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
update(struct machine *m)
{
    const struct dry_estimate *e = m->e;
    bool is_foreach = e->setup.step == DRY_STEP_FOREACH &&
                      e->setup.optimizer != DRY_OPTIMIZER_ADAFACTOR &&
                      e->setup.optimizer != DRY_OPTIMIZER_MUON;
    size_t base = m->frame_count;
    if (e->setup.step == DRY_STEP_FUSED || !needs_temporaries(e->setup.optimizer))
        return;
    for (size_t i = 0; i < m->instance_count; i++) {
        const struct dryi_unit *unit = unit_at(m, i);
        for (size_t p = 0; p < unit->param_count && m->status == DRY_OK; p++) {
            struct live live = take(m, step_bytes(m, &e->params[unit->param_first + p]),
                                    DRY_GROUP_TEMPORARY);
            if (is_foreach && grow_frames(m, 1))
                m->frames[m->frame_count - 1] = live;
            else
                drop(m, &live);
        }
    }
    while (m->frame_count > base)
        drop(m, &m->frames[--m->frame_count]);
}

static void
step(struct machine *m)
{
    begin_phase(m, DRY_ESTIMATE_STEP);
    load_states(m);
    update(m);
    for (size_t i = 0; i < m->slot_count && !dryi_has_static_grads(&m->e->setup); i++)
        drop(m, &m->grads[i]);
}

/* --- the loop ----------------------------------------------------------------------------- */

/* Forwards under way at once, then their backwards; the last one has the loss. */
static void
train_round(struct machine *m, uint64_t flights)
{
    uint64_t parts = m->e->setup.interleave;
    for (uint64_t i = 0; i < flights && m->status == DRY_OK; i++) {
        struct chunk c = chunk_at(m, parts - 1 - (flights - 1 - i) % parts);
        forward_chunk(m, &c, i + 1 == flights);
    }
    for (uint64_t i = flights; i-- > 0 && m->status == DRY_OK;) {
        struct chunk c = chunk_at(m, parts - 1 - (flights - 1 - i) % parts);
        backward_chunk(m, &c, i + 1 == flights);
    }
}

static void
train(struct machine *m)
{
    const struct dry_estimate *e = m->e;
    uint64_t flights = dryi_flights(e);
    uint64_t wanted = dryi_product(e->setup.accumulation, e->setup.interleave);
    uint64_t rounds = wanted > flights ? 2 : 1;
    load_weights(m);
    load_grads(m);
    m->workspaces[0] = take(m, e->setup.workspace_bytes, DRY_GROUP_TEMPORARY);
    m->workspaces[1] = take(m, e->setup.workspace_bytes, DRY_GROUP_TEMPORARY);
    for (int i = 0; i < 2; i++) {
        for (uint64_t round = 0; round < rounds; round++)
            train_round(m, flights);
        step(m);
    }
}

/* Weights, the cache, and one request's prompt on its way through the layers. */
static void
infer(struct machine *m)
{
    struct dry_estimate *e = m->e;
    load_weights(m);
    m->workspaces[0] = take(m, e->setup.workspace_bytes, DRY_GROUP_TEMPORARY);
    for (size_t i = 0; i < m->instance_count; i++) {
        if (is_layer(m, i))
            take(m, dryi_cache_bytes(e), DRY_GROUP_CACHE);
    }
    begin_phase(m, DRY_ESTIMATE_FORWARD);
    m->ahead_last = m->instance_count;
    for (size_t i = 0; i < m->instance_count && m->status == DRY_OK; i++) {
        size_t before = m->frame_count;
        if (!unit_at(m, i)->is_layer && i > 0)
            break; /* the head sees the last token alone */
        forward(m, i, false);
        if (before && m->status == DRY_OK)
            drop(m, &m->frames[before - 1]);
    }
    struct live logits = take(m, dryi_token_logits(e), DRY_GROUP_LOSS);
    drop(m, &logits);
}

/* --- the device --------------------------------------------------------------------------- */

static enum dry_status
make_torch(struct machine *m, struct dry_error *err)
{
    const struct dry_estimate *e = m->e;
    const struct dryi_torch_rules *rules = NULL;
    struct dry_sim_options sim;
    dry_sim_options_init(&sim);
    sim.memory = &e->memory;
    if (e->setup.capacity_bytes)
        sim.capacity_bytes = e->setup.capacity_bytes > e->summary.outside_bytes
                                 ? e->setup.capacity_bytes - e->summary.outside_bytes
                                 : 0;
    enum dry_status status = dry_sim_create(&sim, &m->sim, err);
    if (status != DRY_OK)
        return status;
    struct dryi_torch_options torch = {
        .device = dry_sim_get_device(m->sim),
        .memory = &e->memory,
        .progress_is_told = true,
    };
    dryi_torch_conf_init(&torch.conf);
    size_t count;
    rules = dryi_torch_rules_all(&count);
    if (e->setup.conf)
        status = dryi_torch_conf_parse(e->setup.conf, strlen(e->setup.conf),
                                       &rules[count - 1], &torch.conf, err);
    if (status == DRY_ERR_FORMAT) {
        status = DRY_ERR_ARGUMENT; /* it is no file's, it is the caller's */
        if (err)
            err->status = status;
    }
    return status == DRY_OK ? dryi_torch_create(&torch, &m->torch, err) : status;
}

/* Which unit every instance is, and where its gradients go. */
static enum dry_status
make_instances(struct machine *m, struct dry_error *err)
{
    struct dry_estimate *e = m->e;
    size_t ops = 1, count = 0;
    for (size_t u = 0; u < e->unit_count; u++) {
        count += (size_t)e->units[u].count;
        ops = e->units[u].op_count > ops ? e->units[u].op_count : ops;
        m->slot_count += (size_t)e->units[u].count * (e->units[u].param_count + 1);
    }
    m->instance_count = count;
    m->flow_count = ops;
    m->unit_of = dryi_memory_zalloc(&e->memory, count, sizeof *m->unit_of);
    m->slot_of = dryi_memory_zalloc(&e->memory, count, sizeof *m->slot_of);
    m->gathered = dryi_memory_zalloc(&e->memory, count, sizeof *m->gathered);
    m->flows = dryi_memory_zalloc(&e->memory, ops, sizeof *m->flows);
    m->grads = dryi_memory_zalloc(&e->memory, m->slot_count, sizeof *m->grads);
    if (!m->unit_of || !m->slot_of || !m->gathered || !m->flows || !m->grads)
        return dryi_fail_memory(err, "a step of training");
    size_t at = 0, slot = 0;
    for (size_t u = 0; u < e->unit_count; u++) {
        for (uint64_t i = 0; i < e->units[u].count; i++, at++) {
            m->unit_of[at] = (uint32_t)u;
            m->slot_of[at] = slot;
            m->gathered[at].block = DRYI_NO_BLOCK;
            slot += e->units[u].param_count + 1;
        }
    }
    for (size_t i = 0; i < m->slot_count; i++)
        m->grads[i].block = DRYI_NO_BLOCK;
    return DRY_OK;
}

static void
finish(struct machine *m)
{
    const struct dry_memory *memory = &m->e->memory;
    dryi_torch_destroy(m->torch);
    dry_sim_destroy(m->sim);
    dryi_memory_free(memory, m->frames, m->frame_capacity, sizeof *m->frames);
    dryi_memory_free(memory, m->flows, m->flow_count, sizeof *m->flows);
    dryi_memory_free(memory, m->unit_of, m->instance_count, sizeof *m->unit_of);
    dryi_memory_free(memory, m->slot_of, m->instance_count, sizeof *m->slot_of);
    dryi_memory_free(memory, m->gathered, m->instance_count, sizeof *m->gathered);
    dryi_memory_free(memory, m->grads, m->slot_count, sizeof *m->grads);
}

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
    struct machine m = {.e = e, .peak = &e->summary.phases[DRY_ESTIMATE_LOAD]};
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
    enum dry_status status = make_torch(&m, e->err);
    if (status == DRY_OK)
        status = make_instances(&m, e->err);
    if (status == DRY_OK) {
        if (e->setup.is_inference)
            infer(&m);
        else
            train(&m);
        end_phase(&m);
        sum_up(e);
        e->summary.fits = m.status != DRY_ERR_NO_SPACE;
        if (m.status != DRY_OK && m.status != DRY_ERR_NO_SPACE)
            status = dryi_fail_memory(e->err, "a step of training");
    }
    finish(&m);
    e->status = status;
}
