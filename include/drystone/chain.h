/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_CHAIN_H
#define DRY_CHAIN_H

/*
 * A training step as a chain of stages, each with its time and the memory that it keeps.
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
 * Stage i computes x(i+1) from x(i); x(0) is the chain's input and is held throughout. A
 * stage's saved bytes are what its forward keeps for its backward. They contain the
 * stage's output and not its input, which the stage before saves: the convention of
 * Beaumont et al. (arXiv:1911.13214, section 3). Autograd usually does the reverse: the
 * tensors saved for a module include its input and not its output. dry_stage_saved()
 * converts autograd's bytes into this convention. The loss is the last stage; its output
 * and gradient have 0 bytes.
 *
 * Ownership  create / destroy; stages, options and names are copied.
 * Errors     DRY_ERR_LIMIT: sums above 63 bits, or more stages or options than the limits
 *            below. DRY_ERR_ARGUMENT: a stage that contradicts itself; the text names the
 *            stage and the field. DRY_ERR_MEMORY.
 * Threads    One at a time while stages are added; then any number may read.
 * Units      Bytes and nanoseconds, both below 2^63.
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

/* Another way to keep what a stage's backward needs: less memory for more work. "Replaces
   the stage's" means the field of struct dry_stage with the same name. */
struct dry_stage_option {
    const char *name;      /* "sac:attn" */
    uint64_t saved_bytes;  /* replaces the stage's; at least the output */
    uint64_t recompute_ns; /* time beyond the stage's backward_ns */
    /* Replaces the stage's; includes the memory of recomputation. */
    uint64_t backward_tmp_bytes;
    /*
     * The part of saved_bytes that is offloaded to the host. It is copied there during
     * the next stage's forward, and back during the next stage's backward; in between it
     * takes no device memory. The caller ensures that both copies overlap fully with the
     * next stage's work. At most saved_bytes minus the output, which the next stage
     * needs. The last stage gains nothing by offloading.
     */
    uint64_t offload_bytes;
    /* Temporary bytes of its forward; replaces the stage's. Read only if has_forward_tmp
       is set. */
    uint64_t forward_tmp_bytes;
    bool has_forward_tmp;
};

/* One stage. Its temporary bytes are held only while it runs, in addition to all other
   bytes. */
struct dry_stage {
    const char *name; /* NULL: none */
    uint64_t forward_ns, backward_ns;
    uint64_t output_bytes;
    uint64_t gradient_bytes; /* the gradient of the output */
    /* Including the output, excluding the input; at least the output. */
    uint64_t saved_bytes;
    uint64_t forward_tmp_bytes, backward_tmp_bytes; /* held only while it runs */
    /*
     * Gradients of its weights that its backward allocates; they are held until the step
     * ends.
     */
    uint64_t grads_bytes;
    bool is_fixed; /* must not run twice: every plan saves it */
    const struct dry_stage_option *options;
    size_t option_count;
};

/* Memory that every plan holds. */
struct dry_chain_frame {
    /* Weights, states, buffers, gradients kept from step to step. */
    uint64_t persistent_bytes;
    uint64_t input_bytes;          /* the size of x(0) */
    uint64_t input_gradient_bytes; /* 0: the gradient of x(0) is not computed */
    /* Temporary bytes of the optimizer's step, which runs after the activations are
       freed. */
    uint64_t step_bytes;
};

/* Make an empty chain. A `frame` of NULL is all zeros; a `memory` of NULL is malloc.
   Errors: LIMIT, MEMORY. */
DRY_API enum dry_status dry_chain_create(const struct dry_chain_frame *frame,
                                         const struct dry_memory *memory,
                                         struct dry_chain **chain, struct dry_error *err);
/* End the chain. NULL is fine. */
DRY_API void dry_chain_destroy(struct dry_chain *chain);
/* Add `stage`, `repeat` times; `repeat` is at least 1. A failed call adds none. Errors:
   LIMIT, ARGUMENT, MEMORY. */
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
/* Return the total time of all stages: forward and backward, once each. */
DRY_API uint64_t dry_chain_get_time(const struct dry_chain *chain);
/* Return the hash of all fields that a plan depends on, which excludes names. It is the
   same on every machine: two ranks with equal hashes have the same chain. */
DRY_API uint64_t dry_chain_get_hash(const struct dry_chain *chain);

/* The tensors that autograd saves for a module. */
struct dry_saved {
    uint64_t bytes;                     /* distinct storages, without weights */
    uint64_t input_bytes, output_bytes; /* sizes of the module's input and output */
    bool has_input, has_output;         /* the saved tensors include them */
};

/*
 * Convert autograd's saved bytes into the saved_bytes of a stage: without the input, and
 * with the output. UINT64_MAX: the input exceeds the saved bytes, or the sum exceeds 64
 * bits.
 */
DRY_API uint64_t dry_stage_saved(const struct dry_saved *saved);

#ifdef __cplusplus
}
#endif

#endif
