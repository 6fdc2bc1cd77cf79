/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_CHAIN_H
#define DRY_CHAIN_H

/*
 * A training step as a chain of stages: what each costs in time, and what it leaves in memory.
 *
 *     struct dry_chain_frame frame = {.persistent_bytes = weights + states};
 *     struct dry_chain *chain;
 *     if (dry_chain_create(&frame, NULL, &chain, &err) != DRY_OK) ...
 *     struct dry_stage block = {.name = "block", .forward_ns = 5100000, ...};
 *     dry_chain_add(chain, &block, 24, &err);
 *     dry_chain_add(chain, &loss, 1, &err);
 *     ... <drystone/plan.h>
 *     dry_chain_destroy(chain);
 *
 * Stage i makes x(i+1) out of x(i); x(0) is the chain's input and stays where it is. What a
 * stage saves for its backward contains its output and not its input, which its predecessor
 * saves: the convention of Beaumont et al. (arXiv:1911.13214, section 3). What autograd is
 * seen to save for a module usually has the input and not the output: dry_stage_saved() makes
 * the one of the other. A loss is a last stage whose output and gradient have no bytes.
 *
 * Ownership  create / destroy; stages, options and names are copied.
 * Errors     Sums that leave 63 bits are DRY_ERR_LIMIT, as are more stages or options than
 *            below; what contradicts itself is DRY_ERR_ARGUMENT, with the stage and the field.
 * Threads    One at a time while stages are added; then any number may read.
 * Units      Bytes and nanoseconds, both in 63 bits.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>
#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_chain;

#define DRY_CHAIN_STAGES_MAX 100000u
#define DRY_STAGE_OPTIONS_MAX 64u

/* Another way to keep what a stage's backward needs: less of it, for more work. */
struct dry_stage_option {
    const char *name;            /* "sac:attn" */
    uint64_t saved_bytes;        /* in place of the stage's; at least the output */
    uint64_t recompute_ns;       /* on top of the stage's backward */
    uint64_t backward_tmp_bytes; /* in place of the stage's: with what it makes again */
    /*
     * Of saved_bytes: copied to the host while the next stage runs forward, and gone from
     * then on until the next stage's backward, during which they come back. The caller sees
     * to it that both copies hide behind that work. At most what is saved beside the output,
     * which the next stage wants. No gain for a stage after which no other runs.
     */
    uint64_t offload_bytes;
    /* While its forward runs; without has_forward_tmp the stage's, and this is not read. */
    uint64_t forward_tmp_bytes;
    bool has_forward_tmp;
};

struct dry_stage {
    const char *name; /* NULL: none */
    uint64_t forward_ns, backward_ns;
    uint64_t output_bytes;
    uint64_t gradient_bytes; /* of the output */
    uint64_t saved_bytes;    /* with the output, without the input; at least the output */
    uint64_t forward_tmp_bytes, backward_tmp_bytes; /* while it runs, beyond all that */
    uint64_t
        grads_bytes; /* of its weights, where its backward allocates them; there until
                             the step ends */
    bool is_fixed;   /* must not run twice: it saves, whatever the plan */
    const struct dry_stage_option *options;
    size_t option_count;
};

/* What is there whatever the plan. */
struct dry_chain_frame {
    uint64_t
        persistent_bytes; /* weights, states, buffers, gradients kept from step to step */
    uint64_t input_bytes; /* x(0) */
    uint64_t input_gradient_bytes; /* 0: nobody asks for it */
    uint64_t step_bytes; /* what the optimizer's step takes, when activations are gone */
};

/* memory NULL: malloc. frame NULL: nothing. */
DRY_API enum dry_status dry_chain_create(const struct dry_chain_frame *frame,
                                         const struct dry_memory *memory,
                                         struct dry_chain **chain, struct dry_error *err);
/* NULL is fine. */
DRY_API void dry_chain_destroy(struct dry_chain *chain);
/* The stage, so many times. repeat is at least 1. Failed: none of them is there. */
DRY_API enum dry_status dry_chain_add(struct dry_chain *chain,
                                      const struct dry_stage *stage, size_t repeat,
                                      struct dry_error *err);

DRY_API const struct dry_chain_frame *dry_chain_get_frame(const struct dry_chain *chain);
DRY_API size_t dry_chain_get_count(const struct dry_chain *chain);
/* NULL beyond the last; valid until the next add. */
DRY_API const struct dry_stage *dry_chain_get_stage(const struct dry_chain *chain,
                                                    size_t index);
/* Forward and backward of all stages, once each. */
DRY_API uint64_t dry_chain_get_time(const struct dry_chain *chain);
/*
 * Of all that a plan rests on (names are no part of it), the same on every machine: two
 * ranks whose hashes agree have the same chain.
 */
DRY_API uint64_t dry_chain_get_hash(const struct dry_chain *chain);

/* What autograd was seen to save for a module. */
struct dry_saved {
    uint64_t bytes;                     /* distinct storages, without weights */
    uint64_t input_bytes, output_bytes; /* of the module */
    bool has_input, has_output;         /* are they among them? */
};

/* saved_bytes of a stage; UINT64_MAX: the input is more than all. */
DRY_API uint64_t dry_stage_saved(const struct dry_saved *saved);

#ifdef __cplusplus
}
#endif

#endif
