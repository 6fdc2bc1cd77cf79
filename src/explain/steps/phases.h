/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_EXPLAIN_PHASES_H
#define DRYI_EXPLAIN_PHASES_H

/*
 * The part of a training step in which an allocation was made: the forward pass, the
 * backward pass, or the optimizer's update.
 *
 * It is known by, in this order: a scope of an Optimizer.step annotation; names in the
 * stack (autograd's engine, torch.optim). With stacks of Python alone, the engine's own
 * thread is known by having none. If no name tells, the shape of each step does: memory
 * rises to a peak and falls again, and what is alive across the peak is given back in
 * reverse. A window in which none of these is found has no backward pass: it is one of
 * inference.
 */

#include <stdbool.h>

#include <drystone/steps.h>

#include "explain/steps/hints.h"

enum dryi_phase {
    DRYI_PHASE_FORWARD,
    DRYI_PHASE_BACKWARD,
    DRYI_PHASE_UPDATE,
};

struct dryi_phases {
    struct dry_memory memory;
    const struct dry_timeline_view *view;
    uint32_t count;  /* allocations born in the window */
    uint8_t *of;     /* their phases */
    uint8_t *scoped; /* 1: an annotation says that it is the update */
    uint32_t *steps; /* the steps they were born in */
    bool has_backward;
    bool by_shape; /* no name told */
};

DRY_CHECK_RESULT enum dry_status dryi_phases_init(struct dryi_phases *phases,
                                                  const struct dry_timeline *timeline,
                                                  const struct dry_steps *steps,
                                                  const struct dryi_hints *hints,
                                                  const struct dry_memory *memory,
                                                  struct dry_error *err);
void dryi_phases_finish(struct dryi_phases *phases);

/* The last allocation born at or before a moment; DRY_NONE: none was. O(log). */
uint32_t dryi_phases_last(const struct dryi_phases *phases, uint32_t moment);

#endif
