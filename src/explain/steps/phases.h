/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_EXPLAIN_PHASES_H
#define DRYI_EXPLAIN_PHASES_H

/*
 * The phase of a training step in which an allocation was made: forward pass, backward pass
 * or optimizer's update.
 *
 * Evidence is used in this order: the scope of an Optimizer.step annotation, then names in the
 * stack (autograd's engine, torch.optim). With Python stacks only, allocations of the engine's
 * thread have empty stacks. If no name tells, the shape of the step does: memory rises to a peak
 * and falls, and allocations alive across the peak are freed in reverse order. If none of these is
 * found, the window has no backward pass: it is inference.
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
    uint32_t count;  /* number of allocations born in the window */
    uint8_t *of;     /* enum dryi_phase by allocation */
    uint8_t *scoped; /* per allocation; 1: an annotation proves the update */
    uint32_t *steps; /* the step of each allocation's birth */
    bool has_backward;
    bool by_shape; /* phases come from the step's shape; no name told */
};

DRY_CHECK_RESULT enum dry_status dryi_phases_init(struct dryi_phases *phases,
                                                  const struct dry_timeline *timeline,
                                                  const struct dry_steps *steps,
                                                  const struct dryi_hints *hints,
                                                  const struct dry_memory *memory,
                                                  struct dry_error *err);
void dryi_phases_finish(struct dryi_phases *phases);

/* Return the last allocation born at or before a moment, or DRY_NONE. Cost: O(log n). */
uint32_t dryi_phases_last(const struct dryi_phases *phases, uint32_t moment);

/* Return whether a stack is empty: none was recorded, or its thread runs no Python. Lines of the
   forward pass (DRY_FRAME_FORWARD) do not count, nor does a dry run's hook, which C++ called. */
bool dryi_phases_is_bare(const struct dry_timeline_view *view, uint32_t stack);

#endif
