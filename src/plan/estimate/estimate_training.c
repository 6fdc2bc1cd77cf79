/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The passes of a unit, request by request, through PyTorch's allocator on a simulated device.
 *
 * A forward pushes a frame, which has a block for each operation. It frees each tensor after its
 * last use unless the backward needs it. A backward visits the operations in reverse, as
 * estimate_inside.h says, and pops the frame. Sharded weights and gradients exist whole only
 * during a pass.
 *
 * Cost: one or two requests for each operation and pass.
 */
#include "plan/estimate/estimate_training.h"

#include <string.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/memory.h"

/* --- requests ----------------------------------------------------------------------------- */

static void
note_peak(struct dryi_training *t)
{
    if (t->now <= t->peak->requested_bytes)
        return;
    t->peak->requested_bytes = t->now;
    memcpy(t->peak->parts, t->parts, sizeof t->parts);
}

struct dryi_training_block
dryi_training_take(struct dryi_training *t, uint64_t bytes, enum dry_estimate_group group)
{
    struct dryi_training_block live = {DRYI_NO_BLOCK, group, bytes};
    if (t->status != DRY_OK || bytes == 0)
        return live;
    enum dry_status status = dryi_torch_alloc(t->torch, bytes, 0, &live.block);
    if (status == DRY_ERR_ARGUMENT)
        status = DRY_ERR_NO_SPACE; /* more than any device has */
    t->status = status;
    if (status != DRY_OK)
        return (struct dryi_training_block){DRYI_NO_BLOCK, group, 0};
    t->now += bytes;
    t->parts[group] += bytes;
    note_peak(t);
    return live;
}

void
dryi_training_drop(struct dryi_training *t, struct dryi_training_block *live)
{
    if (live->block == DRYI_NO_BLOCK)
        return;
    enum dry_status status = dryi_torch_free(t->torch, live->block);
    if (t->status == DRY_OK)
        t->status = status;
    t->now -= live->bytes;
    t->parts[live->group] -= live->bytes;
    live->block = DRYI_NO_BLOCK;
}

/* --- phases ------------------------------------------------------------------------------- */

void
dryi_training_end_phase(struct dryi_training *t)
{
    struct dry_stats stats;
    dryi_torch_get_stats(t->torch, &stats);
    uint64_t allocated = (uint64_t)stats.allocated_bytes.all.peak;
    uint64_t reserved = (uint64_t)stats.reserved_bytes.all.peak;
    if (t->peak->allocated_bytes < allocated)
        t->peak->allocated_bytes = allocated;
    if (t->peak->reserved_bytes < reserved)
        t->peak->reserved_bytes = reserved;
    dryi_torch_reset_stats(t->torch, true, false);
}

void
dryi_training_begin_phase(struct dryi_training *t, enum dry_estimate_phase phase)
{
    dryi_training_end_phase(t);
    t->peak = &t->e->summary.phases[phase];
    note_peak(t);
}

/* --- weights ------------------------------------------------------------------------------ */

void
dryi_training_load_weights(struct dryi_training *t)
{
    const struct dry_estimate *e = t->e;
    bool is_sharded = dryi_is_sharded(&e->setup, DRYI_KEPT_WEIGHTS);
    for (size_t i = 0; i < t->instance_count; i++) {
        const struct dryi_unit *unit = dryi_training_unit_at(t, i);
        if (is_sharded) {
            dryi_training_take(t, dryi_unit_bytes(e, unit, DRYI_KEPT_WEIGHTS),
                               DRY_GROUP_WEIGHTS);
            continue;
        }
        for (size_t p = 0; p < unit->param_count; p++)
            dryi_training_take(
                t,
                dryi_param_bytes(e, &e->params[unit->param_first + p], DRYI_KEPT_WEIGHTS),
                DRY_GROUP_WEIGHTS);
    }
}

/* Return the bytes of all weights of a unit, in the width used for computing. */
static uint64_t
whole_bytes(const struct dry_estimate *e, const struct dryi_unit *unit)
{
    struct dryi_widths w = dryi_widths_get(e->setup.precision);
    uint64_t width = w.activation < w.weight ? w.activation : w.weight, sum = 0;
    for (size_t i = 0; i < unit->param_count; i++) {
        const struct dryi_param *p = &e->params[unit->param_first + i];
        sum = dryi_sum(sum, dryi_is_quantized(&e->model, p)
                                ? dryi_param_bytes(e, p, DRYI_KEPT_WEIGHTS)
                                : dryi_product(p->elements, width));
    }
    return sum;
}

static bool
gathers(const struct dryi_training *t)
{
    return dryi_is_sharded(&t->e->setup, DRYI_KEPT_WEIGHTS);
}

