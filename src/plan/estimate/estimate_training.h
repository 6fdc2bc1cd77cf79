/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_ESTIMATE_TRAINING_H
#define DRYI_PLAN_ESTIMATE_TRAINING_H

/*
 * Training on a simulated device: its weights, gradients and activations, as blocks of PyTorch's
 * allocator, and the passes of one unit. The order of the passes is in estimate_step.c.
 *
 * An instance is one unit on the device; instances are in the order of the forward. A frame is
 * what one forward of a unit has made: one block for each operation. A slot is a block for
 * gradients.
 */

#include <drystone/sim.h>

#include "place/torch/torch.h"
#include "plan/estimate/estimate_inside.h"

/* An allocated block, and the group it counts for. */
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
    struct dry_estimate_peak *peak; /* peak of the current phase */

    /* A stack of frames; each has a block for each operation. */
    struct dryi_training_block *frames;
    size_t frame_count, frame_capacity;
    struct dryi_training_block *flows; /* gradients, by operation of the current unit */
    size_t flow_count;

    uint32_t *unit_of; /* index in e->units of each instance */
    size_t instance_count;
    /* Each instance's whole weights (ZeRO 3), or autocast's copies. */
    struct dryi_training_block *gathered;
    size_t *slot_of; /* index in `grads` of each instance's first slot */
    /* A slot has a parameter's gradients; the last of an instance has the unit's shard. */
    struct dryi_training_block *grads;
    size_t slot_count;
    bool has_states;
    size_t ahead_last; /* the instance before which gathering ahead stops */
};

/* --- init and finish ---------------------------------------------------------------------- */

/*
 * Create the device, the allocator and the instances of the estimate's units. Errors: those of
 * dry_sim_create() and of the allocator's settings, and MEMORY; then nothing needs to be finished.
 */
enum dry_status dryi_training_init(struct dryi_training *t, struct dry_estimate *e);
void dryi_training_finish(struct dryi_training *t);

/* Return an instance's unit. */
static inline const struct dryi_unit *
dryi_training_unit_at(const struct dryi_training *t, size_t instance)
{
    return &t->e->units[t->unit_of[instance]];
}

/* --- blocks ------------------------------------------------------------------------------- */

/*
 * Allocate bytes for the group, and record the peak. Returns no block for 0 bytes, or
 * once t->status is an error; NO_SPACE means that the device is full.
 */
struct dryi_training_block dryi_training_take(struct dryi_training *t, uint64_t bytes,
                                              enum dry_estimate_group group);
/* Free the block, unless it is empty. */
void dryi_training_drop(struct dryi_training *t, struct dryi_training_block *live);
/* Push `count` empty blocks. Returns false, and sets t->status, if memory ran out. */
bool dryi_training_grow_frames(struct dryi_training *t, size_t count);

/* --- phases ------------------------------------------------------------------------------- */

/* End the current phase and begin another, to which peaks then count. */
void dryi_training_begin_phase(struct dryi_training *t, enum dry_estimate_phase phase);
/* Add the allocator's peaks to the current phase, and reset them. */
void dryi_training_end_phase(struct dryi_training *t);

/* --- units -------------------------------------------------------------------------------- */

/* Allocate the weights of all instances: each parameter's, or each unit's shard. */
void dryi_training_load_weights(struct dryi_training *t);
/*
 * Allocate gradients that exist from the start: Megatron's static buffer, or DDP's
 * buckets unless gradients are views of them.
 */
void dryi_training_load_grads(struct dryi_training *t);
/* Run one instance forward, which pushes its frame. Without `saves` only its output remains. */
void dryi_training_forward(struct dryi_training *t, size_t instance, bool saves);
/*
 * Run one instance backward, which pops its frame. `flow` is the gradient of its output.
 * Returns the gradient of its input.
 */
struct dryi_training_block dryi_training_backward(struct dryi_training *t,
                                                  size_t instance,
                                                  struct dryi_training_block flow);

#endif
