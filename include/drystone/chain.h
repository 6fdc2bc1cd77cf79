/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_CHAIN_H
#define DRY_CHAIN_H

/*
 * A training step as a chain of stages: the time that each takes, and what it leaves in
 * memory.
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
 * Stage i makes x(i+1) out of x(i); x(0) is the chain's input and stays in its place. A
 * stage's saved bytes are what its forward keeps for its backward. They contain the
 * stage's output and not its input, which the stage before saves: the convention of
 * Beaumont et al. (arXiv:1911.13214, section 3). Autograd usually does the reverse: the
 * tensors seen to be saved for a module have its input and not its output.
 * The second becomes the first by dry_stage_saved(). A loss is a last stage whose
 * output and gradient have no bytes.
 *
 * Ownership  create / destroy; stages, options and names are copied.
 * Errors     DRY_ERR_LIMIT: sums that leave 63 bits, or more stages or options than
 *            below. DRY_ERR_ARGUMENT: a stage that contradicts itself; the text names the
 *            stage and the field. DRY_ERR_MEMORY.
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

/*
 * Another way to keep what a stage's backward needs: less memory for more work. "The
 * stage's" is the field of struct dry_stage with the same name.
 */
struct dry_stage_option {
    const char *name;      /* "sac:attn" */
    uint64_t saved_bytes;  /* in place of the stage's; at least the output */
    uint64_t recompute_ns; /* beyond the stage's backward_ns */
    /* In place of the stage's, including what it makes again. */
    uint64_t backward_tmp_bytes;
    /*
     * The part of saved_bytes that lies on the host for a while. It is copied there while
     * the next stage runs forward, and is then gone until the next stage's backward,
     * which copies it back. The caller ensures that both copies hide behind the next
     * stage's work. At most saved_bytes without the output, which the next stage needs. A
     * stage after which no other runs gains nothing by it.
     */
    uint64_t offload_bytes;
    /*
     * Bytes while its forward runs, in place of the stage's. Read only if has_forward_tmp
     * is set; otherwise the stage's counts.
     */
    uint64_t forward_tmp_bytes;
    bool has_forward_tmp;
};

/* One stage. Temporary bytes are there only while it runs, beyond everything else. */
struct dry_stage {
    const char *name; /* NULL: none */
    uint64_t forward_ns, backward_ns;
    uint64_t output_bytes;
    uint64_t gradient_bytes; /* of the gradient of the output */
    /* Including the output, excluding the input; at least the output. */
    uint64_t saved_bytes;
    uint64_t forward_tmp_bytes, backward_tmp_bytes; /* while it runs, beyond all else */
    /*
     * Gradients of its weights, if its backward allocates them; they are there until the
     * step ends.
     */
    uint64_t grads_bytes;
    bool is_fixed; /* must not run twice: it saves, whatever the plan */
    const struct dry_stage_option *options;
    size_t option_count;
};

/* Memory that is there whatever the plan. */
struct dry_chain_frame {
    /* Weights, states, buffers, gradients kept from step to step. */
    uint64_t persistent_bytes;
    uint64_t input_bytes;          /* x(0) */
    uint64_t input_gradient_bytes; /* 0: nobody asks for the gradient of x(0) */
    /* Bytes that the optimizer's step takes, after the activations are gone. */
    uint64_t step_bytes;
};

/*
 * Make an empty chain. A `frame` of NULL is all zeros; a `memory` of NULL is malloc.
 * Errors: LIMIT, MEMORY.
 */
DRY_API enum dry_status dry_chain_create(const struct dry_chain_frame *frame,
                                         const struct dry_memory *memory,
                                         struct dry_chain **chain, struct dry_error *err);
/* End the chain. NULL is fine. */
DRY_API void dry_chain_destroy(struct dry_chain *chain);
/*
 * Add `stage`, `repeat` times; `repeat` is at least 1. A failed call adds none. Errors:
 * LIMIT, ARGUMENT, MEMORY.
 */
DRY_API enum dry_status dry_chain_add(struct dry_chain *chain,
                                      const struct dry_stage *stage, size_t repeat,
                                      struct dry_error *err);

/* Return the chain's frame. */
DRY_API const struct dry_chain_frame *dry_chain_get_frame(const struct dry_chain *chain);
/* Return the number of stages. */
DRY_API size_t dry_chain_get_count(const struct dry_chain *chain);
/* Return stage `index`, from 0; NULL beyond the last. It is valid until the next add. */
DRY_API const struct dry_stage *dry_chain_get_stage(const struct dry_chain *chain,
                                                    size_t index);
/* Return the time of forward and backward of all stages, once each. */
DRY_API uint64_t dry_chain_get_time(const struct dry_chain *chain);
/*
 * Return the hash of everything that a plan rests on; names are no part of it. It is the
 * same on every machine: two ranks whose hashes agree have the same chain.
 */
DRY_API uint64_t dry_chain_get_hash(const struct dry_chain *chain);

/* The tensors that autograd was seen to save for a module. */
struct dry_saved {
    uint64_t bytes;                     /* of distinct storages, without weights */
    uint64_t input_bytes, output_bytes; /* of the module */
    bool has_input, has_output;         /* are input and output among the saved? */
};

/*
 * Return the saved_bytes of a stage that saves this: without the input, and including the
 * output. UINT64_MAX: the input is more than all that is saved, or the sum passes 64
 * bits.
 */
DRY_API uint64_t dry_stage_saved(const struct dry_saved *saved);

#ifdef __cplusplus
}
#endif

#endif