/* Autocast computes with narrower copies, which stay until the backward is over. */
static bool
casts(const struct dryi_training *t)
{
    return t->e->setup.precision == DRY_PRECISION_AMP && !gathers(t);
}

static void
make_whole(struct dryi_training *t, size_t instance)
{
    const struct dryi_unit *unit = dryi_training_unit_at(t, instance);
    uint64_t bytes = gathers(t) ? whole_bytes(t->e, unit) : dryi_cast_bytes(t->e, unit);
    if (t->gathered[instance].block == DRYI_NO_BLOCK)
        t->gathered[instance] = dryi_training_take(t, bytes, DRY_GROUP_TEMPORARY);
}

/* Make this instance's weights whole. If weights are gathered, gather the next instance's early. */
static void
gather(struct dryi_training *t, size_t instance, size_t next)
{
    if (gathers(t) || casts(t))
        make_whole(t, instance);
    if (gathers(t) && next < t->ahead_last)
        make_whole(t, next);
}

/* --- gradients ---------------------------------------------------------------------------- */

/*
 * Add gradients to a slot. If the slot has a block, or gradients have a static buffer,
 * they are temporary.
 */
static void
add_grad(struct dryi_training *t, struct dryi_training_block *slot, uint64_t bytes)
{
    if (slot->block != DRYI_NO_BLOCK || dryi_has_static_grads(&t->e->setup)) {
        struct dryi_training_block more =
            dryi_training_take(t, bytes, DRY_GROUP_TEMPORARY);
        dryi_training_drop(t, &more);
        return;
    }
    bool is_shared = dryi_is_sharded(&t->e->setup, DRYI_KEPT_GRADS);
    *slot = dryi_training_take(t, bytes,
                               is_shared ? DRY_GROUP_TEMPORARY : DRY_GROUP_GRADIENTS);
}

static void
add_param_grads(struct dryi_training *t, size_t instance, const struct dryi_op *op)
{
    const struct dry_estimate *e = t->e;
    const struct dryi_unit *unit = dryi_training_unit_at(t, instance);
    for (uint32_t i = 0; i < op->param_count; i++) {
        size_t index = op->param_first + i;
        uint64_t bytes =
            dryi_param_bytes(e, &e->params[unit->param_first + index], DRYI_KEPT_GRADS);
        add_grad(t, &t->grads[t->slot_of[instance] + index], bytes);
    }
    if (op->is_tied)
        add_grad(
            t, &t->grads[t->slot_of[0]],
            dryi_param_bytes(e, &e->params[e->units[0].param_first], DRYI_KEPT_GRADS));
}

/* Reduce the gradients over the group, which leaves this device with the unit's shard. */
static void
share_grads(struct dryi_training *t, size_t instance)
{
    const struct dryi_unit *unit = dryi_training_unit_at(t, instance);
    struct dryi_training_block *slots = &t->grads[t->slot_of[instance]];
    if (!dryi_is_sharded(&t->e->setup, DRYI_KEPT_GRADS))
        return;
    struct dryi_training_block *share = &slots[unit->param_count];
    if (share->block == DRYI_NO_BLOCK)
        *share = dryi_training_take(t, dryi_unit_bytes(t->e, unit, DRYI_KEPT_GRADS),
                                    DRY_GROUP_GRADIENTS);
    for (size_t i = 0; i < unit->param_count; i++)
        dryi_training_drop(t, &slots[i]);
}

/* Allocate Megatron's static gradients, or DDP's buckets unless gradients are views of them. */
void
dryi_training_load_grads(struct dryi_training *t)
{
    const struct dry_estimate *e = t->e;
    bool has_buckets = e->setup.data > 1 && e->setup.zero == 0 &&
                       !e->setup.has_bucket_view && !dryi_has_static_grads(&e->setup);
    for (size_t i = 0; i < t->instance_count; i++) {
        const struct dryi_unit *unit = dryi_training_unit_at(t, i);
        uint64_t bytes = dryi_unit_bytes(e, unit, DRYI_KEPT_GRADS);
        if (has_buckets)
            dryi_training_take(t, bytes, DRY_GROUP_TEMPORARY);
        if (dryi_has_static_grads(&e->setup))
            t->grads[t->slot_of[i] + unit->param_count] =
                dryi_training_take(t, bytes, DRY_GROUP_GRADIENTS);
    }
}

/* --- forward ------------------------------------------------------------------------------ */

bool
dryi_training_grow_frames(struct dryi_training *t, size_t count)
{
    if (!dryi_memory_grow(&t->e->memory, &t->frames, &t->frame_capacity,
                          t->frame_count + count, sizeof *t->frames)) {
        t->status = DRY_ERR_MEMORY;
        return false;
    }
    for (size_t i = 0; i < count; i++)
        t->frames[t->frame_count + i].block = DRYI_NO_BLOCK;
    t->frame_count += count;
    return true;
}

