/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_CHAIN_STATE_H
#define DRYI_PLAN_CHAIN_STATE_H

/*
 * The internals of a chain, for planners.
 *
 * C1  Every field of every stage is below 2^63, and a stage's saved bytes, by itself and by
 *     each of its options, are at least its output.
 * C2  bytes_sum is below 2^63. It sums the frame and, for every stage, the most it saves, its
 *     gradient, the most of its temporaries and its gradients of weights: no moment of any
 *     plan needs more, so sums of bytes need no further check.
 * C3  work_sum is below 2^63: all forwards, backwards and the most the options recompute. A
 *     plan that recomputes takes more, so sums of time do need a check.
 * C4  kinds[i] == kinds[k] exactly if stages i and k are the same but for names; kinds count
 *     from 0 in order of first appearance.
 */

#include <drystone/chain.h>

#include "base/intern.h"

/* A copy of a stage's name, of its options, and of their names, in one allocation. */
struct dryi_chain_copy {
    void *bytes;
    size_t size;
};

struct dry_chain {
    struct dry_memory memory;
    struct dry_chain_frame frame;
    struct dry_stage *stages;
    uint32_t *kinds;
    size_t count, capacity, kind_capacity;
    struct dryi_intern shapes; /* encoded fields of stages, by kind */
    struct dryi_chain_copy *copies;
    size_t copy_count, copy_capacity;
    uint64_t bytes_sum, work_sum;
    uint64_t time_sum; /* forward and backward of all stages, once each */
    uint64_t hash;
};

/* Return the bytes that the stage saves by an option; option 0 is the stage itself. */
static inline uint64_t
dryi_stage_saved_by(const struct dry_stage *stage, uint32_t option)
{
    return option ? stage->options[option - 1].saved_bytes : stage->saved_bytes;
}

/* Return the temporary bytes of its forward, when it saves by `option`. */
static inline uint64_t
dryi_stage_forward_tmp(const struct dry_stage *stage, uint32_t option)
{
    return option && stage->options[option - 1].has_forward_tmp
               ? stage->options[option - 1].forward_tmp_bytes
               : stage->forward_tmp_bytes;
}

/* Return the temporary bytes of its backward. */
static inline uint64_t
dryi_stage_backward_tmp(const struct dry_stage *stage, uint32_t option)
{
    return option ? stage->options[option - 1].backward_tmp_bytes
                  : stage->backward_tmp_bytes;
}

/* Return the time of its backward, including what the option recomputes. */
static inline uint64_t
dryi_stage_backward_ns(const struct dry_stage *stage, uint32_t option)
{
    return stage->backward_ns + (option ? stage->options[option - 1].recompute_ns : 0);
}

/* Return the bytes that leave the device after the next stage's forward. */
static inline uint64_t
dryi_stage_offload(const struct dry_stage *stage, uint32_t option)
{
    return option ? stage->options[option - 1].offload_bytes : 0;
}

/* Return `hash` extended by a 64-bit value. */
uint64_t dryi_plan_hash_word(uint64_t hash, uint64_t word);

#endif
