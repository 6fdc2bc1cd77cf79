/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_EXPLAIN_HINTS_H
#define DRYI_EXPLAIN_HINTS_H

/*
 * Hints from the names in a stack: the code runs in a module's call, in the backward pass, in an
 * optimizer, in a data loader. Each name is examined once, however many frames share it, so a
 * hostile file cannot cost more than its length.
 *
 * Names are weak evidence. They tell where a loop runs and in which pass. They tell an allocation's
 * purpose only if no other evidence does.
 */

#include <drystone/memory.h>
#include <drystone/status.h>
#include <drystone/trace.h>

#define DRYI_HINT_PYTHON 1u    /* a frame of a .py file */
#define DRYI_HINT_MODULE 2u    /* inside torch.nn.Module.__call__ */
#define DRYI_HINT_BACKWARD 4u  /* autograd's engine, loss.backward(), ...Backward0 */
#define DRYI_HINT_OPTIMIZER 8u /* torch.optim, Adam.step */
#define DRYI_HINT_ZERO_GRAD 16u
#define DRYI_HINT_LOADER 32u    /* data loaders, next_batch */
#define DRYI_HINT_INIT 64u      /* __init__, load_state_dict, from_pretrained */
#define DRYI_HINT_FORWARD 128u  /* forward() of a model, not of a PyTorch wrapper */
#define DRYI_HINT_KV_CACHE 256u /* a cache of keys and values, by function or file */
#define DRYI_HINT_MOVE 512u     /* Module.to(device), cuda() */

struct dryi_hints {
    struct dry_memory memory;
    const struct dry_trace *trace;
    uint32_t frame_count, stack_count;
    uint16_t *frames; /* DRYI_HINT_... bits by frame */
    uint16_t *stacks; /* DRYI_HINT_... bits by stack: the union of its frames' */
};

DRY_CHECK_RESULT enum dry_status dryi_hints_init(struct dryi_hints *hints,
                                                 const struct dry_trace *trace,
                                                 const struct dry_memory *memory,
                                                 struct dry_error *err);
void dryi_hints_finish(struct dryi_hints *hints);

/* Return the hints of a stack; 0 for DRY_NONE. */
static inline uint16_t
dryi_hints_get(const struct dryi_hints *hints, uint32_t stack)
{
    return stack < hints->stack_count ? hints->stacks[stack] : 0;
}

#endif