static bool
is_kept(const struct dryi_training *t, const struct dryi_op *op)
{
    bool is_dropped =
        op->is_made_again && t->e->setup.checkpointing == DRY_CHECKPOINTING_SELECTIVE;
    return op->saver != DRYI_NO_OP && !is_dropped;
}

static enum dry_estimate_group
get_group(const struct dryi_op *op, bool is_saved)
{
    if (op->group == DRY_GROUP_LOSS)
        return DRY_GROUP_LOSS;
    return is_saved ? DRY_GROUP_ACTIVATIONS : DRY_GROUP_TEMPORARY;
}

/* Free tensors whose last use was operation `at`, unless the backward needs them. */
static void
drop_dead(struct dryi_training *t, const struct dryi_op *ops,
          struct dryi_training_block *frame, uint32_t at, bool saves)
{
    for (uint32_t j = ops[at].first_dead; j != DRYI_NO_OP; j = ops[j].next_dead) {
        if (!saves || !is_kept(t, &ops[j]))
            dryi_training_drop(t, &frame[j]);
    }
}

/* Run one unit forward. Without `saves` only its output remains. */
void
dryi_training_forward(struct dryi_training *t, size_t instance, bool saves)
{
    const struct dryi_unit *unit = dryi_training_unit_at(t, instance);
    const struct dryi_op *ops = t->e->ops + unit->op_first;
    if (t->status != DRY_OK || !dryi_training_grow_frames(t, unit->op_count))
        return;
    gather(t, instance, instance + 1);
    struct dryi_training_block *frame = t->frames + t->frame_count - unit->op_count;
    for (uint32_t k = instance == 0 ? 0 : 1; k < unit->op_count; k++) {
        bool is_output = k + 1 == unit->op_count;
        if (!ops[k].is_aux || saves)
            frame[k] = dryi_training_take(
                t, ops[k].bytes,
                get_group(&ops[k], is_output || (saves && is_kept(t, &ops[k]))));
        drop_dead(t, ops, frame, k, saves);
    }
    if (gathers(t) || !saves)
        dryi_training_drop(t, &t->gathered[instance]);
}

/* --- backward ----------------------------------------------------------------------------- */

/* Under selective checkpointing, recompute what the operation's backward needs. */
static void
make_again(struct dryi_training *t, const struct dryi_op *ops,
           struct dryi_training_block *frame, uint32_t at)
{
    if (t->e->setup.checkpointing != DRY_CHECKPOINTING_SELECTIVE)
        return;
    for (uint32_t j = at; j-- > 0 && ops[j].is_made_again;) {
        if (ops[j].saver != DRYI_NO_OP && frame[j].block == DRYI_NO_BLOCK)
            frame[j] = dryi_training_take(t, ops[j].bytes, DRY_GROUP_ACTIVATIONS);
    }
}

/* Allocate the gradients of tensors whose last use was `at`. */
static void
make_flows(struct dryi_training *t, const struct dryi_op *ops, uint32_t at)
{
    for (uint32_t j = ops[at].first_dead; j != DRYI_NO_OP; j = ops[j].next_dead)
        t->flows[j] = dryi_training_take(t, ops[j].grad_bytes, get_group(&ops[j], false));
}

static void
drop_saved(struct dryi_training *t, const struct dryi_op *ops,
           struct dryi_training_block *frame, uint32_t at)
{
    for (uint32_t j = ops[at].first_saved; j != DRYI_NO_OP; j = ops[j].next_saved)
        dryi_training_drop(t, &frame[j]);
}

/* Run one unit backward, from the gradient of its output to that of its input. */
struct dryi_training_block
dryi_training_backward(struct dryi_training *t, size_t instance,
                       struct dryi_training_block flow)
{
    const struct dryi_unit *unit = dryi_training_unit_at(t, instance);
    const struct dryi_op *ops = t->e->ops + unit->op_first;
    uint32_t last = (uint32_t)unit->op_count - 1;
    if (t->status != DRY_OK)
        return flow;
    DRYI_ASSERT(t->frame_count >= unit->op_count);
    struct dryi_training_block *frame = t->frames + t->frame_count - unit->op_count;
    for (size_t i = 0; i < unit->op_count; i++)
        t->flows[i].block = DRYI_NO_BLOCK;
    /* For instance 0 this wraps, and gathers nothing. */
    gather(t, instance, instance - 1);
    t->flows[last] = flow;
    dryi_training_drop(t, &frame[last]);
    for (uint32_t k = last; k > 0; k--) {
        make_again(t, ops, frame, k);
        make_flows(t, ops, k);
        add_param_grads(t, instance, &ops[k]);
        dryi_training_drop(t, &t->flows[k]);
        drop_saved(t, ops, frame, k);
    }
    for (uint32_t k = instance == 0 ? 0 : 1; k <= last; k++)
        dryi_training_drop(t, &frame[k]);
    share_grads(t, instance);
    if (gathers(t) || casts(t))
        dryi_training_drop(t, &t->gathered[instance]);
    t->frame_count -= unit->op_count;
    return t->flows[0];
}

