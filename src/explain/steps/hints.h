/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_EXPLAIN_HINTS_H
#define DRYI_EXPLAIN_HINTS_H

/*
 * The hints that the names in a stack give: it runs inside a module's call, in the
 * backward pass, in an optimizer, in a data loader. Names are looked at once each,
 * however many frames share them, so that no file can make this cost more than its own
 * length.
 *
 * Names are weak evidence, so hints is all they give: where a loop runs and in which pass, and
 * what an allocation is for only when nothing else tells.
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
#define DRYI_HINT_FORWARD 128u  /* a model's forward(), not a wrapper's of PyTorch */
#define DRYI_HINT_KV_CACHE 256u /* a cache of keys and values, by a function or a file */

struct dryi_hints {
    struct dry_memory memory;
    const struct dry_trace *trace;
    uint32_t frame_count, stack_count;
    uint16_t *frames; /* DRYI_HINT_... of each frame */
    uint16_t *stacks; /* of all frames of each stack */
};

DRY_CHECK_RESULT enum dry_status dryi_hints_init(struct dryi_hints *hints,
                                                 const struct dry_trace *trace,
                                                 const struct dry_memory *memory,
                                                 struct dry_error *err);
void dryi_hints_finish(struct dryi_hints *hints);

/* The hints of a stack; 0 for DRY_NONE. */
static inline uint16_t
dryi_hints_of(const struct dryi_hints *hints, uint32_t stack)
{
    return stack < hints->stack_count ? hints->stacks[stack] : 0;
}

#endif
