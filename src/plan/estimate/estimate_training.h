/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_ESTIMATE_TRAINING_H
#define DRYI_PLAN_ESTIMATE_TRAINING_H

/*
 * Training under way on a simulated device: its weights, gradients and activations, as blocks
 * of PyTorch's allocator, and the passes of one unit. The order of the passes stands in
 * estimate_step.c.
 *
 * An instance is one unit of the device; the instances stand in a row, in the order of the
 * forward. A frame is what one forward of a unit has made: a block an operation. A slot is a
 * block for gradients.
 */

#include <drystone/sim.h>

#include "place/torch/torch.h"
#include "plan/estimate/estimate_inside.h"

/* A block that is there, and what it counts for. */
struct dryi_training_block {
    dryi_block block;
    enum dry_estimate_group group;
    uint64_t bytes;
};

struct dryi_training {
    struct dry_estimate *e;
    struct dry_sim *sim;
    struct dryi_torch *torch;
    enum dry_status status; /* NO_SPACE: it does not fit */
    uint64_t now, parts[DRY_GROUP_COUNT];
    struct dry_estimate_peak *peak; /* of the phase under way */

    struct dryi_training_block *frames; /* handles of operations, a frame a forward */
    size_t frame_count, frame_capacity;
    struct dryi_training_block *flows; /* gradients, by operation of the unit under way */
    size_t flow_count;

    uint32_t *unit_of; /* by instance */
    size_t instance_count;
    struct dryi_training_block *gathered; /* by instance: its weights, whole (ZeRO 3) */
    size_t *slot_of;                      /* by instance: where its gradients begin */
    struct dryi_training_block
        *grads; /* by slot: a parameter's, or the unit's where they are shared */
    size_t slot_count;
    struct dryi_training_block workspaces[2];
    bool has_states;
    size_t ahead_last; /* weights are gathered ahead up to here */
};

/* --- life --------------------------------------------------------------------------------- */

/*
 * Make the device, the allocator and the instances of the estimate's units. Fails as
 * dry_sim_create() and the allocator's settings do, and with MEMORY; nothing is left then.
 */
enum dry_status dryi_training_init(struct dryi_training *t, struct dry_estimate *e);
void dryi_training_finish(struct dryi_training *t);

/* The unit that an instance is of. */
static inline const struct dryi_unit *
dryi_training_unit_at(const struct dryi_training *t, size_t instance)
{
    return &t->e->units[t->unit_of[instance]];
}

/* --- blocks ------------------------------------------------------------------------------- */

/*
 * Allocate bytes that count for the group, and note the peak. Returns no block for 0 bytes, and
 * once t->status is not OK; NO_SPACE there says that the device is full.
 */
struct dryi_training_block dryi_training_take(struct dryi_training *t, uint64_t bytes,
                                              enum dry_estimate_group group);
/* Free the block, if it is one. */
void dryi_training_drop(struct dryi_training *t, struct dryi_training_block *live);
/* Push so many empty handles; false: no memory, as t->status says from then on. */
bool dryi_training_grow_frames(struct dryi_training *t, size_t count);

/* --- phases ------------------------------------------------------------------------------- */

/* End the phase under way and begin this one: peaks count for it from now on. */
void dryi_training_begin_phase(struct dryi_training *t, enum dry_estimate_phase phase);
/* Add the allocator's peaks to the phase under way, and reset them. */
void dryi_training_end_phase(struct dryi_training *t);

/* --- units -------------------------------------------------------------------------------- */

/* Take the weights of all instances: each parameter's, or each unit's share of them. */
void dryi_training_load_weights(struct dryi_training *t);
/*
 * Take what is there of gradients from the beginning: Megatron's own place for them, or DDP's
 * buckets, unless gradients are views of those.
 */
void dryi_training_load_grads(struct dryi_training *t);
/* Run one instance forward, which pushes its frame; without `saves` its output alone is left. */
void dryi_training_forward(struct dryi_training *t, size_t instance, bool saves);
/*
 * Run one instance backward, which pops its frame: from the gradient of its output, `flow`, to
 * that of its input, which is returned.
 */
struct dryi_training_block dryi_training_backward(struct dryi_training *t,
                                                  size_t instance,
                                                  struct dryi_training_block flow);

#endif