/* --- the device --------------------------------------------------------------------------- */

static enum dry_status
make_torch(struct dryi_training *t, struct dry_error *err)
{
    const struct dry_estimate *e = t->e;
    const struct dryi_torch_rules *rules = NULL;
    struct dry_sim_options sim;
    dry_sim_options_init(&sim);
    sim.memory = &e->memory;
    if (e->setup.capacity_bytes)
        sim.capacity_bytes = e->setup.capacity_bytes > e->summary.outside_bytes
                                 ? e->setup.capacity_bytes - e->summary.outside_bytes
                                 : 0;
    enum dry_status status = dry_sim_create(&sim, &t->sim, err);
    if (status != DRY_OK)
        return status;
    struct dryi_torch_options torch = {
        .device = dry_sim_get_device(t->sim),
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
        status = DRY_ERR_ARGUMENT; /* the text is the caller's, not a file's */
        if (err)
            err->status = status;
    }
    return status == DRY_OK ? dryi_torch_create(&torch, &t->torch, err) : status;
}

/* Set each instance's unit and the slot of its gradients. */
static enum dry_status
make_instances(struct dryi_training *t, struct dry_error *err)
{
    struct dry_estimate *e = t->e;
    size_t ops = 1, count = 0;
    for (size_t u = 0; u < e->unit_count; u++) {
        count += (size_t)e->units[u].count;
        ops = e->units[u].op_count > ops ? e->units[u].op_count : ops;
        t->slot_count += (size_t)e->units[u].count * (e->units[u].param_count + 1);
    }
    t->instance_count = count;
    t->flow_count = ops;
    t->unit_of = dryi_memory_zalloc(&e->memory, count, sizeof *t->unit_of);
    t->slot_of = dryi_memory_zalloc(&e->memory, count, sizeof *t->slot_of);
    t->gathered = dryi_memory_zalloc(&e->memory, count, sizeof *t->gathered);
    t->flows = dryi_memory_zalloc(&e->memory, ops, sizeof *t->flows);
    t->grads = dryi_memory_zalloc(&e->memory, t->slot_count, sizeof *t->grads);
    if (!t->unit_of || !t->slot_of || !t->gathered || !t->flows || !t->grads)
        return dryi_fail_memory(err, "a step of training");
    size_t at = 0, slot = 0;
    for (size_t u = 0; u < e->unit_count; u++) {
        for (uint64_t i = 0; i < e->units[u].count; i++, at++) {
            t->unit_of[at] = (uint32_t)u;
            t->slot_of[at] = slot;
            t->gathered[at].block = DRYI_NO_BLOCK;
            slot += e->units[u].param_count + 1;
        }
    }
    for (size_t i = 0; i < t->slot_count; i++)
        t->grads[i].block = DRYI_NO_BLOCK;
    return DRY_OK;
}

void
dryi_training_finish(struct dryi_training *t)
{
    const struct dry_memory *memory = &t->e->memory;
    dryi_torch_destroy(t->torch);
    dry_sim_destroy(t->sim);
    dryi_memory_free(memory, t->frames, t->frame_capacity, sizeof *t->frames);
    dryi_memory_free(memory, t->flows, t->flow_count, sizeof *t->flows);
    dryi_memory_free(memory, t->unit_of, t->instance_count, sizeof *t->unit_of);
    dryi_memory_free(memory, t->slot_of, t->instance_count, sizeof *t->slot_of);
    dryi_memory_free(memory, t->gathered, t->instance_count, sizeof *t->gathered);
    dryi_memory_free(memory, t->grads, t->slot_count, sizeof *t->grads);
}

enum dry_status
dryi_training_init(struct dryi_training *t, struct dry_estimate *e)
{
    *t = (struct dryi_training){.e = e, .peak = &e->summary.phases[DRY_ESTIMATE_LOAD]};
    enum dry_status status = make_torch(t, e->err);
    if (status == DRY_OK)
        status = make_instances(t, e->err);
    if (status != DRY_OK)
        dryi_training_finish(t);
    return status;
}
